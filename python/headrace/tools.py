# SPDX-License-Identifier: Apache-2.0
"""Around the loader: formats, indexes, packing, and what this installation has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from .arrays.formats import ARRAY_FORMATS
from .checks import path
from .errors import UsageError
from .packing import Progress, prepare
from .source_paths import urls_of
from .storage import Storage, using


def formats() -> list[dict[str, Any]]:
    """What this build can read and write, and what was registered. ``holds``: "records", or "arrays" (docs/arrays.md)."""
    from .plugins.registry import registered_formats

    plain = {"read": True, "write": False, "only": [], "checksum": False, "end": False, "lengths": False, "python": True}
    added = [
        {"name": f.name, "doc": f.doc, "suffixes": list(f.suffixes), **plain, "rewrites": False, "holds": "records"}
        for f in registered_formats()
    ]
    return [{**f, "holds": "records"} for f in _core.formats()] + [dict(f) for f in ARRAY_FORMATS] + added


def image_size(data: bytes) -> tuple[int, int]:
    """(width, height) of a picture, from its header alone; as stored, whatever its EXIF says."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise UsageError(f"image_size takes the bytes of a picture, not {type(data).__name__}")
    return _core.image_size(bytes(data))


def build_index(
    source: Any, to: str, *, root: str | None = None, storage: Storage | None = None, progress: Progress | None = None
) -> None:
    """Builds the index of ``source`` ahead of time into the folder ``to``."""
    from .arrays.files import are_arrays

    urls = urls_of(source)
    with using(storage, urls):
        if are_arrays(urls):
            from .arrays.cube import Cube

            cube = Cube(urls)
            cube.learn_all()
            cube.keep(path(to, "to"))
            if progress is not None:
                progress(len(cube.files), len(cube.files), _samples(cube))
            return
        _core.build_index(urls, path(to, "to"), path(root, "root"), progress)


def _samples(cube: Any) -> int:
    """Along the first axis of the array of most axes, where there is one."""
    from .errors import Error

    try:
        lead = cube.lead()
    except Error:
        return 0
    return sum(int(arrays[lead.name].shape[0]) for arrays in cube.files if lead.name in arrays)


def pack(
    source: Any,
    destination: str | os.PathLike[str],
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
    storage: Storage | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes a data set as shards into the folder ``destination``, which ``hr.open`` opens.

    Shards hold equally many samples, to within one, and each is a random part of the data unless
    ``shuffle=False`` (or ``keep_order=True``, which is the same): then a loader gives the same order from the
    shards as from the source. The same call again goes on where it was stopped, or says that all is there.

    source: what ``hr.open`` takes, or a data set or view.
    destination: a folder, or one of an object store (``s3://bucket/train``), where the manifest appears last.
    storage: ``hr.storage(...)`` of a source or a destination that is a URL.
    to: the format; ``hr.formats()`` lists them.
    shards, shard_size: how many, or about how large ("512M").
    for_ranks, for_workers: the number of shards is a multiple of their product.
    fields, drop: names of the fields to write, or not to write; all unless given.
    rename: ``{"new": "old"}``.
    max_side: pictures whose longer side exceeds it are made smaller (bicubic, antialiased) and encoded
        again as what they were; the others stay as they are, byte for byte.
    quality: of JPEG and WebP, 1 to 100; 90 for pictures that are made smaller. Given, all JPEGs are encoded again.
    raw: pictures become uint8 arrays [height, width, channels], stored as .npy.
    recode: the picture fields that these three are for; all unless given (leave masks out).
    split: ``{"train": 0.9, "val": 0.1}``: a pack of its own in each of ``destination/train`` and
        ``destination/val``. By the key alone (and ``seed``): a sample keeps its part when data is added.
    memory: bytes of samples held while shuffling; an eighth of the memory, at most 8 GiB, unless given.

    ``to="zarr"``, ``"hdf5"`` and ``"npy"`` write arrays (docs/packing.md#arrays): ``destination`` is a Zarr folder, an
    HDF5 file, or a folder of npy files. Files of arrays are written in other chunks, samples as a column for each field.

    codec: "blosc-lz4" (Zarr's default), "blosc-zstd", "zstd", "gzip" (HDF5's, with shuffle), "none"; "zstd:9" with a level.
    window, patch, along: how samples will be read, as in ``hr.array``; chunks are cut for it. One number as ``patch``
        is for the two last axes. The result's ``reads`` says what a sample costs there, and in the source.
    shard_size: of Zarr: plain bytes of chunks that lie in one file; 128 MiB where there would be more than 256 files.
    """
    with using(storage, source, destination):
        jobs = prepare(
            source, destination, to=to, shards=shards, shard_size=shard_size, for_ranks=for_ranks, for_workers=for_workers,
            keep_order=keep_order, shuffle=shuffle, seed=seed, fields=fields, drop=drop, rename=rename, max_side=max_side, quality=quality,
            raw=raw, recode=recode, split=split, codec=codec, window=window, patch=patch, along=along, threads=threads, memory=memory, root=root,
        )  # fmt: skip
        return jobs.run(progress)


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"


def doctor() -> list[tuple[str, bool, str]]:
    """(what, fine, words) for each thing that matters to this installation."""
    import importlib.util

    out = [
        (
            "compute",
            True,
            f"{_core.usable_cpus()} CPUs usable ({_core.affinity_cpus()} in the affinity mask, {_core.machine_cpus()} in the machine)",
        ),
        ("memory", True, f"{_core.usable_memory_bytes() / 2**30:.1f} GiB usable"),
    ]
    if _core.affinity_cpus() == 1 < _core.machine_cpus():
        out.append(
            ("affinity", False, "all threads share one core: ask the scheduler for more (--cpus-per-task, --cpu-bind=none)")
        )
    for name, package, purpose, there in _core.libraries():
        out.append((name, there, purpose if there else f"{purpose}: missing; apt-get install {package} and build again"))
    schemes = [f"{scheme}://" for store in _core.stores() for scheme in store["schemes"]]
    out.append(("stores", True, f"data are read from plain paths and {', '.join(schemes)}"))
    for name, purpose in (
        ("botocore", "credentials of s3:// by roles, SSO and web identity"),
        ("numpy", "arrays"),
        ("torch", 'output="torch"'),
        ("jax", 'output="jax"'),
        ("PIL", "TIFF, BMP, GIF and other pictures"),
        ("pyarrow", "Parquet"),
        ("h5py", "HDF5, NetCDF-4"),
        ("ml_dtypes", "bfloat16 in NumPy"),
        ("cloudpickle", "functions of scripts and notebooks in processes"),
        ("numba", "compiled functions given to .map"),
    ):
        package = "pillow" if name == "PIL" else name
        there = importlib.util.find_spec(name) is not None
        out.append(
            (
                name,
                there or name != "numpy",
                f"{purpose}, {_version(package)}" if there else f"{purpose}: not installed (pip install {package})",
            )
        )
    return out
