# SPDX-License-Identifier: Apache-2.0
"""Looking into samples: members of JSON, sizes of pictures and outputs of fields as columns of all samples.

A column is read once, on all cores, and kept beside the index while the files stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from .errors import UsageError

if TYPE_CHECKING:
    from .dataset import Dataset

_PLAIN = ("int", "float", "text")
_READ = 64  # samples that a thread reads at a time


def find_look(ds: Dataset, name: str) -> tuple[list[str], str] | None:
    """(stored fields, member): ``json.label`` or ``image.width``; None where it is no such name."""
    from .stored_names import stored_names

    known = {f["name"]: f for f in ds._source.fields}
    for dot in (i for i, c in enumerate(name) if c == "."):
        field, member = name[:dot], name[dot + 1 :]
        names = [field] if field in known else stored_names(field, known)
        if not names or not member:
            continue
        if all(known[n]["kind"] == "json" for n in names) or (
            member in ("width", "height") and all(known[n]["picture"] for n in names)
        ):
            return names, member
    return None


def column(ds: Dataset, name: str) -> _core.Column | None:
    """The column of a JSON member, a picture's size or an output; None of what the engine reads itself."""
    if name in (ds._fields or ()):
        return _output(ds, name)
    if name == "key" or name in {f["name"] for f in ds._source.fields}:
        return None
    look = find_look(ds, name)
    return None if look is None else _looked(ds, *look)


def _looked(ds: Dataset, names: list[str], member: str) -> _core.Column:
    """Of all data that were opened, whatever is seen of them: so it is kept once for all views."""
    numbers, names = _below(ds, names)
    if set(names) - {f["name"] for f in ds._opened.fields}:  # a field that a view made
        return _core.read_members(ds._source, names, member)
    label = f"{';'.join(names)}.{member}"
    found = _remember(ds, label, lambda: _core.read_members(ds._opened, names, member))
    return found if numbers is None else found.take(numbers)


def _remember(ds: Dataset, label: str, make: Callable[[], _core.Column]) -> _core.Column:
    kept = ds._kept  # one for all views
    if label not in kept:
        found = _core.kept_column(ds._opened, label)
        if not isinstance(found, _core.Column):
            found = make()
            _core.keep_column(ds._opened, label, found)
        kept[label] = found
    return kept[label]


def _below(ds: Dataset, names: list[str]) -> tuple[np.ndarray[Any, Any] | None, list[str]]:
    """The samples of a view as numbers of what was opened (None: all, in order), and what its fields are called there."""
    numbers: Any = None
    for view in ds._views:
        if isinstance(view, Mapping):
            continue
        own = np.arange(*view) if isinstance(view, tuple) else np.asarray(view)
        numbers = own if numbers is None else numbers[own]
    for view in reversed(ds._views):
        if isinstance(view, Mapping) and "rename" in view:
            old = {entry["name"]: entry["of"][0] for entry in view["rename"]}
            names = [old.get(n, n) for n in names]
    return (None if numbers is None else np.ascontiguousarray(numbers, np.int64)), names


def _output(ds: Dataset, name: str) -> _core.Column | None:
    """Of an output that is a stored number as it lies: that; of others what they give, sample by sample."""
    values = _read(ds, name)
    return _column_of(values, f"output '{name}'")


def _read(ds: Dataset, name: str) -> list[Any]:
    def look(begin: int) -> list[Any]:
        return [ds._sample(i).get(name) for i in range(begin, min(begin + _READ, len(ds)))]

    from concurrent.futures import ThreadPoolExecutor  # not for those who only import headrace

    with ThreadPoolExecutor(_core.usable_cpus()) as pool:
        return [value for some in pool.map(look, range(0, len(ds), _READ)) for value in some]


def _column_of(values: list[Any], what: str) -> _core.Column:
    plain = [v.item() if isinstance(v, np.generic) else v for v in values]
    kinds = {type(v) for v in plain if v is not None}
    if kinds <= {int, bool}:
        return _core.Column.of([None if v is None else int(v) for v in plain], "int")
    if kinds <= {int, bool, float}:
        return _core.Column.of([None if v is None else float(v) for v in plain], "float")
    if kinds == {str}:
        return _core.Column.of(plain, "text")
    other = sorted(k.__name__ for k in kinds - {int, bool, float, str}) or ["numbers and texts"]
    raise UsageError(
        f"{what} is {', '.join(other)}: where() with a text compares only numbers and texts; give it a function instead"
    )


def columns_of(ds: Dataset, condition: str) -> dict[str, _core.Column]:
    found = {name: column(ds, name) for name in _core.expression_names(condition)}
    return {name: values for name, values in found.items() if values is not None}


def whole_column(ds: Dataset, name: str) -> list[Any]:
    """One value a sample, None where it has none. Names: outputs, then stored, then dotted."""
    found = column(ds, name)
    if found is not None:
        return list(found.cells())
    (values,) = ds._source.columns([name], 0, len(ds))
    return list(values)


def kept_answers(ds: Dataset, function: Any, names: list[str], keep: str) -> np.ndarray[Any, Any]:
    """What a function says of each sample, kept under a name with those of all samples that were opened."""
    if not isinstance(keep, str) or not keep:
        raise UsageError(f"keep is a name for the function's answers, not {keep!r}")
    numbers, _ = _below(ds, [])
    whole = ds
    if ds._views:
        if any(isinstance(view, Mapping) for view in ds._views):
            raise UsageError("keep= works on a data set without rename() and weights: call where(…, keep=…) first")
        whole = object.__new__(type(ds))
        whole.__dict__.update(ds.__dict__)
        whole._views = ()
        whole._attach(ds._opened)
    label = f"function {keep} of {','.join(names)}"
    found = _remember(ds, label, lambda: _core.Column.of([int(v) for v in whole._answers(function, names)], "int"))
    answers = np.asarray(found.cells(), bool)
    return answers if numbers is None else answers[numbers]
