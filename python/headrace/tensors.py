# SPDX-License-Identifier: Apache-2.0
"""Files of tensors as samples by rows: MNIST's idx (plain and gz), safetensors, and what ``torch.save`` writes.

Nothing is executed: a pickle is read by a machine that knows tensors, containers and scalars, and no other name.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import re
import zipfile
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from .errors import DataError, Unsupported, UsageError
from .made import Made

_MOST_HEADER = 100 << 20  # of a safetensors file, as its own library has it
_MOST_UNPACKED = 4 << 30  # of an idx file in gzip, which the index holds unpacked
_IDX = re.compile(r"[.-]idx[1-9]-u?byte(\.gz)?$|\.idx[1-9]?-?u?byte(\.gz)?$")
_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_SAFE_TYPES = {
    "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32", "U64": "uint64",
    "I64": "int64", "F16": "float16", "F32": "float32", "F64": "float64", "BOOL": "uint8",
}  # fmt: skip


@dataclass
class Tensor:
    """Where an array lies; or, where it cannot be read in place, what it holds."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    file: str
    offset: int = 0
    values: np.ndarray[Any, Any] | None = None


def is_tensors(path: str) -> bool:
    name = os.path.basename(path).lower()
    return bool(_IDX.search(name)) or name.endswith((".safetensors", ".pt", ".pth"))


def open_tensors(path: str, part: str) -> _core.Source:
    name = os.path.basename(path).lower()
    if _IDX.search(name):
        return _rows({_idx_name(name): _idx(path)}, path, part)
    found = _safetensors(path) if name.endswith(".safetensors") else _torch(path)
    return _rows(found, path, part)


# -- rows ------------------------------------------------------------------------------------------


def _splits(names: Sequence[str]) -> list[str]:
    found = [_core.split_in(n) for n in names]
    return list(dict.fromkeys(found)) if all(found) and len(set(found)) > 1 else []


def _rows(tensors: dict[str, Tensor], path: str, part: str) -> _core.Source:
    """A sample for each index of the first axis that all share; of several splits the one that is named."""
    splits = _splits(list(tensors))
    if part and part in splits:
        tensors = {_core.without_split(n) or n: t for n, t in tensors.items() if _core.split_in(n) == part}
    elif part and part not in ("rows", "whole"):
        known = ", ".join("#" + s for s in splits)
        raise UsageError(f"{path}: there is no part '#{part}'; {known + ', ' if known else ''}#rows and #whole are")
    lengths = {n: t.shape[0] if t.shape else None for n, t in tensors.items()}
    alike = len(set(lengths.values())) == 1 and None not in lengths.values()
    if part == "whole" or (not alike and not splits and part != "rows"):
        return _whole(tensors, path)
    if not alike:
        shown = ", ".join(f"{n} {list(t.shape)}" for n, t in tensors.items())
        if splits:
            raise UsageError(f"{path} holds the splits {', '.join(splits)} ({shown}): say which, as in '{path}#{splits[0]}'")
        raise UsageError(f"{path}: '#rows' wants tensors of one length, and it holds {shown}")
    count = next(iter(lengths.values())) or 0
    if count == 0:
        raise DataError(f"{path}: there is no sample: its tensors have no row")
    stem = os.path.splitext(os.path.basename(path))[0]
    made = Made("tensors", [f"{stem}/{i:08d}" for i in range(count)])
    for name, tensor in tensors.items():
        _add(made, name, tensor, tensor.shape[1:], count)
    place = os.path.dirname(path) if made.files else path
    return made.source(place, os.path.basename(path) + (f"#{part}" if part else ""))


def _add(made: Made, name: str, tensor: Tensor, shape: tuple[int, ...], count: int) -> None:
    if tensor.values is None and shape:
        file = os.path.basename(tensor.file)  # all lie in one folder, the root
        if file not in made.files:
            made.files.append(file)
        made.add_rows(name, made.files.index(file), tensor.offset, tensor.dtype, shape)
        return
    values = tensor.values if tensor.values is not None else _read(tensor)
    if not shape:
        made.add_values(name, values.tolist())
        return
    made.add_arrays(name, list(values), shape)


def _read(tensor: Tensor) -> np.ndarray[Any, Any]:
    count = int(np.prod(tensor.shape, dtype=np.int64))
    return np.fromfile(tensor.file, tensor.dtype, count, offset=tensor.offset).reshape(tensor.shape)


def _whole(tensors: dict[str, Tensor], path: str) -> _core.Source:
    made = Made("tensors", [os.path.splitext(os.path.basename(path))[0]])
    for name, tensor in tensors.items():
        _add(made, name, Tensor((1, *tensor.shape), tensor.dtype, tensor.file, tensor.offset,
                                None if tensor.values is None else tensor.values[None]), tensor.shape, 1)  # fmt: skip
    made.notices.append(f"{path}: its tensors have different lengths: the file is one sample")
    return made.source(os.path.dirname(path) if made.files else path, os.path.basename(path))


# -- idx -------------------------------------------------------------------------------------------


def _idx_name(name: str) -> str:
    """``train-images-idx3-ubyte.gz`` is ``images``."""
    stem = _IDX.sub("", name)
    return re.sub(r"^(train|t10k|test)[-_.]?", "", stem) or "data"


def _idx_split(name: str) -> str:
    return "test" if name.startswith("t10k") else _core.split_in(name)


def _idx(path: str) -> Tensor:
    packed = path.endswith(".gz")
    try:
        with gzip.open(path) if packed else open(path, "rb") as f:
            head = f.read(4)
            axes = head[3] if len(head) == 4 else 0
            if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _IDX_TYPES or not axes:
                raise DataError(f"{path}: not an idx file: it begins with {head.hex(' ')}")
            shape = tuple(int(n) for n in np.frombuffer(f.read(4 * axes), ">u4"))
            if len(shape) != axes:
                raise DataError(f"{path}: cut short within its header")
            stored = np.dtype(_IDX_TYPES[head[2]])
            size = int(np.prod(shape, dtype=np.float64)) * stored.itemsize
            if packed and size > _MOST_UNPACKED:
                raise Unsupported(f"{path}: {size} bytes unpacked are more than are held in memory; unpack it: gzip -d")
            there = os.path.getsize(path) - 4 - 4 * axes
            if not packed and there != size:
                raise DataError(f"{path}: {there} bytes of data, its header says {size}")
            if not packed and stored.itemsize == 1:
                return Tensor(shape, stored, path, 4 + 4 * axes)
            data = f.read(size + 1)
    except (EOFError, gzip.BadGzipFile) as e:
        raise DataError(f"{path}: {e}") from None
    if len(data) != size:
        raise DataError(f"{path}: {len(data)} bytes of data, its header says {size}")
    return Tensor(
        shape, stored.newbyteorder("="), path, values=np.frombuffer(data, stored).reshape(shape).astype(stored.newbyteorder("="))
    )


def idx_folder(path: str, names: Sequence[str], part: str) -> _core.Source | None:
    """MNIST's four files: two splits of images and labels."""
    files = [n for n in names if _IDX.search(n.lower())]
    if not files:
        return None
    splits = list(dict.fromkeys(_idx_split(n) for n in files))
    if part not in splits and not (part == "" and len(splits) == 1):
        raise UsageError(f"{path} holds the splits {', '.join(splits)}: say which, as in '{path}#{splits[0]}'")
    chosen = [n for n in files if _idx_split(n) == (part or splits[0])]
    found: dict[str, Tensor] = {}
    for n in chosen:  # packed and unpacked, it is the same file
        if _idx_name(n) not in found or not n.endswith(".gz"):
            found[_idx_name(n)] = _idx(os.path.join(path, n))
    return _rows(found, os.path.join(path, chosen[0]), "")


# -- safetensors -----------------------------------------------------------------------------------


def _safetensors(path: str) -> dict[str, Tensor]:
    size = os.path.getsize(path)
    with open(path, "rb") as f:
        length = int.from_bytes(f.read(8), "little")
        if length > min(_MOST_HEADER, size - 8):
            raise DataError(f"{path}: not a safetensors file: a header of {length} bytes in a file of {size}")
        try:
            header = json.loads(f.read(length))
        except ValueError as e:
            raise DataError(f"{path}: its header is no JSON: {e}") from None
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        kind, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        if kind not in _SAFE_TYPES:
            raise Unsupported(f"{path}: '{name}' is of type {kind}; {', '.join(_SAFE_TYPES)} are read")
        dtype = np.dtype(_SAFE_TYPES[kind])
        wanted = int(np.prod(shape, dtype=np.float64)) * dtype.itemsize
        if end - begin != wanted or begin < 0 or end > size - 8 - length:
            raise DataError(f"{path}: '{name}' lies at [{begin}, {end}) of {size - 8 - length} bytes and has {wanted}")
        out[name] = Tensor(shape, dtype, path, 8 + length + begin)
    if not out:
        raise DataError(f"{path}: it holds no tensor")
    return out


# -- torch.save ------------------------------------------------------------------------------------

_STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "LongStorage": "int64",
    "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "uint8",
}  # fmt: skip


@dataclass
class _Storage:
    dtype: str
    key: str


@dataclass
class _Saved:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def _rebuild(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> _Saved:
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor without a storage")
    return _Saved(storage, int(offset), tuple(map(int, shape)), tuple(map(int, stride)))


def _parameter(data: Any, *_: Any) -> Any:
    return data


class _Tensors(pickle.Unpickler):
    """Knows the names that a tensor is pickled by, as descriptions of its own; whatever else is named is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch._utils" and name in ("_rebuild_tensor_v2", "_rebuild_tensor"):
            return _rebuild
        if module == "torch._utils" and name == "_rebuild_parameter":
            return _parameter
        if module == "collections" and name == "OrderedDict":
            return OrderedDict
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        raise Unsupported(f"it holds {module}.{name}, and only tensors, numbers, texts and containers of them are read")

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or pid[1] not in _STORAGES.values():
            raise pickle.UnpicklingError("a storage of no known kind")
        return _Storage(pid[1], str(pid[2]))


def _flat(value: Any, name: str, out: dict[str, Any]) -> None:
    """Tensors by name: members by dotted names, of a tuple or list ``0``, ``1``, …"""
    if isinstance(value, _Saved):
        out[name or "data"] = value
    elif isinstance(value, dict):
        for key, member in value.items():
            _flat(member, f"{name}.{key}" if name else str(key), out)
    elif isinstance(value, (list, tuple)):
        for number, member in enumerate(value):
            _flat(member, f"{name}.{number}" if name else str(number), out)


def _data_at(path: str, info: zipfile.ZipInfo) -> int:
    with open(path, "rb") as f:
        f.seek(info.header_offset)
        head = f.read(30)
    if len(head) < 30 or head[:4] != b"PK\3\4":
        raise DataError(f"{path}: '{info.filename}' does not begin where the archive says")
    return info.header_offset + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")


def _torch(path: str) -> dict[str, Tensor]:
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise Unsupported(f"{path}: not an archive of torch.save (of PyTorch 1.6 and newer); load it and save it again") from None
    with archive:
        names = {n.split("/", 1)[1]: n for n in archive.namelist() if "/" in n}
        if "data.pkl" not in names:
            raise DataError(f"{path}: it has no data.pkl: not a file of torch.save")
        order = archive.read(names["byteorder"]) if "byteorder" in names else b"little"
        if order != b"little":
            raise Unsupported(f"{path}: its tensors are {order.decode()}-endian")
        try:
            with archive.open(names["data.pkl"]) as f:
                value = _Tensors(f).load()
        except Unsupported as e:
            raise Unsupported(f"{path}: {e}; torch.save(dict of tensors) is read") from None
        except Exception as e:  # a pickle that is damaged raises whatever it meets
            raise DataError(f"{path}: data.pkl: {e}") from None
        saved: dict[str, _Saved] = {}
        _flat(value, "", saved)
        if not saved:
            raise DataError(f"{path}: it holds no tensor")
        return {name: _placed(path, archive, names, name, s) for name, s in saved.items()}


def _placed(path: str, archive: zipfile.ZipFile, names: dict[str, str], name: str, saved: _Saved) -> Tensor:
    dtype = np.dtype(saved.storage.dtype)
    member = names.get(f"data/{saved.storage.key}")
    if member is None:
        raise DataError(f"{path}: '{name}' lies in data/{saved.storage.key}, which is not there")
    info = archive.getinfo(member)
    steps, expected = [], 1
    for n in reversed(saved.shape):
        steps.append(expected)
        expected *= n
    last = saved.offset + sum((n - 1) * s for n, s in zip(saved.shape, saved.stride) if n > 0)
    if min((*saved.shape, *saved.stride, saved.offset), default=0) < 0 or (
        expected and (last + 1) * dtype.itemsize > info.file_size
    ):
        raise DataError(f"{path}: '{name}' {list(saved.shape)} does not fit into its {info.file_size} bytes")
    plain = all(n <= 1 or s == e for n, s, e in zip(saved.shape, saved.stride, reversed(steps)))
    if info.compress_type == zipfile.ZIP_STORED and plain:
        return Tensor(saved.shape, dtype, path, _data_at(path, info) + saved.offset * dtype.itemsize)
    data = np.frombuffer(archive.read(member), dtype)[saved.offset :]
    strides = tuple(s * dtype.itemsize for s in saved.stride)
    view = np.lib.stride_tricks.as_strided(data, saved.shape, strides, writeable=False)
    return Tensor(saved.shape, dtype, path, values=np.ascontiguousarray(view))
