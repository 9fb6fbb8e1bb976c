# SPDX-License-Identifier: Apache-2.0
"""``headrace verify``: reads every sample, decodes every picture, names what is bad."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import headrace as hr

from . import terminal
from .inspection import picture_fields

_CHUNK = 32  # samples a thread takes at a time
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
    error: str = ""  # why the data set could not even be opened

    @property
    def good(self) -> bool:
        return not self.error and self.bad_samples == 0

    def add(self, other: Verified) -> None:
        self.samples += other.samples
        self.pictures += other.pictures
        self.present.update(other.present)
        self.undecoded.update(other.undecoded)
        self.bad_samples += other.bad_samples
        self.bad.extend(other.bad[: _KEPT - len(self.bad)])

    def as_data(self, show: int) -> dict[str, Any]:
        """For JSON."""
        return {
            "samples": self.samples,
            "pictures": self.pictures,
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
        out.print(f"{read}, {bad} ({rate})")
        return None


class _Reader:
    """One data set seen in several ways. Thread-safe, as data sets are."""

    def __init__(self, source: Any, root: str | None, index: str | None) -> None:
        self.raw = hr.open(source, root=root, index=index)
        self.names = picture_fields(self.raw)
        fields = {name: hr.image(name) if name in self.names else _as_it_lies(name, kind) for name, kind in self.raw.schema}
        self.whole = hr.open(source, fields, root=root, index=index)
        self.alone = {name: hr.open(source, {name: f}, root=root, index=index) for name, f in fields.items()}

    def chunk(self, begin: int) -> Verified:
        out = Verified()
        for i in range(begin, min(begin + _CHUNK, len(self.raw))):
            try:
                # One read for all fields, where all are there and good.
                out.present.update(self.whole[i].keys())
                out.pictures += len(self.names)
            except hr.Error:
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
                self.alone[name][i]
                out.pictures += name in self.names
            except hr.Unsupported:  # no fault of the data
                out.undecoded[name] += 1
            except hr.Error as e:
                found.append(Bad(i, self.raw.key(i), name, str(e)))
        out.bad_samples += bool(found)
        out.bad.extend(found)


def _as_it_lies(name: str, kind: str) -> Any:
    if kind in ("int", "float"):
        return hr.scalar(name, "f64" if kind == "float" else "i64")
    if kind == "json":
        return hr.json(name)
    return hr.text(name) if kind == "text" else hr.bytes(name)


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
