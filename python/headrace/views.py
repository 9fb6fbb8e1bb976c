# SPDX-License-Identifier: Apache-2.0
"""Views: a data set seen through a filter, a split, repeats. What ``hr.Dataset`` can do besides ``ds[...]``."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from . import _core
from .checks import one_of, real, whole
from .errors import UsageError

_CHUNK = 65536  # samples whose fields are in memory at a time
_MOST = 1 << 40  # samples of a view: what numbers of 8 bytes can be asked for without a mistake
_CHEAP = ("int", "float", "text")

Self = TypeVar("Self", bound="Views")


class Views(abc.ABC):
    """Makes views of a data set. Each is a data set too: it has a length and a fingerprint, and goes into a Loader."""

    _source: _core.Source

    def __len__(self) -> int:
        return self._source.size

    @abc.abstractmethod
    def _view(self: Self, view: Any) -> Self: ...

    def _numbers(self: Self, numbers: Any) -> Self:
        return self._view(np.ascontiguousarray(numbers, np.uint64))

    def where(self: Self, condition: str | Callable[[dict[str, Any]], Any], fields: Sequence[str] | None = None) -> Self:
        """The samples that fulfil a condition, in their order.

        condition: a text over fields that are numbers or texts, and ``key``:
            ``"cls < 10 and width >= 256"``, ``"cls in [1, 2, 3] or not source == 'web'"``,
            ``"0 <= score < 0.5"``; or a function of a dict of such fields.
        fields: what the function is given: names of outputs, of fields in the data, ``image`` for a picture of any
            extension; else those that lie in the index, and the key. A field that does not lie in the index
            (a ``.cls`` of a tar, a picture) is read for every sample, once.

        A sample that lacks a field fulfils no comparison with it; a function gets a dict without it.
        """
        if isinstance(condition, str):
            if fields is not None:
                raise UsageError("where: a text names its fields itself; leave fields= out")
            return self._numbers(self._source.find(condition))
        if not callable(condition):
            raise UsageError(f"where takes a text like 'cls < 10' or a function, not {condition!r}")
        names = self._cheap() if fields is None else _names(fields)
        picked = []
        for begin in range(0, len(self), _CHUNK):
            end = min(begin + _CHUNK, len(self))
            columns = self._looked_at(names, begin, end)
            for i, row in enumerate(zip(*columns) if columns else ((),) * (end - begin)):
                if condition({name: value for name, value in zip(names, row) if value is not None}):
                    picked.append(begin + i)
        return self._numbers(picked)

    def _looked_at(self, names: list[str], begin: int, end: int) -> list[Any]:
        """The values of samples [begin, end) for a function, a list for each name."""
        return self._source.columns(names, begin, end)

    def _cheap(self) -> list[str]:
        names = [f["name"] for f in self._source.fields if f["in_index"] and f["kind"] in _CHEAP and not f["many"]]
        return names if "key" in names else [*names, "key"]

    def split(self: Self, *, by: str = "key", seed: int = 0, **shares: float) -> dict[str, Self]:
        """``ds.split(train=0.9, val=0.1)``: a dict of views. Shares that sum to less than 1 leave the rest out.

        by: "key": a sample's part follows from its key and ``seed`` alone, so it stays where it is when
            data is added, and parts have about their shares; "order": the first 90 %, the next 10 %, exactly.
        """
        one_of(by, "by", ("key", "order"))
        numbers = [real(share, name) for name, share in shares.items()]
        seed = whole(seed, "seed", 0, (1 << 64) - 1)
        if by == "key":
            return {name: self._numbers(part) for name, part in zip(shares, self._source.split_by_key(numbers, seed))}
        borders = self._source.split_by_order(numbers)
        return {name: self._view((begin, end, 1)) for name, begin, end in zip(shares, borders, borders[1:])}

    def repeat(self: Self, times: int | Sequence[int] | Mapping[Any, int], field: str | None = None) -> Self:
        """Each sample so many times in an epoch, for classes of different sizes.

        times: a number for all; a number for each sample; or ``{value: times}`` of ``field``
            (``ds.repeat({3: 10}, "cls")``), where values that are not named stay once. 0 leaves a sample out.

        The repeats lie apart: first all samples once, then those that come a second time, and so on.
        """
        counts = self._counts(times, field)
        if counts.size and (int(counts.min()) < 0 or float(counts.sum(dtype=np.float64)) > _MOST):
            raise UsageError(f"repeat: times are whole numbers from 0 on, {_MOST} samples in all")
        rounds = range(int(counts.max()) if counts.size else 0)
        return self._numbers(np.concatenate([np.flatnonzero(counts > n) for n in rounds] or [np.empty(0, np.uint64)]))

    def _counts(self, times: Any, field: str | None) -> np.ndarray[Any, Any]:
        if isinstance(times, Mapping):
            if field is None:
                raise UsageError('repeat: which field has these values? ds.repeat({3: 10}, "cls")')
            counts = {value: whole(n, f"times of {value!r}") for value, n in times.items()}
            (column,) = self._source.columns([field], 0, len(self))
            missing = set(counts) - set(column)
            if missing:
                raise UsageError(f"repeat: no sample has the {field} {sorted(missing, key=repr)[0]!r}")
            return np.fromiter((counts.get(value, 1) for value in column), np.int64, len(self))
        if field is not None:
            raise UsageError("repeat: a field goes with {value: times}")
        if isinstance(times, (int, np.integer)):
            return np.full(len(self), whole(times, "times"), np.int64)
        each = np.asarray(times)
        if each.dtype.kind not in "iu" or each.shape != (len(self),):
            raise UsageError(f"repeat takes a whole number, {len(self)} of them, or a dict")
        return each.astype(np.int64)

    def balance(self: Self, field: str) -> Self:
        """Repeats the samples of small classes until each value of ``field`` comes about as often as the largest."""
        (column,) = self._source.columns([field], 0, len(self))
        values, places, sizes = np.unique([repr(v) for v in column], return_inverse=True, return_counts=True)
        if not len(values):
            return self
        return self.repeat(np.rint(sizes.max() / sizes).astype(np.int64)[places])


def _names(fields: Any) -> list[str]:
    if isinstance(fields, str) or not all(isinstance(f, str) for f in fields):
        raise UsageError(f"fields is a list of names, not {fields!r}")
    return list(fields)
