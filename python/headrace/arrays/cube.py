# SPDX-License-Identifier: Apache-2.0
"""The variables of a data set of arrays: files that follow each other along one axis, or are a sample each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import Unsupported, UsageError
from .alike import in_units_of_the_first, units_of
from .calendars import times_of
from .files import expanded, kind_of, named_arrays, read_arrays
from .groups import which_group
from .model import Stored, listed, unpacked_alike
from .texts import texts_alike
from .timeline import Timeline
from .volumes import read_cases


class Cube:
    """The variables of one or several files that follow each other along one axis."""

    files: Sequence[Mapping[str, Stored]]
    #: Axes of which only some indexes are there.
    cuts: Mapping[str, list[int]] = {}

    def __init__(self, urls: Sequence[str]) -> None:
        self.paths = expanded(urls)
        self.kind = kind_of(self.paths[0][0])
        self.files = [named_arrays(path, group) for path, group in self.paths]
        self.where = self.paths[0][0]

    def variable(self, name: str) -> Stored:
        first = self.files[0]
        if not isinstance(name, str) or name not in first:
            if len(first) == 1 and name in ("", "data"):
                name = next(iter(first))
            else:
                parts = which_group(self.where, first)
                raise UsageError(
                    f"{self.where} has no variable {name!r}; it has {listed(first)}" + (f"; {parts}" if parts else "")
                )
        stored = first[name]
        if stored.why:
            raise Unsupported(f"{self.where}: '{name}' cannot be read: {stored.why}")
        return stored

    def segments(self, name: str, along: str | None) -> list[Stored]:
        """Those of all files; of one that does not run along the axis, the first's."""
        if along is None:
            return [self.files[0][name]]
        places = [path for path, _ in self.paths]
        return texts_alike(self, in_units_of_the_first(places, _from_each(places, self.files, name)))

    def timeline(self, along: str) -> Timeline | None:
        """The coordinate of the axis over all files; None where not all have one."""
        from .description import values_of

        found = [arrays.get(along) for arrays in self.files]
        numbers = [p for p in found if p is not None and not p.why and p.dims == (along,) and _is_numbers(p)]
        if len(numbers) < len(found):
            return None
        parts = in_units_of_the_first([path for path, _ in self.paths], numbers)
        values = [values_of(self, p, parts=[p]) for p in unpacked_alike(parts) if p.shape[0]]
        times = times_of(numbers[0].attributes)
        # Levels and the like, which have units, have steps of their own.
        ordered = times is not None or units_of(numbers[0]) is None
        return Timeline(along, np.concatenate(values), times, ordered) if values else None

    def coordinate(self, dim: str, extent: int) -> Any:
        """The values of the axis; None where it has none."""
        stored = self.files[0].get(dim)
        if stored is None or stored.why or stored.shape != (extent,) or not _is_numbers(stored):
            return None
        from .description import values_of

        return values_of(self, stored)

    def open_all(self) -> None:
        """Called where all variables are asked for."""

    def lead(self) -> Stored:
        """The variable whose first axis samples run along unless told: the one of most axes."""
        if parts := which_group(self.where, self.files[0]):
            raise UsageError(parts)
        good = [a for a in self.files[0].values() if not a.why and len(a.shape) > a.inner]
        if not good:
            reasons = "; ".join(f"'{a.name}': {a.why or 'it is one number'}" for a in self.files[0].values())
            raise Unsupported(f"{self.where} holds no array that can be read: {reasons}")
        return max(good, key=lambda a: len(a.shape) - a.inner)


class Cases(Cube):
    """Files, or groups of them, that are a sample each."""

    def __init__(self, urls: Sequence[str], along: str) -> None:
        self.paths = expanded(urls)
        self.kind = kind_of(self.paths[0][0])
        self.names, self.files = read_cases(self.paths, along, read_arrays, self.kind)
        self.where = self.paths[0][0]

    def segments(self, name: str, along: str | None) -> list[Stored]:
        return in_units_of_the_first(self.names, _from_each(self.names, self.files, name))

    def timeline(self, along: str) -> Timeline | None:
        return None


def _is_numbers(stored: Stored) -> bool:
    return stored.kind == "array" and stored.values is None


def _from_each(places: Sequence[str], files: Sequence[Mapping[str, Stored]], name: str) -> list[Stored]:
    """The array of that name of every file or case; the first has it."""
    for place, arrays in zip(places, files):
        if name not in arrays:
            raise UsageError(f"{place} has no variable {name!r}, which {places[0]} has; it has {listed(arrays)}")
        if arrays[name].why:
            raise Unsupported(f"{place}: '{name}' cannot be read: {arrays[name].why}")
    return [arrays[name] for arrays in files]
