# SPDX-License-Identifier: Apache-2.0
"""``hr.weighted``: samples drawn in proportion to weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .checks import real, whole
from .dataset import Dataset
from .errors import UsageError
from .source_paths import places_of

_SCALE = 2.0**62  # what the weights sum to as whole numbers, about


def weighted(source: Any, weights: Any, field: str | None = None, *, samples: int | None = None) -> Dataset:
    """An epoch of draws in proportion to weights: ``hr.Loader(hr.weighted(ds, weights), …)``.

    weights: a number for each sample, from 0 on; the name of a column that holds them (``"score"``, ``"json.quality"``); or a
        number for each class, ``{"cat": 3.0, "dog": 1.0}``, by name where ``ds.classes`` has names, else by value. Classes that
        are not named have the weight 1.
    field: the label that such classes are of; ``cls`` or ``label`` unless given.
    samples: draws of an epoch; ``len(ds)`` unless given.

    An epoch draws by systematic sampling: each sample comes as often as its share says, rounded down or up, and
    over epochs exactly as often. Which of the two is a pure function of (seed, epoch), equal on every rank; a state resumes.
    ``batch.indices`` are numbers of ``ds``; a sample that comes twice is augmented in two ways.
    """
    ds = source if isinstance(source, Dataset) else Dataset(places_of(source))
    if ds._source.is_weighted:
        raise UsageError("this data set has weights already; multiply both and call hr.weighted once")
    each = _each(ds, weights, field)
    if each.shape != (len(ds),):
        raise UsageError(f"weights: {each.size} for {len(ds)} samples")
    bad = np.flatnonzero(~(np.isfinite(each) & (each >= 0)))
    if len(bad):
        raise UsageError(f"weights are numbers from 0 on; sample {bad[0]} has {each[bad[0]]}")
    if not each.any():
        raise UsageError("all weights are 0: there is nothing to draw from")
    draws = len(ds) if samples is None else whole(samples, "samples", 1, 1 << 40)
    return ds._view({"weights": whole_weights(each), "draws": draws})


def whole_weights(weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whole numbers in proportion, which sum to about 2^62. What is above 0 stays above 0."""
    share = weights.astype(np.float64) / weights.max()  # first: a sum of large ones might overflow
    numbers = np.rint(share / share.sum() * _SCALE).astype(np.uint64)
    numbers[(weights > 0) & (numbers == 0)] = 1
    return numbers


def _each(ds: Dataset, weights: Any, field: str | None) -> np.ndarray[Any, Any]:
    if isinstance(weights, Mapping):
        return _of_classes(ds, weights, field)
    if field is not None:
        raise UsageError("weighted: the name of a field is given together with a dict: hr.weighted(ds, {3: 2.5}, 'cls')")
    if isinstance(weights, str):
        weights = ds._whole_column(weights)
        lacking = [i for i, v in enumerate(weights) if v is None or isinstance(v, str)]
        if lacking:
            raise UsageError(f"weights: sample {lacking[0]} has {weights[lacking[0]]!r} where a number is wanted")
    try:
        return np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"weights are {len(ds)} numbers, a dict, or the name of a column, not {weights!r}") from None


def _of_classes(ds: Dataset, weights: Mapping[Any, Any], field: str | None) -> np.ndarray[Any, Any]:
    numbers = {value: real(weight, f"the weight of {value!r}") for value, weight in weights.items()}
    column = ds._whole_column(field or ds._label())
    classes = ds.classes
    by_name = {i: numbers[name] for i, name in enumerate(classes) if name in numbers}
    there = set(column)
    for value in numbers:
        if value not in there and not (value in classes and classes.index(value) in there):
            known = classes or sorted(there, key=repr)[:8]
            raise UsageError(f"weights: no sample has the class {value!r}; there are {', '.join(map(str, known))}")
    return np.fromiter((by_name.get(v, numbers.get(v, 1.0)) for v in column), np.float64, len(ds))
