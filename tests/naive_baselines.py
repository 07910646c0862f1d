"""The models that the paper compares with, as plain loops over their definitions."""

import itertools

import numpy as np
from scipy.special import digamma, logsumexp
from scipy.stats import norm

from naive import add, cells


def pyramid_kernel(a, b, sections):
    """Intersect the histograms of two bags, (*sections, features), in every section of every level."""
    a, b = a / max(a.sum(), 1), b / max(b.sum(), 1)
    finest = max(sections).bit_length() - 1
    total = 0.0
    for level in range(finest + 1):
        weight = 1 / 2**finest if level == 0 else 1 / 2 ** (finest - level + 1)
        parts = [max(1, n >> (finest - level)) for n in sections]
        for row in range(parts[0]):
            for column in range(parts[1]):
                height, width = sections[0] // parts[0], sections[1] // parts[1]
                here = np.s_[row * height : (row + 1) * height, column * width : (column + 1) * width]
                for z in range(a.shape[2]):
                    total += weight * min(a[here][..., z].sum(), b[here][..., z].sum())
    return total


def reconfigurable_by_enumeration(bag, models, prior):
    """Add up p(bag, assignment) over every way to assign region models to the regions of a bag, (regions, features)."""
    total = 0.0
    for assignment in itertools.product(range(len(models)), repeat=len(bag)):
        p = 1.0
        for region, k in enumerate(assignment):
            p *= prior[region, k]
            for z, count in enumerate(bag[region]):
                p *= models[k, z] ** count
        total += p
    return np.log(total)


def reconfigurable_step(bags, models, prior, alpha, eta):
    """Make one EM step, bags (bags, regions, features); give new models and priors."""
    seen, used = np.zeros_like(models) + eta, np.zeros_like(prior) + alpha
    for bag in bags:
        for region, counts in enumerate(bag):
            p = [prior[region, k] * np.prod(models[k] ** counts) for k in range(len(models))]
            for k in range(len(models)):
                used[region, k] += p[k] / sum(p)
                seen[k] += p[k] / sum(p) * counts
    return seen / seen.sum(axis=1, keepdims=True), used / used.sum(axis=1, keepdims=True)


def polya_step(bags, alpha, weights):
    """Make one step of Minka's fixed point without a prior, for one component."""
    above, below = np.zeros_like(alpha), 0.0
    for bag, weight in zip(bags, weights, strict=True):
        below += weight * (digamma(bag.sum() + alpha.sum()) - digamma(alpha.sum()))
        for z, count in enumerate(bag):
            above[z] += weight * (digamma(count + alpha[z]) - digamma(alpha[z]))
    return alpha * above / below


def epitome_scores(image, mean, variance):
    """Give log p(image | window) for every corner, image (*window, channels), mean and variance (*grid, channels)."""
    grid, window = mean.shape[:2], image.shape[:2]
    found = np.zeros(grid)
    for k in cells(grid):
        for i in cells(window):
            there = add(k, i, grid)
            found[k] += norm.logpdf(image[i], mean[there], np.sqrt(variance[there])).sum()
    return found


def epitome_step(images, mean, variance, eta):
    """Make one EM step of the epitome; give the log-likelihoods of the images, new means and variances."""
    grid, window = mean.shape[:2], images.shape[1:3]
    common, spread = images.mean(axis=(0, 1, 2)), images.var(axis=(0, 1, 2))
    times = np.full((*grid, 1), eta)
    total, squares = np.zeros_like(mean) + eta * common, np.zeros_like(mean) + eta * (spread + common**2)
    scores = []
    for image in images:
        places = epitome_scores(image, mean, variance)
        scores.append(logsumexp(places) - np.log(places.size))
        q = np.exp(places - logsumexp(places))
        for k in cells(grid):
            for i in cells(window):
                there = add(k, i, grid)
                times[there] += q[k]
                total[there] += q[k] * image[i]
                squares[there] += q[k] * image[i] ** 2
    return scores, total / times, squares / times - (total / times) ** 2


def stel_update(image, stels, epitome, floor):
    """Improve palette, place and stels of one image: image (*window, channels), stels (*window, stels).

    Gives q, the new stels and the bound, the latter as the sum of all its terms.
    """
    grid, window, n_stels = epitome.shape[:2], image.shape[:2], epitome.shape[2]
    density = np.zeros(stels.shape)
    for s in range(n_stels):
        share = stels[..., s]
        for c in range(image.shape[2]):
            x = image[..., c]
            mean = (share * x).sum() / share.sum()
            variance = max((share * (x - mean) ** 2).sum() / share.sum(), floor * x.var())
            density[..., s] += norm.logpdf(x, mean, np.sqrt(variance))
    places, expected = np.zeros(grid), np.zeros(stels.shape)
    for k in cells(grid):
        for i in cells(window):
            places[k] += stels[i] @ np.log(epitome[add(k, i, grid)])
    q = np.exp(places - logsumexp(places))
    for k in cells(grid):
        for i in cells(window):
            expected[i] += q[k] * np.log(epitome[add(k, i, grid)])
    r = np.exp(density + expected)
    r /= r.sum(axis=-1, keepdims=True)
    bound = (r * (density + expected - np.log(r))).sum() - (q * np.log(q)).sum() - np.log(q.size)
    return q, r, bound


def stel_window_bounds(image, epitome, floor):
    """Give the bound of every window with a palette of its own, whose stels are those of the epitome."""
    window, bounds = image.shape[:2], np.zeros(epitome.shape[:2])
    for k in cells(bounds.shape):
        stels = np.array([epitome[add(k, i, bounds.shape)] for i in cells(window)]).reshape(*window, -1)
        for s in range(stels.shape[2]):
            share = stels[..., s]
            for c in range(image.shape[2]):
                x = image[..., c]
                mean = (share * x).sum() / share.sum()
                variance = max((share * (x - mean) ** 2).sum() / share.sum(), floor * x.var())
                bounds[k] += (share * norm.logpdf(x, mean, np.sqrt(variance))).sum()
    return bounds


def stel_epitome(qs, stels, eta):
    """Lay the stels of images down where the images are."""
    grid, window = qs[0].shape, stels[0].shape[:2]
    seen = np.full((*grid, stels[0].shape[2]), eta)
    for q, r in zip(qs, stels, strict=True):
        for k in cells(grid):
            for i in cells(window):
                seen[add(k, i, grid)] += q[k] * r[i]
    return seen / seen.sum(axis=-1, keepdims=True)
