# SPDX-License-Identifier: Apache-2.0
"""Packed arrays as npy: a folder with NAME.npy for each, or one file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from ..errors import UsageError
from .journal import Journal, Written, durable
from .targets import FileTarget, Spec, Target, plain_json

ABOUT = "arrays.json"


def npy_header(spec: Spec, shape: Sequence[int]) -> bytes:
    words = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    descr = spec.numpy.str if spec.numpy.itemsize > 1 else f"|{spec.numpy.str[1:]}"
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({words}), }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


class _Stream:
    """One npy file, from its first byte to its last."""

    def __init__(self, path: str, spec: Spec) -> None:
        self.path, self._file = path, open(path, "wb")  # noqa: SIM115
        self._file.write(npy_header(spec, spec.shape))

    def append(self, data: Any) -> None:
        self._file.write(memoryview(data))

    def finish(self) -> tuple[int, int]:
        """(bytes, checksum)."""
        self._file.flush()
        os.fsync(self._file.fileno())
        size = self._file.tell()
        self._file.close()
        return size, _core.file_checksum(self.path)

    def close(self) -> None:
        self._file.close()


class NpyTarget(FileTarget):
    """One array, one file."""

    format, codec = "npy", "none"

    def __init__(self, path: str, head: str, samples: int, threads: int) -> None:
        super().__init__(path, head, samples, threads)
        self._stream: _Stream | None = None

    def add(self, spec: Spec) -> None:
        if self.specs:
            raise UsageError(f"{self.path} holds one array, and there is '{spec.name}' too: give a folder, or --drop it")
        super().add(spec)

    def write(self, spec: Spec, begin: Sequence[int], size: Sequence[int], data: Any, shape: Sequence[int] | None = None) -> None:
        if self._stream is None:
            self._stream = _Stream(self.temporary, spec)
        self._stream.append(data)
        self.bytes += len(data)

    def finish(self, attributes: Mapping[str, Any]) -> list[Written]:
        for spec in self.specs.values():
            if self._stream is None:  # no element
                self._stream = _Stream(self.temporary, spec)
        assert self._stream is not None
        self._stream.finish()
        return self._appear()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        super().close()


class NpyFolderTarget(Target):
    """A folder with a file for each array, and what they have beside their elements in arrays.json."""

    format, codec, resumes = "npy", "none", True

    def __init__(self, path: str, head: str, samples: int, threads: int, resume: bool = True) -> None:
        super().__init__(path, head, samples, threads)
        self.journal = Journal.open(path, head, resume)
        self.complete = self.journal.complete
        self._streams: dict[str, _Stream] = {}

    def _stream(self, spec: Spec) -> _Stream:
        if spec.name not in self._streams:
            self._streams[spec.name] = _Stream(os.path.join(self.path, f"{spec.name}.npy.part"), spec)
        return self._streams[spec.name]

    def has(self, spec: Spec, begin: Sequence[int]) -> bool:
        return spec.name in self.journal.done

    def write(self, spec: Spec, begin: Sequence[int], size: Sequence[int], data: Any, shape: Sequence[int] | None = None) -> None:
        self._stream(spec).append(data)
        self.bytes += len(data)
        if all(b + s == n for b, s, n in zip(begin, size, spec.shape)):
            self._finish(spec)

    def _finish(self, spec: Spec) -> None:
        name = f"{spec.name}.npy"
        size, checksum = self._stream(spec).finish()
        os.replace(os.path.join(self.path, f"{name}.part"), os.path.join(self.path, name))
        self.journal.add(spec.name, [Written(name, size, checksum)])

    def finish(self, attributes: Mapping[str, Any]) -> list[Written]:
        about = {"attributes": plain_json(attributes), "arrays": {}}
        for spec in self.specs.values():
            if spec.name not in self.journal.done:  # no element
                self._finish(spec)
            about["arrays"][spec.name] = {"dims": list(spec.dims), "attributes": plain_json(spec.attributes)}
        text = json.dumps(about, indent=1, allow_nan=False).encode() + b"\n"
        durable(os.path.join(self.path, ABOUT), text)
        files = [w for rows in self.journal.done.values() for w in rows]
        files.append(Written(ABOUT, len(text), _core.crc32c(text), self.samples))
        wanted = {w.name for w in files}
        for name in os.listdir(self.path):
            if name.endswith(".npy.part") or (name.endswith(".npy") and name not in wanted):
                os.unlink(os.path.join(self.path, name))
        files.sort(key=lambda w: w.name)
        self.journal.finish(files)
        return files

    def close(self) -> None:
        for stream in self._streams.values():
            stream.close()
        self.journal.close()
