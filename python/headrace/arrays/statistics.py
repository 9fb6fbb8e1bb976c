# SPDX-License-Identifier: Apache-2.0
"""Statistics for normalising: ``hr.stats("cube.zarr", per="level")``, and fields that take them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from .. import _core
from ..checks import path as checked_path
from ..checks import whole
from ..dataset import Dataset
from ..errors import DataError, UsageError
from ..fields import Field, Stats
from ..source_paths import urls_of
from .model import Stored, listed

#: Means for more parts than this are a mistake: an axis of positions instead of levels.
_MOST_PARTS = 1 << 22

_NUMBERS = ("count", "nan", "mean", "std", "min", "max")


def stats(
    source: Any,
    fields: str | Sequence[str] | Mapping[str, Field] | None = None,
    *,
    per: str | None = None,
    sample: int | None = None,
    threads: int = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> Stats:
    """Mean, std, min, max, count and NaN count of the variables of files of arrays, or of the pixels of pictures.

    ``{"t2m": {"count": …, "nan": …, "mean": …, "std": …, "min": …, "max": …}, …}``, for
    ``hr.array("t2m").normalize(stats)``; ``stats.save("stats.json")`` writes it, and ``normalize("stats.json")``
    takes that too. Packed numbers are unpacked first; missing ones and NaN are counted and left out; std is that of
    all values (``np.nanstd``). Computed in f64 chunk by chunk: the same bits on any number of threads.

    Of pictures: ``hr.stats("photos")["image"]`` has a number for each channel, of values/255, for
    ``hr.image("image").normalize(stats["image"])``. ``fields``: names, or a dict as for ``Loader``, whose steps up to
    ``normalize`` are done first. ``source`` may be a data set or a view.

    fields: names of variables; all but the coordinates unless given.
    per: the name of an axis: a list of numbers, one for each index of it, for variables that have it.
    sample: of pictures: so many of them, evenly spaced over the data set.
    threads: 0: as many as CPUs. progress: called with (pieces done, pieces).
    """
    from .cube import Cube
    from .description import Description
    from .files import are_arrays

    if isinstance(source, Dataset) or isinstance(fields, Mapping) or not are_arrays(urls_of(source)):
        if per is not None:
            raise UsageError("per= is for files of arrays; pictures always have statistics for each channel, so leave it out")
        from ..picture_stats import picture_stats

        return picture_stats(source, fields, sample=sample, threads=threads, progress=progress)
    if sample is not None:
        raise UsageError("sample= is for pictures; files of arrays are always read whole, so leave it out")
    urls = urls_of(source)
    cube = Cube(urls)
    names = [fields] if isinstance(fields, str) else fields
    wanted = _wanted(cube, names, per)
    along = _along(cube, wanted)
    out = Stats()
    for i, stored in enumerate(wanted):
        d = Description(cube, along)
        number = d.variable(stored.name)
        axis = stored.dims.index(per) if per is not None and per in stored.dims else None

        def tell(done: int, total: int, i: int = i) -> None:
            if progress is not None:  # all variables count alike
                progress(i * 10000 + done * 10000 // max(1, total), len(wanted) * 10000)

        rows = _core.array_stats(d.filled(), number, axis, whole(threads, "threads", 0, 4096), tell)
        out[stored.name] = _entry(rows, axis is not None)
        if axis is not None and per is not None:
            out[stored.name] |= {"per": per, "at": _labels(cube, per, len(rows), along)}
    cube.keep()
    return out


def _entry(rows: list[tuple[Any, ...]], apart: bool) -> dict[str, Any]:
    def finite(n: Any, count: int) -> Any:
        return n if isinstance(n, int) else n if count and math.isfinite(n) else None

    columns = {name: [finite(row[i], row[0]) for row in rows] for i, name in enumerate(_NUMBERS)}
    return {name: column if apart else column[0] for name, column in columns.items()}


def _is_numbers(a: Stored) -> bool:
    return a.kind == "array" and a.values is None


def _wanted(cube: Any, names: Sequence[str] | None, per: str | None) -> list[Stored]:
    if names is None:
        known = [a for a in cube.files[0].values() if not a.why and _is_numbers(a)]
        dims = {d for a in known for d in a.dims}
        wanted = [a for a in known if a.name not in dims]
        if not wanted:
            raise UsageError(f"{cube.where} has no variable beside the coordinates: {listed(cube.files[0])}")
    else:
        if not isinstance(names, Sequence) or not names or not all(isinstance(n, str) for n in names):
            raise UsageError(f"fields is a list of names of variables, not {names!r}")
        wanted = [cube.variable(n) for n in names]
    for a in wanted:
        if not _is_numbers(a):
            raise UsageError(f"'{a.name}' holds no numbers of one shape, and has no statistics")
    if per is not None and not any(per in a.dims for a in wanted):
        raise UsageError(
            f"no variable has the axis {per!r}; there are {listed(dict.fromkeys(d for a in wanted for d in a.dims))}"
        )
    return wanted


def _along(cube: Any, wanted: Sequence[Stored]) -> str:
    """The axis that files follow each other along: the first one of the variable of most axes."""
    if len(cube.files) == 1:
        return "\0"
    lead = max(wanted, key=lambda a: len(a.dims))
    if not lead.dims:
        raise UsageError("the variables have no axis that files could follow each other along")
    return lead.dims[0]


def _labels(cube: Any, per: str, count: int, along: str) -> list[Any]:
    from .description import values_of

    coordinate = cube.files[0].get(per)
    if (
        per != along
        and coordinate is not None
        and not coordinate.why
        and _is_numbers(coordinate)
        and coordinate.shape == (count,)
    ):
        return list(values_of(cube, coordinate).tolist())
    return list(range(count))


# -- fields that are normalised by them ---------------------------------------------------------


def load(stats: Any) -> Stats:
    """A dict as ``hr.stats`` gives it, or the path of its JSON."""
    if isinstance(stats, (str, os.PathLike)):
        name = os.fspath(checked_path(stats, "stats") or "")
        try:
            with open(name, encoding="utf-8") as f:
                stats = json.load(f)
        except ValueError as e:
            raise DataError(f"{name} is no JSON of statistics: {e}") from None
    if not isinstance(stats, Mapping) or not all(isinstance(v, Mapping) and {"mean", "std"} <= set(v) for v in stats.values()):
        raise UsageError("normalize takes mean and std, or what hr.stats gives: {'t2m': {'mean': …, 'std': …}, …}")
    return Stats(stats)


#: A variable by its name; or one index of an axis of it, as (name, axis, index).
Named = Union[str, tuple[str, str, int]]


def _numbers(stats: Stats, named: Named, name: str) -> tuple[list[float], list[float], str | None]:
    """Mean and std, checked, and the axis they are kept apart on."""
    variable, layer = (named, None) if isinstance(named, str) else (named[0], named[1:])
    if variable not in stats:
        raise UsageError(f"field '{name}': there are no statistics of '{variable}', but of {listed(stats)}")
    entry = stats[variable]
    per = entry.get("per")
    mean, std = ([v] if per is None else list(v) for v in (entry["mean"], entry["std"]))
    for i, (m, s) in enumerate(zip(mean, std)):
        where = f"'{variable}'" + ("" if per is None else f" at {per} {entry.get('at', range(len(mean)))[i]}")
        if not all(isinstance(n, (int, float)) and math.isfinite(n) for n in (m, s)):
            raise UsageError(f"field '{name}': the statistics of {where} are no numbers: all values are NaN or one is infinite")
        if s <= 0:
            raise UsageError(
                f"field '{name}': the standard deviation of {where} is {s}, because all values are {m}: nothing can be divided by it; leave this variable out of normalize"
            )
    if layer is not None and layer[0] == per:
        if layer[1] >= len(mean):
            raise UsageError(f"field '{name}': statistics of {len(mean)} of '{per}', and index {layer[1]} is selected")
        return [mean[layer[1]]], [std[layer[1]]], None
    return mean, std, per


def settled(field: Field, name: str, variables: Sequence[Named], dims: Sequence[str], axes: Any, shape: Sequence[int]) -> Field:
    """The field with numbers in place of statistics. ``shape``: of one variable, an extent for each of ``dims``;
    ``axes``: the choice on each (indexes, patch, periodic), or None."""
    steps = []
    for step, params in field.steps:
        given = params.get("stats") if step == "normalize" else None
        steps.append((step, params if given is None else _by_stats(given, name, variables, dims, axes, shape)))
    return field._with(steps=steps)


def _by_stats(
    given: Stats, name: str, variables: Sequence[Named], dims: Sequence[str], axes: Any, shape: Sequence[int]
) -> dict[str, Any]:
    found = [_numbers(given, v, name) for v in variables]
    kept = {per for _, _, per in found if per is not None}
    if not kept and len(found) == 1:
        return {"mean": found[0][0][0], "std": found[0][1][0]}
    if not kept:
        return _parts([m for m, _, _ in found], [s for _, s, _ in found], 1, math.prod(shape))
    per = kept.pop()
    if kept or per not in dims:
        raise UsageError(f"field '{name}': statistics per '{per}', and the axes of a value are {listed(dims)}")
    at = list(dims).index(per)
    indexes, patch, _ = axes[at]
    if patch:
        raise UsageError(f"field '{name}': statistics per '{per}', and patches are cut from that axis")
    means, stds = [], []
    for mean, std, apart in found:
        count = shape[at]
        if apart is None:
            mean, std = mean * count, std * count
        elif indexes:
            if max(indexes) >= len(mean):
                raise UsageError(f"field '{name}': statistics of {len(mean)} of '{per}', and index {max(indexes)} is selected")
            mean, std = [mean[i] for i in indexes], [std[i] for i in indexes]
        if len(mean) != count:
            raise UsageError(f"field '{name}': statistics of {len(mean)} of '{per}', which has {count} here")
        means.append(mean)
        stds.append(std)
    return _parts(means, stds, math.prod(shape[:at]), math.prod(shape[at + 1 :]))


def _parts(means: list[list[float]], stds: list[list[float]], lead: int, repeat: int) -> dict[str, Any]:
    if len(means) == 1:
        lead = 1  # the numbers begin again by themselves
    if sum(map(len, means)) * lead > _MOST_PARTS:
        raise UsageError(f"statistics for {sum(map(len, means)) * lead} parts of a value; at most {_MOST_PARTS}")
    return {"mean": [n for m in means for n in m * lead], "std": [n for s in stds for n in s * lead], "repeat": repeat}
