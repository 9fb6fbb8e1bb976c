# SPDX-License-Identifier: Apache-2.0
"""From fields as users write them to what is asked of the engine."""

from __future__ import annotations

import numbers
import pickle
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _core
from .errors import UsageError
from .field import Field, Group
from .messages import tell_once
from .processes import Processes

_NUMBERS = ("image", "scalar", "array", "tokens")


class Asked(NamedTuple):
    """One output: what is asked of the engine, and how it reaches Python."""

    request: _core.FieldRequest
    how: str  # "array", "text", "bytes", "json", "object"; "hidden": not delivered
    cost: _core.MapCost | None  # of its function
    wants_key: bool = False  # its function asks for the key


def default_value(name: str, field: Field) -> Any:
    """``default=`` as the engine takes it: a number, str, bytes or a NumPy array."""
    value = field.default
    if value is None:
        return None
    if field.what in _NUMBERS:
        return _number_or_array(name, value)
    if field.what in ("json", "boxes", "points"):
        import json

        try:
            return json.dumps(value.tolist() if hasattr(value, "tolist") else value)
        except (TypeError, ValueError) as e:
            raise UsageError(f"field '{name}': default={value!r} is no JSON value: {e}") from None
    wanted: Any = bytes if field.what == "bytes" else str
    if not isinstance(value, wanted):
        raise UsageError(f"field '{name}': default={value!r}: hr.{field.what} wants {wanted.__name__}")
    return value


def _number_or_array(name: str, value: Any) -> Any:
    if isinstance(value, numbers.Integral):  # a bool is one
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    try:
        array = np.asarray(value)
        if array.dtype.kind == "b":
            array = array.astype(np.uint8)
    except (TypeError, ValueError):
        array = np.empty(0, object)
    if array.dtype.kind not in "iuf":
        raise UsageError(f"field '{name}': default={value!r}: a number or an array of numbers is wanted")
    return array.item() if array.ndim == 0 else np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))


def ask(fields: Mapping[str, Field] | None, source: _core.Source, pool: Processes | None = None) -> list[Asked]:
    """What is asked of a source. Functions are called once, to learn what they give.

    ``pool``: where functions that want processes are added, for the caller to prepare."""
    if fields is None:
        return []
    if not isinstance(fields, Mapping) or not fields:
        raise UsageError("fields is a dict: {'image': hr.image('jpg'), ...}")
    fields = {name: _of_objects(field, source.objects) for name, field in fields.items()}
    _check_structs(fields, source)
    own = pool is None
    pool = Processes() if pool is None else pool
    out: list[Asked] = []
    groups: list[Group] = []
    for name, field in fields.items():
        if not isinstance(name, str):
            raise UsageError(f"fields: the name of an output is a text, not {name!r}")
        if not isinstance(field, Field):
            raise UsageError(f"field '{name}' is {field!r}; write hr.image('jpg'), hr.scalar('cls'), …")
        if field.group is None:
            out += _ask_one(name, field, source, pool)
        elif field.group not in groups:
            from .mapping import ask_group

            groups.append(field.group)
            out += ask_group(field.group, fields, source, pool)
    if any(a.wants_key for a in out) and not any(a.request.what == "key" for a in out):
        out.append(Asked(request_of("key (for map)", Field("key", "")), "hidden", None))
    _check_names(out)
    if own:
        pool.prepare()
    return out


def _of_objects(field: Any, objects: Sequence[str]) -> Any:
    """Lists and dicts of this process's own need no JSON: ``hr.json`` takes them as they are."""
    if not isinstance(field, Field) or field.what != "json" or field.field not in objects:
        return field
    default = None if field.default is None else pickle.dumps(field.default)
    return field._with(what="bytes", finish="bytes", default=default)


def _check_structs(fields: Mapping[str, Any], source: _core.Source) -> None:
    """Lists of structs lie in a column for each member: no value of theirs is JSON."""
    wanted = [f.field for f in fields.values() if isinstance(f, Field) and f.what == "json"]
    if not wanted:
        return
    known = [name for name, _, _ in source.schema]
    for name in wanted:
        members = [n for n in known if n.startswith(f"{name}.")]
        if name not in known and members:
            raise UsageError(
                f"field '{name}' lies in the columns {', '.join(members)}, and is no JSON; "
                "hr.from_python(pyarrow.parquet.read_table(path)) gives its lists and dicts as they are"
            )


def _check_names(asked: Sequence[Asked]) -> None:
    names = [a.request.output for a in asked]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise UsageError(f"two fields are named '{twice}': a function given to map() returns that name too; rename one of them")


def request_of(name: str, field: Field, **changes: Any) -> _core.FieldRequest:
    """The field as it is, but for ``changes``."""
    parts: dict[str, Any] = {
        "output": name,
        "field": field.field,
        "what": field.what,
        "options": field.options,
        "steps": field.steps,
        "packing": field.packing,
        "pad": field.pad_value if field.packing == "padded" else None,
        "pad_multiple": field.pad_multiple,
        "pad_left": field.pad_left,
        "many": field.many,
        "joint": field.joint,
        "leads": field.leads,
        "default": default_value(name, field),
        "optional": field.optional,
        "map": None,
        "role": "only",
        "number": 0,
    }
    return _core.FieldRequest(**{**parts, **changes})


def _ask_one(name: str, field: Field, source: _core.Source, pool: Processes) -> list[Asked]:
    if any("stats" in params for _, params in field.steps):  # of a view, or no file of arrays: one number each
        from .arrays.statistics import settled

        field = settled(field, name, [field.field], (), (), ())
    if field.functions:
        from .mapping import ask_one

        return ask_one(name, field, source, pool)
    how = "array" if field.packing in ("padded", "ragged") else field.finish
    return [Asked(request_of(name, field), how, None)]


def delivered(asked: Sequence[Asked], source: _core.Source) -> list[tuple[str, str]]:
    """How each output reaches Python: (name, "array" | "text" | "bytes" | "json" | "object" | "hidden")."""
    objects = source.objects
    if asked:
        return [(a.request.output, "object" if a.how == "bytes" and a.request.field in objects else a.how) for a in asked]
    kinds = dict.fromkeys(("int", "float", "array", "npy", "tokens"), "array") | {"text": "text", "json": "text"}
    return [(name, "object" if name in objects else kinds.get(kind, "bytes")) for name, kind, _ in source.schema]


#: What the engine gives for those that Python makes something of.
FROM_ENGINE = {"json": "text", "object": "bytes"}


def finished(value: Any, how: str) -> Any:
    """JSON parsed, and objects of this process's own unpickled; also of lists, and of none."""
    if isinstance(value, list):
        return [finished(v, how) for v in value]
    if value is None or (how == "object" and not value):  # an optional one that is missing
        return None
    if how == "object":
        return pickle.loads(value)
    import json

    return json.loads(value)


def masks(asked: Sequence[Asked]) -> list[str]:
    """The optional outputs, each with a mask NAME_valid."""
    return [a.request.output for a in asked if a.request.optional]


def tell_of_missing(fields: Mapping[str, Field] | None, source: _core.Source) -> None:
    """Says of a data set which fields no sample has: optional or with a default they are no error."""
    known = {name for name, _, _ in source.schema}
    for name, field in (fields or {}).items():
        if field.what != "key" and (field.optional or field.default is not None) and field.field not in known:
            tell_once(
                f"field '{name}': the data have no field '{field.field}': every sample gets what is given for a missing one"
            )
