# SPDX-License-Identifier: Apache-2.0
"""Arrays of one variable in several files, brought to the units of the first."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from ..errors import UsageError
from .calendars import Times, same_calendar, times_of
from .model import Stored
from .units import conversion

#: Whole numbers up to here, and their quarters, are exact in f32.
_MOST_F32 = 1 << 22


def units_of(stored: Stored) -> str | None:
    """None where the file says nothing."""
    units = stored.attributes.get("units")
    if units is None or isinstance(units, (int, float, list)):
        return None
    return (units.decode(errors="replace") if isinstance(units, bytes) else str(units)).strip()


def in_units_of_the_first(places: Sequence[str], segments: Sequence[Stored]) -> list[Stored]:
    """Each as it is, or with the scale and the offset that make its numbers those of the first file's units."""
    first, out = segments[0], [segments[0]]
    for place, stored in zip(places[1:], segments[1:]):
        if stored.kind == "array" and stored.values is None:
            change = _change(places[0], first, place, stored)
            stored = stored if change is None else _changed(stored, first, *change)
        out.append(stored)
    return out


def _change(lead: str, first: Stored, place: str, stored: Stored) -> tuple[float, float] | None:
    """(scale, offset) from the units of ``stored`` to those of ``first``; None where there is nothing to do."""
    units = [units_of(first), units_of(stored)]
    times = [times_of(first.attributes), times_of(stored.attributes)]
    if times[0] is not None and times[1] is not None:
        return _times_change(lead, first, place, stored, times[0], times[1])
    if units[0] == units[1]:
        return None
    change = conversion(units[1], units[0]) if units[0] is not None and units[1] is not None else None
    if change is None:
        a, b = (repr(u) if u is not None else "no units" for u in units)
        raise UsageError(
            f"'{first.name}' has {a} in {lead} and {b} in {place}: these are not known to be one quantity; "
            "give the files the same units, or open them apart"
        )
    return None if change == (1.0, 0.0) else change


def _times_change(lead: str, first: Stored, place: str, stored: Stored, a: Times, b: Times) -> tuple[float, float] | None:
    if not same_calendar(a, b):
        raise UsageError(
            f"'{first.name}' counts in the calendar '{a.calendar}' in {lead} and in '{b.calendar}' in {place}: dates of one "
            "are no dates of the other; open the files apart"
        )
    if a.unit == b.unit and a.start == b.start:
        return None
    scale, offset = b.unit / a.unit, (b.start - a.start) / a.unit
    if stored.unpacked_dtype == "f32" and abs(offset) >= _MOST_F32:
        raise UsageError(
            f"'{first.name}' is stored as {stored.dtype}, and f32 does not hold the times of {place} in '{a.units}' "
            f"({lead}); write them as f64 or integers of 32 bits and more"
        )
    return scale, offset


def _changed(stored: Stored, first: Stored, scale: float, offset: float) -> Stored:
    out = copy(stored)  # and no replace(), which would look for the chunks
    out.packed = True
    out.scale = stored.scale * scale
    out.offset = stored.offset * scale + offset
    out.attributes = {**stored.attributes, **{k: v for k, v in first.attributes.items() if k in ("units", "calendar")}}
    return out


def check_same_units(name: str, segments: Sequence[tuple[Any, Stored]]) -> None:
    """Of an xarray Dataset: xarray puts files together whatever their units."""
    for place, stored in segments[1:]:
        lead, first = segments[0]
        if stored.kind == "array" and _change(lead, first, place, stored) is not None:
            raise UsageError(
                f"'{name}' has the units {units_of(first)!r} in {lead} and {units_of(stored)!r} in {place}, and xarray puts them "
                "together as they are; open the files by their paths, which brings them to the first's"
            )
