# SPDX-License-Identifier: Apache-2.0
"""Where packed arrays go: a Zarr folder, an HDF5 file, npy files. What computes is the engine's."""

from __future__ import annotations

import abc
import base64
import json
import math
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core
from ..errors import Unsupported, UsageError
from .journal import MANIFEST, Journal, Lock, Written, durable, first_line, manifest_text, sync_folder

#: Names, what they are to the engine, and their level unless one is given.
CODECS = {"blosc-lz4": 5, "blosc-zstd": 3, "zstd": 3, "gzip": 4, "none": 0}
_MOST_LEVEL = {"blosc-lz4": 9, "blosc-zstd": 9, "zstd": 22, "gzip": 12, "none": 0}
_NUMPY = {"u8": "u1", "i8": "i1", "u16": "u2", "i16": "i2", "u32": "u4", "i32": "i4", "u64": "u8", "i64": "i8",
          "f16": "f2", "f32": "f4", "f64": "f8"}  # fmt: skip


def numpy_type(name: str) -> Any:
    if name not in _NUMPY:
        raise Unsupported(f"{name or 'no type'} cannot be stored in HDF5, Zarr and npy")
    return np.dtype("<" + _NUMPY[name])


def parse_codec(text: str | None, default: str) -> tuple[str, int]:
    """ "gzip", "zstd:9"."""
    name, _, level = (text or default).partition(":")
    if name not in CODECS:
        raise UsageError(f"codec: there is no {name!r}; there are {', '.join(CODECS)}, with a level like zstd:9")
    if not level:
        return name, CODECS[name]
    if not level.isdigit() or not 1 <= int(level) <= _MOST_LEVEL[name]:
        raise UsageError(f"codec: the level of {name} is 1 to {_MOST_LEVEL[name]}, not {level!r}")
    return name, int(level)


@dataclass
class Spec:
    """One array as it will be stored."""

    name: str
    dtype: str  # the engine's name
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    shard: tuple[int, ...] = ()
    dims: tuple[str, ...] = ()  # () where axes have no names
    attributes: dict[str, Any] = field(default_factory=dict)
    fill: bytes = b""  # one element, little-endian; b"" is zero
    codec: str = "none"
    level: int = 0

    @property
    def numpy(self) -> Any:
        return numpy_type(self.dtype)

    @property
    def unit(self) -> tuple[int, ...]:
        return self.shard or self.chunk

    def described(self, compressor: str, shuffle: bool, shape: Sequence[int] | None = None) -> dict[str, Any]:
        return {
            "shape": list(self.shape if shape is None else shape),
            "chunk": list(self.chunk),
            "shard": list(self.shard),
            "fill": self.fill or bytes(self.numpy.itemsize),
            "compressor": compressor,
            "level": self.level,
            "shuffle": shuffle,
        }


def name_axes(specs: Sequence[Spec]) -> None:
    """Names for axes that have none, without which xarray does not open a Zarr store: one name, one length. The array of
    most axes has the plain ones."""
    lengths: dict[int, int] = {}
    bare = sorted((s for s in specs if not s.dims), key=lambda s: (-len(s.shape), s.name))
    for spec in bare:
        for axis, n in enumerate(spec.shape):
            lengths.setdefault(axis, n)
        spec.dims = tuple(f"axis{a}" if lengths[a] == n else f"axis{a}_{n}" for a, n in enumerate(spec.shape))


def check_name(name: str) -> None:
    if not name or name.startswith((".", "__")) or any(c in '/"\\' or ord(c) < 32 for c in name) or name in ("zarr.json",):
        raise UsageError(f"an array cannot be called {name!r} in HDF5, Zarr and npy: --rename new={name}")


def plain_json(value: Any) -> Any:
    """As JSON holds it; None where it does not."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, (list, tuple)):
        return [plain_json(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): plain_json(v) for k, v in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else None


class Target(abc.ABC):
    """What all have in common. One thread at a time."""

    format = ""
    codec = "blosc-lz4"  # unless one is asked for
    resumes = False  # slab by slab

    def __init__(self, path: str, head: str, samples: int, threads: int) -> None:
        self.path, self.head, self.samples, self.threads = path, head, samples, threads
        self.complete = False
        self.specs: dict[str, Spec] = {}
        self.bytes = 0

    def add(self, spec: Spec) -> None:
        check_name(spec.name)
        if spec.name in self.specs:
            raise UsageError(f"two arrays are called {spec.name!r}: --rename one of them")
        self.specs[spec.name] = spec

    def has(self, spec: Spec, begin: Sequence[int]) -> bool:
        """An earlier run wrote it."""
        return False

    @abc.abstractmethod
    def write(self, spec: Spec, begin: Sequence[int], size: Sequence[int], data: Any, shape: Sequence[int] | None = None) -> None:
        """A slab: whole units, or to the end of the array. ``shape``: as far as it is known by now."""

    @abc.abstractmethod
    def finish(self, attributes: Mapping[str, Any]) -> list[Written]:
        """All that is written, complete from now on."""

    @abc.abstractmethod
    def close(self) -> None:
        """Lets go; what is unfinished stays so."""


class ZarrTarget(Target):
    """Zarr 3, with consolidated metadata: what makes it a Zarr is written last."""

    format, resumes = "zarr", True

    def __init__(self, path: str, head: str, samples: int, threads: int, resume: bool = True) -> None:
        super().__init__(path, head, samples, threads)
        self.journal = Journal.open(path, head, resume)
        self.complete = self.journal.complete
        if not resume and not self.complete:
            self.journal.done.clear()

    def _what(self, spec: Spec, begin: Sequence[int]) -> str:
        return f"{spec.name}/{','.join(map(str, begin))}"

    def has(self, spec: Spec, begin: Sequence[int]) -> bool:
        return self._what(spec, begin) in self.journal.done

    def write(self, spec: Spec, begin: Sequence[int], size: Sequence[int], data: Any, shape: Sequence[int] | None = None) -> None:
        described = spec.described(spec.codec, False, shape)
        rows = _core.write_slab(described, self.path, spec.name, list(begin), list(size), data, self.threads)
        self.journal.add(self._what(spec, begin), [Written(*row) for row in rows])
        self.bytes += sum(row[1] for row in rows)

    def finish(self, attributes: Mapping[str, Any]) -> list[Written]:
        files = [w for rows in self.journal.done.values() for w in rows]
        metadata = {name: _zarr_array(spec) for name, spec in sorted(self.specs.items())}
        root = {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": plain_json(attributes),
            "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": metadata},
        }
        documents = {f"{name}/zarr.json": document for name, document in metadata.items()}
        for name, document in {**documents, "zarr.json": root}.items():  # the root last
            text = json.dumps(document, indent=1, allow_nan=False).encode() + b"\n"
            os.makedirs(os.path.dirname(os.path.join(self.path, name)), exist_ok=True)
            durable(os.path.join(self.path, name), text)
            files.append(Written(name, len(text), _core.crc32c(text), self.samples if name == "zarr.json" else 0))
        files.sort(key=lambda w: (w.name != "zarr.json", w.name))
        self._remove_others({w.name for w in files})
        self.journal.finish(files)
        return files

    def _remove_others(self, wanted: set[str]) -> None:
        """Temporary files of a killed run, and chunks that it wrote and this one does not have."""
        for name in self.specs:
            for folder, _, files in os.walk(os.path.join(self.path, name)):
                for file in files:
                    if os.path.relpath(os.path.join(folder, file), self.path) not in wanted:
                        os.unlink(os.path.join(folder, file))

    def close(self) -> None:
        self.journal.close()


def _zarr_array(spec: Spec) -> dict[str, Any]:
    inner = [{"name": "bytes", **({"configuration": {"endian": "little"}} if spec.numpy.itemsize > 1 else {})}]
    if spec.codec.startswith("blosc"):
        options = {
            "typesize": spec.numpy.itemsize,
            "cname": spec.codec[6:],
            "clevel": spec.level,
            "shuffle": "shuffle",
            "blocksize": 0,
        }
        inner.append({"name": "blosc", "configuration": options})
    elif spec.codec == "gzip":
        inner.append({"name": "gzip", "configuration": {"level": min(9, spec.level)}})
    elif spec.codec == "zstd":
        inner.append({"name": "zstd", "configuration": {"level": spec.level, "checksum": False}})
    codecs = inner
    if spec.shard:
        ends = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
        options = {"chunk_shape": list(spec.chunk), "codecs": inner, "index_codecs": ends, "index_location": "end"}
        codecs = [{"name": "sharding_indexed", "configuration": options}]
    attributes = dict(spec.attributes)
    if spec.numpy.kind == "f" and isinstance(attributes.get("_FillValue"), (int, float, np.number)):
        # As xarray has it in Zarr 3: a JSON number cannot be NaN.
        attributes["_FillValue"] = base64.standard_b64encode(struct.pack("<d", float(attributes["_FillValue"]))).decode()
    out: dict[str, Any] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(spec.shape),
        "data_type": spec.numpy.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(spec.unit)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": plain_json(np.frombuffer(spec.fill, spec.numpy)[0] if spec.fill else spec.numpy.type(0)),
        "codecs": codecs,
        "attributes": plain_json(attributes),
    }
    if spec.dims:
        out["dimension_names"] = list(spec.dims)
    return out


class FileTarget(Target):
    """One file: written under another name, renamed when it is complete. A restart begins again."""

    def __init__(self, path: str, head: str, samples: int, threads: int) -> None:
        super().__init__(path, head, samples, threads)
        self.manifest = f"{path}.{MANIFEST}"
        if os.path.lexists(path):
            if not os.path.isfile(path) or first_line(self.manifest) != head:
                raise UsageError(f"{path} is there already, and not from this very pack; give a new name")
            self.complete = True
            return
        folder, name = os.path.split(os.path.abspath(path))
        os.makedirs(folder, exist_ok=True)
        self.temporary = os.path.join(folder, f".{name}.headrace-part")
        self._lock: Lock | None = Lock(f"{self.temporary}.lock")
        if os.path.exists(self.temporary):  # of a killed run
            os.unlink(self.temporary)

    def _appear(self) -> list[Written]:
        with open(self.temporary, "rb+") as f:
            os.fsync(f.fileno())
        checksum, size = _core.file_checksum(self.temporary), os.path.getsize(self.temporary)
        written = [Written(os.path.basename(self.path), size, checksum, self.samples)]
        # The manifest first: a file without one would be refused as somebody else's.
        durable(self.manifest, manifest_text(self.head, written))
        os.replace(self.temporary, self.path)
        sync_folder(os.path.dirname(os.path.abspath(self.path)))
        self._release()
        return written

    def _release(self) -> None:
        if not self.complete and self._lock is not None:
            if os.path.exists(f"{self.temporary}.lock"):
                os.unlink(f"{self.temporary}.lock")
            self._lock.close()
            self._lock = None

    def close(self) -> None:
        if not self.complete and self._lock is not None:
            if os.path.exists(self.temporary):
                os.unlink(self.temporary)
            self._release()
