# SPDX-License-Identifier: Apache-2.0
"""What only zarr-python can read of Zarr (codecs of its own, texts), as bytes for the engine. Slow: one call at a time."""

from __future__ import annotations

import math
import os
import tempfile
from typing import Any

import numpy as np

from .h5py import Numbers
from .model import Listed, Stored, no_places, number_type, one_place
from .stored_files import entries, is_url, join, read_all, relative

#: Texts are read when the store is opened; so many and no more.
_MOST_TEXTS = 1 << 22


def _open(root: str, folder: str) -> Any:
    import zarr

    within = relative(folder, root)
    store = zarr.storage.ZipStore(root, mode="r") if os.path.isfile(root) else root
    return zarr.open_array(store, path="" if within == "." else within, mode="r")


def _copied(folder: str, to: str) -> str:
    """All files of a folder of another store, in a local one: zarr-python knows no stores of ours."""
    left = [(folder, to)]
    while left:
        place, local = left.pop()
        os.makedirs(local, exist_ok=True)
        for name, is_folder in entries(place):
            if is_folder:
                left.append((join(place, name), os.path.join(local, name)))
                continue
            with open(os.path.join(local, name), "wb") as f:
                f.write(read_all(join(place, name)))
    return to


class ZarrNumbers(Numbers):
    """As of HDF5: bytes of the array as if its elements lay one after the other."""

    def _opened(self) -> Any:
        if self._dataset is None or self._owner != os.getpid():
            self._dataset, self._owner = _open(self.path, self.name), os.getpid()
        return self._dataset

    def spec(self) -> list[Any]:
        within = relative(self.name, self.path)
        return ["zarr", "" if within == "." else within, self.element_bytes, []]

    def _taken(self, dataset: Any, index: tuple[Any, ...]) -> Any:
        data = np.asarray(dataset[index])
        return data.astype(data.dtype.newbyteorder("<"), copy=False)


def through_zarr(root: str, folder: str, out: Listed, reason: str) -> Stored:
    """The array with a reader; or the reason why not."""
    plain = Stored(out.name, out.dims, out.shape, tuple(max(1, n) for n in out.shape), out.dtype)
    if out.kind != "array" or out.inner:
        plain.why = reason
        return plain
    if is_url(root):
        plain.why = f"{reason}; zarr-python may read it from a local disk: copy the store"
        return plain
    try:
        array = _open(root, folder)
        attributes = dict(array.attrs)
        if tuple(array.shape) != tuple(out.shape) or number_type(array.dtype) != plain.dtype:
            raise ValueError("zarr-python sees another array")
    except ImportError:
        plain.why = f"{reason}; zarr-python may read it: pip install zarr"
        return plain
    except Exception as e:  # whatever zarr-python and its codecs raise
        plain.why = f"{reason}; zarr-python does not read it either: {' '.join(str(e).split())[:200]}"
        return plain
    plain.files = [f"{folder}#zarr"]
    count = math.prod(plain.shape)
    element = int(plain.dtype.lstrip("uif")) // 8
    plain.places = one_place(0, count * element) if count else no_places(0)
    plain.slow, plain.library = reason, "zarr-python"
    plain.reader = ZarrNumbers(root, folder, element)
    plain.unpack_by(attributes)
    return plain


def zarr_texts(root: str, folder: str, out: Listed) -> Stored:
    """Texts of any length: read now, and kept."""
    plain = Stored(out.name, out.dims, out.shape, tuple(max(1, n) for n in out.shape), "u8", kind="text")
    count = math.prod(out.shape)
    if count > _MOST_TEXTS:
        plain.why = f"it holds {count} texts; up to {_MOST_TEXTS} are read"
        return plain
    try:
        with tempfile.TemporaryDirectory() as copy:
            array = _open(_copied(folder, copy), copy) if is_url(root) else _open(root, folder)
            texts = np.ravel(np.asarray(array[...]))
            plain.attributes = {k: v for k, v in dict(array.attrs).items() if isinstance(v, (str, int, float))}
    except ImportError:
        plain.why = "it holds texts, which zarr-python reads: pip install zarr"
        return plain
    except Exception as e:  # whatever zarr-python and its codecs raise
        plain.why = f"it holds texts, which zarr-python does not read: {' '.join(str(e).split())[:200]}"
        return plain
    values = [str(t).encode("utf-8", "surrogateescape") if t is not None else b"" for t in texts.tolist()]
    plain.values = {"literal": b"".join(values), "lengths": np.array([len(v) for v in values], np.uint64)}
    plain.places = no_places(0)
    plain.files = [folder]
    return plain
