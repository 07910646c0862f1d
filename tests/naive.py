"""The paper's equations as plain loops: slow, obvious, and the oracle for everything else.

Arrays are in the public layout: pi is (*grid, features), counts are (bags, *sections, features).
"""

import itertools
from math import log, prod

import numpy as np


def cells(shape):
    return list(itertools.product(*(range(n) for n in shape)))


def add(k, d, grid):
    return tuple((a + b) % n for a, b, n in zip(k, d, grid, strict=True))


def section_shape(window, sections):
    return tuple(w // s for w, s in zip(window, sections, strict=True))


def histogram(pi, grid, block):
    """Eq. h, for the block at every cell."""
    h = np.zeros_like(pi)
    for k in cells(grid):
        for d in cells(block):
            h[k] += pi[add(k, d, grid)]
        h[k] /= prod(block)
    return h


def section_offset(s, block):
    return tuple(a * b for a, b in zip(s, block, strict=True))


def coarsened(counts, fine, coarse):
    """Add up the fine sections that lie in one coarse section."""
    out = np.zeros((len(counts), *coarse, counts.shape[-1]))
    for s in cells(fine):
        target = tuple(a * c // f for a, c, f in zip(s, coarse, fine, strict=True))
        out[(slice(None), *target)] += counts[(slice(None), *s)]
    return out


def e_step(counts, pi, prior, grid, window, sections, beta=1.0):
    """Eqs. qkl, qkl2, qklE: q, (bags, *grid), and log p of each bag."""
    block = section_shape(window, sections)
    h = histogram(pi, grid, block)
    q = np.zeros((len(counts), *grid))
    log_likelihood = np.zeros(len(counts))
    for t, bag in enumerate(counts):
        joint = {}
        for k in cells(grid):
            total = log(prior[k])
            for s in cells(sections):
                place = add(k, section_offset(s, block), grid)
                for z, c in enumerate(bag[s]):
                    if c:
                        total += beta * c * log(h[place][z])
            joint[k] = total
        best = max(joint.values())
        norm = sum(np.exp(value - best) for value in joint.values())
        for k, value in joint.items():
            q[t][k] = np.exp(value - best) / norm
        log_likelihood[t] = best + log(norm)
    return q, log_likelihood


def expected_counts(counts, q, pi, grid, window, sections):
    """The sums of Eqs. M1 and M2 with r of Eq. r: every token shared out among the cells of its section."""
    block = section_shape(window, sections)
    out = np.zeros_like(pi)
    for t, bag in enumerate(counts):
        for k in cells(grid):
            for s in cells(sections):
                corner = add(k, section_offset(s, block), grid)
                inside = [add(corner, d, grid) for d in cells(block)]
                for z, c in enumerate(bag[s]):
                    total = sum(pi[i][z] for i in inside)
                    for i in inside:
                        out[i][z] += q[t][k] * c * pi[i][z] / total
    return out


def painted_counts(maps, q, n_features, grid):
    """Eq. ME: every feature of a map copied to where the map lies."""
    out = np.zeros((*grid, n_features))
    for t, labels in enumerate(maps):
        for k in cells(grid):
            for i in cells(labels.shape):
                out[add(k, i, grid)][labels[i]] += q[t][k]
    return out


def m_step(expected, eta):
    """Eq. M1_full."""
    pi = expected + eta
    return pi / pi.sum(axis=-1, keepdims=True)


def location_prior(q, grid, window, kind):
    """Eqs. pl1 and pl2."""
    usage = q.sum(axis=0)
    if kind == "uniform":
        return np.full(grid, 1 / prod(grid))
    if kind == "smoothed":
        smoothed = np.zeros(grid)
        for k in cells(grid):
            for d in cells(window):
                smoothed[add(k, d, grid)] += usage[k]
        usage = smoothed
    return usage / usage.sum()


def elastic_step(counts, pi, prior, slip, slips, grid, window, sections, beta=1.0):
    """Sections that slip: q, expected counts by cell, expected numbers of slips, and log p of each bag.

    `slip` is (*sections, n) with the probability of each of n `slips`.
    """
    block = section_shape(window, sections)
    h = histogram(pi, grid, block)
    q, log_likelihood = np.zeros((len(counts), *grid)), np.zeros(len(counts))
    painted, slipped = np.zeros_like(pi), np.zeros_like(slip)
    for t, bag in enumerate(counts):
        joint, paths = {}, {}
        for k in cells(grid):
            total = prior[k]
            for s in cells(sections):
                corner = add(k, section_offset(s, block), grid)
                terms = []
                for i, d in enumerate(slips):
                    place = add(corner, d, grid)
                    terms.append(slip[s][i] * prod(h[place][z] ** (beta * c) for z, c in enumerate(bag[s]) if c))
                paths[k, s] = [term / sum(terms) for term in terms]
                total *= sum(terms)
            joint[k] = total
        norm = sum(joint.values())
        log_likelihood[t] = log(norm)
        for k, value in joint.items():
            q[t][k] = value / norm
            for s in cells(sections):
                corner = add(k, section_offset(s, block), grid)
                for i, d in enumerate(slips):
                    r = q[t][k] * paths[k, s][i]
                    slipped[s][i] += r
                    inside = [add(add(corner, d, grid), e, grid) for e in cells(block)]
                    for z, c in enumerate(bag[s]):
                        total = sum(pi[j][z] for j in inside)
                        for j in inside:
                            painted[j][z] += r * c * pi[j][z] / total
    return q, painted, slipped, log_likelihood


def componential_e_step(counts, pi, alpha, grid, window, sections, n_steps):
    """Weights of the cells in every bag, every token in its own window; expected counts, and log p of the tokens."""
    block = section_shape(window, sections)
    h = histogram(pi, grid, block)
    theta, expected, log_p = np.zeros((len(counts), *grid)), np.zeros_like(pi), np.zeros(len(counts))
    for t, bag in enumerate(counts):
        theta[t] = 1 / prod(grid)
        for step in range(n_steps + 1):
            used = np.full(grid, alpha / prod(grid))
            for s in cells(sections):
                places = {k: add(k, section_offset(s, block), grid) for k in cells(grid)}
                for z, c in enumerate(bag[s]):
                    p = sum(theta[t][k] * h[place][z] for k, place in places.items())
                    for k, place in places.items():
                        r = c * theta[t][k] * h[place][z] / p
                        used[k] += r
                        for d in cells(block) if step == n_steps else []:
                            i = add(place, d, grid)
                            expected[i][z] += r * pi[i][z] / (prod(block) * h[place][z])
                    if step == n_steps and c:
                        log_p[t] += c * log(p)
            if step < n_steps and bag.sum():
                theta[t] = used / used.sum()
    return theta, expected, log_p
