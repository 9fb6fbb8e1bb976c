# SPDX-License-Identifier: Apache-2.0
"""HDF5 and NetCDF-4: h5py says where the chunks lie; the engine reads and opens them. What it cannot, h5py reads."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DataError, Error, NotFound, Unsupported, UsageError
from .groups import in_group
from .h5py import Numbers, Values, bytes_of
from .hdf5_chunks import find_chunks
from .hdf5_quick import DimensionNames, QuickDataset, attribute_names, fill_of_numbers, read_attributes
from .hdf5_types import Column, Types
from .model import LazyArrays, Stored, is_big, no_places, number_type, one_place, plain_attributes
from .stored_files import StoreFile, absolute, is_url

_FILTERS = {1: "zlib", 2: "shuffle", 3: "fletcher32", 32000: "lzf", 32001: "blosc", 32004: "lz4-hdf5", 32015: "zstd"}
_OTHERS = {4: "szip", 5: "n-bit", 6: "scale-offset", 32008: "bitshuffle", 32013: "zfp", 32026: "Blosc2"}
_NO_PLUGIN = "; and h5py has no plugin for it (pip install hdf5plugin brings some)"
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as e:
        raise Unsupported(
            f"HDF5 and NetCDF-4 are opened through h5py, which cannot be imported ({e}): pip install h5py"
        ) from None
    return h5py


#: Of more than so many, only those are looked at that somebody asks for.
_FEW = 64


def hdf5_arrays(path: str, group: str, all_of_them: bool = False) -> Mapping[str, Stored]:
    """The arrays of one group of the file, by their names. ``all_of_them``: all are asked for, so all are looked at now."""
    return _opened(path, lambda h5py, file: _arrays(h5py, file, path, group, all_of_them))


def hdf5_groups(path: str, within: str) -> list[tuple[str, list[Stored]]]:
    """The groups that lie in ``within`` (the root, where it is empty) and hold arrays, and their arrays."""

    def groups(h5py: Any, file: Any) -> list[tuple[str, list[Stored]]]:
        if within and within not in file:
            raise UsageError(f"{path} has no group '{within}'")
        about = _File(h5py, file, path)
        out = []
        for name, group in file[within or "/"].items():
            arrays = [d for d in group.values() if isinstance(d, h5py.Dataset)] if isinstance(group, h5py.Group) else []
            if arrays:
                out.append((name, [a for d in arrays if not _is_bare_dimension(h5py, d.id) for a in about.arrays(d)]))
        if not out:
            raise UsageError(f"{path} has no groups of arrays in '{within or '/'}'")
        return out

    return _opened(path, groups)


def _opened(path: str, work: Callable[[Any, Any], Any]) -> Any:
    h5py = _h5py()
    try:
        where: Any = path
        if is_url(path):
            where = StoreFile(path)
            where.read_begin()
        with h5py.File(where, "r") as file:
            return work(h5py, file)
    except Error:
        raise
    except FileNotFoundError:
        raise NotFound(f"there is no {path}") from None
    except (OSError, RuntimeError, KeyError, ValueError) as e:  # what h5py makes of damage depends on where it is
        raise DataError(f"{path}: h5py: {' '.join(str(e).split())}") from None


def _arrays(h5py: Any, file: Any, path: str, group: str, all_of_them: bool) -> Mapping[str, Stored]:
    wanted = group.strip("/")
    if wanted and isinstance(file.get(wanted), h5py.Dataset):  # one array of it
        return {a.name: a for a in _File(h5py, file, path).arrays(file[wanted])}
    groups: dict[str, list[str]] = {}

    def note(name: bytes, info: Any) -> None:
        if info.type == h5py.h5o.TYPE_DATASET:
            place = name.decode("utf-8", "surrogateescape")
            groups.setdefault(place.rpartition("/")[0], []).append(place)

    h5py.h5o.visit(file.id, note, info=True)
    elsewhere = _add_links(h5py, file, groups)
    about = _File(h5py, file, path)
    chosen = []  # (what comes before its name, where in the file, what lies there)
    left_out = []
    for prefix, place in in_group(path, group, groups):
        if place in elsewhere:
            why = f"it is a link to '{elsewhere[place]}'; open that file"
            left_out.append(Stored(prefix + _short(place), (), why=why))
            continue
        dataset = h5py.h5o.open(file.id, place.encode("utf-8", "surrogateescape"))
        if not _is_bare_dimension(h5py, dataset):
            chosen.append((prefix, place, dataset))
    if all_of_them or len(chosen) <= _FEW:
        there = (a for prefix, place, found in chosen for a in about.arrays(QuickDataset(h5py, found), prefix, _short(place)))
        return {a.name: a for arrays in (there, left_out) for a in arrays}
    several = {place for _, place, found in chosen if found.get_type().get_class() == h5py.h5t.COMPOUND}
    places = {prefix + _short(place): (place, prefix) for prefix, place, _ in chosen if place not in several}

    def make(h5py: Any, file: Any, names: Iterable[str]) -> dict[str, Stored]:
        about = _File(h5py, file, path)
        made = (about.arrays(file[place], prefix) for place, prefix in (places[n] for n in names))
        return {a.name: a for arrays in made for a in arrays}

    later = LazyArrays(places, lambda names: _opened(path, lambda h5py, file: make(h5py, file, names)))
    for prefix, place, found in chosen:
        if place in several:
            later.add(about.arrays(h5py.Dataset(found), prefix))
    later.add(left_out)
    return later


def _add_links(h5py: Any, file: Any, groups: dict[str, list[str]]) -> dict[str, str]:
    """Arrays that have another name in the file get it too; those in other files by their names, and what file it is."""
    found: list[tuple[str, int]] = []

    def note(name: bytes, info: Any) -> None:
        if info.type in (h5py.h5l.TYPE_SOFT, h5py.h5l.TYPE_EXTERNAL):
            found.append((name.decode("utf-8", "surrogateescape"), info.type))

    file.id.links.visit(note, info=True)
    elsewhere = {}
    for place, kind in found:
        if kind == h5py.h5l.TYPE_EXTERNAL:
            link = file.get(place, getlink=True)
            elsewhere[place] = f"{link.filename}#{link.path.strip('/')}"
        elif not isinstance(file.get(place), h5py.Dataset):
            continue
        groups.setdefault(place.rpartition("/")[0], []).append(place)
    return elsewhere


def _is_bare_dimension(h5py: Any, dataset: Any) -> bool:
    if not h5py.h5a.exists(dataset, b"NAME"):
        return False
    return bytes(np.bytes_(h5py.Dataset(dataset).attrs.get("NAME", b""))).startswith(_NO_VARIABLE)


def _short(name: str) -> str:
    return name.rpartition("/")[2]


class _File:
    """What is the same for all data sets of a file."""

    def __init__(self, h5py: Any, file: Any, path: str) -> None:
        plist = file.id.get_create_plist()
        self.h5py, self.path = h5py, absolute(path)
        self.address_bytes, self.size_bytes = (int(n) for n in plist.get_sizes())
        self.base = int(plist.get_userblock())
        self.types = Types(h5py, self.address_bytes)
        self.checked: set[Any] = set()  # kinds of chunk index
        self.dims = DimensionNames(h5py)
        self._known: dict[bytes, tuple[list[Column], int, bool]] = {}  # types, by their encoding

    def arrays(self, dataset: Any, prefix: str = "", short: str = "") -> list[Stored]:
        """One; of a compound type one for each member. One that h5py has no words for is named, and not read."""
        try:
            return self._arrays(dataset, prefix, short or _short(dataset.name))
        except (TypeError, AttributeError, NotImplementedError) as e:
            return [Stored(prefix + _short(dataset.name), (), why=f"h5py does not know its type: {' '.join(str(e).split())}")]

    def _arrays(self, dataset: Any, prefix: str, short: str) -> list[Stored]:
        name = prefix + short
        shape = dataset.id.shape
        if shape is None:
            return [Stored(name, (), why="it is empty (a null data space)")]
        tid, plist = dataset.id.get_type(), dataset.id.get_create_plist()
        attributes = attribute_names(self.h5py, dataset.id)
        columns, stored_bytes, is_number = self._elements(tid)
        like = Stored(name, self.dims.of(dataset.id, short, len(shape), attributes), tuple(map(int, shape)), files=[self.path])
        reason = _layout(self.h5py, dataset, plist, like, stored_bytes, self.checked)
        if reason:
            reason += _missing_filters(self.h5py, dataset)
        out = []
        for column in columns:
            odd = column.why and not column.path and number_type(dataset.dtype)
            if reason or odd:
                out.append(self._through_h5py(dataset, like, column, reason or column.why, attributes))
            else:
                is_plain = is_number and not column.path and not column.why
                fill = fill_of_numbers(plist, column.dtype, column.big_endian) if is_plain else None
                out.append(self._column(dataset, like, column, stored_bytes, fill, attributes))
        return out

    def _elements(self, tid: Any) -> tuple[list[Column], int, bool]:
        """The columns of a type, the bytes of an element, and whether it is a number. Files have many variables of few types."""
        try:
            key = tid.encode()
        except (RuntimeError, ValueError, TypeError):  # of a type that libhdf5 cannot write by itself
            key = b"%d" % len(self._known)
        if key not in self._known:
            is_number = tid.get_class() in (self.h5py.h5t.INTEGER, self.h5py.h5t.FLOAT)
            self._known[key] = list(self.types.columns(tid)), self.types.stored_bytes(tid), is_number
        return self._known[key]

    def _named(self, like: Stored, column: Column) -> Stored:
        out, axes = like, len(like.shape)
        if column.path:  # of which there are several
            out = copy(like)
            out.name, out.attributes, out.also_missing = f"{like.name}.{column.name}", {}, []
        if column.inner:
            out.dims = like.dims + tuple(f"inner{i}" for i in range(len(column.inner)))
            out.shape = like.shape + column.inner
        out.why = column.why
        out.kind, out.dtype, out.big_endian = column.kind, column.dtype, column.big_endian
        out.chunk, out.inner, out.text_end = like.chunk + column.inner, len(column.inner), column.text_end
        if column.kind == "text" and column.inner and axes > 1:
            out.why = "it has several texts of fixed length a sample"
        return out

    def _column(
        self, dataset: Any, like: Stored, column: Column, stored_bytes: int, fill: bytes | None, attributes: list[bytes]
    ) -> Stored:
        out = self._named(like, column)
        if out.why:
            return out
        fill = _fill(dataset, stored_bytes, column) if fill is None else fill
        if column.item_bytes:
            return self._values(dataset, out, column, stored_bytes, fill)
        if like.literal and dataset.dtype.hasobject:
            out.why = "it lies within the metadata, in records with values of variable length"
        if column.inner and any(fill) and bool((like.places[:, 3] == 0).any()):
            out.why = "parts of it were never written, and their fill value is more than one number"
        out.fill = fill if not column.inner else b""
        if column.name:
            out.record = (stored_bytes, column.offset, len(column.inner))
        elif column.kind == "array":
            out.unpack_by(read_attributes(self.h5py, dataset, attributes))
        return out

    def _values(self, dataset: Any, out: Stored, column: Column, stored_bytes: int, fill: bytes) -> Stored:
        """Values of variable length: references to them lie where numbers would."""
        if any(fill) and bool((out.places[:, 3] == 0).any()):
            out.why = "parts of it were never written, and its fill value is no empty value"
            return out
        if out.literal and "." in column.name:
            out.why = "it lies within the metadata, in records of records"
        elif out.literal:  # h5py gives the values and not the references, and they are few
            values = [bytes_of(v) for v in np.ravel(dataset[()] if not column.name else dataset[column.name])]
            out.values = {"literal": b"".join(values), "lengths": np.array([len(v) for v in values], np.uint64)}
        else:
            size = self.types.reference_bytes
            references = replace(out, dims=(*out.dims, ""), shape=(*out.shape, size), chunk=(*out.chunk, size), dtype="u8")
            references.kind, references.big_endian = "array", False
            if column.name:
                references.record = (stored_bytes, column.offset, 1)
            out.values = {
                "references": references,
                "item_bytes": column.item_bytes,
                "address_bytes": self.address_bytes,
                "size_bytes": self.size_bytes,
                "base": self.base,
            }
        out.places, out.filters, out.literal = no_places(0), [], b""
        return out

    def _through_h5py(self, dataset: Any, like: Stored, column: Column, reason: str, attributes: list[bytes]) -> Stored:
        """What the engine cannot read itself: numbers of any layout, values of variable length one by one."""
        count = math.prod(like.shape)
        out = self._named(like, column)
        if column.why and not column.path:
            out.dtype, out.big_endian = number_type(dataset.dtype), is_big(dataset.dtype)
            out.why = "" if out.dtype else column.why
        if out.why or reason.endswith(_NO_PLUGIN):
            out.why = out.why or reason
            return out
        out.filters, out.literal, out.slow = [], b"", reason
        member = "".join(f".{part}" for part in column.path)
        out.files = [f"{self.path}#{dataset.name.strip('/')}{member}"]
        if column.item_bytes:
            if column.big_endian and column.item_bytes > 1:
                out.why = f"{reason}; and h5py does not turn the bytes of big-endian values of variable length"
            out.values, out.places = {"by_number": True}, no_places(0)
            out.chunk = tuple(max(1, s) for s in out.shape)
            out.reader = Values(self.path, dataset.name, column.path)
            return out
        element = math.prod(column.inner) * (int(out.dtype.lstrip("uif")) // 8)
        out.text_end = "nuls" if out.text_end else ""  # as NumPy fills up
        out.chunk = tuple(max(1, s) for s in out.shape)
        out.places = one_place(0, count * element) if count else no_places(0)
        out.reader = Numbers(self.path, dataset.name, element, column.path)
        if column.kind == "array" and not column.path:
            out.unpack_by(read_attributes(self.h5py, dataset, attributes))
        return out


def _fill(dataset: Any, stored_bytes: int, column: Column) -> bytes:
    """The fill value of a column, as stored; zeros where there is none, or h5py knows no bytes of it."""
    try:
        fill = dataset.fillvalue
    except (RuntimeError, TypeError, ValueError):
        return b""
    if column.item_bytes:
        return b"\1" if isinstance(fill, (bytes, str)) and fill else b""
    if fill is None or dataset.dtype.hasobject:
        return b""
    base = dataset.dtype.base if dataset.dtype.subdtype else dataset.dtype  # of elements that are arrays: of one number
    raw = np.asarray(fill, base).tobytes()
    size = int(column.dtype.lstrip("uif")) // 8 * math.prod(column.inner)
    return raw[column.offset : column.offset + size] if len(raw) == stored_bytes else b""


def _missing_filters(h5py: Any, dataset: Any) -> str:
    """The filters that h5py cannot undo either, in words; "" where there are none."""
    plist = dataset.id.get_create_plist()
    for i in range(plist.get_nfilters()):
        code = plist.get_filter(i)[0]
        if h5py.h5z.filter_avail(code):
            continue
        with contextlib.suppress(ImportError):
            import hdf5plugin  # noqa: F401  brings filters that h5py lacks
        if not h5py.h5z.filter_avail(code):
            return _NO_PLUGIN
    return ""


def _layout(h5py: Any, dataset: Any, plist: Any, out: Stored, stored_bytes: int, checked: set[Any]) -> str:
    """Where its chunks lie; or why the engine cannot read them."""
    layout = plist.get_layout()
    if layout == h5py.h5d.VIRTUAL:
        return "it is a virtual data set"
    if layout == h5py.h5d.COMPACT:
        out.chunk = tuple(max(1, s) for s in out.shape)
        out.places = no_places(int(all(out.shape)))
        out.literal = _compact_bytes(dataset) if all(out.shape) else b""
        return ""
    if layout == h5py.h5d.CONTIGUOUS:
        if plist.get_external_count():
            return "it lies in an external file"
        out.chunk = tuple(max(1, s) for s in out.shape)
        count = int(all(out.shape))
        stored = dataset.id.get_storage_size()  # 0 where nothing was written; the offset is then none
        offset = dataset.id.get_offset() if stored else None
        out.places = no_places(count) if offset is None or not count else one_place(offset, stored)
        return ""
    for i in range(plist.get_nfilters()):
        code, _, values, label = plist.get_filter(i)
        if code not in _FILTERS:
            words = _OTHERS.get(code) or label.decode(errors="replace") or "unknown"
            return f"its chunks went through filter {code} ({words}); the engine knows {', '.join(_FILTERS.values())}"
        item = (values[0] if values else stored_bytes) if code == 2 else 0
        out.filters.append((_FILTERS[code], int(item)))
    out.chunk = tuple(plist.get_chunk())
    return find_chunks(h5py, dataset, out, checked)


def _compact_bytes(dataset: Any) -> bytes:
    """What lies within the metadata; at most 64 KiB. Of what holds values of variable length: some byte, as h5py
    gives the values alone."""
    if dataset.dtype.hasobject:
        return b"\0"
    return np.asarray(dataset[()], dataset.dtype).tobytes()


def hdf5_attributes(path: str, group: str) -> dict[str, Any]:
    """Of the group (or the file) itself."""

    def attributes(h5py: Any, file: Any) -> dict[str, Any]:
        where = file.get(group or "/")
        return plain_attributes(where.attrs) if isinstance(where, h5py.Group) else {}

    return dict(_opened(path, attributes))
