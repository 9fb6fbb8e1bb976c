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
_READ = 64  # and of those that are read for it
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

    def where(
        self: Self,
        condition: str | Callable[[dict[str, Any]], Any],
        fields: Sequence[str] | None = None,
        *,
        keep: str | None = None,
    ) -> Self:
        """The samples that fulfil a condition, in their order.

        condition: a text over numbers and texts: stored fields, ``key``, outputs of ``fields``, members of JSON
            and sizes of pictures: ``"cls < 10 and image.width >= 256"``, ``"json.label in [1, 2, 3] or not source == 'web'"``,
            ``"0 <= score < 0.5"``; or a function of a dict of such fields.
        fields: what the function is given: names of outputs, of fields in the data, of JSON members, ``image`` for a picture
            of any extension; else those that lie in the index, and the key. What does not lie in the index (a ``.cls`` of a
            tar, a picture) is read for every sample, once, on all cores.
        keep: a name under which the function's answers are kept beside the index, so that it is called once a sample and never again
            while the files stay as they are. Give another name when the function changes. JSON members and sizes of pictures
            are kept in any case.

        A sample that lacks a field fulfils no comparison with it; a function gets a dict without it.
        """
        if isinstance(condition, str):
            if fields is not None or keep is not None:
                raise UsageError("where: fields= and keep= are for functions; leave them out with a text")
            return self._numbers(self._source.find(condition, None, self._columns_of(condition)))
        if not callable(condition):
            raise UsageError(f"where takes a text like 'cls < 10' or a function, not {condition!r}")
        names = self._cheap() if fields is None else _names(fields)
        if keep is not None:
            return self._numbers(np.flatnonzero(self._kept_answers(condition, names, keep)))
        return self._numbers(np.flatnonzero(self._answers(condition, names)))

    def _answers(self, function: Callable[[dict[str, Any]], Any], names: list[str]) -> np.ndarray[Any, Any]:
        """What the function says of each sample. Samples are read on all cores; one at a time is in the function."""
        chunk = _CHUNK if set(names) <= {*self._cheap(), "key"} else _READ

        def look(begin: int) -> list[bool]:
            end = min(begin + chunk, len(self))
            columns = self._looked_at(names, begin, end)
            rows = zip(*columns) if columns else ((),) * (end - begin)
            return [bool(function({n: v for n, v in zip(names, row) if v is not None})) for row in rows]

        begins = range(0, len(self), chunk)
        if chunk == _CHUNK or len(begins) < 2:
            found = [look(begin) for begin in begins]
        else:
            from concurrent.futures import ThreadPoolExecutor  # not for those who only import headrace

            with ThreadPoolExecutor(_core.usable_cpus()) as pool:
                found = list(pool.map(look, begins))
        return np.fromiter((answer for some in found for answer in some), bool, len(self))

    def _kept_answers(self, function: Callable[[dict[str, Any]], Any], names: list[str], keep: str) -> np.ndarray[Any, Any]:
        raise UsageError("keep= works on a data set, not on a view of it: call where() on the data set first")

    def _columns_of(self, condition: str) -> dict[str, Any]:
        """Columns of the names in a text that are no stored numbers or texts."""
        return {}

    def _whole_column(self, name: str) -> list[Any]:
        (column,) = self._source.columns([name], 0, len(self))
        return list(column)

    def _looked_at(self, names: list[str], begin: int, end: int) -> list[Any]:
        """The values of samples [begin, end) for a function, a list for each name."""
        return self._source.columns(names, begin, end)

    def _cheap(self) -> list[str]:
        names = [f["name"] for f in self._source.fields if f["in_index"] and f["kind"] in _CHEAP and not f["many"]]
        return names if "key" in names else [*names, "key"]

    def split(self: Self, *, by: str = "key", seed: int = 0, stratify: str | None = None, **shares: float) -> dict[str, Self]:
        """``ds.split(train=0.9, val=0.1)``: a dict of views. Shares that sum to less than 1 leave the rest out.

        by: "key": a sample's part follows from its key and ``seed`` alone, so it stays where it is when
            data is added, and parts have about their shares; "order": the first 90 %, the next 10 %, exactly.
        stratify: a label (``"cls"``, ``"json.label"``): each of its values is split for itself, so that every part has its
            share of every class to within one sample. Which samples they are follows from the keys and ``seed``; when data is
            added, samples beside a border may change their part.
        """
        one_of(by, "by", ("key", "order"))
        numbers = [real(share, name) for name, share in shares.items()]
        seed = whole(seed, "seed", 0, (1 << 64) - 1)
        if stratify is not None:
            self._source.split_by_order(numbers)  # checks the shares
            return {name: self._numbers(part) for name, part in zip(shares, self._stratified(numbers, stratify, by, seed))}
        if by == "key":
            return {name: self._numbers(part) for name, part in zip(shares, self._source.split_by_key(numbers, seed))}
        borders = self._source.split_by_order(numbers)
        return {name: self._view((begin, end, 1)) for name, begin, end in zip(shares, borders, borders[1:])}

    def _stratified(self, shares: list[float], field: str, by: str, seed: int) -> list[np.ndarray[Any, Any]]:
        """The numbers of each part: of every class its share, in the order of the keys' hashes, or of the samples."""
        _, classes = np.unique([repr(v) for v in self._whole_column(field)], return_inverse=True)
        order = np.arange(len(self))
        if by == "key":
            from hashlib import blake2b

            salt = seed.to_bytes(8, "little")
            hashes = [
                blake2b(key.encode(errors="surrogateescape"), digest_size=8, salt=salt).digest()
                for key in self._whole_column("key")
            ]
            order = np.lexsort((order, np.frombuffer(b"".join(hashes), ">u8"))) if hashes else order
        parts: list[list[Any]] = [[] for _ in shares]
        ends = np.minimum(np.cumsum(shares), 1.0)
        for value in range(int(classes.max()) + 1 if len(classes) else 0):
            own = order[classes[order] == value]
            borders = [0, *np.rint(ends * len(own)).astype(np.int64)]
            for part, begin, end in zip(parts, borders, borders[1:]):
                part.append(own[begin:end])
        return [np.sort(np.concatenate(p)) if p else np.empty(0, np.int64) for p in parts]

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
            column = self._whole_column(field)
            missing = set(counts) - set(column)
            if missing:
                raise UsageError(f"repeat: no sample has the {field} {sorted(missing, key=repr)[0]!r}")
            return np.fromiter((counts.get(value, 1) for value in column), np.int64, len(self))
        if field is not None:
            raise UsageError("repeat: the name of a field is given together with a dict: ds.repeat({3: 10}, 'cls')")
        if isinstance(times, (int, np.integer)):
            return np.full(len(self), whole(times, "times"), np.int64)
        each = np.asarray(times)
        if each.dtype.kind not in "iu" or each.shape != (len(self),):
            raise UsageError(f"repeat takes a whole number, {len(self)} of them, or a dict")
        return each.astype(np.int64)

    def balance(self: Self, field: str) -> Self:
        """Repeats the samples of small classes until each value of ``field`` comes about as often as the largest."""
        column = self._whole_column(field)
        values, places, sizes = np.unique([repr(v) for v in column], return_inverse=True, return_counts=True)
        if not len(values):
            return self
        return self.repeat(np.rint(sizes.max() / sizes).astype(np.int64)[places])


def _names(fields: Any) -> list[str]:
    if isinstance(fields, str) or not all(isinstance(f, str) for f in fields):
        raise UsageError(f"fields is a list of names, not {fields!r}")
    return list(fields)
