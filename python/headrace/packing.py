# SPDX-License-Identifier: Apache-2.0
"""``hr.pack``: a data set written as shards, or as several packs where it is split."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _core
from .checks import byte_count, path, real, whole
from .dataset import Dataset
from .errors import UsageError
from .labels import keep_classes
from .opening import class_names, open_data
from .source_paths import urls_of

if TYPE_CHECKING:
    from .writing.arrays import ArrayPacking
    from .writing.columns import ColumnPacking

Progress = Callable[..., None]


@dataclass
class Job:
    """One pack: a data set or a part of one, and the folder that it goes into."""

    name: str  # of the part; "" where nothing is split
    source: _core.Source
    folder: str
    options: dict[str, Any]
    classes: Sequence[str] = ()  # names of the classes that its labels count

    def estimate(self) -> dict[str, Any]:
        return _core.estimate_pack(self.source, self.folder, self.options)


@dataclass
class Packing:
    """Everything that one call of ``hr.pack`` does."""

    jobs: list[Job]
    left_out: int = 0  # samples that belong to no part of a split

    def estimate(self) -> dict[str, Any]:
        """What will be there when it is done; reads a few samples, writes nothing."""
        each = [job.estimate() for job in self.jobs]
        out = {name: sum(e[name] for e in each) for name in ("samples", "shards", "bytes")}
        return {**out, "free_bytes": min(e["free_bytes"] for e in each)}

    def run(self, progress: Progress | None = None) -> dict[str, Any]:
        results: dict[str, dict[str, Any]] = {}
        samples = sum(job.source.size for job in self.jobs)
        for job in self.jobs:
            before = [sum(r[name] for r in results.values()) for name in ("samples", "shards", "bytes")]

            def tell(done: int, _: int, shards_done: int, shards: int, size: int, before: list[int] = before) -> None:
                if progress is not None:
                    progress(before[0] + done, samples, before[1] + shards_done, before[1] + shards, before[2] + size)

            results[job.name] = _core.pack(job.source, job.folder, job.options, tell)
            if job.classes and not results[job.name]["was_complete"]:
                keep_classes(job.folder, job.classes)
        if not self.jobs[0].name:
            return results[""]
        total: dict[str, Any] = {name: sum(r[name] for r in results.values()) for name in results[self.jobs[0].name]}
        total["was_complete"] = all(r["was_complete"] for r in results.values())
        return {**total, "left_out": self.left_out, "parts": results}


def _texts(value: Any, name: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(v, str) for v in value):
        raise UsageError(f"{name} is a list of names, not {value!r}")
    return list(value)


def _pairs(value: Any) -> list[tuple[str, str]]:
    if value is None:
        return []
    if not isinstance(value, Mapping) or not all(isinstance(v, str) for pair in value.items() for v in pair):
        raise UsageError(f"rename is a dict {{'new': 'old'}}, not {value!r}")
    return list(value.items())


def _optional(value: Any, name: str, high: int) -> int:
    return 0 if value is None else whole(value, name, 1, high)


def _parts(
    source: Any, root: str | None, split: Mapping[str, float], seed: int, folder: str
) -> tuple[Dataset, dict[str, Dataset]]:
    """The data set, and the views that it is split into by key."""
    if not isinstance(split, Mapping) or not split:
        raise UsageError(f"split is a dict {{'train': 0.9, 'val': 0.1}}, not {split!r}")
    for name in split:
        if not isinstance(name, str) or not name or name.startswith(".") or "/" in name or "\0" in name:
            raise UsageError(f"split: a part is named like a folder, not {name!r}")
    there = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for name in there:
        if name not in split:
            raise UsageError(f"{folder}: the folder is not empty: '{name}' is there; give a new one")
    dataset = source if isinstance(source, Dataset) else Dataset(urls_of(source), root=root)
    shares = [real(share, f"split: {name}") for name, share in split.items()]
    views = dict(zip(split, (dataset._numbers(n) for n in dataset._source.split_by_key(shares, seed))))
    for name, view in views.items():
        if len(view) == 0:
            raise UsageError(f"split: no sample of {len(dataset)} falls into '{name}'")
    return dataset, views


def _prepare_arrays(
    source: Any, place: str, options: dict[str, Any], root: str | None, codec: Any, window: Any, patch: Any, along: Any
) -> ArrayPacking | ColumnPacking:
    """Into a file of arrays: from others, or from samples."""
    from .arrays.files import are_arrays
    from .writing.arrays import ArrayPacking
    from .writing.columns import ColumnPacking
    from .writing.plan import Access, holds_values

    to, place = options["format"], place.rstrip("/") or place
    if codec is not None and not isinstance(codec, str):
        raise UsageError(f"codec is a name like 'zstd' or 'zstd:9', not {codec!r}")
    for name in ("shards", "for_ranks", "for_workers"):
        if options[name] > (0 if name == "shards" else 1):
            raise UsageError(f"{name} is for formats of records, not for {to}; leave it out")
    if isinstance(source, Dataset) and type(source) is Dataset and not source._views and source._given is None:
        source = source._urls if are_arrays(source._urls) else source  # all of the files, as they lie
    urls = None if isinstance(source, Dataset) else urls_of(source)
    if urls is None or not are_arrays(urls) or holds_values(urls, options["fields"], options["drop"]):
        if not (window is None and patch is None and along is None):
            raise UsageError("window, patch and along are for files of arrays, and the source is one of samples")
        handle = source._source if isinstance(source, Dataset) else open_data(urls or [], None, None, root)[0]
        return ColumnPacking(handle, place, to, options, codec, options["shard_bytes"])
    if options["max_side"] or options["quality"] or options["raw"] or options["recode"]:
        raise UsageError("max_side, quality, raw and recode are for pictures, and the source is one of arrays")
    sizes = [] if patch is None else [patch] if isinstance(patch, int) else list(patch)
    access = Access(
        along,
        None if window is None else whole(window, "window", 1, 1 << 31),
        tuple(whole(n, "patch", 1, 1 << 31) for n in sizes),
    )
    return ArrayPacking(
        urls, place, to, access, codec, options["shard_bytes"], options["fields"], options["drop"], options["rename"],
        options["threads"], options["memory"],
    )  # fmt: skip


def _urls_or_none(source: Any) -> Any:
    return None if isinstance(source, _core.Source) else urls_of(source)


def one_picture(source: _core.Source, options: Mapping[str, Any]) -> _core.Source:
    """Plain files have one picture a sample: of several extensions they are written as one field, ``image``."""
    pictures = [f["name"] for f in source.fields if f["picture"]]
    named = {*options["fields"], *options["drop"], *options["recode"], *(old for _, old in options["rename"])}
    taken = any(f["name"] == "image" for f in source.fields)
    if source.format not in ("files", "squashfs", "zip") or len(pictures) < 2 or taken or named & set(pictures):
        return source
    return source.either([{"name": "image", "of": pictures, "replaces": True}])


def _refuse_objects(source: Any, options: Mapping[str, Any]) -> None:
    """Python objects are of this process alone: no file holds them."""
    handle = source._source if isinstance(source, Dataset) else source
    found = [n for n in handle.objects if n not in options["drop"]] if isinstance(handle, _core.Source) else []
    for name in found:
        if not options["fields"] or name in options["fields"]:
            raise UsageError(
                f"pack: field '{name}' holds Python objects, which files cannot: make arrays, texts or numbers of them, or drop=['{name}']"
            )


def prepare(
    source: Any,
    destination: Any,
    *,
    to: str = "tar",
    shards: int = 0,
    shard_size: int | str = 0,
    for_ranks: int = 1,
    for_workers: int = 1,
    keep_order: bool = False,
    shuffle: bool | None = None,
    seed: int = 0,
    fields: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    max_side: int | None = None,
    quality: int | None = None,
    raw: bool = False,
    recode: Sequence[str] | None = None,
    split: Mapping[str, float] | None = None,
    codec: str | None = None,
    window: int | None = None,
    patch: int | Sequence[int] | None = None,
    along: str | None = None,
    threads: int = 0,
    memory: int | str | None = None,
    root: str | None = None,
) -> Packing | ArrayPacking | ColumnPacking:
    """Checks the arguments of ``hr.pack`` and opens the source."""
    folder = path(destination, "destination")
    if shuffle not in (None, True, False) or (keep_order and shuffle):
        raise UsageError("shuffle is True or False, and keep_order=True is the same as shuffle=False")
    options: dict[str, Any] = {
        "format": str(to),
        "shards": whole(shards, "shards"),
        "shard_bytes": byte_count(shard_size or None, "shard_size"),
        "for_ranks": whole(for_ranks, "for_ranks", 1, 1 << 31),
        "for_workers": whole(for_workers, "for_workers", 1, 1 << 31),
        "keep_order": bool(keep_order) or shuffle is False,
        "seed": whole(seed, "seed", 0, (1 << 64) - 1),
        "threads": whole(threads, "threads", 0, 4096),
        "fields": _texts(fields, "fields"),
        "drop": _texts(drop, "drop"),
        "rename": _pairs(rename),
        "max_side": _optional(max_side, "max_side", 65535),
        "quality": _optional(quality, "quality", 100),
        "raw": bool(raw),
        "orient": True,
        "recode": _texts(recode, "recode"),
        "memory": byte_count(memory, "memory"),
    }
    _refuse_objects(source, options)
    if to in ("hdf5", "zarr", "npy"):
        if split is not None:
            raise UsageError("split: HDF5, Zarr and npy hold one data set; pack a view each: hr.pack(ds.split(…)['train'], …)")
        return _prepare_arrays(source, folder, options, root, codec, window, patch, along)
    if not (codec is None and window is None and patch is None and along is None):
        raise UsageError("codec, window, patch and along are for arrays: --to zarr or hdf5")
    if split is None:
        handle = source._source if isinstance(source, Dataset) else source
        if not isinstance(handle, _core.Source):
            handle = open_data(urls_of(source), None, None, root)[0]
        classes = source.classes if isinstance(source, Dataset) else handle.classes or class_names(handle, _urls_or_none(source))
        return Packing([Job("", one_picture(handle, options), folder, options, classes)])
    dataset, views = _parts(source, root, split, options["seed"], folder)
    jobs = [
        Job(name, one_picture(view._source, options), f"{folder.rstrip('/')}/{name}", options, dataset.classes)
        for name, view in views.items()
    ]
    return Packing(jobs, len(dataset) - sum(len(view) for view in views.values()))
