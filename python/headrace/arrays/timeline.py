# SPDX-License-Identifier: Apache-2.0
"""The coordinate of the axis that samples run along: where it has gaps, and what of it is selected by date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import UsageError
from .calendars import Times, date_text, parse_date

#: A step above so many times the median is a gap. Months, of 28 to 31 days, are none.
_GAP = 1.5


@dataclass
class Timeline:
    """``values`` of the coordinate over all files, in the units of the first. ``is_ordered``: gaps in it mean something."""

    dim: str
    values: Any
    times: Times | None
    is_ordered: bool = True

    def breaks(self) -> Any:
        """For each step from one index to the next: whether it is a gap, or goes the other way."""
        steps = np.diff(self.values.astype(float))
        if not self.is_ordered or len(steps) < 2 or not np.isfinite(steps).all():
            return np.zeros(len(steps), bool)
        median = float(np.median(steps))
        if median == 0:
            return np.zeros(len(steps), bool)
        return (steps / median <= 0) | (steps / median > _GAP)

    def selected(self, wanted: Any) -> Any:
        """Which indexes ``sel`` names: by dates or numbers, (first, last), a slice, or one."""
        if isinstance(wanted, slice):
            bounds = [wanted.start, wanted.stop]
        elif isinstance(wanted, (tuple, list)):
            if len(wanted) != 2:
                raise UsageError(f"sel: '{self.dim}', which samples run along, wants (first, last), not {wanted!r}")
            bounds = list(wanted)
        else:
            bounds = [wanted, wanted]
        if self.times is None or all(b is None or isinstance(b, (int, float, np.integer, np.floating)) for b in bounds):
            inside = self._by_number(bounds)
        else:
            inside = self._by_date(bounds)
        if not inside.any():
            raise UsageError(
                f"sel: nothing of '{self.dim}' lies between {bounds[0]!r} and {bounds[1]!r}; it has {self._extent()}"
            )
        return inside

    def _by_number(self, bounds: list[Any]) -> Any:
        if not all(b is None or isinstance(b, (int, float, np.integer, np.floating)) for b in bounds):
            raise UsageError(f"sel: '{self.dim}' has no units of time ('days since …') by which {bounds!r} could be dates")
        low, high = (d if b is None else float(b) for b, d in zip(bounds, (-np.inf, np.inf)))
        return (self.values >= min(low, high)) & (self.values <= max(low, high))

    def _by_date(self, bounds: list[Any]) -> Any:
        moments = np.array([self._moment(v) for v in self.values.tolist()], object)
        inside = np.ones(len(moments), bool)
        for number, bound in enumerate(bounds):
            if bound is None:
                continue
            span = self.span_of(bound)
            inside &= (moments >= span[0]) if number == 0 else (moments < span[1])
        return inside.astype(bool)

    def _moment(self, value: float) -> int:
        assert self.times is not None
        return self.times.at(value) if np.isfinite(value) else -(1 << 80)

    def span_of(self, bound: Any) -> tuple[int, int]:
        assert self.times is not None
        text = date_text(bound, self.dim)
        span = parse_date(text, self.times.calendar)
        if span is None:
            raise UsageError(
                f"sel: {text!r} is no date of the calendar '{self.times.calendar}'; write '1990', '1990-01-31' or so"
            )
        return span

    def _extent(self) -> str:
        said = f" in '{self.times.units}'" if self.times is not None else ""
        return f"{self.values[0]} to {self.values[-1]}{said}" if len(self.values) else "nothing"


def starts_of(total: int, reach: int, stride: int, breaks: Any, inside: Any) -> tuple[Any, int]:
    """Where samples begin that lie inside and cross no gap, and how many were left out for gaps."""
    first, last = 0, total - reach
    if inside is not None:
        found = np.flatnonzero(inside)
        first = int(found[0])
    starts = np.arange(first, last + 1, stride)
    if inside is not None:
        outside = np.concatenate([[0], np.cumsum(~inside)])
        starts = starts[outside[starts + reach] == outside[starts]]
    if breaks is None or reach < 2 or not breaks.any():
        return starts, 0
    before = np.concatenate([[0], np.cumsum(breaks)])
    whole = before[starts + reach - 1] == before[starts]
    return starts[whole], int((~whole).sum())
