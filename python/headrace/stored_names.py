# SPDX-License-Identifier: Apache-2.0
"""Fields by the names that the data have: several of them, aliases, columns side by side, other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _core
from .errors import UsageError
from .fields import ColumnsField, Field


def with_names(source: _core.Source, fields: Mapping[str, Field] | None) -> tuple[_core.Source, Mapping[str, Field] | None]:
    """Fields by the name that the data have: ``"jpg;png"`` is the first that a sample has, ``"image"`` a picture of any extension."""
    if not isinstance(fields, Mapping):
        return source, fields
    known = {f["name"]: f for f in source.fields}
    given, added = dict(fields), {}
    for name, field in fields.items():
        wanted = getattr(field, "field", None)
        if wanted in known and field.what == "boxes" and known[wanted]["kind"] == "array" and "objects" in known:
            given[name] = field._with(field="objects")  # what a detection set has in the form that follows the geometry
        if not isinstance(field, Field) or isinstance(field, ColumnsField) or not wanted or wanted in known:
            continue
        names = stored_names(wanted, known, may_lack=field.optional or field.default is not None)
        if not names:
            continue
        stored = names[0] if len(names) == 1 else ";".join(names)
        if len(names) > 1 and stored not in known:
            added[stored] = {"name": stored, "of": names, "replaces": False}
        given[name] = field._with(field=stored)
    return (source.either(list(added.values())) if added else source), given


def _part_name(name: str, field: Mapping[str, Any]) -> str:
    """What a joined field is called in its part."""
    return name.removeprefix(f"{field['part']}.") if field["part"] else name


def _is_picture(name: str, known: Mapping[str, Any]) -> bool:
    """A file of a picture, or its pixels, as ``in_memory="decoded"`` holds them under the file's extension."""
    return bool(known["picture"]) or (known["kind"] == "npy" and _core.is_picture(_part_name(name, known)))


def _in_part(wanted: str, known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """``images.jpg`` of a join, also where no other part has a jpg; ``images.image``."""
    for part in {f["part"] for f in known.values() if f["part"]}:
        if wanted.startswith(f"{part}."):
            own = {_part_name(n, f): n for n, f in known.items() if f["part"] == part}
            inner = wanted[len(part) + 1 :]
            plain = {name: {**known[n], "part": None} for name, n in own.items()}
            return [own[inner]] if inner in own else [own[n] for n in stored_names(inner, plain)]
    return []


def stored_names(wanted: str, known: Mapping[str, Mapping[str, Any]], may_lack: bool = False) -> list[str]:
    """The fields of the data that a name stands for; none where it is no such name."""
    of_part = _in_part(wanted, known)
    if of_part:
        return of_part
    if ";" in wanted:
        names = [n.strip() for n in wanted.split(";")]
        found = [n for n in dict.fromkeys(names) if n in known]
        if not found and not may_lack:
            raise UsageError(f"there is no field {' or '.join(map(repr, names))} in the data; it has {', '.join(known)}")
        return found
    if wanted == "image":
        pictures = {n: f for n, f in known.items() if _is_picture(n, f) and not set(".;") & set(_part_name(n, f))}
        parts = dict.fromkeys(f["part"] for f in pictures.values())
        if len(parts) > 1:
            raise UsageError(f"'image' is in several parts; say which: {', '.join(f'{part}.image' for part in parts)}")
        return list(pictures)
    return []


def with_columns(source: _core.Source, fields: Mapping[str, Field] | None) -> tuple[_core.Source, Mapping[str, Field] | None]:
    """The data with a field more for every ``hr.columns`` and every codec of Python's, and the fields as they are to be asked of it."""
    from .plugins.registry import with_codecs

    source, fields = with_codecs(*with_names(source, fields))
    stacks = {n: f for n, f in fields.items() if isinstance(f, ColumnsField)} if isinstance(fields, Mapping) else {}
    if not stacks or fields is None:
        return source, fields
    known = {name for name, _, _ in source.schema}
    described, given = [], dict(fields)
    for name, field in stacks.items():
        inner = name
        while inner in known:
            inner += "'"
        fill = float("nan") if isinstance(field.missing, str) else float(field.missing)
        missing = field.missing if isinstance(field.missing, str) else "fill"
        described.append({"name": inner, "columns": field.columns, "dtype": field.dtype, "missing": missing, "fill": fill})
        given[name] = field._with(field=inner)
    return source.stacked(described), given


def renamed_fields(fields: Mapping[str, Field] | None, view: Any) -> Mapping[str, Field] | None:
    """Fields after a view: those that ask for what it renamed, by the new name."""
    if fields is None or not isinstance(view, Mapping) or "rename" not in view:
        return fields
    new = {entry["of"][0]: entry["name"] for entry in view["rename"]}
    return {name: field._with(field=new.get(field.field, field.field)) for name, field in fields.items()}
