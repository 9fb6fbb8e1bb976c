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
from typing import Any

import headrace as hr

from . import _core, demo_checks, demo_data, demo_rates, demo_sheet, terminal
from .demo_checks import EPOCHS, SEED, Advance, Pixels, Tally
from .demo_data import Data

BATCH = 64  # of a rank


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
        self.torch = all(importlib.util.find_spec(m) is not None for m in ("torch",))
        self.output = "torch" if self.torch else "numpy"
        # Small data sets still have a few steps on the most ranks, so that there is a middle to resume in.
        self.batch = min(BATCH, max(1, images // (4 * max(worlds))))

    def say(self, what: str, words: str, seconds: float | None = None) -> None:
        took = "" if seconds is None else f"  [dim]{terminal.seconds(seconds)}[/]"
        self.out.print(f"[bold]{what:<10}[/] {words}{took}", soft_wrap=True)

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
        words = f"{data.samples:,} photograph-like JPEGs in {len(demo_data.SYNSETS)} class folders, {terminal.size(data.bytes)}, and a pickle index"
        self.say("pictures", words + ("" if data.made else " (found ready)"), time.perf_counter() - start)
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
        rows = terminal.table("source", ">ranks", "as", "shuffle", ">batches a rank", ">samples", ">missing", ">twice", ">wrong", ">samples/s",
                              title=f"{EPOCHS} epochs each, batches of {self.batch} a rank")  # fmt: skip
        tallies: list[Tally] = []

        def row(name: str, t: Tally, how: str, shuffle: str) -> None:
            tallies.append(t)
            missing, twice = t.missing_and_repeated(data.samples)
            counts = " ".join(str(n) for n in t.batches[0]) if not t.even() else str(t.batches[0][0])
            got = sum(len(t.samples(e)) for e in range(EPOCHS))
            rows.add_row(name, str(t.ranks), how, shuffle, counts, f"{got:,}", str(missing), str(twice), str(t.wrong), f"{got / t.seconds:,.0f}")

        with self.bar("pictures, 1 rank", 3 * EPOCHS * data.samples) as advance:
            alone, differing, pixels = demo_checks.one_rank(data, self.batch, self.output, advance)
        for name, t in alone.items():
            row(name, t, "pictures", "global")
        runs = [(name, url, world, shuffle) for name, url in data.sources().items() for world in self.worlds for shuffle in ("global", "pool")]
        order_kept = True
        with self.bar("files, several ranks", len(runs) * EPOCHS * data.samples) as advance:
            for name, url, world, shuffle in runs:
                t = demo_checks.several_ranks(data, url, world, self.batch, shuffle, self.output, advance)
                row(name, t, "files", shuffle)
                if shuffle == "global":
                    order_kept = order_kept and t.steps_equal(alone[name])
        with terminal.console(stderr=True).status(f"{self.worlds[0]} ranks as processes"):
            t, told = demo_checks.processes(data, self.worlds[0], self.batch, pixels)
        row("tar shards", t, "processes", "global")
        self.out.print()
        self.out.print(rows)
        self._judge(data, tallies, differing, order_kept, told)
        return pixels

    def _judge(self, data: Data, tallies: list[Tally], differing: dict[str, int], order_kept: bool, told: list[str]) -> None:
        report, many = self.report, ", ".join(str(w) for w in self.worlds)
        wrong = [t for t in tallies if not t.exact(data.samples)]
        words = f"{len(tallies) - len(wrong)} of {len(tallies)} runs: {data.samples:,} samples, {EPOCHS} epochs, no sample missing or twice, bytes and labels right"
        report.add("every sample exactly once per epoch", not wrong, words)
        even = sum(t.even() for t in tallies)
        report.add("all ranks get the same number of batches", even == len(tallies), f"{even} of {len(tallies)} runs, on {many} ranks")
        report.add("the order does not depend on the ranks", order_kept, f"step by step, {many} ranks hold what one rank holds")
        same = ", ".join(f"{name}: {n or 'no'} batch{'es' if n != 1 else ''} differ" for name, n in differing.items())
        report.add("byte-identical from folders and shards", not any(differing.values()), f"{same} from the class folders', pixel for pixel")
        said = sorted(set(told))
        report.add("ranks as processes agree", said == ["RANK and WORLD_SIZE"], f"{len(told)} processes, told by {' / '.join(said)} alone: same pixels as one rank's")

    def resume(self, data: Data, pixels: Pixels) -> None:
        ranks = (self.worlds[-1], self.worlds[0] if len(self.worlds) > 1 else self.worlds[0] + 1)
        with self.bar("resuming", data.samples) as advance:
            r = demo_checks.resume(data, ranks, self.batch, self.output, pixels, advance)
        done, rest = len(r.before.samples(0)), len(r.after.samples(0))
        words = f"{done:,} samples on {ranks[0]} ranks, then the other {rest:,} on {ranks[1]}: none twice, none missing, same pixels"
        self.report.add("resume in the middle, on other ranks", r.exact(data.samples) and r.after.even(), words)
        self.report.add("the state is the same on every rank", r.states_equal, f"{ranks[0]} states compared")

    # -- the rest -------------------------------------------------------------------------------

    def compare(self, data: Data, rounds: int) -> None:
        missing = [m for m in ("torch", "torchvision") if importlib.util.find_spec(m) is None]
        if missing:
            self.say("rates", f"no comparison with PyTorch's DataLoader: {' and '.join(missing)} not installed (pip install {' '.join(missing)})")
            return
        start = time.perf_counter()
        with self.bar("rates", 3 * rounds * data.samples) as advance:
            contenders, verdict = demo_rates.compare(data, rounds, advance, _core.usable_cpus())
        base = contenders[-1].rate
        rows = terminal.table("", ">pictures/s", ">slowest … fastest", ">times as fast",
                              title="RandomResizedCrop(224), flip, normalise, f32; median of "
                                    f"{terminal.count(rounds, 'interleaved round')} on {terminal.count(_core.usable_cpus(), 'CPU')}")  # fmt: skip
        for c in contenders:
            rows.add_row(c.name, f"{c.rate:,.0f}", f"{min(c.rates):,.0f} … {max(c.rates):,.0f}", f"{c.rate / base:.1f}")
        self.out.print(rows)
        self.out.print(f"[dim]headrace's verdict: {verdict} ({terminal.seconds(time.perf_counter() - start)})[/]", soft_wrap=True)
        self.out.print()
        ours, theirs = contenders[0], contenders[-1]
        near = ours.shape == theirs.shape and abs(ours.mean - theirs.mean) < 0.2
        words = f"tensors of {' x '.join(map(str, ours.shape))}, mean value {ours.mean:+.2f} and {theirs.mean:+.2f}"
        self.report.add("the comparison did the same work", near, words)

    def sheet(self, data: Data) -> None:
        path = self.folder / "contact_sheet.png"
        demo_sheet.write(data.shards, path, SEED)
        self.say("look at", f"{path.resolve()}: pictures and their augmentations")

    def summary(self, seconds: float) -> None:
        rows = terminal.table("check", "what was compared", "result")
        for check, words, good in self.report.rows:
            rows.add_row(check, words, terminal.ok(good))
        self.out.print(rows)
        bad = sum(not good for _, _, good in self.report.rows)
        words = f"[bold red]{bad} of {len(self.report.rows)} checks failed[/]" if bad else f"[bold green]all {len(self.report.rows)} checks passed[/]"
        self.out.print(f"{words} in {terminal.seconds(seconds)}")


def run(folder: Path, images: int, worlds: list[int], rounds: int) -> bool:
    """All of it; True when every check passed."""
    if importlib.util.find_spec("PIL") is None:
        raise hr.UsageError("the demo draws its pictures with Pillow, which is not installed: pip install pillow")
    start = time.perf_counter()
    demo = Demo(folder, images, worlds)
    data = demo.make()
    pixels: Any = demo.load(data)
    demo.resume(data, pixels)
    if rounds:
        demo.compare(data, rounds)
    demo.sheet(data)
    demo.summary(time.perf_counter() - start)
    return demo.report.good
