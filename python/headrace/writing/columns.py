# SPDX-License-Identifier: Apache-2.0
"""Samples written as arrays: a column each, values of variable length among them.

| a field of | HDF5 | Zarr | npy |
|---|---|---|---|
| numbers | [n] | [n] | [n] |
| arrays of one type and shape | [n, …] | [n, …] | [n, …] |
| bytes, pictures | vlen uint8 [n] | uint8 [total], NAME_offsets int64 [n + 1] | – |
| text, JSON, keys | strings [n] | the same, in UTF-8 | – |
| arrays of one axis that varies, tokens | vlen [n] | [total], NAME_offsets | – |
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core
from ..errors import Unsupported, UsageError
from .hdf5 import VALUES
from .journal import head_line
from .layout import choose_chunk, choose_shard, grown
from .plan import check_room, free_bytes, plan_of, size_of, target_class
from .targets import Spec, Target, parse_codec

_FLAT_CHUNK = 256 << 10  # bytes: a picture or two; what other readers read at least
_SHARD = 128 << 20
_MOST_WAVE = 65536
_HDF5_WAVE = 64 << 20
_NAMES = {"u": "u", "i": "i", "f": "f"}


def _engine_type(dtype: Any) -> str:
    return f"{_NAMES[dtype.kind]}{8 * dtype.itemsize}" if dtype.kind in _NAMES else ""


@dataclass
class Column:
    """A field and what becomes of it. ``form``: rows (one shape), flat (varying), text."""

    name: str
    kind: str
    form: str
    dtype: str = "u8"
    shape: tuple[int, ...] = ()  # of a row
    in_index: bool = False

    def rows(self, data: Any, lengths: Any) -> Any:
        """The values of a wave as one array, one row each."""
        wanted = np.dtype(Spec("", self.dtype, (), ()).numpy)
        if self.kind in ("int", "float"):
            if self.in_index:
                return np.frombuffer(data, "<i8" if self.kind == "int" else "<f8").astype(wanted)
            parse, texts = (int if self.kind == "int" else float), _cut(data, lengths)
            return np.array([parse(t) for t in texts], wanted)
        size = math.prod(self.shape) * wanted.itemsize
        if self.kind == "npy":
            return self._npy_rows(data, lengths, size)
        if not np.all(lengths == size):
            raise UsageError(f"field '{self.name}': a value of {int(lengths[lengths != size][0])} bytes, not {size}")
        return np.frombuffer(data, wanted).reshape(-1, *self.shape)

    def _npy_rows(self, data: Any, lengths: Any, size: int) -> Any:
        """Values whose headers are all the same need not be parsed one by one."""
        head = int(lengths[0]) - size
        raw = np.load(io.BytesIO(data[: lengths[0]].tobytes()), allow_pickle=False)
        plain = raw.dtype.byteorder != ">" and (raw.flags.c_contiguous or raw.ndim < 2)
        if plain and head > 0 and raw.shape == self.shape and np.all(lengths == lengths[0]):
            table = data.reshape(len(lengths), -1)
            if np.all(table[:, :head] == table[0, :head]):
                return np.ascontiguousarray(table[:, head:]).view(raw.dtype).reshape(-1, *self.shape)
        return np.stack([self._npy(t) for t in _cut(data, lengths)])

    def _npy(self, value: bytes) -> Any:
        out = np.load(io.BytesIO(value), allow_pickle=False)
        if out.shape != self.shape or _engine_type(out.dtype) != self.dtype:
            raise UsageError(
                f"field '{self.name}' is {self.dtype}{list(self.shape)} in the first samples and {out.dtype}{list(out.shape)} in "
                "another: an array holds one type and shape; pack it as tar, or with --drop " + self.name
            )
        return out.astype(out.dtype.newbyteorder("<"), copy=False)


def _cut(data: Any, lengths: Any) -> list[bytes]:
    whole, ends = data.tobytes(), np.cumsum(lengths).tolist()
    return [whole[e - n : e] for e, n in zip(ends, lengths.tolist())]


def _column(about: dict[str, Any], first: list[bytes], to: str) -> Column:
    name, kind, dtype, shape = about["name"], about["kind"], about["dtype"], about["shape"]
    if kind in ("int", "float"):
        return Column(name, kind, "rows", dtype or ("i64" if kind == "int" else "f64"), (), about["in_index"])
    if kind == "npy":
        try:
            arrays = [np.load(io.BytesIO(v), allow_pickle=False) for v in first]
        except (ValueError, EOFError):
            arrays = []
        if arrays and _engine_type(arrays[0].dtype) and len({(a.dtype, a.shape) for a in arrays}) == 1:
            return Column(name, kind, "rows", _engine_type(arrays[0].dtype), arrays[0].shape)
    if kind in ("array", "tokens") and dtype:
        if (shape and min(shape) >= 0) or (kind == "array" and not shape):
            return Column(name, kind, "rows", dtype, tuple(shape))
        if len(shape) < 2:
            return Column(name, kind, "flat", dtype)
        raise Unsupported(f"field '{name}' has the shape {shape}, which {to} does not hold; pack with --drop {name}")
    return Column(name, kind, "text" if kind in ("text", "json") else "flat")


class RowStream:
    """Rows of one array, gathered until they make whole chunks."""

    def __init__(self, target: Target, spec: Spec, slab: int) -> None:
        self.target, self.spec, self.slab = target, spec, slab
        self._held: list[Any] = []
        self._rows, self.begin = 0, 0

    def append(self, rows: Any) -> None:
        if len(rows):
            self._held.append(rows)
            self._rows += len(rows)
        if self._rows >= self.slab:
            self._write(self._rows - self._rows % self.slab)

    def _write(self, count: int) -> None:
        data = self._held[0] if len(self._held) == 1 else np.concatenate(self._held)
        now = np.ascontiguousarray(data[:count])
        rest = data[count:].copy()
        self._held, self._rows = ([rest] if len(rest) else []), len(rest)
        zeros = [0] * len(self.spec.shape[1:])
        end = self.begin + count
        shape = [max(end, self.spec.shape[0]) if self.spec.shape[0] >= 0 else end, *self.spec.shape[1:]]
        flat = now.view(np.uint8).reshape(-1) if now.size else np.empty(0, np.uint8)
        self.target.write(self.spec, [self.begin, *zeros], [count, *self.spec.shape[1:]], flat, shape)
        self.begin = end

    def finish(self) -> None:
        if self._rows:
            self._write(self._rows)
        if self.spec.shape[0] < 0:
            self.spec.shape = (self.begin, *self.spec.shape[1:])


@dataclass
class ColumnPacking:
    """Everything that one call of ``hr.pack`` does, from samples to arrays."""

    source: Any
    path: str
    to: str
    options: dict[str, Any]
    codec: str | None = None
    shard_size: int = 0
    columns: list[Column] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.target = target_class(self.to, self.path)
        if self.to == "npy" and self.codec not in (None, "none"):
            raise UsageError("codec: npy files are not compressed; --to zarr or hdf5 is")
        if self.to != "zarr" and self.shard_size:
            raise UsageError("shard_size is for Zarr: HDF5 is one file, and npy one for each array")
        self.name, self.level = parse_codec(self.codec, self.target.codec)
        self.reader = _core.sample_columns(self.source, self.options)
        self.samples = self.reader.size
        if not self.samples:
            raise UsageError("there is no sample to pack")
        self.threads = self.options["threads"] or _core.usable_cpus()
        self.memory = (self.options["memory"] or min(1 << 30, _core.usable_memory_bytes() // 8)) // 4
        first = self.reader.read(0, min(16, self.samples))
        self.columns = [
            _column(f, _cut(*v) if f["kind"] == "npy" else [], self.to) for f, v in zip(self.reader.fields, first[1:])
        ]
        # Of files of arrays the key is the position, which says nothing.
        self.with_keys = self.to != "npy" and self.source.format not in ("hdf5", "netcdf", "zarr", "npy")
        if self.to == "npy":
            self._check_npy()
        if self.with_keys:
            taken = any(c.name == "key" for c in self.columns)
            self.columns.insert(0, Column("sample_key" if taken else "key", "text", "text"))

    def _check_npy(self) -> None:
        for column in self.columns:
            if column.form != "rows":
                raise Unsupported(
                    f"field '{column.name}' is {column.kind}, and npy holds numbers of one shape; pack with --drop {column.name}, or "
                    "--to hdf5 or zarr"
                )

    def estimate(self) -> dict[str, Any]:
        mean = self.reader.mean_bytes()
        return {"samples": self.samples, "shards": 1, "bytes": self.samples * mean, "free_bytes": free_bytes(self.path)}

    def _spec(self, name: str, dtype: str, shape: tuple[int, ...], plain: bool) -> Spec:
        spec = Spec(name, dtype, shape, ())
        item = spec.numpy.itemsize
        spec.codec, spec.level = ("none", 0) if plain else (self.name, self.level)
        if shape[0] < 0:  # not known until the end
            row = max(1, math.prod(shape[1:]) * item)
            spec.chunk = (max(1, _FLAT_CHUNK // row), *shape[1:])
            rows = max(1, (self.shard_size or _SHARD) // (spec.chunk[0] * row))
            spec.shard = (spec.chunk[0] * rows, *shape[1:]) if rows > 1 else ()
            return spec
        spec.chunk = choose_chunk(shape, item, None)
        if self.to == "zarr":
            spec.shard = choose_shard(shape, spec.chunk, item, self.shard_size or _SHARD, bool(self.shard_size))
            if spec.shard:  # rows come one after the other
                spec.shard = (spec.shard[0], *(-(-n // c) * c for n, c in zip(shape[1:], spec.chunk[1:])))
        return spec

    def _rows(self, target: Target, spec: Spec) -> RowStream:
        target.add(spec)
        item = spec.numpy.itemsize
        slab = spec.unit[0]
        if spec.shape[0] > 0:
            row = max(1, math.prod(spec.shape[1:]) * item)
            limit = _HDF5_WAVE if self.to == "hdf5" else self.memory
            slab = grown((spec.unit[0],), (spec.shape[0],), row, max(limit, spec.unit[0] * row))[0]
            if self.to == "npy":
                slab = max(1, min(spec.shape[0], self.memory // row))
            spec.attributes = dict(spec.attributes)
        return RowStream(target, spec, slab)

    def run(self, progress: Callable[..., None] | None = None) -> dict[str, Any]:
        mean = self.reader.mean_bytes()
        facts = [self.source.fingerprint, [vars(c) for c in self.columns], self.to, self.name, self.level, self.shard_size]
        wanted = {k: v for k, v in self.options.items() if k not in ("threads", "memory")}
        head = head_line(plan_of("columns", facts, wanted), self.to, self.samples)
        extra = {"resume": False} if self.to == "zarr" or (not self.path.endswith(".npy") and self.to == "npy") else {}
        if not os.path.lexists(self.path):
            check_room(self.path, self.samples * mean)
        target = self.target(self.path, head, self.samples, self.threads, **extra)
        try:
            if target.complete:
                return self._result(*size_of(self.path), True)
            sinks = [self._sink(target, column) for column in self.columns]
            # HDF5 lays values out as they come: waves follow from the data alone, so that the bytes are always the same.
            wave = max(1, min(_MOST_WAVE, (_HDF5_WAVE if self.to == "hdf5" else self.memory) // mean))
            wave = wave // VALUES * VALUES or wave
            for begin in range(0, self.samples, wave):
                end = min(self.samples, begin + wave)
                read = self.reader.read(begin, end)
                for sink, values in zip(sinks, read if self.with_keys else read[1:]):
                    sink(begin, *values)
                if progress is not None:
                    progress(end, self.samples, 0, 1, target.bytes)
            for sink in sinks:
                sink(self.samples, None, None)
            files = target.finish({})
        finally:
            target.close()
        return self._result(sum(w.bytes for w in files), len(files), False)

    def _sink(self, target: Target, column: Column) -> Callable[[int, Any, Any], None]:
        """What takes the values of one wave; None ends it."""
        if column.form == "rows":
            stream = self._rows(target, self._spec(column.name, column.dtype, (self.samples, *column.shape), False))

            def rows(begin: int, data: Any, lengths: Any) -> None:
                stream.finish() if data is None else stream.append(column.rows(data, lengths))

            return rows
        if self.to == "hdf5":
            return self._values(target, column)
        return self._flat(target, column)

    def _values(self, target: Any, column: Column) -> Callable[[int, Any, Any], None]:
        target.add_values(column.name, self.samples, column.form == "text", column.dtype)

        def values(begin: int, data: Any, lengths: Any) -> None:
            if data is not None:
                target.write_values(column.name, begin, data, lengths, column.form == "text", column.dtype)

        return values

    def _flat(self, target: Target, column: Column) -> Callable[[int, Any, Any], None]:
        """All values one after the other, and where each begins and the last one ends."""
        spec = self._spec(column.name, column.dtype, (-1,), True)  # plain: a value is read where it lies
        spec.attributes = {"offsets": f"{column.name}_offsets", "kind": column.kind}
        stream = self._rows(target, spec)
        offsets = self._rows(target, self._spec(f"{column.name}_offsets", "i64", (self.samples + 1,), False))
        offsets.append(np.zeros(1, "<i8"))
        row = spec.numpy.itemsize
        last = [0]

        def flat(begin: int, data: Any, lengths: Any) -> None:
            if data is None:
                stream.finish()
                offsets.finish()
                return
            if np.any(lengths % row):
                raise UsageError(
                    f"field '{column.name}': a value of {int(lengths[lengths % row != 0][0])} bytes, not rows of {row}"
                )
            ends = last[0] + np.cumsum(lengths // row)
            if len(ends):
                last[0] = int(ends[-1])
            offsets.append(ends.astype("<i8"))
            stream.append(np.frombuffer(data, spec.numpy))

        return flat

    def _result(self, size: int, files: int, complete: bool) -> dict[str, Any]:
        kept = self.samples if complete else 0
        return {"samples": self.samples, "shards": files, "shards_kept": files if complete else 0, "samples_kept": kept} | {
            "bytes": size,
            "was_complete": complete,
        }
