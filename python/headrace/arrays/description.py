# SPDX-License-Identifier: Apache-2.0
"""What the engine is told of arrays: files, variables, fields, which samples there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from ..errors import UsageError
from ..fields import Starts
from .cube import Cases, Cube
from .model import Stored, held_if_small, is_coordinate, one_layer
from .timeline import starts_of
from .volumes import CASES


class Description:
    """What ``_core.open_arrays`` takes, gathered piece by piece."""

    def __init__(self, cube: Cube, along: str) -> None:
        self.cube, self.along = cube, along
        self.files: list[str] = []
        self.arrays: list[dict[str, Any]] = []
        self.variables: list[dict[str, Any]] = []
        self.fields: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}
        self.layers: dict[int, tuple[str, str, int]] = {}  # numbers of variables that are one: (name, axis, index)
        self.readers: dict[str, Any] = {}
        self.notices: list[str] = []

    def variable(self, name: str) -> int:
        stored = self.cube.variable(name)
        if stored.name not in self._numbers:
            moves = self.along in stored.dims
            if not moves and not is_coordinate(stored) and sum(stored.name in arrays for arrays in self.cube.files) > 1:
                self.notices.append(
                    f"'{stored.name}' has no axis '{self.along}': all samples get the one of {self.cube.where}, the first file"
                )
            segments = self.cube.segments(stored.name, self.along if moves else None)
            self._numbers[stored.name] = self.add(stored, segments, stored.dims.index(self.along) if moves else None)
        return self._numbers[stored.name]

    def layer(self, name: str, dim: str, index: int) -> int:
        """A variable that is one index of an axis of another: a level, beside variables that have none."""
        stored = self.cube.variable(name)
        called = f"{name}[{dim}={index}]"
        if called not in self._numbers:
            axis = stored.dims.index(dim)
            moves = self.along in stored.dims
            segments = [one_layer(s, axis, index) for s in self.cube.segments(name, self.along if moves else None)]
            segments[0].name = called
            self._numbers[called] = self.add(segments[0], segments, segments[0].dims.index(self.along) if moves else None)
            self.layers[self._numbers[called]] = (name, dim, index)
        return self._numbers[called]

    def add(self, stored: Stored, segments: Sequence[Stored], axis: int | None) -> int:
        numbers = []
        for segment in segments:
            numbers.append(len(self.arrays))
            self.arrays.append(held_if_small(segment, axis).described(len(self.files)))
            self.files += segment.files
            if segment.reader is not None:
                self.readers[segment.files[0]] = segment.reader
                self.notices.append(
                    f"{segment.files[0]} is read through {segment.library}, one thread at a time and slowly: {segment.slow}"
                )
        self.variables.append({"name": stored.name, "dims": list(stored.dims), "segments": numbers, "along": axis})
        return len(self.variables) - 1

    def length(self) -> int:
        """Along the axis, over all files; equal for all variables that run along it."""
        lengths = {}
        for v in self.variables:
            if v["along"] is not None:
                lengths[v["name"]] = sum(self.arrays[n]["shape"][v["along"]] for n in v["segments"])
        if len(set(lengths.values())) > 1:
            a, b = sorted(lengths.items(), key=lambda item: item[1])[:: len(lengths) - 1]
            raise UsageError(
                f"'{a[0]}' has {a[1]} along '{self.along}' and '{b[0]}' has {b[1]}: variables of a sample must agree"
            )
        if not lengths:
            raise UsageError(f"no variable that is asked for has the axis '{self.along}' that samples run along")
        return next(iter(lengths.values()))

    def filled(self, **samples: Any) -> dict[str, Any]:
        """For the engine; ``samples``: which there are."""
        gathered = {"files": self.files, "arrays": self.arrays, "variables": self.variables, "fields": self.fields}
        return gathered | {"starts": None, "end": 0, "stride": 1, "tiled": False, "readers": self.readers or None} | samples

    def open(
        self,
        reach: int,
        stride: int,
        tiled: bool,
        notices: list[str],
        table: Starts | None = None,
        span: Any = None,
        gaps: bool = False,
        **labels: Any,
    ) -> _core.Source:
        """``span``: what ``sel`` says of the axis that samples run along; ``gaps``: windows may go over gaps."""
        names = self.cube.names if isinstance(self.cube, Cases) and self.along in CASES else None
        total = self.length() if names is None else len(names)
        cut = self.cube.cuts.get(self.along)
        starts: Any = []
        if cut is not None:
            if cut != list(range(cut[0], cut[0] + len(cut))):
                raise UsageError(
                    f"the xarray Dataset has indexes of '{self.along}' that are not consecutive; open the whole Dataset and take a view of it, hr.open(ds)[indexes]"
                )
            total = len(cut)
            starts = list(range(cut[0], cut[0] + total - reach + 1, stride))
        if total == 0:
            raise UsageError(f"there is no sample: '{self.along}' has only 0 elements")
        if reach > total:
            raise UsageError(f"a sample needs {reach} steps (window and horizon), but '{self.along}' has only {total}")
        if table is None and (span is not None or (reach > 1 and not gaps)):
            found = self._starts(total, reach, stride, span, gaps)
            starts = starts if found is None else found + (cut[0] if cut else 0)
        starts = np.array(starts, np.int64).reshape(-1, 1) if len(starts) else None
        if table is not None:
            starts = self._checked(table.rows, total - reach, cut[0] if cut else 0)
        samples = {"starts": starts, "end": total - reach + 1, "stride": stride, "tiled": tiled, "names": names}
        filled = self.filled(**samples, **labels)
        return _core.open_arrays({**filled, "format": self.cube.kind, "notices": notices + self.notices})

    def _starts(self, total: int, reach: int, stride: int, span: Any, gaps: bool) -> Any:
        """By the coordinate; None where it says nothing of it."""
        line = self.cube.timeline(self.along)
        if line is None or len(line.values) != total:
            if span is None:
                return None
            raise UsageError(
                f"sel: samples run along '{self.along}', which has no coordinate by which {span!r} could be found; starts= takes positions"
            )
        breaks = None if gaps else line.breaks()
        inside = None if span is None else line.selected(span)
        if inside is None and (breaks is None or not breaks.any()):
            return None
        starts, left = starts_of(total, reach, stride, breaks, inside)
        if not len(starts):
            raise UsageError(
                f"no {reach} steps of '{self.along}' follow each other without a gap"
                + (f" in {span!r}" if span is not None else "")
                + "; take a shorter window, or gaps=True"
            )
        if left and breaks is not None:
            at = int(np.flatnonzero(breaks)[0])
            self.notices.append(
                f"{self.cube.where}: '{self.along}' has {int(np.count_nonzero(breaks))} gaps, the first behind "
                f"{line.values[at]}; {left} windows that would go over one are left out (gaps=True takes them)"
            )
        return starts

    def _checked(self, rows: Any, last: int, first: int) -> Any:
        """Rows of (position, corner): positions that there are, corners where there are patches."""
        outside = np.flatnonzero((rows[:, 0] < 0) | (rows[:, 0] > last))
        if outside.size:
            row = int(outside[0])
            raise UsageError(
                f"row {row} of starts: there is no sample at {rows[row, 0]} along '{self.along}'; the last is at {last}"
            )
        if rows.shape[1] > 1 and not any(patch for f in self.fields for _, patch, _ in f["axes"]):
            raise UsageError(
                "the rows of starts= have a corner for a patch, but no field has patch=; give positions alone, or add patch="
            )
        return rows + np.array([first] + [0] * (rows.shape[1] - 1))


def values_of(cube: Cube, stored: Stored, choice: Sequence[list[int]] | None = None, parts: Sequence[Stored] = ()) -> Any:
    """The elements of an array at the indexes of each axis, empty for all: coordinates, and what a user looks at.

    ``parts``: the array of another file in its place."""
    d = Description(cube, along="\0")
    number = d.add(stored, parts or [stored], None)
    # One sample that takes all of it: an axis of its own that nothing runs along.
    one = Stored("\0", ("\0",), (1,), (1,), "u8", places=np.zeros((1, 4), np.uint64))
    d.arrays.append(one.described(0))
    d.variables.append({"name": "\0", "dims": ["\0"], "segments": [len(d.arrays) - 1], "along": 0})
    d.fields = [
        {
            "name": "v",
            "variables": [number],
            "from": 0,
            "count": 0,
            "axes": [(c, 0, False) for c in choice or [[]] * len(stored.shape)],
        },
    ]
    source = d.open(1, 1, False, [])
    return np.asarray(_core.Dataset.make(source, []).at(0, ["array"])[0])
