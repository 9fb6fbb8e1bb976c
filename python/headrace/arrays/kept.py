# SPDX-License-Identifier: Apache-2.0
"""What opening files of arrays learned, kept in an index: the next start reads it, and neither h5py nor the files' metadata.

``X.hridx`` beside the file or folder X (one for all files of a data set of several), in the user's folder for indexes where
that cannot be written, or in the folder that ``headrace index X --to FOLDER`` names. An entry holds while the files and folders
that were looked at have their sizes and times. ``src/array/array_index.h`` has the layout.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from .. import _core
from . import stored_files
from .model import LazyArrays, Listed, Stored, stored_of

Groups = list[tuple[str, list[Stored]]]
#: (name, bytes, time, whether it is a folder) of something that was looked at, its name relative to the file or folder.
Stamp = tuple[str, int, int, int]

#: Directory times tick every 4 to 10 ms: a change within the tick of the look would never show.
_TICK_NS = 20_000_000
#: Of one file of these formats the metadata are one small read anyway.
_QUICK = ("npy", "netcdf", "npz")
#: Not as they are, or not at all.
_APART = ("reader", "looked_at", "places", "files", "file_bytes", "values")
#: Of the others nothing, and what is empty, mean the same.
_ALWAYS = ("dims", "shape", "chunk", "scale", "offset", "missing")
_PLAIN = tuple(f.name for f in fields(Stored) if f.name not in _APART)


class _CannotKeep(Exception):
    """The index has no words for it, or could not be told to be old later."""


class Kept:
    """The arrays of each file of a data set: by the index where it holds, else by looking, which the index then keeps.

    Used by ``with``, or ended by ``release``: of several processes that find no index one looks, and the others wait for what
    it keeps."""

    def __init__(self, paths: Sequence[tuple[str, str]], mode: str, index: Any, kind: Callable[[], str]) -> None:
        self.paths = [(stored_files.absolute(path), group) for path, group in paths]
        self.mode, self.index = mode, index
        self._stamps: dict[tuple[str, str], list[Stamp]] = {}
        self._content: dict[tuple[str, str], Any] = {}
        self._written: Any = None
        self._began = time.time_ns()
        self._lock: Any = None
        found = self._find()
        self.format = str(found["format"]) if found else kind()
        self._is_worth_it = index is None and (self.format not in _QUICK or len(self.paths) > 1)
        if found is None and self._is_worth_it and stored_files.exists(self.paths[0][0]):
            # Not the file itself: h5py locks it too, and a writer may hold it.
            lead = self.paths[0][0]
            self._lock = _core.build_lock(lead if stored_files.is_url(lead) else stored_files.parent(lead))
            found = self._find()  # another process may have kept it meanwhile
        self._entries = dict(zip(self.paths, found["entries"])) if found else {}

    def _find(self) -> Any:
        return _core.find_array_index(*self._named(), self.mode, self.index)

    def _named(self) -> tuple[list[str], list[str]]:
        return [p for p, _ in self.paths], [g for _, g in self.paths]

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # -- what is known -------------------------------------------------------------------------------

    def arrays(self, path: str, group: str, look: Callable[[], Mapping[str, Stored]]) -> Mapping[str, Stored]:
        """Those of one file. ``look`` reads its metadata."""
        place = (stored_files.absolute(path), group)
        if place not in self._content:
            entry = self._entries.get(place)
            self._content[place] = self._looked(place, look) if entry is None else self._loaded(place, entry, look)
        found: Mapping[str, Stored] = self._content[place]
        return found

    def groups(self, path: str, group: str, look: Callable[[], Groups]) -> Groups:
        """The groups of one file, each with its arrays."""
        place = (stored_files.absolute(path), group)
        entry = self._entries.get(place)
        if entry is None:
            self._content[place] = self._looked(place, look)
        else:
            self._stamps[place] = _stamps_of(entry)
            self._content[place] = [(name, [_restored(d, place[0]) for d in arrays]) for name, arrays in entry["groups"]]
        found: Groups = self._content[place]
        return found

    def _looked(self, place: tuple[str, str], look: Callable[[], Any]) -> Any:
        info = stored_files.stat(place[0])  # before anything is read of it
        self._stamps[place] = []
        if info is not None:
            stamp = _core.array_stamp(info.bytes, info.modified_ns, info.version)
            self._stamps[place] = [("", 0 if info.is_folder else info.bytes, stamp, int(info.is_folder))]
        elif stored_files.is_url(place[0]):
            # A folder of a server that lists none: whether it has another chunk now nobody can tell later.
            self._stamps[place] = [("", 0, 0, 1)]
        return look()

    def _loaded(self, place: tuple[str, str], entry: Any, look: Callable[[], Any]) -> Mapping[str, Stored]:
        """Those that the index knows, and ways to look for the others."""
        again: dict[str, Any] = {}

        def looked(name: str) -> Stored:
            if not again:
                again["arrays"] = look()
            found: Stored = again["arrays"][name]
            return found

        def find(name: str) -> tuple[Any, list[str], Any]:
            found = looked(name)
            out = found.places, found.files, found.file_bytes
            if found.looked_at:
                self._stamps[place] += _relative(found.looked_at, place[0])
            return out

        out: dict[str, Stored] = {}
        for d in entry["arrays"]:
            if not d.get("unmade"):
                stored = out[d["name"]] = _restored(d, place[0])
                if isinstance(stored, Listed):
                    stored.finder = lambda name=stored.name: find(name)
        self._stamps[place] = _stamps_of(entry)
        if len(out) == len(entry["arrays"]):
            return out
        lazy = LazyArrays([d["name"] for d in entry["arrays"]], lambda names: {n: looked(n) for n in names})
        lazy.add(out.values())
        return lazy

    # -- and kept ------------------------------------------------------------------------------------

    def keep(self, to: Any = None) -> str:
        """Writes what was learned since; in words, where it lies if not beside the data."""
        known = self._extent()
        if self._written is None and self._entries:
            self._written = _entries_extent(self._entries)
        if to is None and (not self._is_worth_it or known == self._written):
            return ""
        self._written = known
        try:
            entries = [self._entry(place, to is not None) for place in self.paths]
            return str(_core.keep_array_index(*self._named(), self.mode, {"format": self.format, "entries": entries}, to))
        except (_CannotKeep, TypeError, UnicodeError):
            if to is not None:
                raise
            return ""

    def _extent(self) -> tuple[int, int]:
        """How many arrays are known with their chunks, and how many with their values."""
        arrays = [a for place in self._content for a in self._made(place) if a is not None]
        return sum(not _is_open(a) for a in arrays), sum(bool(a.kept) for a in arrays)

    def _made(self, place: tuple[str, str]) -> list[Stored | None]:
        content = self._content[place]
        if isinstance(content, list):
            return [a for _, arrays in content for a in arrays]
        return list((content._made if isinstance(content, LazyArrays) else content).values())

    def _chunk_files(self, place: tuple[str, str], known: set[str]) -> list[Stamp]:
        """Of arrays in many files each of these: one that is written anew in its place changes no folder."""
        sizes: dict[str, int] = {}
        for stored in self._made(place):
            if stored is not None and _in_many_files(stored):
                sizes.update(zip((_within(place[0], f) for f in stored.files), stored.file_bytes.tolist()))
        names = [n for n in sizes if n not in known and "#" not in n]
        out = []
        for name, info in zip(names, stored_files.stat_all([stored_files.join(place[0], n) for n in names])):
            if info is None or info.bytes != sizes[name] or info.modified_ns > self._began - _TICK_NS:
                raise _CannotKeep("it was changed meanwhile")
            out.append((name, info.bytes, _core.array_stamp(info.bytes, info.modified_ns, info.version), 0))
        return out

    def _entry(self, place: tuple[str, str], on_purpose: bool) -> dict[str, Any]:
        path, content = place[0], self._content.get(place)
        if content is None:
            raise _CannotKeep("not all files were looked at")
        stamps = list(self._stamps[place])
        for looked_at in {id(a.looked_at): a.looked_at for a in self._made(place) if a is not None and a.looked_at}.values():
            stamps += _relative(looked_at, path)
        stamps = list({s[0]: s for s in reversed(stamps)}.values())  # the first look counts
        stamps += self._chunk_files(place, {s[0] for s in stamps})
        if not on_purpose and not _are_settled(stamps, stored_files.is_url(path)):
            raise _CannotKeep("it was changed just now, or nobody could tell whether it was changed")
        out: dict[str, Any] = {"stamps": {"names": [s[0] for s in stamps], "numbers": _numbers(stamps)}}
        if isinstance(content, list):
            out["groups"] = [[name, [_form(a, path) for a in arrays]] for name, arrays in content]
            return out
        made = content._made if isinstance(content, LazyArrays) else content
        out["arrays"] = [{"name": n, "unmade": True} if a is None else _form(a, path) for n, a in made.items()]
        return out


def _in_many_files(stored: Stored) -> bool:
    return not _is_open(stored) and not stored.why and stored.file_bytes is not None


def _is_open(stored: Stored) -> bool:
    """Where its chunks lie was not looked for."""
    return isinstance(stored, Listed) and stored.finder is not None


def _entries_extent(entries: Mapping[Any, Any]) -> tuple[int, int]:
    arrays = [d for e in entries.values() for d in e.get("arrays") or [a for _, some in e["groups"] for a in some]]
    return sum(not d.get("unmade") and not d.get("unfound") for d in arrays), sum(bool(d.get("kept")) for d in arrays)


def _stamps_of(entry: Any) -> list[Stamp]:
    numbers = np.reshape(entry["stamps"]["numbers"], (-1, 3)).tolist()
    return [(name, *row) for name, row in zip(entry["stamps"]["names"], numbers)]


def _numbers(stamps: Sequence[Stamp]) -> Any:
    return np.array([[int(n) & ((1 << 64) - 1) for n in s[1:]] for s in stamps], np.uint64).reshape(-1, 3)


def _relative(looked_at: Sequence[Any], path: str) -> list[Stamp]:
    out = []
    for name, size, stamp, is_folder in looked_at:
        within = stored_files.relative(name, path) if name.startswith(path) else name
        out.append(("" if within == "." else within, 0 if is_folder else size, stamp, int(is_folder)))
    return out


def _are_settled(stamps: Sequence[Stamp], far: bool) -> bool:
    """Whether a later change of what was looked at would show: it has a time, and not that of this very moment."""
    if far or not stamps:
        return bool(stamps) and all(not s[3] and s[2] for s in stamps)
    now = time.time_ns()
    return all(not now - _TICK_NS < s[2] < now + _TICK_NS for s in stamps)


def _within(path: str, file: str) -> str:
    """From the file or folder that the entry is of."""
    if file == path or file.startswith(path + "#"):
        return file[len(path) :]
    if file.startswith(path + "/"):
        return file[len(path) + 1 :]
    raise _CannotKeep(f"{file} does not lie in {path}")


def _form(stored: Stored, path: str) -> dict[str, Any]:
    """As the index has it."""
    out = {name: value for name in _PLAIN if (value := getattr(stored, name)) or name in _ALWAYS}
    if stored.why:
        return out
    if _is_open(stored):
        return {**out, "unfound": True}
    out["places"] = None if stored.places is None else np.ascontiguousarray(stored.places, np.uint64)
    out["files"] = [_within(path, f) for f in stored.files]
    out["file_bytes"] = None if stored.file_bytes is None else np.ascontiguousarray(stored.file_bytes, np.uint64)
    if stored.reader is not None:
        out["reader"] = stored.reader.spec()  # type: ignore[attr-defined]
    if stored.values is not None:
        out["values"] = {k: _form(v, path) if isinstance(v, Stored) else v for k, v in stored.values.items()}
    return out


def _restored(d: Mapping[str, Any], path: str) -> Stored:
    """From what the index has; its chunks may still have to be found."""
    out = stored_of({k: v for k, v in d.items() if k not in ("reader", "values")}, Listed if d.get("unfound") else Stored)
    values, reader = d.get("values"), d.get("reader")
    if values is not None:
        out.values = {k: _restored(v, path) if isinstance(v, dict) else v for k, v in values.items()}
    if reader is not None:
        from .h5py import reader_of

        out.reader = reader_of(reader, path)
    return out
