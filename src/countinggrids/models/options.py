"""The documentation of the parameters that all models share."""

from inspect import cleandoc

OPTIONS = """location_prior : {"smoothed", "exact", "uniform"}, default="smoothed"
    How the prior over windows is estimated: from the usage summed over overlapping windows (Eq. pl2), from the usage
    itself (Eq. pl1), or not at all.
eta : "auto", float or array-like of shape (n_features,), default="auto"
    Pseudocounts of every feature in every cell (Eq. M1_full). "auto" takes them along the mean histogram of the
    bags: strong while the layout forms, then in total at most a fifth of the tokens of a cell.
anneal : "auto", None or tuple of (start, rate, end), default="auto"
    Deterministic annealing: the inverse temperature beta rises from `start` by the factor `rate` in every iteration to
    `end`. "auto" starts at the critical inverse temperature of the data and ends at 1; where that saves work, several
    candidates are trained on a smaller grid of the same capacity, and the best one is upsampled. None is plain EM. An
    end below 1 tempers bags whose features are far from independent draws; predictions then use it too.
init : {"auto", "embedding", "uniform"} or array-like of the shape of `pi_`, default="auto"
    The first grid. "uniform" is near uniform, with noise that breaks the symmetry. "embedding" places the bags, or 500
    of them, by the distances between their histograms, and paints a grid from that layout; bags that are overlapping
    windows of a scene tell their places so. "auto" compares both by their objectives if the distances fit a plane of
    as many axes as the grid, and `anneal` is "auto"; else it is "uniform". An array is your own first grid.
max_iter : int, default=500
    Largest number of iterations on each grid, annealing included, which takes at most three fifths of them.
tol : float, default=1e-5
    Change of the objective per token at which EM has converged; where bags are held out (from 1000 bags on), the gain
    per token below which they count as gaining nothing, once the annealing has ended.
n_init : int, default=1
    Number of restarts; the one with the best objective is kept.
batch_size : int or None, default=None
    Bags that one iteration uses during annealing (stepwise EM); None uses all. Every such iteration moves the expected
    sufficient statistics half of the way to those of its batch. Once annealing has ended, iterations use all bags.
    Bags that are not in memory should be in random order.
sparse_output : bool, default=False
    Whether `transform` returns a sparse matrix. It applies to a fitted model too.
dtype : {"float32", "float64"}, default="float32"
    Precision of the parameters and of all products.
device : str or None, default=None
    Where to compute. None is NumPy on the threads of this process, the fastest choice on a processor, above all for
    sparse counts. "cpu", "cuda", "cuda:1", "mps" and other names are devices of torch (extra `torch`), to which bags
    are moved dense, a block at a time. Results differ by rounding only. It is not saved with the model, and applies to
    predictions of a fitted model too.
random_state : int, RandomState or None, default=None
    Seed of the first grid, and of `sample`. With NumPy the same seed gives the same bits on any number of threads.
verbose : int, default=0
    1 estimates time and memory, and shows progress on stderr: a bar on a terminal or in a notebook, elsewhere a line
    every two seconds. 2 writes a line after every iteration.

Attributes
----------
pi_ : ndarray of shape (*grid, n_features)
    Distribution over features in each cell; sums to one over the last axis.
log_prior_ : ndarray of shape (*grid,)
    Log prior of each window.
geometry_ : Geometry
    Grid, window and sections that were fitted.
inverse_temperature_ : float
    Inverse temperature at the end of annealing, by which predictions multiply counts.
location_prior_ : str
    How `log_prior_` was estimated.
fingerprint_ : str or None
    Fingerprint of the features, if the model was fitted to a `Collection`.
history_ : ndarray of shape (n_iter_,)
    Log-likelihood plus log prior of the grid, per token, at every iteration.
n_iter_ : int
    Number of iterations on the full grid.
converged_ : bool
    Whether the objective changed by less than `tol` at the end."""


def shared_options(model: type) -> type:
    """Insert the shared parameters into the docstring of a model."""
    model.__doc__ = cleandoc(model.__doc__ or "").replace("{options}", OPTIONS)
    return model
