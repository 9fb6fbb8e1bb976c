# SPDX-License-Identifier: Apache-2.0
"""``headrace verify``: reads every sample, decodes every picture, parses every array, names what is bad."""

from __future__ import annotations

import io
import os
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

import headrace as hr

from . import _core, terminal
from .inspection import picture_fields
from .tokenizing.tokenize import check_files

_CHUNK = 32  # samples a thread takes at a time
_WIDTHS = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
_KEPT = 10_000  # bad samples that are remembered; all are counted


@dataclass
class Bad:
    """A sample that cannot be used, and why."""

    sample: int
    key: str
    field: str | None
    cause: str


@dataclass
class Verified:
    samples: int = 0
    pictures: int = 0
    present: Counter[str] = field(default_factory=Counter)  # samples that have this field
    undecoded: Counter[str] = field(default_factory=Counter)  # pictures that this build has no decoder for
    bad_samples: int = 0
    bad: list[Bad] = field(default_factory=list)
    arrays: int = 0
    files: int = 0  # of packs, whose checksums were compared
    problems: list[str] = field(default_factory=list)  # files that are not as they were packed
    error: str = ""  # why the data set could not even be opened

    @property
    def good(self) -> bool:
        return not self.error and not self.problems and self.bad_samples == 0

    def compare(self, packs: list[dict[str, Any]]) -> None:
        """Takes in what `check_packs` found."""
        self.files = sum(p["files"] for p in packs)
        self.problems = [words for p in packs for words in p["problems"]]
        wanted = sum(p["samples"] for p in packs)
        if packs and not self.error and all(p["alone"] for p in packs) and wanted != self.samples:
            self.problems.append(f"{self.samples} samples are there, the manifest says {wanted}")

    def add(self, other: Verified) -> None:
        self.samples += other.samples
        self.pictures += other.pictures
        self.arrays += other.arrays
        self.present.update(other.present)
        self.undecoded.update(other.undecoded)
        self.bad_samples += other.bad_samples
        self.bad.extend(other.bad[: _KEPT - len(self.bad)])

    def as_data(self, show: int) -> dict[str, Any]:
        """For JSON."""
        return {
            "samples": self.samples,
            "pictures": self.pictures,
            "arrays": self.arrays,
            "files_compared": self.files,
            "problems": self.problems,
            "fields": dict(self.present),
            "undecoded": dict(self.undecoded),
            "bad_samples": self.bad_samples,
            "bad": [asdict(b) for b in self.bad[:show]],
            "error": self.error or None,
        }

    def page(self, show: int, seconds: float) -> None:
        """On the screen."""
        out = terminal.console()

        def line(text: str) -> None:
            out.print(terminal.plain(text), soft_wrap=True)

        for words in self.problems:
            line(f"bad: {words}")
        if self.error:
            return line(f"bad: {self.error}")
        for b in self.bad[:show]:
            named = f"sample {b.sample}," in b.cause  # most causes say all of it themselves
            line(f"bad: {b.cause}" if named else f"bad: sample {b.sample}, key '{b.key}', field '{b.field}': {b.cause}")
        if len(self.bad) > show:
            line("… and more: --show names them")
        for name, n in self.present.items():
            if n < self.samples - self.bad_samples:
                line(f"note: {terminal.count(self.samples - n, 'sample')} without '{name}'")
        for name, n in self.undecoded.items():
            line(f"note: {terminal.count(n, 'picture')} '{name}' read but not decoded: this build has no decoder for them")
        bad = f"[{'green' if self.good else 'red'}]{self.bad_samples:,} bad[/]"
        rate = f"{terminal.seconds(seconds)}, {self.samples / seconds:,.0f} a second"
        read = f"{terminal.count(self.samples, 'sample')} read, {terminal.count(self.pictures, 'picture')} decoded"
        if self.arrays:
            read += f", {terminal.count(self.arrays, 'array')} parsed"
        out.print(f"{read}, {bad} ({rate})")
        if self.files:
            words = f"{terminal.count(self.files, 'file')} compared with the checksums of the pack, "
            out.print(f"{words}[{'red' if self.problems else 'green'}]{len(self.problems):,} not as written[/]")
        return None


class _Reader:
    """One data set seen in several ways. Thread-safe, as data sets are."""

    def __init__(self, source: Any, root: str | None, index: str | None) -> None:
        self.raw = hr.open(source, root=root, index=index)
        self.names = picture_fields(self.raw)
        self.arrays = {f["name"]: f for f in self.raw._source.fields if f["kind"] in ("npy", "array", "tokens")}
        fields = {
            f["name"]: hr.image(f["name"], many=f["many"]) if f["name"] in self.names else _as_it_lies(f)
            for f in self.raw._source.fields
        }
        self.whole = hr.open(source, fields, root=root, index=index)
        self.alone = {name: hr.open(source, {name: f}, root=root, index=index) for name, f in fields.items()}

    def chunk(self, begin: int) -> Verified:
        out = Verified()
        for i in range(begin, min(begin + _CHUNK, len(self.raw))):
            try:
                # One read for all fields, where all are there and good.
                sample = self.whole[i]
                for name in self.arrays:
                    check_array(self.arrays[name], sample[name])
                out.present.update(sample.keys())
                out.pictures += sum(_count(sample[name]) for name in self.names)
                out.arrays += sum(_count(sample[name]) for name in self.arrays)
            except (hr.Error, KeyError, ValueError):
                self._one_by_one(i, out)
            out.samples += 1
        return out

    def _one_by_one(self, i: int, out: Verified) -> None:
        """A sample that lacks a field or is bad: which is it."""
        found = []
        try:
            there = self.raw[i]
            out.present.update(there.keys())
        except hr.Error as e:
            there = {}
            found.append(Bad(i, self.raw.key(i), None, str(e)))
        for name in there:
            try:
                value = self.alone[name][i][name]
                if name in self.arrays:
                    check_array(self.arrays[name], value)
                    out.arrays += _count(value)
                out.pictures += _count(value) if name in self.names else 0
            except hr.Unsupported:  # no fault of the data
                out.undecoded[name] += 1
            except (hr.Error, ValueError) as e:
                found.append(Bad(i, self.raw.key(i), name, str(e)))
        out.bad_samples += bool(found)
        out.bad.extend(found)


def _count(value: Any) -> int:
    """How many values a sample has of a field."""
    return len(value) if isinstance(value, list) else 1


def check_array(about: dict[str, Any], value: Any) -> None:
    """A ValueError where the bytes are no array of the field's kind."""
    if isinstance(value, list):
        for one in value:
            check_array(about, one)
    elif isinstance(value, bytes) and about["kind"] == "npy":
        np.load(io.BytesIO(value), allow_pickle=False)
    elif isinstance(value, bytes) and about["dtype"]:
        width = _WIDTHS[about["dtype"]]
        if len(value) % width:
            raise ValueError(f"{len(value)} bytes are no whole number of {about['dtype']}")


def check_packs(url: list[str], threads: int, progress: Callable[[int, int], None] | None = None) -> list[dict[str, Any]]:
    """Compares the files of what `headrace pack` or `tokenize` wrote with the manifest, where a url is such a folder."""
    found = []
    for place in url:
        checked: Any = _core.check_pack(place, threads, progress) if os.path.exists(place) else None
        if checked is None:
            checked = check_files(place)
        if checked is not None:
            found.append({**checked, "alone": False})
    for check in found:
        check["alone"] = len(found) == len(url)
    return found


def _as_it_lies(about: dict[str, Any]) -> Any:
    name, kind, many = about["name"], about["kind"], about["many"]
    if kind in ("int", "float"):
        return hr.scalar(name, "f64" if kind == "float" else "i64", many=many)
    if kind == "json":
        return hr.json(name, many=many)
    return hr.text(name, many=many) if kind == "text" else hr.bytes(name, many=many)


def verify(
    source: Any,
    *,
    root: str | None = None,
    index: str | None = None,
    threads: int = 1,
    progress: Callable[[int, int, int], None] | None = None,
) -> Verified:
    """All samples of a data set. ``progress(done, samples, bad)`` is called from this thread."""
    reader = _Reader(source, root, index)
    total = len(reader.raw)
    result = Verified()
    pending: deque[Any] = deque()

    def take() -> None:
        result.add(pending.popleft().result())
        if progress is not None:
            progress(result.samples, total, result.bad_samples)

    with ThreadPoolExecutor(threads, thread_name_prefix="verify") as pool:
        try:
            for begin in range(0, total, _CHUNK):
                pending.append(pool.submit(reader.chunk, begin))
                if len(pending) >= 4 * threads:
                    take()
            while pending:
                take()
        except BaseException:
            for waiting in pending:
                waiting.cancel()
            raise
    return result
