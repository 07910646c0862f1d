"""FAB-MAP: words that occur together, in a Chow-Liu tree, a detector model, and the probability of a new place."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from countinggrids.core.fitting import settings_of, whole_or_nothing
from countinggrids.data.validation import check_bags
from countinggrids.meta.options import is_number

Array = NDArray[np.float64]


class FabMap(BaseEstimator):  # type: ignore[misc]
    """Recognize places by which visual words occur, with the model of Cummins and Newman.

    A word is observed or not. Words depend on each other through a Chow-Liu tree, which is learned from the reference
    images. A place is the probability that each word exists there, given one image of it and a detector that misses
    words and reports false ones. A new place has the average existence of words.

    Parameters
    ----------
    detection : float, default=0.39
        Probability that a word that exists is observed.
    false_alarm : float, default=0.01
        Probability that a word that does not exist is observed.
    threshold : float, default=0.0
        Counts above it are observations.
    new_place : float, default=0.1
        Prior probability of a new place.

    Attributes
    ----------
    parents_ : ndarray of shape (n_words,)
        Parent of each word in the tree; -1 for the root.
    marginal_ : ndarray of shape (n_words,)
        Probability that a word is observed.
    conditional_ : ndarray of shape (n_words, 2)
        Probability that a word is observed, given that its parent is not, and that it is.
    existence_ : ndarray of shape (n_images, n_words)
        Observations of the reference images.
    settings_ : namespace
        Parameters at the time of the fit, which predictions use.

    Examples
    --------
    >>> import numpy as np
    >>> from countinggrids.baselines import FabMap
    >>> X = np.kron(np.eye(4), np.ones((1, 3)))
    >>> FabMap().fit(X).similarity(X).argmax(axis=1).tolist()
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        detection: float = 0.39,
        *,
        false_alarm: float = 0.01,
        threshold: float = 0.0,
        new_place: float = 0.1,
    ):
        self.detection = detection
        self.false_alarm = false_alarm
        self.threshold = threshold
        self.new_place = new_place

    @whole_or_nothing
    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the tree, and keep the reference images.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_images, n_words)
            Counts of words.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted model.
        """
        X = check_bags(self, X, is_fitting=True)
        self._check_options()
        self.settings_ = settings_of(self, "detection", "false_alarm", "threshold", "new_place")
        seen = self._observed(X)
        self.marginal_ = (seen.sum(axis=0) + 0.5) / (len(seen) + 1)
        both = seen.T @ seen
        self.parents_ = chow_liu_tree(both, seen.sum(axis=0), len(seen))
        self.conditional_ = self._conditionals(both, seen.sum(axis=0), len(seen))
        self.existence_ = seen.astype(np.float32)
        return self

    def similarity(self, X: Any) -> Array:
        """Return the log-likelihood of each query at the place of each reference image.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_images, n_words)
            Counts of words.

        Returns
        -------
        log_likelihood : ndarray of shape (n_images, n_references)
            Larger is more alike.
        """
        check_is_fitted(self)
        seen = self._observed(check_bags(self, X, is_fitting=False))
        given_not, given = self._log_likelihoods(seen)
        weight = self._existence_given_observation()
        # The existence of a word at a place takes two values, so that two products give the sum over words.
        low, high = (np.log((1 - w) * np.exp(given_not) + w * np.exp(given)) for w in weight)
        return np.asarray(low.sum(axis=1)[:, None] + (high - low) @ self.existence_.T)

    def log_new_place(self, X: Any) -> Array:
        """Return the log-likelihood of each query at a place with the average existence of words.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_images, n_words)
            Counts of words.

        Returns
        -------
        log_likelihood : ndarray of shape (n_images,)
            Log-likelihood at a new place.
        """
        check_is_fitted(self)
        given_not, given = self._log_likelihoods(self._observed(check_bags(self, X, is_fitting=False)))
        exists = self._prior_existence()
        return np.log((1 - exists) * np.exp(given_not) + exists * np.exp(given)).sum(axis=1)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each place, and of a new one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_images, n_words)
            Counts of words.

        Returns
        -------
        probabilities : ndarray of shape (n_images, n_references + 1)
            The last column is the probability of a new place.
        """
        known = self.similarity(X) + np.log((1 - self.settings_.new_place) / len(self.existence_))
        joint = np.column_stack([known, self.log_new_place(X) + np.log(self.settings_.new_place)])
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _observed(self, X: Any) -> Array:
        return np.asarray((X.toarray() if sp.issparse(X) else X) > self.settings_.threshold, dtype=np.float64)

    def _conditionals(self, both: Array, ones: Array, n: int) -> Array:
        """Return the smoothed p(word | parent not observed) and p(word | parent observed)."""
        words = np.arange(len(ones))
        parents = np.where(self.parents_ < 0, words, self.parents_)
        together, parent = both[words, parents], ones[parents]
        found = np.column_stack([(ones - together + 0.5) / (n - parent + 1), (together + 0.5) / (parent + 1)])
        is_root = self.parents_ < 0
        found[is_root] = self.marginal_[is_root, None]
        return found

    def _prior_existence(self) -> Array:
        """Return p(word exists), so that the detector observes it as often as it was."""
        exists = (self.marginal_ - self.settings_.false_alarm) / (self.settings_.detection - self.settings_.false_alarm)
        return np.clip(exists, 1e-3, 1 - 1e-3)

    def _existence_given_observation(self) -> tuple[Array, Array]:
        """Return p(word exists at a place), given one image without it, and one with it."""
        exists, d, f = self._prior_existence(), self.settings_.detection, self.settings_.false_alarm
        missed = (1 - d) * exists / ((1 - d) * exists + (1 - f) * (1 - exists))
        return missed, d * exists / (d * exists + f * (1 - exists))

    def _log_likelihoods(self, seen: Array) -> tuple[Array, Array]:
        """Return log p(observation | word exists not, observation of its parent), and given that it exists.

        As in the paper, the detector's odds are multiplied by the odds of the tree over those of the marginal.
        """
        parents = np.where(self.parents_ < 0, 0, self.parents_)
        words = np.arange(len(parents))
        tree = self.conditional_[words, seen[:, parents].astype(int)]
        found = []
        for p in (self.settings_.false_alarm, self.settings_.detection):
            odds_ratio = p / (1 - p) * (tree / (1 - tree)) * ((1 - self.marginal_) / self.marginal_)
            one = odds_ratio / (1 + odds_ratio)
            found.append(np.log(np.where(seen > 0, one, 1 - one)))
        return found[0], found[1]

    def _check_options(self) -> None:
        for name in ("detection", "false_alarm", "new_place"):
            value = getattr(self, name)
            if not is_number(value) or not 0 < value < 1:
                raise ValueError(f"{name}={value!r} must be a probability above 0 and below 1; use {name}=0.1.")
        if not self.false_alarm < self.detection:
            raise ValueError(
                f"false_alarm={self.false_alarm} must be below detection={self.detection}; use false_alarm=0.01."
            )


def chow_liu_tree(both: Array, ones: Array, n: int) -> NDArray[np.int64]:
    """Return the parent of each word in the tree of largest mutual information, rooted at word 0.

    Parameters
    ----------
    both : ndarray of shape (n_words, n_words)
        Number of images with both words.
    ones : ndarray of shape (n_words,)
        Number of images with each word.
    n : int
        Number of images.

    Returns
    -------
    parents : ndarray of shape (n_words,)
        Parents; -1 for the root.
    """
    information = mutual_information(both, ones, n)
    # Only weights above zero are edges.
    weights = information.max() + 1.0 - information
    np.fill_diagonal(weights, 0)
    tree = minimum_spanning_tree(sp.csr_array(weights))
    _, parents = breadth_first_order(tree, 0, directed=False)
    return np.where(parents < 0, -1, parents).astype(np.int64)


def mutual_information(both: Array, ones: Array, n: int) -> Array:
    """Return the mutual information of every two words, in nats, (words, words)."""
    total = np.zeros_like(both, dtype=np.float64)
    for a in (0, 1):
        for b in (0, 1):
            first, second = (ones if a else n - ones) / n, (ones if b else n - ones) / n
            joint = {(1, 1): both, (1, 0): ones[:, None] - both, (0, 1): ones - both}.get(
                (a, b), n - ones[:, None] - ones + both
            ) / n  # fmt: skip
            expected = first[:, None] * second
            ratio = np.divide(joint, expected, out=np.ones_like(total), where=(joint > 0) & (expected > 0))
            total += joint * np.log(ratio)
    return total
