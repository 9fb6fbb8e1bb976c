# SPDX-License-Identifier: Apache-2.0
"""Files of arrays as data sets: the fields that are asked for, and all where none are."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from .. import _core
from ..errors import UsageError
from ..fields import ArrayField, ColumnsField, Field
from .cube import Cases, Cube
from .description import Description
from .labels import label_places
from .model import Stored, listed
from .selection import axes_of, indexes_of, without_step
from .volumes import asks_for_cases


def _shared(fields: Mapping[str, Field], name: str, default: Any) -> Any:
    """An option that is one for all fields."""
    said = {k: f.windows[name] for k, f in fields.items() if isinstance(f, ArrayField) and name in f.windows}
    if len(set(said.values())) > 1:
        a, b = list(said)[:2]
        raise UsageError(f"{name} must be the same for all fields; '{a}' says {said[a]!r} and '{b}' says {said[b]!r}")
    return next(iter(said.values())) if said else default


def open_arrays(
    source: Sequence[str] | Cube, fields: Mapping[str, Field] | None, index: Any = None
) -> tuple[_core.Source, Mapping[str, Field] | None]:
    """The data set and the fields as they are to be asked of it."""
    cube: Cube
    if isinstance(source, Cube):
        cube = source
    elif isinstance(fields, Mapping) and asks_for_cases(fields):
        cube = Cases(source, _shared(fields, "along", None), index)
    else:
        cube = Cube(source, index, all_of_them=fields is None)
    try:
        opened = _open(cube, fields)
        cube.keep()
    finally:
        cube.release()
    return opened


def _open(cube: Cube, fields: Mapping[str, Field] | None) -> tuple[_core.Source, Mapping[str, Field] | None]:
    if fields is None:
        cube.open_all()
        return _open_all(cube), None
    if not isinstance(fields, Mapping) or not fields:
        raise UsageError("fields is a dict: {'x': hr.array('t2m', window=4), ...}")
    for name, f in fields.items():
        if not isinstance(f, Field):
            raise UsageError(f"field '{name}' is {f!r}; write hr.array('t2m', window=4), hr.image('images'), …")
    wanted = {n: f for n, f in fields.items() if f.what != "key"}
    if not wanted:
        raise UsageError("fields has only hr.key(); add a field with data, such as hr.array('t2m')")
    along = _shared(wanted, "along", None) or _first_axis(cube, wanted)
    d = Description(cube, along)
    given: dict[str, Field] = {}
    reach = 1
    span, every = _span(wanted, along)
    for name, f in fields.items():
        if f.what == "key":
            given[name] = f
            continue
        if isinstance(f, ColumnsField):
            given[name] = f._with(columns=[_add_column(d, name, column, fields) for column in f.columns])
            continue
        options = f.windows if isinstance(f, ArrayField) else {}
        numbers, stored, options = _channels(d, f.variables if isinstance(f, ArrayField) else [f.field], options, name)
        kind = _kind_of(name, f, stored)
        axes = axes_of(cube, stored, along, options, name)
        window, horizon = options.get("window", 0), options.get("horizon", 0)
        if options.get("dilation", 1) > 1 and window < 2 and not horizon:
            raise UsageError(f"field '{name}': dilation= is the distance between the steps of a window; add window=")
        step = options.get("dilation", 1) * every
        if (window or horizon) and isinstance(cube, Cases):
            raise UsageError(
                f"field '{name}': window= and horizon= are steps along an axis, but here a sample is a {along}; leave them out"
            )
        if window and along not in stored.dims:
            raise UsageError(f"field '{name}': '{stored.name}' has no axis '{along}' for a window; it has {listed(stored.dims)}")
        taken = {"variables": numbers, "axes": axes, "step": step}
        d.fields.append({**taken, "name": name, "from": 0, "count": window, "kind": kind})
        given[name] = _normalised(f, name, d, window)._with(field=name)
        if horizon:
            target = f"{name}_target"
            if target in fields:
                raise UsageError(f"field '{name}' with a horizon gives '{target}', and a field of that name is asked for")
            d.fields.append({**taken, "name": target, "from": max(1, window) * step, "count": horizon})
            given[target] = _normalised(f, target, d, horizon)._with(field=target)
        reach = max(reach, (max(1, window) + horizon - 1) * step + 1)
    table = _shared(wanted, "starts", None)
    if table is not None and _shared(wanted, "stride", None) is not None:
        raise UsageError("starts= and stride= both say where samples begin; leave one of them out")
    if table is not None and (span is not None or every > 1):
        raise UsageError(f"starts= and sel of '{along}' both say where samples begin; leave one of them out")
    stride, tiled, gaps = (
        _shared(wanted, "stride", 1) * every,
        bool(_shared(wanted, "tiled", False)),
        bool(_shared(wanted, "gaps", False)),
    )
    return d.open(reach, stride, tiled, [], table, span, gaps, **_foreground(d, wanted)), given


def _channels(d: Description, names: Sequence[str], options: Mapping[str, Any], name: str) -> tuple[list[int], Stored, Any]:
    """The numbers of a field's variables, one that stands for them, and the options. Where some have an axis that others
    have not (levels beside the surface), each index of it is a variable."""
    all_stored = [d.cube.variable(n) for n in names]
    lead = min(all_stored, key=lambda s: len(s.dims))
    more = list(dict.fromkeys(dim for s in all_stored for dim in s.dims if dim not in lead.dims))
    if not more or d.along in more:  # of the latter the engine says what does not fit
        return [d.variable(n) for n in names], all_stored[0], options
    numbers, sel = [], dict(options.get("sel") or {})
    wanted = sel.pop(more[0], None)
    for stored in all_stored:
        rest = tuple(dim for dim in stored.dims if dim != more[0])
        if rest != lead.dims:
            raise UsageError(
                f"field '{name}': '{lead.name}' has the axes {listed(lead.dims)} and '{stored.name}' has {listed(stored.dims)}: "
                "variables of one field have the same, but for one that is levels; make a field of each"
            )
        if more[0] not in stored.dims:
            numbers.append(d.variable(stored.name))
            continue
        extent = stored.shape[stored.dims.index(more[0])]
        indexes = range(extent) if wanted is None else indexes_of(d.cube, more[0], wanted, extent)
        numbers += [d.layer(stored.name, more[0], i) for i in indexes]
    return numbers, lead, {**options, "sel": sel}


def _span(fields: Mapping[str, Field], along: str) -> tuple[Any, int]:
    """What ``sel`` takes of the axis that samples run along, and of that every n-th step; one for all fields."""
    said = {
        k: f.windows["sel"][along] for k, f in fields.items() if isinstance(f, ArrayField) and along in f.windows.get("sel", {})
    }
    if len({repr(v) for v in said.values()}) > 1:
        a, b = list(said)[:2]
        raise UsageError(f"sel of '{along}' must be the same for all fields; '{a}' says {said[a]!r} and '{b}' says {said[b]!r}")
    span, every = without_step(along, next(iter(said.values()))) if said else (None, 1)
    if every < 1:
        raise UsageError(f"sel: samples run along '{along}' from its first step on; its slice has the step {every}")
    return (None if span == slice(None) else span), every


def _foreground(d: Description, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Where the label lies that a share of the patches is to hold."""
    name = _shared(fields, "foreground", None)
    if name is None:
        return {}
    if not isinstance(d.cube, Cases):
        raise UsageError('foreground= is for volumes: add along="file" or along="group"')
    sizes = {len([p for _, p, _ in f["axes"] if p]) for f in d.fields} - {0}
    if len(sizes) != 1:
        raise UsageError("foreground= needs patch=(…), with the same number of axes in all fields that have a patch")
    if _shared(fields, "tiled", None) or _shared(fields, "starts", None) is not None:
        raise UsageError("foreground= chooses where patches lie; leave tiled= and starts= out")
    places, notice = label_places(Description(d.cube, d.along), name, sizes.pop())
    if notice:
        d.notices.append(notice)
    return {"labels": places, "share": _shared(fields, "share", None)}


def _add_column(d: Description, name: str, column: str, taken: Container[str]) -> str:
    """One number of every sample, for hr.columns; the name of its field."""
    number = d.variable(column)
    stored = d.cube.variable(column)
    if stored.kind != "array" or stored.values is not None or stored.dims != (d.along,):
        what = f"{stored.dtype}{list(stored.shape)}" if stored.kind == "array" and stored.values is None else stored.kind
        raise UsageError(f"field '{name}': column '{column}' holds {what}; columns of numbers along '{d.along}' are wanted")
    inner = column
    while inner in taken:
        inner += "'"
    if all(f["name"] != inner for f in d.fields):
        d.fields.append({"name": inner, "variables": [number], "from": 0, "count": 0, "axes": [([], 0, False)], "kind": "array"})
    return inner


def _normalised(field: Field, name: str, d: Description, count: int) -> Field:
    """The field that was added last, with numbers in place of statistics."""
    from .statistics import settled

    axes = d.fields[-1]["axes"]
    variables = [d.variables[n] for n in d.fields[-1]["variables"]]
    dims, first = variables[0]["dims"], d.arrays[variables[0]["segments"][0]]["shape"]
    extents = [patch or len(indexes) or n for (indexes, patch, _), n in zip(axes, first)]
    if variables[0]["along"] is not None:
        extents[variables[0]["along"]] = max(1, count)
    names = [d.layers.get(n, d.variables[n]["name"]) for n in d.fields[-1]["variables"]]
    return settled(field, name, names, dims, axes, extents)


def _kind_of(name: str, f: Field, stored: Stored) -> str:
    """What the field's bytes are to the engine; refuses what cannot be made of them."""
    made: tuple[str, ...] = ("array", "tokens", "scalar", "bytes", "boxes", "points")
    if stored.kind != "array":
        made = ("image", "bytes", "text", "json", "scalar", "array", "tokens", "boxes", "points")
    elif stored.values is None and stored.dtype == "u8":
        made = ("image", *made)
    if f.what not in made:
        raise UsageError(f"field '{name}' is {f!r}; of '{stored.name}' " + ", ".join(f"hr.{m}" for m in made) + " are made")
    # Bytes that are said to be numbers are: those of a vlen of u8.
    is_numbers = f.what in ("array", "tokens") and stored.kind == "bytes" and "dtype" not in f.options
    return "array" if is_numbers else stored.kind


def _first_axis(cube: Cube, fields: Mapping[str, Field]) -> str:
    for f in fields.values():
        names = f.columns if isinstance(f, ColumnsField) else f.variables if isinstance(f, ArrayField) else [f.field]
        stored = cube.variable(names[0])
        if len(stored.dims) > stored.inner:
            return stored.dims[0]
    raise UsageError("the variables have no axis in common that samples could run along; say along='NAME'")


def _open_all(cube: Cube) -> _core.Source:
    """One sample for each index of the first axis, with all variables that have that axis."""
    lead = cube.lead()
    along, length = lead.dims[0], lead.shape[0]
    d = Description(cube, along)
    left = []
    for stored in cube.files[0].values():
        at = stored.dims.index(along) if along in stored.dims and not stored.why else None
        if at is None or stored.shape[at] != length:
            left.append(f"'{stored.name}'" + (f" ({stored.why})" if stored.why else ""))
            continue
        axes = axes_of(cube, stored, along, {}, stored.name)
        d.fields.append(
            {
                "name": stored.name,
                "variables": [d.variable(stored.name)],
                "from": 0,
                "count": 0,
                "axes": axes,
                "kind": stored.kind,
            }
        )
    notices = [f"{cube.where}: left out, because samples run along '{along}': {', '.join(left)}"] if left else []
    return d.open(1, 1, False, notices)
