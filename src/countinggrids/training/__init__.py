"""How a model is trained: the EM loop, stepwise EM, initialization, checkpoints and callbacks."""
