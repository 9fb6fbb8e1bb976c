# SPDX-License-Identifier: Apache-2.0
"""``headrace demo``: makes a data set, loads it in every way, and proves on screen that all came right.

Nothing here is taken for granted: each line of the summary is a comparison of sample numbers, of
bytes or of pixels that was made in this run.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import headrace as hr

from .. import _core, terminal
from . import checks, rates, sheet
from . import data as demo_data
from .checks import EPOCHS, SEED, Advance, Faults, Pixels, Tally
from .data import Data

BATCH = 64  # of a rank
_NEAR = 0.1  # standard deviations: how far two means of randomly cropped pictures may lie apart


@dataclass
class Report:
    """What was checked, and what came of it."""

    rows: list[tuple[str, str, bool]] = field(default_factory=list)

    def add(self, check: str, good: bool, words: str) -> None:
        self.rows.append((check, words, bool(good)))

    @property
    def good(self) -> bool:
        return all(good for _, _, good in self.rows)


class Demo:
    """One run. One thread at a time."""

    def __init__(self, folder: Path, images: int, worlds: list[int]) -> None:
        self.folder, self.images, self.worlds = folder, images, worlds
        self.out = terminal.console()
        self.report = Report()
        self.output = "torch" if importlib.util.find_spec("torch") is not None else "numpy"
        # Small data sets still have a few steps on the most ranks, so that there is a middle to resume in.
        self.batch = min(BATCH, max(1, images // (4 * max(worlds))))

    def say(self, what: str, words: str, seconds: float | None = None) -> None:
        took = "" if seconds is None else f"  [dim]{terminal.seconds(seconds)}[/]"
        self.out.print(f"[bold]{what:<10}[/] {words}{took}", soft_wrap=True)

    def took(self, start: float) -> None:
        self.out.print(f"[dim]{terminal.seconds(time.perf_counter() - start)}[/]\n")

    @contextmanager
    def bar(self, what: str, total: int) -> Iterator[Advance]:
        with terminal.progress() as bars:
            task = bars.add_task(what, total=total)
            yield lambda n: bars.advance(task, n)

    # -- the data -------------------------------------------------------------------------------

    def make(self) -> Data:
        start = time.perf_counter()
        with terminal.progress() as bars:
            task = bars.add_task("making pictures", total=self.images)
            data = demo_data.make(self.folder, self.images, lambda done, total: bars.update(task, completed=done, total=total))
        ready = "" if data.made else " (found ready)"
        words = f"{data.samples:,} photograph-like JPEGs in {len(demo_data.SYNSETS)} class folders with a pickle index"
        self.say("pictures", f"{words}, {terminal.size(data.bytes)}{ready}", time.perf_counter() - start)
        start = time.perf_counter()
        with terminal.progress() as bars:
            task = bars.add_task("packing", total=data.samples)

            def tell(done: int, total: int, *_: int) -> None:
                bars.update(task, completed=done, total=total)

            packed = hr.pack(data.folder, data.shards, to="tar", shards=demo_data.SHARDS, keep_order=True, progress=tell)
        ready = " (found ready)" if packed.get("was_complete") else ""
        words = f"{packed['shards']} tar shards of the same samples, {terminal.size(packed['bytes'])}{ready}"
        self.say("pack", words, time.perf_counter() - start)
        self.say("", f"[dim]{self.folder.resolve()}[/]")
        return data

    # -- the proofs -----------------------------------------------------------------------------

    def load(self, data: Data) -> Pixels:
        """Every source on one rank and on several; the table of what came."""
        names = ("source", ">ranks", "shuffle", "loaded as", ">batches a rank", ">samples", ">missing", ">twice", ">wrong")
        rows = terminal.table(*names, title=f"{EPOCHS} epochs each, batches of {self.batch} on every rank")
        tallies: list[Tally] = []
        start = time.perf_counter()

        def row(name: str, shuffle: str, what: str, runs: list[Tally]) -> None:
            tallies.extend(runs)
            found = Faults.of(runs, data.samples)
            # One number where the ranks agree, as they must; else all of them.
            batches = sorted({" ".join(map(str, epoch[:1] if t.even() else epoch)) for t in runs for epoch in t.batches})
            got = sum(len(t.samples(e)) for t in runs for e in range(EPOCHS))
            numbers = (f"{n:,}" for n in (got, found.missing, found.repeated, found.wrong))
            rows.add_row(name, str(runs[0].ranks), shuffle, what, " / ".join(batches), *numbers)

        with self.bar("pictures on 1 rank", 3 * EPOCHS * data.samples) as advance:
            alone, differing, pixels = checks.one_rank(data, self.batch, self.output, advance)
        for name, t in alone.items():
            row(name, "global", "pictures", [t])
        kept = True
        with self.bar("files on several ranks", len(alone) * len(self.worlds) * 2 * EPOCHS * data.samples) as advance:

            def ranks(url: str, world: int, shuffle: str) -> Tally:
                return checks.several_ranks(data, url, world, self.batch, shuffle, self.output, advance)

            for name, url in data.sources().items():
                for world in self.worlds:
                    runs = [ranks(url, world, "global"), ranks(url, world, "pool")]
                    row(name, "global, pool", "files", runs)
                    kept = kept and runs[0].steps_equal(alone[name])
        with terminal.console(stderr=True).status(f"pictures on {self.worlds[0]} ranks, each a process"):
            t, told = checks.processes(data, self.worlds[0], self.batch, pixels)
        row("tar shards", "global", "pictures, processes", [t])
        self.out.print()
        self.out.print(rows)
        self.took(start)
        self._judge(data, tallies, differing, kept)
        said = sorted(set(told))
        good = said == ["RANK and WORLD_SIZE"] and t.even() and not Faults.of([t], data.samples).any()
        words = f"{len(told)} processes, told by {' / '.join(said)}: {t.wrong} pictures differ from one rank's"
        self.report.add("ranks as processes agree", good, words)
        return pixels

    def _judge(self, data: Data, tallies: list[Tally], differing: dict[str, int], order_kept: bool) -> None:
        add, many = self.report.add, " and ".join(str(w) for w in self.worlds)
        found, even = Faults.of(tallies, data.samples), sum(t.even() for t in tallies)
        words = f"{len(tallies)} runs of {EPOCHS} x {data.samples:,} samples: {found} (bytes, pixels, labels)"
        add("every sample exactly once per epoch", not found.any(), words)
        add("all ranks get the same number of batches", even == len(tallies), f"{even} of {len(tallies)} runs")
        add("the order does not depend on the ranks", order_kept, f"each step on {many} ranks with the same samples on one")
        words = "batches that differ from the class folders': " + ", ".join(f"{name}: {n}" for name, n in differing.items())
        add("folders and shards give identical bytes", not any(differing.values()), words)

    def resume(self, data: Data, pixels: Pixels) -> None:
        ranks = (self.worlds[-1], self.worlds[0] if len(self.worlds) > 1 else self.worlds[0] + 1)
        with self.bar("resuming", data.samples) as advance:
            r = checks.resume(data, ranks, self.batch, self.output, pixels, advance)
        done, rest, found = len(r.before.samples(0)), len(r.after.samples(0)), r.faults(data.samples)
        words = f"{done:,} samples on {ranks[0]} ranks, then {rest:,} on {ranks[1]}: {found}"
        self.report.add("resume in mid-epoch gives exactly the rest", not found.any() and r.after.even(), words)
        self.report.add("the state is equal on every rank", r.states_equal, f"{ranks[0]} states")

    # -- the rest -------------------------------------------------------------------------------

    def compare(self, data: Data, rounds: int) -> None:
        missing = [m for m in ("torch", "torchvision") if importlib.util.find_spec(m) is None]
        if missing:
            words = f"{' and '.join(missing)} not installed (pip install {' '.join(missing)})"
            self.say("rates", f"no comparison with PyTorch's DataLoader: {words}")
            return
        cpus, start = _core.usable_cpus(), time.perf_counter()
        with terminal.progress() as bars:

            def bar(what: str, total: int) -> Advance:
                task = bars.add_task(what, total=total)
                return lambda n: bars.advance(task, n)

            contenders = rates.compare(data, rounds, cpus, bar)
        base = contenders[-1].rate
        title = (
            f"random crop to 224, flip, normalise: median of {terminal.count(rounds, 'round')} on {terminal.count(cpus, 'CPU')}"
        )
        rows = terminal.table("", ">pictures/s", ">slowest … fastest", ">speed-up", title=title)
        for c in contenders:
            rows.add_row(c.name, f"{c.rate:,.0f}", f"{min(c.rates):,.0f} … {max(c.rates):,.0f}", f"{c.rate / base:.1f} x")
        self.out.print(rows)
        self.took(start)
        ours, theirs = contenders[0], contenders[-1]
        near = ours.shape == theirs.shape and abs(ours.mean - theirs.mean) < _NEAR
        words = f"tensors of {ours.shape} and {theirs.shape}, mean {ours.mean:+.2f} and {theirs.mean:+.2f}"
        self.report.add("headrace and DataLoader did the same work", near, words)

    def sheet(self, data: Data) -> Path:
        path = self.folder / "contact_sheet.png"
        sheet.write(data.shards, path, SEED)
        return path.resolve()

    def summary(self, seconds: float) -> None:
        rows = terminal.table("check", "what was compared", "result")
        for check, words, good in self.report.rows:
            rows.add_row(check, words, terminal.ok(good))
        self.out.print(rows)
        n, bad = len(self.report.rows), sum(not good for _, _, good in self.report.rows)
        words = f"[bold red]{bad} of {n} checks failed[/]" if bad else f"[bold green]all {n} checks passed[/]"
        self.out.print(f"{words} in {terminal.seconds(seconds)}")


def run(folder: Path, images: int, worlds: list[int], rounds: int) -> bool:
    """All of it; True when every check passed."""
    if importlib.util.find_spec("PIL") is None:
        raise hr.UsageError("the demo draws its pictures with Pillow, which is not installed: pip install pillow")
    start = time.perf_counter()
    demo = Demo(folder, images, worlds)
    data = demo.make()
    pixels = demo.load(data)
    demo.resume(data, pixels)
    if rounds:
        demo.compare(data, rounds)
    sheet = demo.sheet(data)
    demo.summary(time.perf_counter() - start)
    demo.say("look at", f"{sheet}: pictures, and what training sees of them")
    return demo.report.good
