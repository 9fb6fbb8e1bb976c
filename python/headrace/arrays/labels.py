# SPDX-License-Identifier: Apache-2.0
"""Where the label of each volume lies, found once by reading all of it, and kept beside the data.

``headrace-labels.hridx`` lies in the folder of the first volume; where that cannot be written, in the user's folder for
indexes. An entry holds for one label of one volume, while its files have the size and the time, and the array the place
in them, that its stamp names. Anything else in the file, or about it, makes it as if it were not there.

    "hrlabels"  u32 version  u32 bytes of the table  table (JSON)  places (i64)  16 bytes: BLAKE2b of all before
    table: {volume: {"file": …, "stamp": …, "classes": [how many places, …], "axes": …, "first": which place}}
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from . import stored_files
from .model import Stored

_NAME = "headrace-labels"
_MAGIC = b"hrlabels"
_VERSION = 1  # another one wherever other places would be found
_HEAD = struct.Struct("<8sII")
_CHECK = 16
_MOST_BYTES = 1 << 30

# Of data sets that this process has opened.
_known: dict[Any, Any] = {}
_MOST_KNOWN = 64


@dataclass
class Volume:
    """One label: which, of what state of its files, and where places of it may lie."""

    key: str
    file: str  # as seen from the folder of the first volume
    stamp: str  # "": its files cannot be looked at, so nothing of it is kept
    room: tuple[int, ...]


@dataclass
class Entry:
    file: str
    stamp: str
    classes: list[Any]  # arrays of [places, axes]


def label_places(d: Any, name: str, axes: int) -> tuple[Any, str]:
    """Where some elements of each class of the label lie in each case; and what the user should know, or ""."""
    number = d.variable(name)
    folder = stored_files.parent(stored_files.absolute(d.cube.paths[0][0]))
    segments = d.cube.segments(d.variables[number]["name"], None)
    volumes = [_volume(case, s, axes, folder) for case, s in zip(d.cube.names, segments)]
    whole = (folder, name, axes, *((v.key, v.stamp) for v in volumes))
    if whole in _known:
        return _known[whole], ""
    cached = _core.cached_sidecar(stored_files.join(folder, _NAME), False)
    kept = [read(p) for p in (stored_files.join(folder, f"{_NAME}.hridx"), cached)]
    found = [_fitting([k[v.key] for k in kept if v.key in k], v, axes) for v in volumes]
    missing = [i for i, classes in enumerate(found) if classes is None]
    notice = ""
    if missing:
        all_numbers = d.variables[number]["segments"]
        d.variables[number]["segments"] = [all_numbers[i] for i in missing]
        for i, classes in zip(missing, _core.find_labels(d.filled(), number, axes)):
            found[i] = classes
        mine = {v.key: Entry(v.file, v.stamp, classes) for v, classes in zip(volumes, found) if classes is not None}
        notice = _keep({**kept[1], **kept[0], **mine}, folder)
    if all(v.stamp for v in volumes):
        while len(_known) >= _MOST_KNOWN:
            del _known[next(iter(_known))]
        _known[whole] = found
    return found, notice


def _volume(case: str, stored: Stored, axes: int, folder: str) -> Volume:
    files = [stored_files.relative(f, folder) for f in stored.files]
    room = stored.shape[len(stored.shape) - axes :] if len(stored.shape) >= axes else ()
    out = Volume(json.dumps([case, stored.name, axes, files[:1]]), files[0] if files else "", "", room)
    about = hashlib.blake2b(digest_size=16)
    form = (stored.dtype, stored.big_endian, stored.fortran, stored.packed, stored.shape, stored.chunk, stored.filters)
    about.update(repr((_VERSION, axes, form, stored.record, stored.fill)).encode())
    if stored.places is not None:
        about.update(np.ascontiguousarray(stored.places, "<u8").tobytes())
    about.update(stored.literal)
    for path, named in zip(stored.files, files):
        info = stored_files.stat(path)
        if info is None:  # h5py reads it, or it is gone, which whoever reads it will say
            return out
        tag = (info.version,) if stored_files.is_url(path) else ()
        about.update(repr((named, info.bytes, info.modified_ns, *tag)).encode())
    out.stamp = about.hexdigest()
    return out


def _fitting(entries: list[Entry], volume: Volume, axes: int) -> list[Any] | None:
    """The classes of an entry that is of this state of the volume, and all places of which lie in it."""

    def lies_in(places: Any) -> bool:
        return places.shape[1] == axes and not (places < 0).any() and not (places >= np.array(volume.room)).any()

    for entry in entries if volume.stamp and len(volume.room) == axes else []:
        if entry.stamp == volume.stamp and all(map(lies_in, entry.classes)):
            return entry.classes
    return None


def read(path: str) -> dict[str, Entry]:
    """The entries of a sidecar; none where it is not there, damaged or somebody else's."""
    if not os.path.isfile(path):  # a pipe would be waited for
        return {}
    try:
        with open(path, "rb") as f:
            if os.fstat(f.fileno()).st_size > _MOST_BYTES:
                return {}
            data = f.read(_MOST_BYTES)
        return _parsed(data)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, struct.error):
        return {}


def _parsed(data: bytes) -> dict[str, Entry]:
    magic, version, table_bytes = _HEAD.unpack_from(data)
    payload = len(data) - _HEAD.size - _CHECK - table_bytes
    if magic != _MAGIC or version != _VERSION or payload < 0 or payload % 8:
        return {}
    if hashlib.blake2b(data[:-_CHECK], digest_size=_CHECK).digest() != data[-_CHECK:]:
        return {}
    table = json.loads(data[_HEAD.size : _HEAD.size + table_bytes])
    numbers = np.frombuffer(data, "<i8", payload // 8, _HEAD.size + table_bytes)
    out = {}
    for key, row in table.items():
        axes, at, classes = row["axes"], row["first"], []
        for count in row["classes"]:
            if not (type(count) is type(at) is type(axes) is int and count > 0 and at >= 0 and axes > 0):
                return {}
            if count * axes > len(numbers) - at:
                return {}
            classes.append(numbers[at : at + count * axes].reshape(count, axes).astype(np.int64))
            at += count * axes
        out[key] = Entry(str(row["file"]), str(row["stamp"]), classes)
    return out


def _keep(entries: dict[str, Entry], folder: str) -> str:
    """Beside the data, or in the user's folder; in words, where it cannot be kept or lies elsewhere."""
    far = stored_files.is_url(folder)
    there = {k: e for k, e in entries.items() if e.stamp and (far or os.path.exists(os.path.join(folder, e.file)))}
    data = _packed(there)
    if not there or len(data) > _MOST_BYTES:
        return ""
    try:
        if far:
            raise OSError("the data are not on this machine")
        _write(os.path.join(folder, f"{_NAME}.hridx"), data)
        return ""
    except OSError as beside:
        try:
            path = _core.cached_sidecar(stored_files.join(folder, _NAME), True)
            _write(path, data)
            return f"where labels lie cannot be kept beside the data ({beside}): it is kept in {path}"
        except OSError as e:
            return f"where labels lie cannot be kept ({beside}; {e}): the labels are read at every start"


def _packed(entries: dict[str, Entry]) -> bytes:
    table, first, parts = {}, 0, []
    for key, entry in entries.items():
        axes = entry.classes[0].shape[1] if entry.classes else 1
        counts = [len(places) for places in entry.classes]
        table[key] = {"file": entry.file, "stamp": entry.stamp, "classes": counts, "axes": axes, "first": first}
        first += sum(counts) * axes
        parts += [np.ascontiguousarray(places, "<i8").tobytes() for places in entry.classes]
    text = json.dumps(table).encode()
    data = b"".join([_HEAD.pack(_MAGIC, _VERSION, len(text)), text, *parts])
    return data + hashlib.blake2b(data, digest_size=_CHECK).digest()


def _write(path: str, data: bytes) -> None:
    """Appears complete or not at all; as readable as other files are."""
    handle, made = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{_NAME}-", suffix=".hridx")
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
        os.chmod(made, 0o666 & ~_umask())
        os.replace(made, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise


def _umask() -> int:
    """Asked of the kernel: os.umask() tells it only by changing it, for all threads."""
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status", encoding="ascii", errors="replace") as f:
        for line in f:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o077
