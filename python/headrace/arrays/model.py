# SPDX-License-Identifier: Apache-2.0
"""Arrays of files as the engine takes them: where chunks lie and what was done to them. Reads no data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import DataError, Error, Unsupported
from . import stored_files

WHOLE_FILE = (1 << 64) - 1

#: A grid above this is a damaged file or one that should not be read chunk by chunk.
MOST_CHUNKS = 1 << 27


#: Bytes of an array that are kept in memory, where a sample takes no more than the second number of them.
MOST_HELD = 32 << 20
MOST_HELD_A_SAMPLE = 64
#: Bytes of an array that the index keeps.
MOST_KEPT = 8 << 20


@dataclass
class Stored:
    """One array of one file or folder. ``why``: it cannot be read, and that is the reason."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...] = ()
    chunk: tuple[int, ...] = ()
    dtype: str = ""
    big_endian: bool = False
    fortran: bool = False
    fill: bytes = b""
    filters: list[tuple[str, int]] = field(default_factory=list)
    #: Rows of (file, filters left out, offset, stored bytes); 0 bytes where the chunk is not there.
    places: Any = None
    files: list[str] = field(default_factory=list)
    #: The size of each of ``files``, where whoever found them knows it.
    file_bytes: Any = None
    #: CRC-32 of the only chunk, opened: (that of what lies before it, that of both). Checked where all of it is read.
    crc: tuple[int, int] | None = None
    #: How numbers are packed; of one that is not packed these count where another file of the variable is.
    scale: float = 1.0
    offset: float = -0.0  # adds nothing, not even to -0
    missing: float | None = None
    #: Where there are several.
    also_missing: list[float] = field(default_factory=list)
    packed: bool = False
    why: str = ""
    #: What the file says of it beside its elements, for those who write it again.
    attributes: dict[str, Any] = field(default_factory=dict)
    #: "array": numbers; "bytes" or "text".
    kind: str = "array"
    #: Of members of records: (bytes of a record, where in it, how many of the last axes lie in it).
    record: tuple[int, int, int] | None = None
    #: One index of an axis that is left out: (which axis of a chunk, a chunk's extent along it, where in the chunk).
    layer: tuple[int, int, int] | None = None
    #: The last axes that are no axes of the data set: bytes of a text, an array that is one element.
    inner: int = 0
    #: The bytes of all of it, where they are no bytes of the file.
    literal: bytes = b""
    text_end: str = ""
    #: Of values of variable length: where the references to them lie and how they are written.
    values: dict[str, Any] | None = None
    #: Gives bytes of it, as if they lay in the file that ``files`` names; ``slow`` is the reason.
    reader: Callable[[int, int], bytes] | None = None
    slow: str = ""
    library: str = "h5py"  # whose reader it is
    #: All elements as stored, one after the other, where they were read already: of coordinates.
    kept: bytes = b""
    #: Of arrays in many files: the folders and files of metadata that were looked at, as they were before.
    looked_at: Any = None

    def described(self, first_file: int) -> dict[str, Any]:
        """For ``_core.open_arrays``; files count from ``first_file`` on."""
        places = self.places
        if first_file:
            places = places.copy()
            places[:, 0] += np.uint64(first_file)
        out = {
            k: getattr(self, k)
            for k in ("name", "dtype", "big_endian", "fortran", "fill", "filters", "packed", "scale", "offset")
        }
        if self.file_bytes is not None:
            out.update(first_file=first_file, file_bytes=self.file_bytes)
        if self.crc is not None:
            out["crc"] = self.crc
        if self.also_missing or self.layer:
            out.update(also_missing=self.also_missing or None, layer=self.layer)
        if self.record or self.literal or self.text_end:
            out.update(record=self.record, literal=self.literal or None, text_end=self.text_end)
        if self.values is not None:
            out["values"] = {**self.values, "file": first_file}
            if "references" in self.values:
                out["values"]["references"] = self.values["references"].described(first_file)
            if "flat" in self.values:
                flat, offsets = self.values["flat"], self.values["offsets"]
                out["values"] = {"flat": flat.described(first_file), "offsets": offsets.described(first_file + len(flat.files))}
        return {**out, "shape": list(self.shape), "chunk": list(self.chunk), "places": places, "missing": self.missing}

    def unpack_by(self, attributes: Mapping[str, Any]) -> None:
        """``scale_factor``, ``add_offset`` and ``_FillValue``, as NetCDF packs numbers; the others are kept for who looks."""
        self.attributes = plain_attributes(attributes)

        def numbers(name: str) -> list[float]:
            value = np.ravel(np.asarray(attributes[name])) if name in attributes else np.empty(0)
            return value.astype(float).tolist() if value.dtype.kind in "iuf" else []

        def number(name: str) -> float | None:
            return found[0] if len(found := numbers(name)) == 1 else None

        scale, offset = number("scale_factor"), number("add_offset")
        # NaN, as xarray writes floats, is NaN already.
        absent = [v for v in numbers("_FillValue") + numbers("missing_value") if not math.isnan(v)]
        unsigned = str(attributes.get("_Unsigned", "")).lower().strip("b'")
        if unsigned == "true" and self.dtype.startswith("i"):
            self.dtype = "u" + self.dtype[1:]  # classic NetCDF has no such types
            absent = [v + 2.0 ** int(self.dtype[1:]) if v < 0 else v for v in absent]
        elif unsigned == "false" and self.dtype.startswith("u"):
            self.dtype = "i" + self.dtype[1:]
            absent = [v - 2.0 ** int(self.dtype[1:]) if v >= 2.0 ** (int(self.dtype[1:]) - 1) else v for v in absent]
        if self.dtype == "f16":
            return
        if self.dtype == "f32":  # 1e20 is written as either
            absent = np.array(absent, "f4").astype(float).tolist()
        absent = list(dict.fromkeys(absent))
        missing = self.missing = absent[0] if absent else None
        self.also_missing = absent[1:]
        floating = self.dtype in ("f32", "f64")
        if scale is None and offset is None and not (floating and missing is not None):
            return
        self.packed = True
        self.scale, self.offset = (1.0 if scale is None else scale), (-0.0 if offset is None else offset)

    @property
    def unpacked_dtype(self) -> str:
        """What packed numbers become; the engine has the same rule."""
        return "f32" if self.dtype in ("u8", "i8", "u16", "i16", "f32") else "f64"


#: What a list is in a description, and a tuple here.
_TUPLES = ("dims", "shape", "chunk", "record", "layer", "crc")


def stored_of(d: Mapping[str, Any], kind: type[Stored] | None = None) -> Stored:
    """From the engine's description of it, which has the same names."""
    out = (kind or Stored)(d["name"], ())
    for name, value in d.items():
        if name not in ("by_python", "unfound") and value is not None:
            setattr(out, name, tuple(value) if name in _TUPLES else value)
    out.filters = [(name, number) for name, number in out.filters]
    return out


def unpacked_alike(segments: Sequence[Stored]) -> list[Stored]:
    """Those of several files as the engine reads them: all are unpacked where one is packed, or of another type."""
    if not any(s.packed or s.dtype != segments[0].dtype for s in segments):
        return list(segments)
    out = []
    for s in segments:
        s = copy(s)  # and no replace(), which would look for the chunks
        s.packed = True
        out.append(s)
    return out


class Listed(Stored):
    """One whose chunks are looked for when somebody asks where they lie: a store has many arrays, a data set takes some."""

    #: Gives ``places``, ``files`` and ``file_bytes``.
    finder: Callable[[], tuple[Any, list[str], Any]] | None = None

    def _find(self) -> None:
        if self.finder is not None:
            found, self.finder = self.finder, None
            self.places, self.files, self.file_bytes = found()


def _when_asked(name: str) -> Any:
    def get(self: Listed) -> Any:
        self._find()
        return self.__dict__[name]

    def set(self: Listed, value: Any) -> None:
        self.__dict__[name] = value

    return property(get, set)


for _name in ("places", "files", "file_bytes"):
    setattr(Listed, _name, _when_asked(_name))


class LazyArrays(Mapping[str, Stored]):
    """Arrays by their names, of which those are looked at that somebody asks for. ``make`` gives some by their names."""

    def __init__(self, names: Iterable[str], make: Callable[[Sequence[str]], Mapping[str, Stored]]) -> None:
        self._made: dict[str, Stored | None] = dict.fromkeys(names)
        self._make = make

    def add(self, arrays: Iterable[Stored]) -> None:
        self._made.update((a.name, a) for a in arrays)

    def __getitem__(self, name: str) -> Stored:
        found = self._made[name]
        if found is None:
            self._made.update(self._make([name]))
            found = self._made[name]
        assert found is not None
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __contains__(self, name: object) -> bool:
        return name in self._made

    def __len__(self) -> int:
        return len(self._made)

    def _all(self) -> None:
        left = [name for name, found in self._made.items() if found is None]
        if left:
            self._made.update(self._make(left))

    def values(self) -> ValuesView[Stored]:
        self._all()
        return super().values()

    def items(self) -> ItemsView[str, Stored]:
        self._all()
        return super().items()


def one_layer(stored: Stored, axis: int, index: int) -> Stored:
    """The array without one of its axes, at an index of it. Chunks stay those of the file."""
    if stored.values is not None or stored.record or stored.literal or stored.inner:
        raise Unsupported(
            f"'{stored.name}' is stored in records or in the metadata and cannot be stacked with others; give it a field of its own"
        )
    grid = grid_of(stored.name, stored.shape, stored.chunk)
    places = stored.places.reshape(*grid, 4).take(index // stored.chunk[axis], axis=axis)
    out = copy(stored)  # now that its chunks are found
    out.places = np.ascontiguousarray(places.reshape(-1, 4))
    out.layer = (axis, stored.chunk[axis], index % stored.chunk[axis])
    out.dims = stored.dims[:axis] + stored.dims[axis + 1 :]
    out.shape = stored.shape[:axis] + stored.shape[axis + 1 :]
    out.chunk = stored.chunk[:axis] + stored.chunk[axis + 1 :]
    out.crc = None  # which is of all of it
    return out


def is_coordinate(stored: Stored) -> bool:
    return stored.dims == (stored.name,) and stored.kind == "array" and stored.values is None and not stored.why


def by_values(stored: Stored, values: bytes) -> Stored:
    """The array as its elements, little-endian, which were read before."""
    out = copy(stored)
    out.literal, out.big_endian, out.filters, out.record, out.crc, out.layer = values, False, [], None, None, None
    out.chunk, out.places, out.fill, out.reader = tuple(max(1, n) for n in stored.shape), no_places(1), b"", None
    out.files, out.file_bytes = [], None
    return out


def held_if_small(stored: Stored, along: int | None) -> Stored:
    """Numbers of which a sample takes a few bytes (labels): all of them read now, and not one by one later."""
    plain = stored.dtype and stored.values is None and stored.reader is None and not stored.record and not stored.literal
    plain = plain and not stored.layer
    if along is None or not plain or stored.filters or stored.chunk != stored.shape or len(stored.places) != 1:
        return stored
    _, _, offset, size = (int(n) for n in stored.places[0])
    wanted = math.prod(stored.shape) * (int(stored.dtype.lstrip("uifb")) // 8)
    if not 0 < wanted <= min(size, MOST_HELD) or size == WHOLE_FILE or wanted > MOST_HELD_A_SAMPLE * stored.shape[along]:
        return stored
    try:
        literal = stored.kept or stored_files.read(stored.files[0], offset, wanted)
    except Error:
        return stored  # whoever reads a sample says what is wrong
    if not stored.big_endian and len(literal) <= MOST_KEPT:
        stored.kept = literal
    return replace(stored, literal=literal)


#: What says how numbers are packed.
PACKING = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")

#: How HDF5, NetCDF-4 and xarray keep the names of axes.
_OF_AXES = ("DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "CLASS", "NAME", "_ARRAY_DIMENSIONS")


def is_plain_name(name: str) -> bool:
    """Whether an attribute of that name is no part of how the file is built."""
    return name not in _OF_AXES and not name.startswith(("_Netcdf4", "_nc3", "_NCProperties"))


def plain_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are numbers and texts, and no part of how the file is built."""
    out = {}
    for name in attributes:
        if not is_plain_name(name):
            continue
        try:
            value = attributes[name]
        except (OSError, TypeError, ValueError, KeyError):  # of a type that h5py has no words for
            continue
        if isinstance(value, np.ndarray) and value.shape == (1,) and value.dtype.kind in "biuf":
            value = value[0]  # NetCDF's numbers are lists of one
        if isinstance(value, (str, bytes, bool, int, float, list)) or (
            isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufSU"
        ):
            out[name] = value
    return out


def number_type(dtype: Any) -> str:
    """The engine's name of a NumPy type; "" where it has none."""
    if dtype.kind == "b":
        return "u8"
    if dtype.kind in "iuf" and dtype.itemsize in (1, 2, 4, 8):
        return {"i": "i", "u": "u", "f": "f"}[dtype.kind] + str(8 * dtype.itemsize)
    return ""


def is_big(dtype: Any) -> bool:
    return dtype.byteorder == ">" or (dtype.byteorder == "=" and not np.little_endian)


def grid_of(name: str, shape: Sequence[int], chunk: Sequence[int]) -> tuple[int, ...]:
    if len(shape) != len(chunk) or any(c < 1 for c in chunk) or any(s < 0 for s in shape):
        raise DataError(f"'{name}' says a shape of {tuple(shape)} in chunks of {tuple(chunk)}")
    grid = tuple(-(-s // c) for s, c in zip(shape, chunk))
    if math.prod(grid) > MOST_CHUNKS:
        raise Unsupported(f"'{name}' lies in {math.prod(grid)} chunks; at most {MOST_CHUNKS} can be read")
    return grid


def no_places(count: int) -> Any:
    return np.zeros((count, 4), np.uint64)


def one_place(offset: int, stored: int) -> Any:
    return np.array([[0, 0, offset, stored]], np.uint64)


def listed(names: Any) -> str:
    names = [repr(n) if n else "'/'" for n in names]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def npy_arrays(path: str) -> list[Stored]:
    """The one array of a ``.npy`` file."""
    from .. import _core

    return [stored_of(d) for d in _core.npy_arrays(path)[0]]


def is_npy_folder(path: str) -> bool:
    """A folder of npy files as ``headrace pack --to npy`` writes it."""
    return stored_files.is_file(stored_files.join(path, "arrays.json"))


def npy_folder(path: str) -> list[Stored]:
    """NAME.npy each; arrays.json has the names of the axes and what else is said of them."""
    out = []
    try:
        about = json.loads(stored_files.read_all(stored_files.join(path, "arrays.json")))["arrays"]
        for name in sorted(about):
            [one] = npy_arrays(stored_files.join(path, f"{name}.npy"))
            one.name, dims = name, about[name]["dims"]
            if dims and len(dims) == len(one.shape):
                one.dims = tuple(map(str, dims))
            one.unpack_by(about[name]["attributes"])
            out.append(one)
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise DataError(f"{path}/arrays.json is not as headrace writes it: {type(e).__name__}: {e}") from None
    return out
