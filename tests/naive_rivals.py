"""The models that the paper compares with, as plain loops over their definitions."""

import numpy as np


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
