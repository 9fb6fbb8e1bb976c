# SPDX-License-Identifier: Apache-2.0
"""From fields as users write them to what is asked of the engine."""

from __future__ import annotations

import json
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _core
from .errors import UsageError
from .fields import Field
from .messages import tell_once

_NUMBERS = ("image", "scalar", "array", "tokens")


class Asked(NamedTuple):
    """One output: what is asked of the engine, and how it reaches Python."""

    request: _core.FieldRequest
    how: str  # "array", "text", "bytes" or "json"
    cost: _core.MapCost | None  # of its function


def default_value(name: str, field: Field) -> Any:
    """``default=`` as the engine takes it: a number, str, bytes or a NumPy array."""
    value = field.default
    if value is None:
        return None
    if field.what in _NUMBERS:
        return _number_or_array(name, value)
    if field.what in ("json", "boxes", "points"):
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


def ask(fields: Mapping[str, Field] | None, source: _core.Source) -> list[Asked]:
    """What is asked of a source. Functions are called once, to learn what they give."""
    if fields is None:
        return []
    if not isinstance(fields, Mapping) or not fields:
        raise UsageError("fields is a dict: {'image': hr.image('jpg'), ...}")
    out = []
    for name, field in fields.items():
        if not isinstance(name, str):
            raise UsageError(f"fields: the name of an output is a text, not {name!r}")
        if not isinstance(field, Field):
            raise UsageError(f"field '{name}' is {field!r}; write hr.image('jpg'), hr.scalar('cls'), …")
        out.append(_ask_one(name, field, source))
    return out


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
        "many": field.many,
        "joint": field.joint,
        "leads": field.leads,
        "default": default_value(name, field),
        "optional": field.optional,
        "map": None,
    }
    return _core.FieldRequest(**{**parts, **changes})


def _ask_one(name: str, field: Field, source: _core.Source) -> Asked:
    if any("stats" in params for _, params in field.steps):  # of a view, or no file of arrays: one number each
        from .arrays.statistics import settled

        field = settled(field, name, [field.field], (), (), ())
    mapped = None
    if field.functions:
        from .mapping import map_function

        mapped = map_function(name, field, source)
    how = "array" if field.packing in ("padded", "ragged") else field.finish if mapped is None else mapped.result
    return Asked(request_of(name, field, map=mapped), how, None if mapped is None else mapped.cost)


def delivered(asked: Sequence[Asked], source: _core.Source) -> list[tuple[str, str]]:
    """How each output reaches Python: (name, "array" | "text" | "bytes" | "json")."""
    if asked:
        return [(a.request.output, a.how) for a in asked]
    kinds = dict.fromkeys(("int", "float", "array", "npy", "tokens"), "array") | {"text": "text", "json": "text"}
    return [(name, kinds.get(kind, "bytes")) for name, kind, _ in source.schema]


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
