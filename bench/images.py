# SPDX-License-Identifier: Apache-2.0
"""JPEG to tensor: headrace, the bare kernel loop, PyTorch's DataLoader and, if asked, all peers, on the same files.

    ./dev bench [--images 1000] [--rounds 5] [--seconds 4] [--markdown FILE]
    ./dev bench --peers [--only dali,ffcv] [--list]

Every contender gives batches of 64 pictures, shuffled, RandomResizedCrop(224) with antialiased
bilinear filter and horizontal flip, either u8 or f32 normalised (NCHW). Rounds are interleaved;
the table shows medians. Before anything is timed the pixels are compared: without random steps they
must be Pillow's within 3 levels, or the table says which other filter it is.

A peer lives in an environment of its own (`build/peers/NAME`, made on first use from `bench/peers/NAME.txt`);
one that cannot be installed is listed with the reason. Results: `build/results/bench.json`, `bench.md`,
`bench.svg`; a full run of the peers also draws `docs/bench.svg`.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time

import chart
import contenders
import environments
import harness
import report
from peers.common import BATCH
from photo_set import Data, make_data
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

ROOT = environments.ROOT
RESULTS = ROOT / "build/results"


def chosen(peers: bool, only: str) -> list[contenders.Contender]:
    everyone = contenders.peers() if peers or only else contenders.base()
    wanted = [name for name in only.split(",") if name]
    unknown = set(wanted) - {c.script for c in everyone}
    if unknown:
        known = ", ".join(sorted({c.script for c in everyone}))
        raise SystemExit(f"--only: no contender {', '.join(sorted(unknown))}; there are {known}")
    return [c for c in everyone if not wanted or c.script in wanted]


def prepare(todo: list[contenders.Contender], data: Data, progress: Progress, again: bool) -> list[report.Row]:
    task = progress.add_task("preparing", total=len(todo))
    rows, missing = [], dict[str, str]()
    for c in todo:
        row = report.Row(c, None, {})
        try:
            if c.script not in missing:
                row.prepared = harness.prepare(c, data, lambda what: progress.update(task, description=what), again)
        except environments.NotInstalled as why:
            missing[c.script] = f"not installed: {why}"
        except harness.Failed as why:
            row.reason = f"does not run: {why}"
        row.reason = row.reason or missing.get(c.script, "")
        rows.append(row)
        progress.advance(task)
    return rows


def measure(rows: list[report.Row], data: Data, count: int, seconds: float, progress: Progress) -> None:
    able = [(row.contender, row.prepared.workers) for row in rows if row.prepared]
    task = progress.add_task("measuring", total=count * len(able) * len(harness.MODES))
    found = harness.rounds(
        able,
        data,
        count,
        seconds,
        next_=lambda what: progress.update(task, description=what),
        done=lambda: progress.advance(task),
    )
    for row in rows:
        if row.prepared:
            row.measured = {mode: found[row.contender.name, row.prepared.workers, mode] for mode in harness.MODES}
            failures = [m.failure for m in row.measured.values() if m.failure]
            row.reason = f"does not run: {failures[0]}" if failures else ""


def show(console: Console, table: report.Table, title: str = "") -> None:
    out = Table(title=title, title_justify="left")
    for i, heading in enumerate(table[0]):
        out.add_column(heading, justify="left" if i == 0 or heading.startswith("pixels") else "right")
    for cells in table[1:]:
        out.add_row(*cells)
    console.print(out)


def write_results(rows: list[report.Row], tables: list[report.Table], args: argparse.Namespace) -> None:
    settings = {"images": args.images, "rounds": args.rounds, "seconds": args.seconds, "batch": BATCH}
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = report.markdown(tables)
    (RESULTS / "bench.md").write_text(text)
    run = report.as_dict(rows, settings)
    (RESULTS / "bench.json").write_text(json.dumps(run, indent=1) + "\n")
    if args.markdown:
        args.markdown.write_text(text)
    if args.peers or args.only:
        picture = chart.draw(run)
        (RESULTS / "bench.svg").write_text(picture)
        if not args.only:
            (ROOT / "docs/bench.svg").write_text(picture)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--dir", type=pathlib.Path, default=ROOT / "data/bench")
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the tables here")
    parser.add_argument("--peers", action="store_true", help="everyone, not only DataLoader")
    parser.add_argument("--only", default="", metavar="NAMES", help="these scripts of bench/peers, separated by commas")
    parser.add_argument("--list", action="store_true", help="name the contenders and their pinned versions, and stop")
    parser.add_argument("--again", action="store_true", help="compare pixels and find worker counts anew")
    args, start = parser.parse_args(), time.monotonic()
    todo = chosen(args.peers or args.list, args.only)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    if args.list:
        rows = [(c.script, report.Row(c, None, {}).title, c.filter, str(environments.interpreter(c.script))) for c in todo]
        return show(console, [("--only", "contender", "filter", "interpreter"), *rows])
    data = make_data(args.dir, args.images)
    columns = (TextColumn("{task.description:<32}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        rows = prepare(todo, data, progress, args.again)
        wrong = [row for row in rows if row.contender.script == "headrace" and not row.pixels.startswith("same")]
        if wrong:
            raise SystemExit(f"{wrong[0].contender.name}: {wrong[0].reason or wrong[0].pixels}: nothing to compare")
        measure(rows, data, args.rounds, args.seconds, progress)
    tables = [report.peer_table(rows) if args.peers or args.only else report.base_table(rows), report.ratios(rows)]
    show(console, tables[0], f"JPEG 500x375 to 224, batch {BATCH}, images/s, medians of {args.rounds} interleaved rounds")
    if len(tables[1]) > 1:
        show(console, tables[1])
    for row in rows:
        if row.prepared and row.contender.script == "headrace":
            console.print(f"pixels: {row.contender.name} and Pillow differ by at most {row.prepared.most:.0f} level")
    write_results(rows, tables, args)
    console.print(f"{(time.monotonic() - start) / 60:.1f} minutes; {RESULTS.relative_to(ROOT)}/bench.json, bench.md")


if __name__ == "__main__":
    main()
