# SPDX-License-Identifier: Apache-2.0
"""Where the chunks of an HDF5 data set lie, and whether that is so.

libhdf5 (2.0 and before) gives wrong coordinates for one kind of chunk index: an extensible array (files of
``libver="v110"`` and newer) whose unlimited axis is not the first. It counts the chunks with the unlimited axis
slowest and reports them as if the axes had their own order. So what it reports is compared with
``read_direct_chunk``, which is right for all kinds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import stored_files
from .model import Stored, grid_of, no_places

#: Rows of (offset of its elements on each axis …), and (filters left out, address, stored bytes) of each.
_Rows = tuple[Any, Any]

#: Chunks that are read to tell two readings of the index from each other.
_TRIES = 16

WRONG_INDEX = "libhdf5 gives wrong places for its chunks (one unlimited axis that is not the first, libver v110 or newer)"


def find_chunks(h5py: Any, dataset: Any, out: Stored, checked: set[Any]) -> str:
    """Sets ``out.places``; or the reason why the engine cannot read the chunks. ``checked``: kinds of index of this
    file that were compared already."""
    grid = grid_of(out.name, out.shape, out.chunk)
    if math.prod(grid) == 1 and hasattr(dataset.id, "chunk_iter"):  # of small variables there are thousands
        found = _only_chunk(dataset, out, checked)
        if found is not None:
            return found
    offsets, about = _reported(dataset, len(grid))
    numbers = offsets // np.array(out.chunk, np.int64)
    most = dataset.maxshape
    unlimited = tuple(a for a, n in enumerate(most) if n is None)
    counts = [1 if m is None else -(-m // c) for m, c in zip(most, out.chunk)]
    if len(unlimited) == 1 and math.prod(counts[: unlimited[0]]) > 1 and len(about):
        found = _settled(h5py, dataset, out, numbers, about, counts, unlimited[0])
        if found is None:
            return WRONG_INDEX
        numbers = found
    kind = (len(grid), unlimited, tuple(most) == tuple(out.shape), bool(out.filters), len(about) == 1)
    if kind not in checked and len(about):
        checked.add(kind)
        row = len(about) // 2
        if not _lies_there(dataset, out, numbers[row], about[row]):
            return "libhdf5 gives other places for its chunks than it reads them from"
    inside = ((numbers >= 0) & (numbers < np.array(grid, np.int64))).all(axis=1)  # a shrunk data set keeps none outside
    places = no_places(math.prod(grid))
    steps = np.array([math.prod(grid[a + 1 :]) for a in range(len(grid))], np.int64)
    places[(numbers[inside] * steps).sum(axis=1), 1:] = about[inside]
    out.places = places
    return ""


def _only_chunk(dataset: Any, out: Stored, checked: set[Any]) -> str | None:
    """Of a grid of one chunk; None where it needs a closer look."""
    found: list[Any] = []
    dataset.id.chunk_iter(lambda chunk: found.append((chunk.chunk_offset, chunk.filter_mask, chunk.byte_offset, chunk.size)))
    kind = ("one", len(out.shape), bool(out.filters))
    if len(found) != 1 or any(found[0][0]) or kind not in checked:
        checked.add(kind)  # the first is compared
        return None
    out.places = np.array([[0, *found[0][1:]]], np.uint64)
    return ""


def _settled(h5py: Any, dataset: Any, out: Stored, numbers: Any, about: Any, counts: Sequence[int], free: int) -> Any:
    """The numbers of the chunks on each axis, by a B-tree or an extensible array; None where that cannot be told."""
    reports = _library_reports(h5py)
    if reports == "right" or (reports == "flat" and bool(numbers[:, :free].any())):
        return numbers  # of an extensible array all of these would be 0
    return _chosen(dataset, out, about, [numbers, _unflattened(numbers, counts, free)]) if reports == "flat" else None


@functools.lru_cache(maxsize=1)
def _library_reports(h5py: Any) -> str:
    """What libhdf5 says of a small extensible array: "right", "flat" (as above), or "wrong" in another way."""
    shape, chunk, most = (5, 7, 4), (2, 3, 2), (6, None, 8)
    with h5py.File("headrace-probe", "w", driver="core", backing_store=False, libver="latest") as file:
        dataset = file.create_dataset("x", shape, "i4", chunks=chunk, maxshape=most)
        dataset[...] = np.arange(math.prod(shape)).reshape(shape)
        file.flush()
        image = file.id.get_file_image()
        offsets, about = _reported(dataset, len(shape))
        numbers = offsets // np.array(chunk)

        def holds(numbers: Any) -> bool:
            for number, (_, address, size) in zip(numbers.tolist(), about.tolist()):
                offset = tuple(n * c for n, c in zip(number, chunk))
                if any(o >= n for o, n in zip(offset, shape)):
                    return False
                if bytes(dataset.id.read_direct_chunk(offset)[1]) != image[address : address + size]:
                    return False
            return len(about) == 3 * 3 * 2

        if holds(numbers):
            return "right"
        return "flat" if not numbers[:, 0].any() and holds(_unflattened(numbers, [3, 1, 4], 1)) else "wrong"


def _reported(dataset: Any, axes: int) -> _Rows:
    rows: list[tuple[int, ...]] = []

    def note(chunk: Any) -> None:
        rows.append((*chunk.chunk_offset, chunk.filter_mask, chunk.byte_offset, chunk.size))

    if hasattr(dataset.id, "chunk_iter"):
        dataset.id.chunk_iter(note)
    else:
        for i in range(dataset.id.get_num_chunks()):
            note(dataset.id.get_chunk_info(i))
    table = np.array(rows, np.uint64).reshape(len(rows), axes + 3)
    return table[:, :axes].astype(np.int64), table[:, axes:]


def _unflattened(numbers: Any, counts: Sequence[int], free: int) -> Any:
    """Numbers on each axis, of those that were counted with the axis ``free`` slowest and reported with it in its place."""
    linear = np.zeros(len(numbers), np.int64)
    for a in range(free, len(counts)):
        linear += numbers[:, a] * math.prod(counts[a + 1 :])
    out = np.empty_like(numbers)
    for a in reversed([a for a in range(len(counts)) if a != free]):
        linear, out[:, a] = np.divmod(linear, counts[a])
    out[:, free] = linear
    return out


def _chosen(dataset: Any, out: Stored, about: Any, readings: list[Any]) -> Any:
    """The reading that the chunks themselves confirm; None where none is, or both are."""
    different = np.flatnonzero((readings[0] != readings[1]).any(axis=1))
    if not len(different):
        return readings[0]
    for row in different[np.unique(np.linspace(0, len(different) - 1, _TRIES).astype(int))]:
        held = [_lies_there(dataset, out, reading[row], about[row]) for reading in readings]
        if held[0] != held[1]:
            return readings[held.index(True)]
    return None


def _lies_there(dataset: Any, out: Stored, number: Any, about: Any) -> bool:
    """Whether the chunk of that number is what lies at that address."""
    _, address, size = (int(n) for n in about)
    offset = tuple(int(n) * c for n, c in zip(number, out.chunk))
    if any(o >= n for o, n in zip(offset, out.shape)):
        return False
    try:
        read = bytes(dataset.id.read_direct_chunk(offset)[1])
    except (OSError, ValueError, RuntimeError, KeyError):
        return False
    return read == stored_files.read(out.files[0], address, size)
