# SPDX-License-Identifier: Apache-2.0
"""Files of tensors as samples by rows: MNIST's idx (plain and gz), safetensors, and what ``torch.save`` writes.

Nothing is executed: a pickle is read by a machine that knows tensors, containers and scalars, and no other name.
"""

from __future__ import annotations

import json
import os
import pickle
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from .errors import DataError, Unsupported, UsageError
from .made import DTYPES, Made

if TYPE_CHECKING:
    import zipfile

_MOST_HEADER = 100 << 20  # of a safetensors file, as its own library has it
_MOST_UNPACKED = 4 << 30  # of an idx file in gzip, which the index holds unpacked
_IDX = re.compile(r"[.-]idx[1-9]-u?byte(\.gz)?$|\.idx[1-9]?-?u?byte(\.gz)?$")
_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_SAFE_TYPES = {
    "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32", "U64": "uint64",
    "I64": "int64", "F16": "float16", "F32": "float32", "F64": "float64", "BOOL": "uint8", "BF16": "bfloat16",
}  # fmt: skip


@dataclass
class Tensor:
    """Where an array lies; or, where it cannot be read in place, what it holds."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    file: str
    offset: int = 0
    values: np.ndarray[Any, Any] | None = None
    is_bf16: bool = False  # which NumPy lacks: ``dtype`` is then uint16, of the same size

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def numbers(self) -> np.ndarray[Any, Any]:
        """The elements as NumPy has them; bfloat16 as float32, which holds each exactly."""
        count = int(np.prod(self.shape, dtype=np.int64))
        values = self.values
        if values is None:
            values = np.fromfile(self.file, self.dtype, count, offset=self.offset).reshape(self.shape)
        return (values.astype(np.uint32) << 16).view(np.float32) if self.is_bf16 else values


@dataclass
class Saved:
    """What a file holds: tensors by name, or a list of samples; beside them columns of numbers and texts."""

    tensors: dict[str, Tensor]
    samples: list[dict[str, Any]] | None = None
    others: dict[str, Any] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


def is_tensors(path: str) -> bool:
    name = os.path.basename(path).lower()
    return bool(_IDX.search(name)) or name.endswith((".safetensors", ".pt", ".pth"))


def open_tensors(path: str, part: str) -> _core.Source:
    name = os.path.basename(path).lower()
    if _IDX.search(name):
        return _rows(Saved({_idx_name(name): _idx(path)}), path, part)
    found = Saved(_safetensors(path)) if name.endswith(".safetensors") else _torch(path)
    if found.samples is not None and not part:
        return _samples(found, path)
    return _rows(found, path, part)


# -- rows ------------------------------------------------------------------------------------------


def _splits(names: Sequence[str]) -> list[str]:
    found = [_core.split_in(n) for n in names]
    return list(dict.fromkeys(found)) if all(found) and len(set(found)) > 1 else []


def _rows(found: Saved, path: str, part: str) -> _core.Source:
    """A sample for each index of the first axis that all share; of several splits the one that is named."""
    tensors, others = found.tensors, found.others
    splits = _splits(list(tensors))
    if part and part in splits:
        tensors = {_core.without_split(n) or n: t for n, t in tensors.items() if _core.split_in(n) == part}
        others = {_core.without_split(n) or n: v for n, v in others.items() if _core.split_in(n) == part}
    elif part and part not in ("rows", "whole"):
        known = ", ".join("#" + s for s in splits)
        raise UsageError(f"{path}: there is no part '#{part}'; {known + ', ' if known else ''}#rows and #whole are")
    lengths = {n: t.shape[0] if t.shape else None for n, t in tensors.items()}
    alike = len(set(lengths.values())) == 1 and None not in lengths.values()
    if part == "whole" or (not alike and not splits and part != "rows"):
        return _whole(tensors, others, path)
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
    made.notices += found.notices
    left = []
    for name, value in others.items():  # names and labels beside the tensors
        if isinstance(value, list) and len(value) == count and name not in tensors:
            made.add_values(name, value)
        else:
            left.append(f"'{name}'")
    if left:
        shown = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        made.notices.append(f"{path}: left out, because they have no value for each of the {count} rows: {shown}")
    place = os.path.dirname(path) if made.files else path
    return made.source(place, os.path.basename(path) + (f"#{part}" if part else ""))


def _add(made: Made, name: str, tensor: Tensor, shape: tuple[int, ...], count: int) -> None:
    if tensor.values is None and shape:
        file = os.path.basename(tensor.file)  # all lie in one folder, the root
        if file not in made.files:
            made.files.append(file)
        made.add_rows(name, made.files.index(file), tensor.offset, tensor.dtype, shape)
        if tensor.is_bf16:
            made.fields[-1]["dtype"] = "bf16"
        return
    if not shape:
        made.add_values(name, tensor.numbers().tolist())
        return
    values = tensor.values if tensor.values is not None else tensor.numbers()
    made.add_arrays(name, list(values), shape)
    if tensor.is_bf16:
        made.fields[-1]["dtype"] = "bf16"


def _samples(found: Saved, path: str) -> _core.Source:
    """A list of samples: tuples, dicts or tensors, one after the other."""
    rows = found.samples or []
    stem = os.path.splitext(os.path.basename(path))[0]
    made = Made("tensors", [f"{stem}/{i:08d}" for i in range(len(rows))])
    made.notices += found.notices
    for name in dict.fromkeys(n for row in rows for n in row):
        column = [row.get(name) for row in rows]
        there = [v for v in column if v is not None]
        if not any(isinstance(v, Tensor) for v in there):
            made.add_values(name, column)
        elif all(isinstance(v, Tensor) and not v.shape for v in there):
            made.add_values(name, [None if v is None else v.numbers().item() for v in column])
        else:
            _add_each(made, name, column, path)
    return made.source(os.path.dirname(path) if made.files else path, os.path.basename(path))


def _add_each(made: Made, name: str, column: list[Any], path: str) -> None:
    """A tensor a sample, each at its own place of the file; extents may differ from sample to sample."""
    there = [v for v in column if v is not None]
    kinds = {(str(v.dtype), v.is_bf16, len(v.shape)) if isinstance(v, Tensor) else type(v).__name__ for v in there}
    if len(kinds) > 1:
        raise Unsupported(
            f"{path}: '{name}' is of several kinds in its samples ({', '.join(sorted(map(str, kinds)))}); save it with one type and number of axes"
        )
    shapes = list(zip(*(v.shape for v in there)))
    shape = [n[0] if len(set(n)) == 1 else None for n in shapes]
    dtype = "bf16" if there[0].is_bf16 else DTYPES[there[0].dtype.name]
    if all(v.values is None for v in there):
        file = os.path.basename(path)
        if file not in made.files:
            made.files.append(file)
        number = made.files.index(file)
        where = {
            "file": np.array([-1 if v is None else number for v in column], np.int64),
            "offset": np.array([0 if v is None else v.offset for v in column], np.int64),
            "bytes": np.array([0 if v is None else v.bytes for v in column], np.int64),
        }
        made._add(name, "array", dtype, shape, **where)
        return
    raw = [None if v is None else (v.values if v.values is not None else _raw(v)).tobytes() for v in column]
    made._add(name, "array", dtype, shape, values=raw)


def _raw(tensor: Tensor) -> np.ndarray[Any, Any]:
    return np.fromfile(tensor.file, tensor.dtype, tensor.bytes // tensor.dtype.itemsize, offset=tensor.offset)


def _whole(tensors: dict[str, Tensor], others: dict[str, Any], path: str) -> _core.Source:
    made = Made("tensors", [os.path.splitext(os.path.basename(path))[0]])
    for name, tensor in tensors.items():
        values = None if tensor.values is None else tensor.values[None]
        one = Tensor((1, *tensor.shape), tensor.dtype, tensor.file, tensor.offset, values, tensor.is_bf16)
        _add(made, name, one, tensor.shape, 1)
    for name, value in others.items():
        if not isinstance(value, list) and name not in tensors:
            made.add_values(name, [value])
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
    import gzip

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
    return _rows(Saved(found), os.path.join(path, chosen[0]), "")


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
        is_bf16 = _SAFE_TYPES[kind] == "bfloat16"
        dtype = np.dtype("uint16" if is_bf16 else _SAFE_TYPES[kind])
        wanted = int(np.prod(shape, dtype=np.float64)) * dtype.itemsize
        if end - begin != wanted or begin < 0 or end > size - 8 - length:
            raise DataError(f"{path}: '{name}' lies at [{begin}, {end}) of {size - 8 - length} bytes and has {wanted}")
        out[name] = Tensor(shape, dtype, path, 8 + length + begin, is_bf16=is_bf16)
    if not out:
        raise DataError(f"{path}: it holds no tensor")
    return out


# -- torch.save ------------------------------------------------------------------------------------

_STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "LongStorage": "int64",
    "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "uint8",
    "BFloat16Storage": "bfloat16", "UntypedStorage": "",
}  # fmt: skip
#: Types that tensors without a storage of their own type name themselves.
_TYPES = {"uint16": "uint16", "uint32": "uint32", "uint64": "uint64"}


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
    dtype: str


def _rebuild(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> _Saved:
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor without a storage")
    return _Saved(storage, int(offset), tuple(map(int, shape)), tuple(map(int, stride)), storage.dtype)


def _rebuild_typed(storage: Any, offset: Any, shape: Any, stride: Any, grad: Any, hooks: Any, dtype: Any, *_: Any) -> _Saved:
    out = _rebuild(storage, offset, shape, stride)
    if dtype not in _TYPES.values():
        raise pickle.UnpicklingError("a tensor of no known type")
    out.dtype = dtype
    return out


def _parameter(data: Any, *_: Any) -> Any:
    return data


class _Tensors(pickle.Unpickler):
    """Knows the names that a tensor is pickled by, as descriptions of its own; whatever else is named is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch._utils" and name in ("_rebuild_tensor_v2", "_rebuild_tensor"):
            return _rebuild
        if module == "torch._utils" and name == "_rebuild_parameter":
            return _parameter
        if module == "torch._utils" and name == "_rebuild_tensor_v3":
            return _rebuild_typed
        if module == "torch" and name in _TYPES:
            return _TYPES[name]
        if module == "collections" and name == "OrderedDict":
            return OrderedDict
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _STORAGES[name]
        raise Unsupported(f"it holds {module}.{name}, and only tensors, numbers, texts and containers of them are read")

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or pid[1] not in _STORAGES.values():
            raise pickle.UnpicklingError("a storage of no known kind")
        return _Storage(pid[1], str(pid[2]))


def _flat(value: Any, name: str, out: dict[str, Any]) -> None:
    """Tensors by name: members by dotted names, of a tuple or list ``0``, ``1``, … Numbers, texts and lists of them too."""
    if isinstance(value, (_Saved, str, int, float)):
        out[name or "data"] = value
    elif isinstance(value, (list, tuple)) and value and all(isinstance(v, (str, int, float)) for v in value):
        out[name or "data"] = list(value)
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


def _as_samples(value: Any) -> list[dict[str, Any]] | None:
    """Where the file is a list of samples: a list of tuples or dicts with tensors in them, or of tensors of one shape."""
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(v, _Saved) for v in value):
        return [{"data": v} for v in value] if len({(v.shape, v.dtype) for v in value}) == 1 else None
    if not (all(isinstance(v, dict) for v in value) or all(isinstance(v, (tuple, list)) for v in value)):
        return None
    rows: list[dict[str, Any]] = []
    for v in value:
        rows.append({})
        _flat(v, "", rows[-1])
    return rows if any(isinstance(v, _Saved) for row in rows for v in row.values()) else None


def _may_be_samples(value: list[Any]) -> bool:
    """Tensors of one type and as many axes, several of each, that happen to have equal first axes: pictures of 3 channels."""
    if len(value) < 3 or not all(isinstance(v, _Saved) for v in value):
        return False
    axes = {(v.dtype, len(v.shape), v.shape[:1]) for v in value}
    return len(axes) == 1 and len(value[0].shape) > 1


def _torch(path: str) -> Saved:
    import zipfile

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
        found: dict[str, Any] = {}
        _flat(value, "", found)
        saved = {n: v for n, v in found.items() if isinstance(v, _Saved)}
        if not saved:
            raise DataError(f"{path}: it holds no tensor")
        tensors = {name: _placed(path, archive, names, name, s) for name, s in saved.items()}
        out = Saved(tensors, others={n: v for n, v in found.items() if n not in saved})
        rows = _as_samples(value)
        if rows is not None:
            out.samples = [{n: _value(path, archive, names, n, v) for n, v in row.items()} for row in rows]
            if isinstance(value[0], _Saved):
                out.notices.append(
                    f"{path}: a list of {len(rows)} tensors of one shape: each is a sample; write '#rows' behind the name where each is a column"
                )
        elif isinstance(value, list) and _may_be_samples(value):
            out.notices.append(
                f"{path}: a list of {len(value)} tensors of {value[0].shape[0]} rows each: each is a column, and the rows are the samples; "
                "where each is a sample, save them as torch.save([(x,) for x in tensors])"
            )
        return out


def _value(path: str, archive: zipfile.ZipFile, names: dict[str, str], name: str, value: Any) -> Any:
    if isinstance(value, list):
        raise Unsupported(f"{path}: '{name}' is a list of numbers or texts in a sample; save it as a tensor")
    return _placed(path, archive, names, name, value) if isinstance(value, _Saved) else value


def _placed(path: str, archive: zipfile.ZipFile, names: dict[str, str], name: str, saved: _Saved) -> Tensor:
    from zipfile import ZIP_STORED

    if not saved.dtype:
        raise DataError(f"{path}: '{name}' does not say its type")
    is_bf16 = saved.dtype == "bfloat16"
    dtype = np.dtype("uint16" if is_bf16 else saved.dtype)
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
    if info.compress_type == ZIP_STORED and plain:
        return Tensor(saved.shape, dtype, path, _data_at(path, info) + saved.offset * dtype.itemsize, is_bf16=is_bf16)
    data = np.frombuffer(archive.read(member), dtype)[saved.offset :]
    strides = tuple(s * dtype.itemsize for s in saved.stride)
    view = np.lib.stride_tricks.as_strided(data, saved.shape, strides, writeable=False)
    return Tensor(saved.shape, dtype, path, values=np.ascontiguousarray(view), is_bf16=is_bf16)
