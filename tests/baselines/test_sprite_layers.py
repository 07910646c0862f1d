"""The E step of flexible sprites, against loops."""

import numpy as np

from countinggrids.baselines import sprite_layers


def test_scores_of_shifts_are_those_of_loops(rng):
    """With one layer that cannot be hidden, the posterior over shifts is that of a shifted Gaussian."""
    size = (3, 4)
    images = rng.random((2, 2, *size))
    layers = sprite_layers.Layers(rng.random((1, 2, *size)), np.ones((1, *size)), 0.3)
    posterior = sprite_layers.e_step(images, layers, sprite_layers.first_posterior(images, layers), 1, is_panning=True)
    for t, image in enumerate(images):
        scores = np.zeros(size)
        for shift in np.ndindex(size):
            for i in np.ndindex(size):
                there = tuple((a + b) % n for a, b, n in zip(i, shift, size, strict=True))
                scores[shift] -= (
                    (image[(slice(None), *there)] - layers.appearance[0][(slice(None), *i)]) ** 2
                ).sum() / 0.6
        expected = np.exp(scores - scores.max())
        np.testing.assert_allclose(posterior.shifts[t, 0], expected / expected.sum(), atol=1e-12)
