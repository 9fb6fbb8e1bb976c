# SPDX-License-Identifier: Apache-2.0
"""Data sets made of others: ``hr.join`` puts their samples side by side, ``a + b`` one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from . import _core
from .checks import one_of
from .dataset import LABELS, Dataset
from .dataset import open as open_dataset
from .errors import UsageError
from .fields import Field, array, bytes_, scalar, text
from .opening import Parts

_SHOWN = 3  # keys that an error names on each side


@dataclass
class Joined(Parts):
    """What a joined data set is opened from: parts that are equally long, sample by sample."""

    names: list[str]
    parts: list[Dataset]

    def open(self, fields: Mapping[str, Field] | None) -> tuple[_core.Source, Mapping[str, Field] | None]:
        source = _core.join_sources([(n, p._source) for n, p in zip(self.names, self.parts)])
        return source, self._fields(source) if fields is None else fields

    def _fields(self, source: _core.Source) -> dict[str, Field] | None:
        """Those that the parts were opened with; the values of other parts as they lie."""
        if all(part._fields is None for part in self.parts):
            return None
        stored = iter(f["name"] for f in source.fields)  # part by part
        found: list[tuple[str, str, Field]] = []
        for name, part in zip(self.names, self.parts):
            renamed = {f["name"]: next(stored) for f in part._source.fields}
            for output, field in (part._fields or _as_they_lie(part)).items():
                found.append((name, output, field._with(field=renamed.get(field.field, field.field))))
        outputs = [output for _, output, _ in found]
        return {o if outputs.count(o) == 1 else f"{name}.{o}": field for name, o, field in found}


def _as_they_lie(part: Dataset) -> dict[str, Field]:
    makers: dict[str, Callable[[str], Field]] = {"int": scalar, "float": scalar, "text": text, "json": text}
    makers |= dict.fromkeys(("array", "npy", "tokens"), array)
    return {name: makers.get(kind, bytes_)(name) for name, kind in part.schema}


@dataclass
class Concatenated(Parts):
    """What ``a + b`` is opened from."""

    parts: list[Dataset]

    def open(self, fields: Mapping[str, Field] | None) -> tuple[_core.Source, Mapping[str, Field] | None]:
        sources, own = [self.parts[0]._source], self.parts[0]._fields
        for part in self.parts[1:]:
            sources.append(_with_names_of(part, own))
        return _core.concat_sources(sources), own if fields is None else fields


def _alike(a: Field, b: Field) -> bool:
    """Whether they make the same of a value, whatever it is called in the data."""
    names = {"field": "", "variables": ()}
    return type(a) is type(b) and {**vars(a), **names} == {**vars(b), **names}


def _with_names_of(part: Dataset, fields: Mapping[str, Field] | None) -> _core.Source:
    """The data of ``part``, whose fields give the same outputs as ``fields``, by the stored names of those."""
    mine = part._fields
    if (fields is None) != (mine is None):
        raise UsageError(
            "a + b: one was opened with fields and the other without; open both with the same fields, or both without"
        )
    if fields is None or mine is None:
        return part._source
    if list(fields) != list(mine):
        raise UsageError(f"a + b: one gives {', '.join(fields)}, the other {', '.join(mine)}; open both with the same outputs")
    renames = {}
    for output, field in fields.items():
        other = mine[output]
        if not _alike(other, field):
            raise UsageError(f"a + b: field '{output}' is {field!r} in one and {other!r} in the other")
        if other.field != field.field and other.field:
            renames[field.field] = other.field
    taken = {f["name"] for f in part._source.fields} - set(renames.values())
    if taken & set(renames):
        raise UsageError(f"a + b: the second has a field '{sorted(taken & set(renames))[0]}' of its own; rename it first")
    return part._source.either([{"name": n, "of": [o], "replaces": True} for n, o in renames.items()])


def concatenate(parts: Sequence[Dataset]) -> Dataset:
    """``a + b``. Parts that are concatenations themselves are taken apart, so that sums of many stay flat."""
    flat: list[Dataset] = []
    for part in parts:
        if not isinstance(part, Dataset):
            raise UsageError(f"a data set is added to a data set, not to {type(part).__name__}; mix others with hr.blend")
        if part._source.is_weighted:
            raise UsageError("add first and weight last: hr.weighted(a + b, weights)")
        flat += part._urls.parts if isinstance(part._urls, Concatenated) and not part._views else [part]
    named = [part.classes for part in flat if {name for name, _ in part.schema} & {*LABELS, "objects"}]
    known = next((classes for classes in named if classes), [])
    for classes in named:
        if classes and classes != known:
            raise UsageError(
                f"a + b: their classes differ, and one number would mean two of them: {_few(known)} and {_few(classes)}; "
                "keep the labels apart by another name for one of them, b.rename({'b_cls': 'cls'})"
            )
    return Dataset(Concatenated(flat))


def _few(names: Sequence[str]) -> str:
    return f"[{', '.join(names[:8])}{', …' if len(names) > 8 else ''}]"


def join(*parts: Any, on: Any = None, unmatched: Literal["error", "drop"] = "error", **named: Any) -> Dataset:
    """Samples side by side: ``hr.join(images="data/images", masks="data/masks")``.

    parts: data sets, views, or what ``hr.open`` takes, at least two; by name, or else named after their files. A stored name that
        several parts have gets the part's name in front (``images.png``, ``masks.png``); names that are there once stay.
        ``images.image`` is the picture of part ``images``, whatever its extension.
    on: how samples find each other. ``"position"``: the first with the first. ``"key"``: by their keys, which are paths without
        extension; where these differ, by the file's name alone. The name of a stored column, which holds such names
        (``"filename"``). A function of the key. Or a dict of these by part: ``on={"labels": "filename"}``; parts that it does
        not name go by their key. Unless given: by key where all parts have the same keys, by position where they have none in common
        and are equally long; an error where it is neither.
    unmatched: what becomes of samples that some part lacks: "error", or "drop".

    The order, the keys and the blocks are those of the first part. Data sets that were opened with ``fields`` keep them.
    """
    one_of(unmatched, "unmatched", ("error", "drop"))
    given = [(None, p) for p in parts] + list(named.items())
    if len(given) < 2:
        raise UsageError("join takes at least two data sets: hr.join(images=a, masks=b)")
    sets = [p if isinstance(p, Dataset) else open_dataset(p) for _, p in given]
    for part in sets:
        if part._source.is_weighted:
            raise UsageError("join first and weight last: hr.weighted(hr.join(a, b), weights)")
    guessed = _names_of(sets)
    names = [guess if name is None else name for (name, _), guess in zip(given, guessed)]
    if len(set(names)) < len(names):
        names = [str(i) if name is None else name for i, (name, _) in enumerate(given)]
    return Dataset(Joined(names, _matched(names, sets, on, unmatched == "drop")))


def _names_of(sets: Sequence[Dataset]) -> list[str]:
    """After the folders or files that they lie in: the last part of their paths that differs."""
    paths = []
    for part in sets:
        url = part._urls[0] if isinstance(part._urls, list) and part._urls else ""
        pieces = [p for p in url.split("#")[0].split("/") if p not in ("", ".", "..")]
        paths.append([p.split(".")[0].split("*")[0].split("{")[0].rstrip("-_") for p in pieces])
    for back in range(1, min(map(len, paths)) + 1):
        names = [path[-back] for path in paths]
        if len(set(names)) == len(names) and all(names):
            return names
    return [str(i) for i in range(len(sets))]


# -- matching -----------------------------------------------------------------------------------


def _matched(names: Sequence[str], sets: Sequence[Dataset], on: Any, drop: bool) -> list[Dataset]:
    if on == "position" or (isinstance(on, Mapping) and not on):
        return _by_position(names, sets)
    if on is None:
        return _by_what_they_have(names, sets, drop)
    if not (on == "key" or isinstance(on, (str, Mapping)) or callable(on)):
        raise UsageError(f"on is 'position', 'key', a column, a function of the key or a dict of these, not {on!r}")
    if isinstance(on, Mapping) and set(on) - set(names):
        raise UsageError(f"on names the part '{sorted(set(on) - set(names))[0]}'; the parts are {', '.join(names)}")
    ways = [on.get(name, "key") if isinstance(on, Mapping) else on for name in names]
    keys = [_keys(name, part, way) for name, part, way in zip(names, sets, ways)]
    return _by_key(names, sets, keys, drop)


def _by_position(names: Sequence[str], sets: Sequence[Dataset]) -> list[Dataset]:
    if len({len(part) for part in sets}) > 1:
        sizes = ", ".join(f"{len(part)} in '{name}'" for name, part in zip(names, sets))
        raise UsageError(f"join: there are {sizes} samples; join by on='key', or views that are equally long")
    return list(sets)


def _by_what_they_have(names: Sequence[str], sets: Sequence[Dataset], drop: bool) -> list[Dataset]:
    keys = [_keys(name, part, "key") for name, part in zip(names, sets)]
    if all(k == keys[0] for k in keys):
        return _by_position(names, sets)
    common = set.intersection(*(set(map(_stem, k)) for k in keys))
    if common:
        return _by_key(names, sets, keys, drop)
    if len({len(part) for part in sets}) == 1:
        return list(sets)
    examples = ", ".join(f"{k[0]!r} in '{name}'" for name, k in zip(names, keys) if k)
    raise UsageError(
        f"join: the parts have {', '.join(str(len(p)) for p in sets)} samples, and no key in common ({examples}); "
        "say what finds the other, on=lambda key: …, or on={'labels': 'filename'}"
    )


def _keys(name: str, part: Dataset, way: Any) -> list[str]:
    if callable(way):
        return [str(way(key)) for key in _column(part, "key")]
    if way == "key":
        return _column(part, "key")
    if not isinstance(way, str):
        raise UsageError(f"on: '{name}' is found by {way!r}; 'key', a column or a function of the key is wanted")
    if way not in {f["name"] for f in part._source.fields}:
        raise UsageError(f"on: part '{name}' has no column '{way}'; it has {', '.join(n for n, _ in part.schema)}")
    return [str(value) for value in _column(part, way)]


def _column(part: Dataset, name: str) -> list[Any]:
    (column,) = part._source.columns([name], 0, len(part))
    return list(column)


def _stem(key: str) -> str:
    return os.path.splitext(key.rsplit("/", 1)[-1])[0]


#: What is compared, in this order, until all samples find each other.
_LEVELS: tuple[Callable[[str], str], ...] = (str, lambda key: key.rsplit("/", 1)[-1], lambda key: os.path.splitext(key)[0], _stem)


def _by_key(names: Sequence[str], sets: Sequence[Dataset], keys: Sequence[list[str]], drop: bool) -> list[Dataset]:
    best: tuple[int, list[np.ndarray[Any, Any]], list[list[str]]] | None = None
    twin = ""
    for level in _LEVELS:
        levelled = [list(map(level, k)) for k in keys]
        found = [_twin(k) for k in levelled[1:]]
        if any(found):
            twin = twin or next(f"'{name}' has '{key}' more than once" for name, key in zip(names[1:], found) if key)
            continue
        places = [_places(levelled[0], k) for k in levelled[1:]]
        missing = sum(int((p < 0).sum()) for p in places) + sum(
            len(k) - len(set(p[p >= 0])) for p, k in zip(places, levelled[1:])
        )
        if best is None or missing < best[0]:
            best = (missing, places, levelled)
        if missing == 0:
            break
    if best is None:
        raise UsageError(f"join: {twin}: headrace cannot tell which one is meant; join by another column, or on=lambda key: …")
    missing, places, levelled = best
    if missing and not drop:
        raise UsageError(_complaint(names, levelled, places))
    kept = np.flatnonzero(np.all([p >= 0 for p in places], axis=0))
    if not len(kept):
        raise UsageError(_complaint(names, levelled, places))
    first = sets[0] if len(kept) == len(sets[0]) else sets[0]._numbers(kept)
    return [first, *(_aligned(part, p[kept]) for part, p in zip(sets[1:], places))]


def _aligned(part: Dataset, numbers: np.ndarray[Any, Any]) -> Dataset:
    same = len(numbers) == len(part) and bool((numbers == np.arange(len(part))).all())
    return part if same else part._numbers(numbers)


def _twin(keys: Iterable[str]) -> str:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return ""


def _places(wanted: Sequence[str], keys: Sequence[str]) -> np.ndarray[Any, Any]:
    """Where each of ``wanted`` stands in ``keys``; -1 where it does not."""
    at = {key: i for i, key in enumerate(keys)}
    return np.fromiter((at.get(key, -1) for key in wanted), np.int64, len(wanted))


def _complaint(names: Sequence[str], keys: Sequence[list[str]], places: Sequence[np.ndarray[Any, Any]]) -> str:
    lines = []
    for name, own, where in zip(names[1:], keys[1:], places):
        here = [keys[0][i] for i in np.flatnonzero(where < 0)]
        there = [own[i] for i in np.setdiff1d(np.arange(len(own)), where)]
        if here:
            lines.append(f"{len(here)} of {len(where)} samples of '{names[0]}' have no match in '{name}' ({_examples(here)})")
        if there:
            lines.append(f"{len(there)} of {len(own)} of '{name}' none in '{names[0]}' ({_examples(there)})")
    return (
        f"join: {', and '.join(lines)}; give a function that makes the keys equal, "
        "on=lambda key: key.removesuffix('_mask'), join by on='position', or leave those out, unmatched='drop'"
    )


def _examples(keys: Sequence[str]) -> str:
    return ", ".join(map(repr, keys[:_SHOWN])) + (", …" if len(keys) > _SHOWN else "")
