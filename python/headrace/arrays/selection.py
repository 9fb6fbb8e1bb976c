# SPDX-License-Identifier: Apache-2.0
"""What of every axis a field takes: ``sel``, ``patch``, ``periodic``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import UsageError
from .calendars import times_of
from .cube import Cube
from .model import Stored, listed
from .timeline import Timeline


def indexes_of(cube: Cube, dim: str, wanted: Any, extent: int) -> list[int]:
    """The indexes of an axis that ``sel`` names by the values of its coordinate, or by number."""
    wanted, step = without_step(dim, wanted)
    return _all_indexes_of(cube, dim, wanted, extent)[::step]


def without_step(dim: str, wanted: Any) -> tuple[Any, int]:
    """What ``sel`` names, and of it every n-th, as a slice says it; negative: from the last on."""
    if not isinstance(wanted, slice) or wanted.step is None:
        return wanted, 1
    step = wanted.step
    if isinstance(step, bool) or not isinstance(step, (int, np.integer)) or step == 0:
        raise UsageError(f"sel: the step of a slice of '{dim}' is a whole number like 4, not {step!r}")
    return slice(wanted.start, wanted.stop), int(step)


def _all_indexes_of(cube: Cube, dim: str, wanted: Any, extent: int) -> list[int]:
    known = cube.coordinate(dim, extent)
    if known is not None and _has_dates(wanted):
        return _by_date(cube, dim, wanted, known)
    if isinstance(wanted, slice):
        if not all(bound is None or isinstance(bound, (int, float, np.number)) for bound in (wanted.start, wanted.stop)):
            raise UsageError(f"sel: a slice of '{dim}' wants numbers, not {wanted.start!r} and {wanted.stop!r}")
        if known is None:
            return _by_number(dim, wanted, extent)
        low = -np.inf if wanted.start is None else wanted.start
        high = np.inf if wanted.stop is None else wanted.stop
        out = np.flatnonzero((known >= min(low, high)) & (known <= max(low, high))).tolist()
        if not out:
            raise UsageError(f"sel: no value of '{dim}' lies between {low} and {high}")
        return out
    values = np.ravel(np.asarray(wanted))
    if values.size == 0 or values.dtype.kind not in "iuf":
        raise UsageError(f"sel: '{dim}' wants numbers, not {wanted!r}")
    out = []
    for value in values.tolist():
        if known is None:
            if not np.isfinite(value) or value != int(value) or not 0 <= value < extent:
                raise UsageError(f"sel: there is no index {value} on '{dim}', which has {extent} and no coordinate")
            out.append(int(value))
            continue
        near = np.flatnonzero(np.isclose(known, value, rtol=1e-6, atol=0))
        if near.size != 1:
            shown = ", ".join(map(str, known[:20].tolist()))
            raise UsageError(f"sel: '{dim}' has {'no' if near.size == 0 else 'several'} value {value}; it has {shown}")
        out.append(int(near[0]))
    return out


def _has_dates(wanted: Any) -> bool:
    """Whether it is given by texts or by objects that are dates."""
    given = (
        [wanted.start, wanted.stop] if isinstance(wanted, slice) else wanted if isinstance(wanted, (tuple, list)) else [wanted]
    )
    return any(isinstance(v, str) or type(v).__name__ in ("datetime", "date", "datetime64", "Timestamp") for v in given)


def _by_date(cube: Cube, dim: str, wanted: Any, known: Any) -> list[int]:
    """A slice is all between; a list is each of them, and a date in it is one index."""
    stored = cube.files[0].get(dim)
    line = Timeline(dim, known, times_of(stored.attributes) if stored is not None else None)
    if isinstance(wanted, (slice, tuple)) or not isinstance(wanted, list):
        return np.flatnonzero(line.selected(wanted)).tolist()
    return [i for one in wanted for i in np.flatnonzero(line.selected(one)).tolist()]


def _by_number(dim: str, wanted: slice, extent: int) -> list[int]:
    if not all(bound is None or isinstance(bound, (int, np.integer)) for bound in (wanted.start, wanted.stop)):
        raise UsageError(f"sel: '{dim}' has no coordinate, so its slice must have whole numbers: slice(0, 10)")
    out = list(range(extent))[wanted]
    if not out:
        raise UsageError(f"sel: {wanted.start} to {wanted.stop} of '{dim}' is nothing; it has {extent} and no coordinate")
    return out


def axes_of(cube: Cube, stored: Stored, along: str, options: Mapping[str, Any], name: str) -> list[tuple[list[int], int, bool]]:
    patch = options.get("patch") or ()
    periodic = options.get("periodic") or ()
    sel = options.get("sel") or {}
    for dim in [*sel, *periodic]:
        if dim not in stored.dims:
            raise UsageError(f"field '{name}': '{stored.name}' has no axis '{dim}'; it has {listed(stored.dims)}")
        if dim == along and dim in periodic:
            raise UsageError(
                f"field '{name}': periodic: samples run along '{dim}', and that axis cannot be periodic; name another one"
            )
    free = [i for i, dim in enumerate(stored.dims) if dim != along and dim not in sel]
    if len(patch) > len(free):
        raise UsageError(
            f"field '{name}': patch has {len(patch)} axes, but '{stored.name}' has only {len(free)} that are neither '{along}' nor chosen by sel"
        )
    size = dict(zip(free[len(free) - len(patch) :], patch))
    out: list[tuple[list[int], int, bool]] = []
    for i, dim in enumerate(stored.dims):
        cut = cube.cuts.get(dim) if dim != along else None
        chosen = dim in sel and dim != along  # of the latter, description.py says which samples there are
        indexes = indexes_of(cube, dim, sel[dim], len(cut) if cut else stored.shape[i]) if chosen else []
        if cut is not None:
            if i in size:
                raise UsageError(
                    f"field '{name}': patch cuts '{dim}', but the xarray Dataset holds only a part of that axis; give headrace the Dataset before isel or sel"
                )
            indexes = [cut[n] for n in indexes] if indexes else list(cut)
        out.append((indexes, size.get(i, 0), dim in periodic))
    return out
