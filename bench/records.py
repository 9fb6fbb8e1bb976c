# SPDX-License-Identifier: Apache-2.0
"""Reading without calculation, format by format: headrace, a bare pread loop over the same extents, and the peers.

    ./dev bench --records [--images 1000] [--rounds 5] [--seconds 3] [--only arrow,lmdb]

The same JPEGs in every format that headrace writes, shuffled globally, batches of 64 values as bytes, one thread
(of headrace: one compute thread beside those that wait for reads). Rounds are interleaved; the tables show medians.
The second table decodes: the pictures of the image benchmark from every format, on all cores.
Results: `build/results/records.json`, `records.md`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys

import environments
import harness
import headrace as hr
import report
from contenders import CORES, Contender
from photo_set import Data, make_data
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

ROOT = environments.ROOT
RESULTS = ROOT / "build/results"
BESIDE_TAR = ("arrow", "tfrecord", "recordio", "mds", "lmdb", "parquet", "npz")
NO_EXTENTS = ("parquet",)  # a row group opens as a whole
# What issue and limits ask: (this, over that, at least).
WANTED = {"WebDataset": 10.0, "MosaicML Streaming": 9.0, "LitData": 2.0, "pyarrow take, Parquet": 10.0}


@dataclasses.dataclass(frozen=True)
class Packed:
    format: str
    source: str
    field: str  # under which the pictures are


def pack(data: Data, formats: tuple[str, ...]) -> list[Packed]:
    out = [Packed("tar", str(data.shards), "jpg")]
    for name in formats:
        folder = data.cache(f"headrace-{name}")
        hr.pack(data.shards, folder, to=name, shards=2)
        fields = [name for name, _ in hr.open(folder).schema]
        out.append(Packed(name, str(folder), "jpg" if "jpg" in fields else "data"))
    return out


def contenders(packed: list[Packed]) -> list[Contender]:
    out = []
    for p in packed:
        options = {"source": p.source, "field": p.field}
        out.append(Contender(f"headrace {p.format}", "headrace_records", (1,), options=options))
        if p.format not in NO_EXTENTS:
            out.append(Contender(f"pread {p.format}", "pread_loop", (1,), options=options))
    by_name = {p.format: p for p in packed}
    for name, access, suffix in (
        ("take, Parquet", "take", ".parquet"),
        ("mapped rows, Arrow", "rows", ".arrow"),
    ):
        p = by_name.get(suffix[1:])
        if p is not None:
            options = {"source": p.source, "field": p.field, "access": access, "suffix": suffix}
            out.append(Contender(f"pyarrow {name}", "pyarrow_rows", (1,), options=options))
    out += [
        Contender("WebDataset", "webdataset", (0,), "workers"),
        Contender("MosaicML Streaming", "mosaic", (0,), "workers"),
        Contender("LitData", "litdata", (0,), "workers"),
    ]
    return out


def measure(
    todo: list[Contender], data: Data, mode: str, rounds: int, seconds: float, progress: Progress
) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {c.name: [] for c in todo}
    task = progress.add_task(mode, total=rounds * len(todo))
    failed: dict[str, str] = {}
    for _ in range(rounds):
        for c in todo:
            progress.update(task, description=f"{mode} {c.name}")
            if c.name not in failed:
                try:
                    rates[c.name].append(harness.run(c, data, "rate", mode, c.workers[0], seconds)["rate"])
                except harness.Failed as why:
                    failed[c.name] = str(why)
                    progress.console.print(f"{c.name} does not run: {why}")
            progress.advance(task)
    return {name: values for name, values in rates.items() if values}


def prepare(todo: list[Contender], data: Data, progress: Progress) -> list[Contender]:
    able = []
    for c in todo:
        try:
            environments.make(c.script)
            if c.script in ("webdataset", "mosaic", "litdata"):
                harness.run(c, data, "prepare", "bytes", 1, 600)
            able.append(c)
        except (environments.NotInstalled, harness.Failed) as why:
            progress.console.print(f"{c.name} is left out: {why}")
    return able


def bytes_table(rates: dict[str, list[float]], packed: list[Packed]) -> report.Table:
    median = {name: statistics.median(values) for name, values in rates.items()}
    out: report.Table = [("stored bytes, 1 thread", "samples/s", "bare pread", "ratio")]
    for p in packed:
        ours, bare = median.get(f"headrace {p.format}", 0), median.get(f"pread {p.format}", 0)
        ratio = f"{ours / bare:.2f}" if bare else ""
        out.append((f"headrace {p.format}", f"{ours:,.0f}", f"{bare:,.0f}" if bare else "", ratio))
    against = {
        "pyarrow take, Parquet": "headrace parquet",
        "pyarrow mapped rows, Arrow": "headrace arrow",
    }
    for name, rate in median.items():
        if name.startswith(("headrace ", "pread ")):
            continue
        mine = against.get(name, "headrace tar")
        wanted = f", {WANTED[name]:.0f} wanted" if name in WANTED else ""
        out.append((name, f"{rate:,.0f}", "", f"{mine} is {median.get(mine, 0) / rate:.1f}x{wanted}"))
    return out


def pictures_table(rates: dict[str, list[float]]) -> report.Table:
    median = {name: statistics.median(values) for name, values in rates.items()}
    tar = median.get("headrace tar", 0)
    out: report.Table = [(f"pictures, f32, {CORES} threads", "images/s", "of tar")]
    out += [(name, f"{rate:,.0f}", f"{rate / tar:.2f}" if tar else "") for name, rate in median.items()]
    return out


def show(console: Console, table: report.Table) -> None:
    out = Table()
    for i, heading in enumerate(table[0]):
        out.add_column(heading, justify="left" if i == 0 else "right")
    for cells in table[1:]:
        out.add_row(*cells)
    console.print(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--dir", type=pathlib.Path, default=ROOT / "data/bench")
    parser.add_argument("--only", default="", metavar="FORMATS", help="these formats beside tar, separated by commas")
    parser.add_argument("--no-peers", action="store_true", help="headrace and the bare loop alone")
    args = parser.parse_args()
    writable = {f["name"] for f in hr.formats() if f["write"]}
    wanted = tuple(name for name in args.only.split(",") if name) or tuple(f for f in BESIDE_TAR if f in writable)
    console = Console() if sys.stdout.isatty() else Console(width=140)
    data = make_data(args.dir, args.images)
    packed = pack(data, wanted)
    todo = contenders(packed)
    if args.no_peers:
        todo = [c for c in todo if c.name.startswith(("headrace ", "pread "))]
    decoding = [dataclasses.replace(c, workers=(CORES,)) for c in todo if c.script == "headrace_records"]
    columns = (TextColumn("{task.description:<36}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        todo = prepare(todo, data, progress)
        stored = measure(todo, data, "bytes", args.rounds, args.seconds, progress)
        decoded = measure(decoding, data, "f32", args.rounds, args.seconds, progress)
    tables = [bytes_table(stored, packed), pictures_table(decoded)]
    for table in tables:
        show(console, table)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "records.md").write_text(report.markdown(tables))
    (RESULTS / "records.json").write_text(json.dumps({"bytes": stored, "f32": decoded}, indent=1) + "\n")


if __name__ == "__main__":
    main()
