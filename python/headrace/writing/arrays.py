# SPDX-License-Identifier: Apache-2.0
"""Files of arrays written in other chunks, as HDF5, Zarr or npy."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from ..arrays.cube import Cube
from ..arrays.description import Description
from ..arrays.model import PACKING, Stored
from ..arrays.open import open_arrays
from ..errors import Unsupported, UsageError
from ..fields import array
from .journal import Written, head_line
from .layout import Wanted, choose_chunk, choose_shard, expected, grown, passes, wanted_of
from .plan import Access, check_room, free_bytes, plan_of, size_of, slabs, target_class, written_attributes
from .targets import Spec, check_name, name_axes, parse_codec, plain_json

_SHARD = 128 << 20  # plain bytes of a shard, unless asked
_MOST_MEMORY = 1 << 30


@dataclass
class _Job:
    """One array on its way."""

    number: int  # of the reader's variables
    source: Stored
    spec: Spec
    wanted: Wanted | None
    ratio: float = 1.0
    slab: tuple[int, ...] = ()
    passes: float = 1.0

    @property
    def plain_bytes(self) -> int:
        return math.prod(self.spec.shape) * self.spec.numpy.itemsize

    def bytes_in(self, size: Sequence[int]) -> int:
        return math.prod(size) * self.spec.numpy.itemsize

    @property
    def chunks(self) -> int:
        return math.prod(-(-n // c) for n, c in zip(self.spec.shape, self.spec.chunk))


@dataclass
class ArrayPacking:
    """Everything that one call of ``hr.pack`` does, from files of arrays to one."""

    urls: list[str]
    path: str
    to: str
    access: Access
    codec: str | None = None
    shard_size: int = 0
    fields: list[str] = field(default_factory=list)
    drop: list[str] = field(default_factory=list)
    rename: list[tuple[str, str]] = field(default_factory=list)
    threads: int = 0
    memory: int = 0

    def __post_init__(self) -> None:
        self.threads = self.threads or _core.usable_cpus()
        self.memory = self.memory or min(_MOST_MEMORY, _core.usable_memory_bytes() // 8)
        self.target = target_class(self.to, self.path)
        if self.to == "npy" and self.codec is not None and self.codec != "none":
            raise UsageError("codec: npy files are not compressed; --to zarr or hdf5 is")
        if self.to != "zarr" and self.shard_size:
            raise UsageError("shard_size is for Zarr: HDF5 is one file, and npy one for each array")
        self.codec, self.level = parse_codec(self.codec, self.target.codec)
        self.cube = Cube(self.urls)
        self.along = self._axis()
        description = Description(self.cube, self.along)
        chosen = [(name, new, description.variable(name)) for name, new in self._chosen()]
        self.reader = _core.array_reader(description.filled())
        self.patch = self._patch()
        self.jobs = [self._job(name, new, number) for name, new, number in chosen]
        if self.to == "zarr":
            name_axes([job.spec for job in self.jobs])
        sized = sorted(self.jobs, key=lambda j: j.spec.name)
        self.lead = max((j for j in sized if j.spec.shape), key=lambda j: len(j.spec.shape), default=None)
        self.samples = self.lead.spec.shape[0] if self.lead else 0
        plain = [j for j in self.jobs if j.wanted is not None] or self.jobs
        self.shown = max(plain, key=lambda j: j.plain_bytes)  # whose cost is told
        self.before = self._cost(self.urls, self.shown.source.name)
        self.cube.keep()

    # -- what is written ---------------------------------------------------------------------------

    def _axis(self) -> str:
        if self.access.along is None:
            return self.cube.lead().dims[0]
        if not any(self.access.along in a.dims for a in self.cube.files[0].values()):
            raise UsageError(f"along: no array of {self.cube.where} has an axis {self.access.along!r}")
        return self.access.along

    def _chosen(self) -> list[tuple[str, str]]:
        """(name, new name) of the arrays to write."""
        there = list(self.cube.files[0])
        for option, names in (("fields", self.fields), ("drop", self.drop), ("rename", [old for _, old in self.rename])):
            for name in names:
                if name not in there:
                    raise UsageError(f"{option}: no array named '{name}'; there are: {', '.join(there)}")
        names = [n for n in self.fields or there if n not in self.drop]
        if not names:
            raise UsageError("every array is dropped: nothing is left to pack")
        new = {old: name for name, old in self.rename}
        out = [(name, new.get(name, name)) for name in names]
        for name, called in out:
            why = self.cube.files[0][name].why
            if why:
                raise Unsupported(f"{self.cube.where}: '{name}' cannot be packed: {why}; pack with --drop {name}")
            check_name(called)
        return out

    def _patch(self) -> tuple[int, ...]:
        """One number is for the two last axes, where there are two beside the one that samples run along."""
        patch = tuple(self.access.patch)
        if len(patch) != 1:
            return patch
        free = max(sum(d != self.along for d in a.dims) for a in self.cube.files[0].values() if not a.why)
        return patch * 2 if free >= 2 else patch

    def _job(self, name: str, new: str, number: int) -> _Job:
        stored = self.cube.variable(name)
        self._check_alike(name, self.reader.unpacks(number))
        shape = tuple(self.reader.shape(number))
        named = any(d != f"axis{i}" for i, d in enumerate(stored.dims))
        fill = stored.fill[::-1] if stored.big_endian else stored.fill
        attributes = written_attributes(stored)
        if self.reader.unpacks(number):  # no one scale serves for all files
            fill, attributes = b"", {k: v for k, v in attributes.items() if k not in PACKING}
        spec = Spec(new, str(self.reader.dtype(number)), shape, (), (), stored.dims if named else (), attributes, fill)
        spec.codec, spec.level = self.codec or "none", self.level
        job = _Job(number, stored, spec, wanted_of(stored.dims, shape, self.along, self.access.window or 1, self.patch))
        if self.to == "npy":
            return self._npy(job)
        item = spec.numpy.itemsize
        job.ratio = self._ratio(job)
        spec.chunk = choose_chunk(shape, item, job.wanted if self.access.asked else None, job.ratio)
        if self.to == "zarr":
            spec.shard = choose_shard(shape, spec.chunk, item, self.shard_size or _SHARD, bool(self.shard_size))
        source = stored.chunk if stored.filters else ()
        job.slab = grown(spec.unit, shape, item, max(self.memory // 4, math.prod(spec.unit) * item), source)
        job.passes = passes(shape, stored.chunk, job.slab) if source else 1.0
        return job

    def _npy(self, job: _Job) -> _Job:
        """Stretches that follow each other in the file."""
        spec = job.spec
        spec.codec, spec.level, spec.chunk = "none", 0, tuple(max(1, n) for n in spec.shape)
        job.slab = grown((1,) * len(spec.shape), spec.shape, spec.numpy.itemsize, self.memory // 4)
        job.passes = passes(spec.shape, job.source.chunk, job.slab) if job.source.filters else 1.0
        return job

    def _check_alike(self, name: str, unpacks: bool) -> None:
        """Attributes are taken from the first file: those that say what the numbers mean must be the same in all."""
        segments = self.cube.segments(name, self.along) if self.along in self.cube.variable(name).dims else []
        for (path, _), other in zip(self.cube.paths, segments):
            said = [(w, *(plain_json(s.attributes.get(w)) for s in (segments[0], other))) for w in ("units", "calendar")]
            if not unpacks:
                said.append(("_FillValue", segments[0].missing, other.missing))
            for word, a, b in said:
                if str(a) != str(b):
                    raise UsageError(
                        f"'{name}' has the {word} {a!r} in {self.cube.where} and {b!r} in {path}: one array cannot hold both; "
                        f"pack with --drop {name}"
                    )

    def _ratio(self, job: _Job) -> float:
        """Stored by plain bytes, from a stretch of about 1 MiB in the middle."""
        spec, item = job.spec, job.spec.numpy.itemsize
        if job.plain_bytes < 1 << 16:
            return 1.0
        size = [min(n, s) for n, (s, _) in zip(spec.shape, job.wanted)] if job.wanted else list(spec.shape)
        while math.prod(size) * item > 1 << 20 and max(size) > 1:
            longest = size.index(max(size))
            size[longest] = -(-size[longest] // 2)
        begin = [(n - s) // 2 for n, s in zip(spec.shape, size)]
        data: Any = self.reader.read(job.number, begin, size, self.threads)
        part = Spec(spec.name, spec.dtype, tuple(size), tuple(size), fill=spec.fill, level=spec.level)
        compressor = "zlib" if spec.codec == "gzip" else spec.codec
        made = _core.encode_slab(part.described(compressor, spec.codec in ("gzip", "zstd")), [0] * len(size), size, data, 1)
        # Chunks of nothing but the fill are not stored; that is no measure for the others.
        return max(0.01, sum(len(chunk) for _, chunk in made) / len(data)) if made else 1.0

    # -- what reading costs ------------------------------------------------------------------------

    def _cost(self, urls: list[str], name: str) -> dict[str, Any] | None:
        """Chunks and bytes that a sample of the array reads, by the reader itself."""
        job = self.shown
        if job.wanted is None or not all(job.spec.shape):
            return None
        moves = self.along in job.source.dims
        window = (self.access.window if self.access.window is not None else None) if moves else None
        fields = {"x": array(name, along=self.along if moves else None, window=window, patch=self.patch or None)}
        if not moves:  # samples run along another axis; a patch of it is what counts
            return None
        source, _ = open_arrays(urls, fields)
        chunks, size = _core.read_cost(source, 512)
        return {"chunks": chunks, "bytes": size}

    def reads(self, measured: bool) -> dict[str, Any] | None:
        """What a sample costs in the source and in what is written: expected, or measured on what is there."""
        job = self.shown
        if self.before is None or job.wanted is None:
            return None
        sample = [s for s, _ in job.wanted]
        out = {"array": job.spec.name, "sample": sample, "source": self.before}
        after: dict[str, Any] = {}
        if self.to != "npy":
            after = expected(job.spec.shape, job.spec.chunk, job.spec.numpy.itemsize, job.wanted, job.ratio)
        if measured:
            name = "data" if self.path.endswith(".npy") else job.spec.name
            after |= self._cost([self.path], name) or {}
        return {**out, "packed": after}

    # -- doing it ----------------------------------------------------------------------------------

    def estimate(self) -> dict[str, Any]:
        """What will be there when it is done; reads a few chunks, writes nothing."""
        return {
            "samples": self.samples,
            "arrays": [self._about(job) for job in self.jobs],
            "bytes": int(sum(job.plain_bytes * job.ratio for job in self.jobs)),
            "free_bytes": free_bytes(self.path),
            "reads": self.reads(False),
            "passes": max(job.passes for job in self.jobs),
        }

    def _about(self, job: _Job) -> dict[str, Any]:
        spec = job.spec
        return {"name": spec.name, "dtype": spec.dtype, "shape": list(spec.shape), "chunk": list(spec.chunk)} | {
            "shard": list(spec.shard),
            "codec": spec.codec,
            "bytes": job.plain_bytes,
        }

    def _plan(self) -> str:
        sizes = []
        for path, group in self.cube.paths:
            files = [path] if os.path.isfile(path) else []
            sizes.append([os.path.basename(path), group, *map(os.path.getsize, files)])
        for job in self.jobs:
            if self.reader.unpacks(job.number):
                segments = self.cube.segments(job.source.name, self.along)
                sizes.append([[s.packed, s.scale, s.offset, s.missing] for s in segments])
        arrays = [[j.source.name, self._about(j), j.spec.dims, plain_json(j.spec.attributes), j.spec.level] for j in self.jobs]
        return plan_of("arrays", self.to, sizes, arrays)

    def run(self, progress: Callable[..., None] | None = None) -> dict[str, Any]:
        total = sum(job.plain_bytes for job in self.jobs)
        head = head_line(self._plan(), self.to, self.samples)
        if not os.path.lexists(self.path):
            check_room(self.path, int(sum(job.plain_bytes * job.ratio for job in self.jobs)))
        target = self.target(self.path, head, self.samples, self.threads)
        kept = 0
        try:
            for job in self.jobs:
                target.add(job.spec)
            if target.complete:
                return self._result([], total, total, True)
            todo = [(j, b, s) for j in self.jobs for b, s in slabs(j.spec.shape, j.slab)]
            left = [t for t in todo if not target.has(t[0].spec, t[1])]
            check_room(self.path, int(sum(j.bytes_in(s) * j.ratio for j, _, s in left)))
            done = kept = total - sum(j.bytes_in(s) for j, _, s in left)
            for job, begin, size, data in self._read_ahead(left):
                target.write(job.spec, begin, size, data)
                done += job.bytes_in(size)
                if progress is not None:
                    progress(done, total, done, total, target.bytes)
            files = target.finish(self._attributes())
        finally:
            target.close()
        return self._result(files, total, kept, False)

    def _read_ahead(self, todo: list[Any]) -> Iterator[tuple[_Job, Any, Any, Any]]:
        """The next slab is read while this one is packed and written."""
        with ThreadPoolExecutor(1, thread_name_prefix="pack") as pool:

            def read(number: int) -> Any:
                job, begin, size = todo[number]
                return pool.submit(self.reader.read, job.number, list(begin), list(size), self.threads)

            coming = read(0) if todo else None
            for i, (job, begin, size) in enumerate(todo):
                assert coming is not None
                data = coming.result()
                coming = read(i + 1) if i + 1 < len(todo) else None
                yield job, begin, size, data

    def _attributes(self) -> Mapping[str, Any]:
        """Those of the first file, or its group."""
        path, group = self.cube.paths[0]
        if self.cube.kind == "hdf5":
            from ..arrays.hdf5 import hdf5_attributes

            return hdf5_attributes(path, group)
        if self.cube.kind == "zarr":
            from ..arrays.zarr import zarr_attributes

            return zarr_attributes(path, group)
        if self.cube.kind == "netcdf":
            from ..arrays.netcdf import netcdf_attributes

            return netcdf_attributes(path)
        return {}

    def _result(self, files: list[Written], total: int, kept: int, complete: bool) -> dict[str, Any]:
        out = {
            "samples": self.samples,
            "arrays": [self._about(job) for job in self.jobs],
            "chunks": sum(job.chunks for job in self.jobs),
            "plain_bytes": total,
            "plain_bytes_kept": kept,  # of which an earlier run wrote so many
            "files": len(files),
            "bytes": sum(w.bytes for w in files),
            "was_complete": complete,
        }
        if complete:
            out["bytes"], out["files"] = size_of(self.path)
        return {**out, "reads": self.reads(True), "passes": max(job.passes for job in self.jobs)}
