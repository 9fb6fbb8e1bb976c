# SPDX-License-Identifier: Apache-2.0
"""``hr.stats`` of pictures: mean and standard deviation of their pixels, for ``hr.image(…).normalize(stats["image"])``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from .checks import whole
from .dataset import Dataset
from .errors import Unsupported, UsageError
from .fields import Field, ImageField, Stats, image
from .opening import open_data
from .requests import ask
from .source_paths import places_of
from .stored_names import with_columns

_PICTURES = ("jpeg", "png", "webp")
#: Steps that come after the pixels are made: statistics are what they are for.
_AFTER = ("normalize", "cast", "layout")
_CHANNELS = {"RGB": ["R", "G", "B"], "RGBA": ["R", "G", "B", "A"]}


def picture_stats(
    source: Any,
    fields: Any,
    *,
    sample: int | None,
    threads: int,
    progress: Callable[[int, int], Any] | None,
) -> Stats:
    """One entry for each field of pictures; numbers are of values/255, as ``normalize`` counts them."""
    dataset = source if isinstance(source, Dataset) else None
    urls = None if dataset is not None else places_of(source)
    wanted = _wanted(fields, dataset, urls)
    out = Stats()
    for i, (name, field) in enumerate(wanted.items()):
        given = {name: _pixels(name, field)}
        data, given = with_columns(dataset._source, given) if dataset is not None else open_data(urls, given)  # type: ignore[assignment]
        core = _core.Dataset.make(data, [a.request for a in ask(given, data)])

        def tell(done: int, total: int, i: int = i) -> None:
            if progress is not None:
                progress(i * 10000 + done * 10000 // max(1, total), len(wanted) * 10000)

        numbers = _chosen(data.size, sample)
        levels: Any = core.picture_levels(numbers, whole(threads, "threads", 0, 4096), tell)
        if len(levels) == 0:
            raise UsageError(f"'{name}': the samples have no picture")
        out[name] = _entry(levels, len(numbers), str(field.options.get("mode", "RGB")))
    return out


def _chosen(size: int, sample: int | None) -> Any:
    """All samples, or so many, evenly spaced: class folders lie one after the other."""
    if size == 0:
        raise UsageError("the data set has no samples")
    count = size if sample is None else min(size, whole(sample, "sample", 1, 1 << 40))
    return np.arange(count, dtype=np.uint64) * np.uint64(size) // np.uint64(count)


def _pixels(name: str, field: Any) -> Field:
    if not isinstance(field, ImageField) or field.functions:
        raise UsageError(
            f"'{name}': statistics are of pictures as headrace decodes them, hr.image(…) without map(), not {field!r}"
        )
    if field.options.get("variants", 1) != 1:
        raise UsageError(f"'{name}': statistics are of one picture a sample; leave variants out")
    plain = field._with(steps=[s for s in field.steps if s[0] not in _AFTER], packing=None, joint="", leads=False)
    return plain.layout("NHWC")


def _wanted(fields: Any, dataset: Dataset | None, urls: Any) -> Mapping[str, Any]:
    if isinstance(fields, Mapping):
        pictures = {n: f for n, f in fields.items() if not isinstance(f, Field) or f.what == "image"}
        if not pictures:
            raise UsageError(f"statistics are of pictures, and the fields have none: {', '.join(fields)}")
        return pictures
    if fields is not None:
        names = [fields] if isinstance(fields, str) else fields
        if not isinstance(names, Sequence) or not names or not all(isinstance(n, str) for n in names):
            raise UsageError(f"fields is a list of names, or a dict {{'image': hr.image('jpg')}}, not {fields!r}")
        return {n: image(n) for n in names}
    known = (dataset._source if dataset is not None else open_data(urls, None)[0]).fields
    names = [f["name"] for f in known if f["picture"] or f["kind"] in _PICTURES]
    alike = [f["name"] for f in known if f["picture"] and "." not in f["name"]]  # what the alias stands for
    chosen = (
        [n for n in names if n not in alike] if "image" not in names else [n for n in names if n == "image" or n not in alike]
    )
    if alike and "image" not in chosen:
        chosen = ["image", *chosen]
    if not chosen:
        raise Unsupported(
            "statistics are of files of arrays (HDF5, NetCDF, Zarr, npy) and of pictures, and the data have neither; they have "
            + ", ".join(f["name"] for f in known)
        )
    return {n: image(n) for n in chosen}


def _entry(levels: Any, samples: int, mode: str) -> dict[str, Any]:
    """Of counts [channels, 256], exactly: sums of whole numbers, divided once."""
    mean, std, low, high, count = [], [], [], [], []
    for channel in levels.tolist():
        n = sum(channel)
        total = sum(v * c for v, c in enumerate(channel))
        squares = sum(v * v * c for v, c in enumerate(channel))
        there = [v for v, c in enumerate(channel) if c]
        count.append(n)
        mean.append(total / n / 255 if n else None)
        std.append(((n * squares - total * total) ** 0.5) / n / 255 if n else None)
        low.append(there[0] / 255 if n else None)
        high.append(there[-1] / 255 if n else None)
    at = _CHANNELS.get(mode, [mode])
    return {
        "count": count, "nan": [0] * len(count), "mean": mean, "std": std, "min": low, "max": high,
        "per": "channel", "at": at if len(at) == len(count) else list(range(len(count))), "samples": samples,
    }  # fmt: skip


def mean_and_std(stats: Any, field: str) -> tuple[Any, Any]:
    """Of what ``hr.stats`` gives for pictures: one entry, all of them, or the path of their JSON."""
    from .arrays.statistics import load

    entry = stats
    if not (isinstance(stats, Mapping) and {"mean", "std"} <= set(stats)):
        found = load(stats)
        name = next((n for n in (field, "image") if n in found), None)
        if name is None and len(found) != 1:
            raise UsageError(f"field '{field}': there are statistics of {', '.join(found)}; say normalize(stats[name])")
        entry = found[name] if name is not None else next(iter(found.values()))
    mean, std = ([v] if isinstance(v, (int, float)) else v for v in (entry["mean"], entry["std"]))
    if not all(isinstance(v, (int, float)) for v in [*mean, *std]) or not all(s > 0 for s in std):
        raise UsageError(f"field '{field}': the statistics hold a channel without spread (std {std}), which cannot divide")
    return list(mean), list(std)
