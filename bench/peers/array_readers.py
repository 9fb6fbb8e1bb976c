# SPDX-License-Identifier: Apache-2.0
"""Arrays as people read them, in a shuffled order, batch by batch: headrace, zarr-python, TensorStore, h5py, NumPy, xarray.

`job.options`: who reads, what ("steps", "values", "volumes", "patches"), where it lies, how many make a batch.
"""

from __future__ import annotations

import os
import pathlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from peers.common import Job, main

VARIABLE = "t2m"
WINDOW, HORIZON, PATCH = 4, 1, 128


def _orders(count: int, batch: int) -> Iterator[list[int]]:
    numbers = np.random.default_rng(1)
    while True:
        order = numbers.permutation(count).tolist()
        yield from (order[at : at + batch] for at in range(0, count - batch + 1, batch))


# -- headrace ---------------------------------------------------------------------------------------------


def read_natively() -> None:
    """Raises where headrace has said that it reads through h5py: that is no comparison."""
    from headrace.messages import _told

    for text in _told:
        if "through h5py" in text:
            raise RuntimeError(text)


def _headrace(job: Job) -> Iterator[Any]:
    import headrace as hr

    what = job.options["what"]
    fields = {
        "steps": {"x": hr.array(VARIABLE)},
        "values": {"x": hr.bytes("images")},
        "volumes": {"x": hr.array("x"), "y": hr.array("y")},
        "patches": {"x": hr.array(VARIABLE, window=WINDOW, horizon=HORIZON, patch=(PATCH, PATCH))},
    }[what]
    loader = hr.Loader(
        job.options["source"],
        job.options["batch"],
        fields,
        shuffle="global",
        tail="drop",
        seed=1,
        threads=job.workers,
        memory_budget=job.options.get("memory"),
    )
    read_natively()
    for _, epoch in loader.epochs(1 << 40):
        for batch in epoch:
            yield batch["x"]


# -- steps: a whole field at one time ---------------------------------------------------------------------


def _zarr_steps(job: Job) -> Iterator[Any]:
    import zarr

    zarr.config.set({"threading.max_workers": job.workers, "async.concurrency": job.workers})
    array = zarr.open_group(job.options["source"], mode="r")[VARIABLE]
    for rows in _orders(array.shape[0], job.options["batch"]):
        out = np.empty((len(rows), *array.shape[1:]), array.dtype)
        for k, row in enumerate(rows):
            out[k] = array[row]
        yield out


def _tensorstore(job: Job) -> Any:
    import tensorstore as ts

    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": str(pathlib.Path(job.options["source"]) / VARIABLE)},
        "context": {
            "cache_pool": {"total_bytes_limit": 0},
            "data_copy_concurrency": {"limit": job.workers},
            "file_io_concurrency": {"limit": max(4, job.workers)},
        },
    }
    return ts.open(spec, read=True).result()


def _tensorstore_items(job: Job) -> Iterator[Any]:
    """As a Dataset's __getitem__ has it."""
    array = _tensorstore(job)
    for rows in _orders(array.shape[0], job.options["batch"]):
        yield np.stack([array[row].read().result() for row in rows])


def _tensorstore_steps(job: Job) -> Iterator[Any]:
    """A batch at a time: its best."""
    array = _tensorstore(job)
    for rows in _orders(array.shape[0], job.options["batch"]):
        yield array[np.asarray(rows)].read().result()


def _h5py_steps(job: Job) -> Iterator[Any]:
    import h5py

    with h5py.File(job.options["source"], "r") as file:
        array = file[VARIABLE]
        for rows in _orders(array.shape[0], job.options["batch"]):
            out = np.empty((len(rows), *array.shape[1:]), array.dtype)
            for k, row in enumerate(rows):
                array.read_direct(out[k], np.s_[row])
            yield out


# -- values of variable length, volumes -------------------------------------------------------------------


def _h5py_values(job: Job) -> Iterator[Any]:
    import h5py

    with h5py.File(job.options["source"], "r") as file:
        images = file["images"]
        for rows in _orders(len(images), job.options["batch"]):
            yield [images[row] for row in rows]


def _numpy_volumes(job: Job) -> Iterator[Any]:
    files = sorted(pathlib.Path(job.options["source"]).glob("*.npz"))
    for rows in _orders(len(files), job.options["batch"]):
        loaded = [np.load(files[row]) for row in rows]
        x, y = np.stack([one["x"] for one in loaded]), np.stack([one["y"] for one in loaded])
        yield x if len(y) else None


# -- random windows and patches, as climate people do it --------------------------------------------------


class Windows:
    """An item is one window and one patch of it, read through xarray."""

    def __init__(self, source: str) -> None:
        import xarray as xr

        self.data = xr.open_zarr(source, chunks=None)[VARIABLE]

    def __len__(self) -> int:
        return int(self.data.shape[0]) - WINDOW - HORIZON + 1

    def __getitem__(self, index: int) -> Any:
        y = random.randrange(self.data.shape[1] - PATCH + 1)
        x = random.randrange(self.data.shape[2] - PATCH + 1)
        part = self.data[index : index + WINDOW + HORIZON, y : y + PATCH, x : x + PATCH].values
        return part[:WINDOW], part[WINDOW:]


def _xarray_patches(job: Job) -> Iterator[Any]:
    from torch.utils.data import DataLoader

    loader = DataLoader(
        Windows(job.options["source"]),
        batch_size=job.options["batch"],
        shuffle=True,
        num_workers=job.workers,
        drop_last=True,
        persistent_workers=True,
        multiprocessing_context="spawn",  # zarr's event loop does not survive a fork
    )
    while True:
        for x, _ in loader:
            yield x


READERS: dict[str, Callable[[Job], Iterator[Any]]] = {
    "zarr-python": _zarr_steps,
    "TensorStore": _tensorstore_steps,
    "TensorStore items": _tensorstore_items,
    "h5py": _h5py_steps,
    "h5py items": _h5py_values,
    "NumPy": _numpy_volumes,
    "xarray + DataLoader": _xarray_patches,
}


def batches(job: Job) -> Iterator[Any]:
    if job.options["pinned"]:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])  # one thread is one processor, whoever starts more
    return READERS.get(job.options["who"], _headrace)(job)


if __name__ == "__main__":
    main(batches)
