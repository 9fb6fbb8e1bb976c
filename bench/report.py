# SPDX-License-Identifier: Apache-2.0
"""What a run found, as tables on the terminal, as markdown and as JSON."""

from __future__ import annotations

import dataclasses
import pathlib
import platform
import statistics
from typing import Any

import environments
from contenders import CORES, Contender
from harness import MODES, Measured, Prepared

Results = dict[tuple[str, int, str], Measured]


@dataclasses.dataclass
class Row:
    contender: Contender
    prepared: Prepared | None
    measured: dict[str, Measured]  # mode → rounds
    reason: str = ""  # why there is nothing

    @property
    def title(self) -> str:
        number = environments.version(self.contender.script)
        name, _, more = self.contender.name.partition(", ")
        return name + (f" {number}" if number else "") + (f", {more}" if more else "")

    @property
    def workers(self) -> str:
        count = self.prepared.workers if self.prepared else self.contender.workers[-1]
        return f"{count} {self.contender.unit}" if count or self.contender.unit == "workers" else "its choice"

    @property
    def pixels(self) -> str:
        if not self.prepared or not self.contender.has_batches:
            return ""
        return f"{self.prepared.pixels} ({self.prepared.most:.0f}, {self.prepared.mean:.2f})"

    def median(self, mode: str) -> float:
        rates = self.measured[mode].rate if mode in self.measured else []
        return statistics.median(rates) if rates else 0.0

    def spread(self, mode: str) -> str:
        rates = self.measured[mode].rate if mode in self.measured else []
        return f"{min(rates):,.0f} to {max(rates):,.0f}" if rates else ""

    def typical(self, name: str) -> float:
        values = [v for m in self.measured.values() for v in getattr(m, name)]
        return statistics.median(values) if values else 0.0


Table = list[tuple[str, ...]]  # the first is the heading

# (ours, the kernels alone that do the same): pictures in memory, pictures read from files; and what reading costs.
PAIRS = (
    ("headrace in memory", "bare loop"),
    ("headrace tar", "bare loop that reads"),
    ("headrace tar", "bare loop"),
)


def base_table(rows: list[Row]) -> Table:
    out: Table = [("contender", "images/s", "least", "most")]
    for mode in MODES:
        for row in rows:
            rates = row.measured[mode].rate if row.measured else []
            name = f"{mode} {row.contender.name}, {row.workers}"
            numbers = (f"{row.median(mode):,.0f}", f"{min(rates):,.0f}", f"{max(rates):,.0f}") if rates else (row.reason, "", "")
            out.append((name, *numbers))
    return out


def peer_table(rows: list[Row]) -> Table:
    out: Table = [
        (
            "contender",
            "",
            "f32",
            "least to most",
            "u8",
            "least to most",
            "first batch s",
            "memory MB",
            "pixels (most, mean levels)",
        )
    ]
    for row in sorted(rows, key=lambda r: -r.median("f32")):
        if row.reason:
            out.append((row.title, row.reason, *[""] * 7))
            continue
        cells = [cell for mode in ("f32", "u8") for cell in (f"{row.median(mode):,.0f}", row.spread(mode))]
        first, memory = row.typical("first"), row.typical("memory")
        tail = (f"{first:.1f}" if first else "", f"{memory:,.0f}" if memory else "", row.pixels)
        out.append((row.title, row.workers, *cells, *tail))
    return out


def pairwise(above: Row, below: Row, mode: str) -> float:
    """The median of the rounds' ratios."""
    pairs = zip(above.measured[mode].rate, below.measured[mode].rate, strict=False)
    return statistics.median(a / b for a, b in pairs)


def ratios(rows: list[Row]) -> Table:
    out: Table = [("ratio", *MODES)]
    ours = [r for r in rows if r.contender.name == "headrace tar"]

    def add(title: str, above: Row | None, below: list[Row]) -> None:
        cells = []
        for mode in MODES:
            best = max((r.median(mode) for r in below), default=0.0)
            cells.append(f"{above.median(mode) / best:.2f}" if above and best else "")
        if any(cells):
            out.append((title, *cells))

    # What does the same, one right after the other: of each round the ratio, so that the machine's drift counts for little.
    for name, bare in PAIRS:
        for row in (r for r in rows if r.contender.name == name):
            for limit in (r for r in rows if r.contender.name == bare and r.workers == row.workers):
                cells = [f"{pairwise(row, limit, mode):.2f}" if row.median(mode) and limit.median(mode) else "" for mode in MODES]
                if any(cells):
                    out.append((f"{name} / {bare}, {row.workers}", *cells))
    loops = {r.contender.name: r for r in rows if r.contender.workers == (CORES,)}
    if {"bare loop", "bare loop, full decode"} <= loops.keys():
        add("bare loop: crop decode / full decode", loops["bare loop"], [loops["bare loop, full decode"]])
    mine = ours[-1] if ours else None
    for row in rows:
        if row.contender.script == "dataloader":
            add(f"headrace tar / {row.contender.name}", mine, [row])
    others = [r for r in rows if r.contender.script not in ("headrace", "bare_loop", "dataloader")]
    if others:
        others += [r for r in rows if r.contender.script == "dataloader"]
        add("headrace tar / best peer, same pixels", mine, [r for r in others if r.pixels.startswith("same")])
        add("headrace tar / best peer of any kind", mine, others)
    return out


def markdown(tables: list[Table]) -> str:
    lines = []
    for table in tables:
        lines += ["| " + " | ".join(table[0]) + " |", "|" + "---|" * len(table[0])]
        lines += ["| " + " | ".join(cells) + " |" for cells in table[1:]]
        lines.append("")
    return "\n".join(lines)


def _processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def as_dict(rows: list[Row], settings: dict[str, Any]) -> dict[str, Any]:
    contenders = [
        {
            "name": row.contender.name,
            "title": row.title,
            "script": row.contender.script,
            "version": environments.version(row.contender.script),
            "workers": row.workers,
            "filter": row.contender.filter,
            "prepared": dataclasses.asdict(row.prepared) if row.prepared else None,
            "median": {mode: row.median(mode) for mode in MODES},
            "measured": {mode: dataclasses.asdict(m) for mode, m in row.measured.items()},
            "reason": row.reason,
        }
        for row in rows
    ]
    machine = {"processor": _processor(), "cores": CORES, "python": platform.python_version()}
    return {"machine": machine, "settings": settings, "contenders": contenders}
