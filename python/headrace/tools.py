# SPDX-License-Identifier: Apache-2.0
"""Around the loader: formats, indexes, packing, and what this installation has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core
from .checks import byte_count, path, whole
from .dataset import Dataset, open_source, urls_of
from .errors import UsageError

Progress = Callable[..., None]


def formats() -> list[dict[str, Any]]:
    """What this build can read and write."""
    return _core.formats()


def image_size(data: bytes) -> tuple[int, int]:
    """(width, height) of a picture, from its header alone; as stored, whatever its EXIF says."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise UsageError(f"image_size takes the bytes of a picture, not {type(data).__name__}")
    return _core.image_size(bytes(data))


def build_index(source: Any, to: str, *, root: str | None = None, progress: Progress | None = None) -> None:
    """Builds the index of ``source`` ahead of time into the folder ``to``."""
    _core.build_index(urls_of(source), path(to, "to"), path(root, "root"), progress)


def pack(
    source: Any,
    destination: str,
    *,
    to: str = "tar",
    shards: int = 0,
    shard_size: int | str = 0,
    for_ranks: int = 1,
    for_workers: int = 1,
    keep_order: bool = False,
    seed: int = 0,
    threads: int = 0,
    root: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes a data set as shards into the folder ``destination``, which ``hr.open`` opens.

    Shards hold equally many samples, to within one, and each is a random part of the data unless
    ``keep_order``. The same call again goes on where it was stopped, or says that all is there.
    """
    handle = source._source if isinstance(source, Dataset) else open_source(urls_of(source), None, root)
    return _core.pack(
        handle,
        path(destination, "destination"),
        {
            "format": str(to),
            "shards": whole(shards, "shards"),
            "shard_bytes": byte_count(shard_size or None, "shard_size"),
            "for_ranks": whole(for_ranks, "for_ranks", 1, 1 << 31),
            "for_workers": whole(for_workers, "for_workers", 1, 1 << 31),
            "keep_order": bool(keep_order),
            "seed": whole(seed, "seed", 0, (1 << 64) - 1),
            "threads": whole(threads, "threads", 0, 4096),
        },
        progress,
    )


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
    for name, purpose in (
        ("numpy", "arrays"),
        ("torch", 'output="torch"'),
        ("jax", 'output="jax"'),
        ("PIL", "TIFF, BMP, GIF and other pictures"),
        ("pyarrow", "Parquet"),
        ("ml_dtypes", "bfloat16 in NumPy"),
    ):
        there = importlib.util.find_spec(name) is not None
        out.append(
            (
                name,
                there or name != "numpy",
                purpose if there else f"{purpose}: not installed (pip install {'pillow' if name == 'PIL' else name})",
            )
        )
    return out
