"""Views of places against scikit-learn's mixtures and SciPy's densities, and tracked along a walk."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.utils.estimator_checks import parametrize_with_checks

import countinggrids as cg
from countinggrids.baselines import Views, gist_places
from countinggrids.features import Gist


@parametrize_with_checks([Views(2, random_state=0)])
def test_scikit_learn_takes_it_for_one_of_its_own(estimator, check):
    check(estimator)


def test_densities_are_those_of_scipy(rng):
    X = np.vstack([rng.standard_normal((20, 3)), 6 + rng.standard_normal((20, 3))])
    model = Views(2, random_state=0).fit(X)
    mixture = model.mixture_
    parts = [
        multivariate_normal(mean, variance * np.eye(3)).logpdf(X)
        for mean, variance in zip(mixture.means_, mixture.covariances_, strict=True)
    ]
    np.testing.assert_allclose(
        model.score_samples(X), logsumexp(np.transpose(parts) + np.log(mixture.weights_), axis=1)
    )
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())


def test_few_or_equal_images_do_not_break_it(rng):
    assert Views(10, random_state=0).fit(rng.random((3, 2))).mixture_.n_components == 1
    assert np.isfinite(Views(10, random_state=0).fit(np.ones((6, 2))).score_samples(np.ones((2, 2)))).all()


def walk(rng, n):
    """Draw frames of three places, told apart by the direction of stripes; every place is passed through twice."""
    places = np.repeat([0, 1, 2, 1, 0, 2], n)
    rows, columns = np.mgrid[:32, :32]
    frames = []
    for place in places:
        turn = np.pi * place / 3 + 0.1 * rng.standard_normal()
        stripes = np.cos(1.2 * (columns * np.cos(turn) + rows * np.sin(turn)) + rng.uniform(0, 6))
        frames.append(np.clip(0.5 + 0.2 * stripes + 0.15 * rng.standard_normal((32, 32)), 0, 1))
    return frames, np.array(["hall", "stairs", "yard"])[places]


def test_places_are_followed_by_their_gist(rng):
    gist = Gist(size=32, orientations=(6, 6), blocks=2)
    frames, y = walk(rng, 10)
    later, wanted = walk(rng, 8)
    tracker = gist_places(3, 5, random_state=0, gamma=0.2).fit(gist.transform(frames), y)
    assert isinstance(tracker, cg.PlaceTracker)
    assert tracker.score(gist.transform(later), wanted) > 0.9


def test_wrong_use_is_refused(rng):
    with pytest.raises(ValueError, match="n_components=0 must be an integer"):
        Views(0).fit(rng.random((5, 2)))
    with pytest.raises(ValueError, match="floor=0 must be a number above 0"):
        Views(floor=0).fit(rng.random((5, 2)))
