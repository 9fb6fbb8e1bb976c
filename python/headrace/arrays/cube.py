# SPDX-License-Identifier: Apache-2.0
"""The variables of a data set of arrays: files that follow each other along one axis, or are a sample each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from ..errors import Unsupported, UsageError
from ..messages import tell_once
from ..storage import each_at_once
from . import stored_files
from .alike import in_units_of_the_first, units_of
from .calendars import times_of
from .files import expanded, kind_of, named_arrays
from .groups import which_group
from .kept import Kept
from .model import MOST_KEPT, Stored, by_values, is_coordinate, listed, unpacked_alike
from .texts import texts_alike
from .timeline import Timeline
from .volumes import read_cases


class Cube:
    """The variables of one or several files that follow each other along one axis."""

    files: Sequence[Mapping[str, Stored]]
    #: Axes of which only some indexes are there.
    cuts: Mapping[str, list[int]] = {}

    _kept: Kept | None = None

    def __init__(self, urls: Sequence[str], index: Any = None, all_of_them: bool = False) -> None:
        self.paths = expanded(urls)
        kept = Kept(self.paths, "", index, lambda: kind_of(self.paths[0][0]))
        self._kept, self.kind = kept, kept.format
        try:

            def look(place: tuple[str, str]) -> Mapping[str, Stored]:
                return kept.arrays(*place, lambda: named_arrays(*place, all_of_them))

            far = stored_files.is_url(self.paths[0][0])
            self.files = each_at_once(look, self.paths, 32 if far else 1)
            if self.kind != "zarr" and not all_of_them:  # Zarr's chunks are looked for when they are asked for
                self.keep()
        except BaseException:
            kept.release()
            raise
        if not all_of_them:  # else the index is written once, when all is known
            kept.release()
        self.where = self.paths[0][0]
        self._same: set[str] = set()  # axes whose coordinates were compared

    def release(self) -> None:
        """Lets other processes open the same files."""
        if self._kept is not None:
            self._kept.release()

    def keep(self, to: Any = None) -> None:
        """Keeps in the index what was learned since it was opened."""
        if self._kept is not None and (words := self._kept.keep(to)):
            tell_once(words)

    def learn_all(self) -> None:
        """Looks for the chunks of all arrays of all files, and for the values of coordinates."""
        for arrays in self.files:
            for stored in arrays.values():
                if not stored.why:
                    _ = stored.places
                    self._known_values(stored)

    def _known_values(self, stored: Stored) -> Stored:
        """A coordinate with its values, which the index keeps."""
        from .description import values_of

        if not is_coordinate(stored) or stored.reader is not None or not all(stored.shape):
            return stored
        if not stored.kept:
            raw = copy(stored)
            raw.packed, raw.missing, raw.also_missing = False, None, []
            values = values_of(self, raw, parts=[raw])
            if values.nbytes > MOST_KEPT:
                return stored
            stored.kept = values.tobytes()
        return by_values(stored, stored.kept)

    def _know_all(self, coordinates: Sequence[Stored]) -> None:
        """The values of coordinates of several files, of servers many at a time: each is some round trips."""
        unknown = [p for p in coordinates if is_coordinate(p) and not p.kept]
        each_at_once(self._known_values, unknown, 32 if stored_files.is_url(self.where) else 1)

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
        self._check_grid(name, along)
        return texts_alike(self, in_units_of_the_first(places, _from_each(places, self.files, name)))

    def _check_grid(self, name: str, along: str) -> None:
        """The other axes of a variable have the same coordinates in all files, or its numbers are of other places there."""
        from .description import values_of

        for dim in self.files[0][name].dims:
            first = self.files[0].get(dim)
            if dim == along or dim in self._same or first is None or not is_coordinate(first):
                continue
            self._same.add(dim)
            self._know_all([o for arrays in self.files if (o := arrays.get(dim)) is not None and o.shape == first.shape])
            lead, _ = self.paths[0]
            for (place, _), arrays in zip(self.paths[1:], self.files[1:]):
                other = arrays.get(dim)
                if other is None or not is_coordinate(other) or other.shape != first.shape:
                    continue  # of another shape the engine says so
                known = [self._known_values(first), self._known_values(other)]
                known = unpacked_alike(in_units_of_the_first([lead, place], known))
                a, b = (values_of(self, stored, parts=[stored]) for stored in known)
                if a.dtype.kind in "iuf" and not np.allclose(a, b, rtol=0, atol=1e-6 * float(np.max(np.abs(a))), equal_nan=True):
                    raise UsageError(
                        f"'{dim}' is {_ends(a)} in {lead} and {_ends(b)} in {place}, so '{name}' is of other places there: files along "
                        f"'{along}' must have one grid; bring them to it, or open them apart"
                    )

    def timeline(self, along: str) -> Timeline | None:
        """The coordinate of the axis over all files; None where not all have one."""
        from .description import values_of

        found = [arrays.get(along) for arrays in self.files]
        numbers = [p for p in found if p is not None and not p.why and p.dims == (along,) and _is_numbers(p)]
        if len(numbers) < len(found):
            return None
        self._know_all(numbers)
        parts = in_units_of_the_first([path for path, _ in self.paths], numbers)
        known = unpacked_alike([self._known_values(p) for p in parts])
        values = [values_of(self, p, parts=[p]) for p in known if p.shape[0]]
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

        return values_of(self, self._known_values(stored))

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

    def __init__(self, urls: Sequence[str], along: str, index: Any = None) -> None:
        self.paths = expanded(urls)
        mode = "groups" if along == "group" else ""
        with Kept(self.paths, mode, index, lambda: kind_of(self.paths[0][0])) as kept:
            self._kept, self.kind = kept, kept.format
            self.names, self.files = read_cases(self.paths, along, kept, self.kind)
            if self.kind != "zarr":
                self.keep()
        self.where = self.paths[0][0]

    def segments(self, name: str, along: str | None) -> list[Stored]:
        return in_units_of_the_first(self.names, _from_each(self.names, self.files, name))

    def timeline(self, along: str) -> Timeline | None:
        return None


def _ends(values: Any) -> str:
    shown = [f"{v:g}" for v in (values if len(values) < 5 else [*values[:2], *values[-2:]])]
    return ", ".join(shown if len(values) < 5 else [*shown[:2], "…", *shown[2:]])


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
