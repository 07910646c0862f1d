"""The layers of flexible sprites: their posterior given images, its lower bound, and the M step."""

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp, xlogy

from countinggrids.baselines import spectra
from countinggrids.core.geometry import Shape

Array = NDArray[np.float64]
SMALLEST = 1e-6
"""Smallest variance of the noise, as a fraction of that of the pixels, and the smallest probability of a mask."""
FIRST_MASK = 0.9
"""Probability of a sprite where the image that it starts from differs most from the background."""


class Layers(NamedTuple):
    """The parameters: appearance, (layers, channels, *size), masks, (layers, *size), and the variance of the noise."""

    appearance: Array
    masks: Array
    variance: float


class Posterior(NamedTuple):
    """Mean-field posterior: shifts and masks, both (images, layers, *size), and the bound of each image."""

    shifts: Array
    masks: Array
    bound: Array


def first_layers(images: Array, weights: Array, n_sprites: int, rng: np.random.RandomState) -> Layers:
    """Return the mean image as background, and sprites where single images differ from it."""
    used = np.flatnonzero(weights)
    background = np.average(images, axis=0, weights=weights)
    appearance, masks = [background], [np.ones(images.shape[2:])]
    for number in rng.choice(used, n_sprites, replace=len(used) < n_sprites):
        away = ((images[number] - background) ** 2).sum(axis=0)
        appearance.append(images[number])
        masks.append(np.clip(FIRST_MASK * away / max(away.max(), SMALLEST), 0.1, FIRST_MASK))
    return Layers(np.array(appearance), np.array(masks), float(images.var()) + SMALLEST)


def first_posterior(images: Array, layers: Layers) -> Posterior:
    """Return the posterior with sprites that may be anywhere and a background that is not shifted."""
    shape = (len(images), *layers.masks.shape)
    shifts = np.full(shape, 1 / prod(shape[2:]))
    shifts[:, 0] = 0
    shifts.reshape(*shape[:2], -1)[:, 0, 0] = 1
    return Posterior(shifts, np.broadcast_to(layers.masks, shape).copy(), np.zeros(len(images)))


def e_step(images: Array, layers: Layers, posterior: Posterior, n_updates: int, is_panning: bool) -> Posterior:
    """Update shifts and masks of every layer in turn, and compute the bound."""
    shifts, masks = posterior.shifts.copy(), posterior.masks.copy()
    for _ in range(n_updates):
        for number in range(0 if is_panning else 1, len(layers.masks)):
            _update_layer(images, layers, shifts, masks, number)
    return Posterior(shifts, masks, _bound(images, layers, shifts, masks))


def m_step(images: Array, weights: Array, posterior: Posterior, layers: Layers, floor: float) -> Layers:
    """Re-estimate appearance, masks and noise."""
    moved = _moved_masks(posterior)
    appearance, masks = [], [layers.masks[0]]
    by_image = weights.reshape(-1, *(1 for _ in images.shape[2:]))
    for number, before in enumerate(layers.appearance):
        free = np.prod(1 - moved[number + 1 :], axis=0) * np.ones(images.shape[2:])
        q, r = posterior.shifts[:, number], posterior.masks[:, number] * by_image
        total = np.maximum((r * _gathered(q, free, free.shape[1:])).sum(axis=0), SMALLEST)
        sums = [(r * _gathered(q, free * images[:, c], free.shape[1:])).sum(axis=0) for c in range(images.shape[1])]
        appearance.append((np.array(sums) + SMALLEST * before) / (total + SMALLEST))
        if number:
            masks.append(np.clip(r.sum(axis=0) / weights.sum(), SMALLEST, 1 - SMALLEST))
    new = Layers(np.array(appearance), np.array(masks), layers.variance)
    shown = _behind(moved, _errors(images, new, posterior.shifts), len(moved))
    error = float((by_image * shown).sum()) / (weights.sum() * prod(images.shape[1:]))
    return new._replace(variance=max(error, floor, 1e-12))


def visibility(posterior: Posterior) -> Array:
    """Return how visible each layer is, (layers, images, *size); the last one is in front."""
    masks = _moved_masks(posterior)
    uncovered = np.cumprod((1 - masks[:0:-1]), axis=0)[::-1]
    return masks * np.concatenate([uncovered, np.ones_like(masks[:1])])


def _moved(q: Array, planes: Array) -> Array:
    """Return planes of a layer where it may be: the sum over shifts k of q[k] plane[i - k]."""
    size = q.shape[1:]
    return spectra.inverse(spectra.spectrum(q, size) * spectra.spectrum(planes, size), size)


def _gathered(q: Array, planes: Array, size: Shape) -> Array:
    """Return planes of images where the layer sees them: the sum over shifts k of q[k] plane[i + k]."""
    return spectra.inverse(spectra.spectrum(q, size).conj() * spectra.spectrum(planes, size), size)


def _moved_masks(posterior: Posterior) -> Array:
    """Return the expected mask of each layer in the frame of the images, (layers, images, *size)."""
    pairs = zip(np.moveaxis(posterior.shifts, 1, 0), np.moveaxis(posterior.masks, 1, 0), strict=True)
    return np.clip(np.array([_moved(q, masks) for q, masks in pairs]), 0, 1)


def _errors(images: Array, layers: Layers, shifts: Array) -> Array:
    """Return the expected squared difference of each image from each layer, (layers, images, *size)."""
    squared = (images**2).sum(axis=1)
    errors = []
    for number, appearance in enumerate(layers.appearance):
        q = shifts[:, number]
        cross = sum(images[:, c] * _moved(q, plane[None]) for c, plane in enumerate(appearance))
        errors.append(squared - 2 * cross + _moved(q, (appearance**2).sum(axis=0)[None]))
    return np.maximum(errors, 0)


def _behind(masks: Array, errors: Array, number: int) -> Array:
    """Return the expected squared difference from what lies behind a layer, (images, *size)."""
    behind = errors[0]
    for mask, error in zip(masks[1:number], errors[1:number], strict=True):
        behind = mask * error + (1 - mask) * behind
    return behind


def _update_layer(images: Array, layers: Layers, shifts: Array, masks: Array, number: int) -> None:
    """Update the shifts of one layer, then its masks, in place.

    With F what is not covered by layers in front, B the squared difference from what lies behind, s the appearance and
    r the mask of an image, shift k has the score  sum over i of  r[i] F[i + k] (B[i + k] - (x[i + k] - s[i])^2) / 2 v.
    """
    size, appearance = images.shape[2:], layers.appearance[number]
    moved = _moved_masks(Posterior(shifts, masks, np.zeros(0)))
    errors = _errors(images, layers, shifts)
    free = np.prod(1 - moved[number + 1 :], axis=0) * np.ones(size)
    rest = _behind(moved, errors, number) if number else np.zeros_like(free)
    gain = free * (rest - (images**2).sum(axis=1))
    planes = np.concatenate([gain[:, None], 2 * free[:, None] * images, -free[:, None]], axis=1)
    squared = (appearance**2).sum(axis=0)
    parts = np.concatenate([np.ones((1, *size)), appearance, squared[None]])
    window = masks[:, number, None] * parts
    product = spectra.spectrum(window, size).conj() * spectra.spectrum(planes, size)
    scores = spectra.inverse(product.sum(axis=1), size).reshape(len(images), -1) / (2 * layers.variance)
    shifts[:, number] = np.exp(scores - logsumexp(scores, axis=1, keepdims=True)).reshape(-1, *size)
    if number:
        seen = _gathered(shifts[:, number, None], planes, size)
        ratio = (seen * parts).sum(axis=1) / (2 * layers.variance)
        masks[:, number] = expit(logit(layers.masks[number]) + ratio)


def _bound(images: Array, layers: Layers, shifts: Array, masks: Array) -> Array:
    """Return the evidence lower bound of each image."""
    moved = _moved_masks(Posterior(shifts, masks, np.zeros(0)))
    errors = _errors(images, layers, shifts)
    shown = _behind(moved, errors, len(moved))
    n_channels, n_pixels = images.shape[1], prod(images.shape[2:])
    bound = -shown.reshape(len(images), -1).sum(axis=1) / (2 * layers.variance)
    bound -= n_channels * n_pixels * np.log(2 * np.pi * layers.variance) / 2
    for number in range(len(layers.masks)):
        q = shifts[:, number].reshape(len(images), -1)
        bound -= xlogy(q, q).sum(axis=1) + (np.log(n_pixels) if number else 0)
        if number:
            r, prior = masks[:, number], layers.masks[number]
            distance = xlogy(r, r / prior) + xlogy(1 - r, (1 - r) / (1 - prior))
            bound -= distance.reshape(len(images), -1).sum(axis=1)
    return np.asarray(bound)
