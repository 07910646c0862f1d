"""The models that the paper compares with, as plain loops over their definitions."""

import itertools

import numpy as np
from scipy.special import digamma


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
