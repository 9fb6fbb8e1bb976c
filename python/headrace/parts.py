# SPDX-License-Identifier: Apache-2.0
"""The sources of a Loader, each with the fields that it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from .blend import Blend
from .dataset import Dataset
from .errors import NotFound, UsageError
from .fields import Field
from .opening import ARRAY_FORMATS, open_data
from .packed import Grouped
from .processes import Processes
from .requests import Asked, ask
from .source_paths import places_of
from .stored_names import with_columns

if TYPE_CHECKING:
    from .caching import Cache

Fields = Mapping[str, Field]


class Part(NamedTuple):
    """One source: of a blend, or the only one."""

    name: str  # "" for the only one
    key: str  # in fingerprint and state
    source: _core.Source
    fields: Fields | None
    asked: list[Asked]


def parts_of(
    source: Any, fields: Fields | None, index: Any, root: Any, cache: Cache | None = None, pool: Processes | None = None
) -> list[Part]:
    """The sources; functions that want processes are added to ``pool``. In a blend data sets that were opened with fields keep them."""
    if not isinstance(source, Blend):
        return [_part("", "", *opened(source, fields, index, root, cache), pool)]
    out = []
    for given in source.parts():
        data = given.source
        own = data._fields is not None if isinstance(data, Dataset) else False
        try:
            out.append(_part(given.name, given.key, *opened(data, None if own else fields, None, None), pool))
        except (UsageError, NotFound) as e:
            raise type(e)(f"source '{given.name}' of the blend: {e}") from e
    for part in out[1:]:
        _check_alike(out[0], part)
    return out


def costs_of(parts: Sequence[Part]) -> dict[str, list[_core.MapCost]]:
    """What the functions of each output cost, over all sources."""
    out: dict[str, list[_core.MapCost]] = {}
    for part in parts:
        for a in part.asked:
            if a.cost is not None:
                out.setdefault(a.request.output, []).append(a.cost)
    return out


def _part(name: str, key: str, source: _core.Source, fields: Fields | None, pool: Processes | None) -> Part:
    return Part(name, key, source, fields, ask(fields, source, pool))


def _check_alike(a: Part, b: Part) -> None:
    """Types and shapes are the engine's to compare; text and bytes are one to it."""
    hows = {x.request.output: x.how for x in b.asked}
    for x in a.asked:
        other = hows.get(x.request.output, x.how)
        if other != x.how:
            raise UsageError(
                f"field '{x.request.output}' is {x.how} in source '{a.name}' and {other} in source '{b.name}': "
                "the sources of a blend give equal outputs"
            )


def opened(
    source: Any, fields: Fields | None, index: Any, root: Any, cache: Cache | None = None
) -> tuple[_core.Source, Fields | None]:
    """The data, and the fields as they are to be asked of it; a data set's own where none are given."""
    if isinstance(source, Grouped):
        if fields is not None:
            raise UsageError("packed rows have the fields that the data set was opened with: hr.packed(hr.open(url, fields), …)")
        return source._source, source._fields
    if not isinstance(source, Dataset):
        return open_data(places_of(source), fields, index, root, cache=cache)
    if fields is None:
        return source._source, source._fields
    if source.format not in ARRAY_FORMATS or _as_they_are(fields, source):
        return with_columns(source._source, fields)
    if source._views:
        raise UsageError("fields say what a sample of arrays is: give them to hr.open(), before the view is made")
    return open_data(source._urls, fields, cache=source._cache)


def _as_they_are(fields: Any, source: Dataset) -> bool:
    """Whether the fields are those of the data set as it was opened, and say nothing new of what a sample is."""
    names = {name for name, _ in source.schema}
    return isinstance(fields, Mapping) and all(
        isinstance(f, Field) and (f.what == "key" or f.field in names) and not getattr(f, "windows", None)
        for f in fields.values()
    )
