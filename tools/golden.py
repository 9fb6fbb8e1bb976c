# SPDX-License-Identifier: Apache-2.0
"""Are the golden files still what their writers write, and do those read what headrace writes?

    ./dev golden                     every peer, each in an environment of its own (build/peers/NAME; gigabytes in all)
    ./dev golden --only mds,arrow    some of them
    ./dev golden --list              which there are

For each: the peer writes its golden files anew and they are compared with those in tests/golden (byte for byte; where a writer
is not deterministic, the values that headrace reads from both). Then headrace packs the golden data sets and the peer reads
them. Nothing in tests/golden is changed: `--keep FOLDER` leaves what was written there.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

import headrace as hr
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import environments  # noqa: E402 - from bench/

GOLDEN = ROOT / "tests/golden"
OURS = ("README.md", "requirements.txt")  # beside the golden files, by hand
SECONDS = 600


@dataclasses.dataclass(frozen=True)
class Golden:
    format: str
    script: str  # tests/make_golden_SCRIPT.py
    environment: str = ""  # build/peers/NAME; ours where it is empty
    requirements: pathlib.Path | None = None  # of the environment, where they are not bench/peers/NAME.txt
    writes: bool = True  # whether the peer has a writer
    sets: tuple[str, ...] = ()  # what headrace packs for the peer to read, in the format's folder
    source: str = ""  # another format's folder, where that has the data
    fields: tuple[str, ...] | None = None
    drawn: tuple[str, ...] = ()  # sets in which the writer draws at random: not compared

    def command(self, python: pathlib.Path, *arguments: str) -> list[str]:
        return [str(python), str(ROOT / f"tests/make_golden_{self.script}.py"), *arguments]

    def pinned(self) -> str:
        wanted = self.requirements or environments.requirements(self.environment or "none")
        lines = wanted.read_text().splitlines() if wanted.exists() else ["tools/requirements-test.txt"]
        return next(line for line in lines if line and not line.startswith("#"))


TYPES = ("uint8", "int8", "int16", "int32", "int64", "uint16")
ALL = [
    Golden("arrow", "arrow", "datasets", GOLDEN / "arrow/requirements.txt", sets=("datasets.arrow",)),
    Golden("beton", "beton", "ffcv", drawn=("mixed",)),  # which pictures become JPEGs
    Golden("hub", "hub", "datasets", GOLDEN / "arrow/requirements.txt"),
    Golden("litdata", "litdata", "litdata-zstd", GOLDEN / "litdata/requirements.txt"),
    Golden("mds", "mds", "mosaic", sets=("scalars", "values", "zstd")),
    Golden(
        "megatron",
        "megatron",
        "megatron",
        GOLDEN / "megatron/requirements.txt",
        sets=(*(f"documents-{t}.idx" for t in TYPES), "modes.idx", "plain.idx"),
    ),
    Golden(
        "recordio",
        "recordio",
        "dali",
        writes=False,
        sets=("scalars.tfrecord",),
        source="tfrecord",
        fields=("image/encoded", "label"),
    ),
    Golden("tar", "tars", sets=("webdataset.tar", "plain-ustar.tar", "plain-gnu.tar", "plain-pax.tar")),
    Golden("tfrecord", "tfrecords", "tfdata", sets=("scalars.tfrecord", "lists.tfrecord")),
]


class Failed(RuntimeError):
    """What is not as it should be."""


# -- comparing -----------------------------------------------------------------------------------


def files_in(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    return {
        str(p.relative_to(folder)): p
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name not in OURS and p.suffix != ".hridx"
    }


def content(path: pathlib.Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def without(path: pathlib.Path, names: tuple[str, ...]) -> Any:
    """JSON without these keys."""
    return json.loads(path.read_bytes(), object_hook=lambda table: {k: v for k, v in table.items() if k not in names})


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    return bool(a == b)


def opened(path: pathlib.Path, scratch: pathlib.Path) -> hr.Dataset:
    """Opens a copy; a .beton is committed in gzip, which headrace does not open."""
    copy = scratch / path.name.replace(".beton.gz", ".beton")
    if path.is_dir():
        shutil.copytree(path, copy)
    else:
        for beside in path.parent.glob(f"{path.stem}.*"):  # an .idx and its .bin
            (scratch / beside.name).write_bytes(beside.read_bytes())
        copy.write_bytes(content(path) if path.name.endswith(".beton.gz") else path.read_bytes())
    return hr.open(copy)


def same_values(new: pathlib.Path, committed: pathlib.Path) -> bool:
    with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
        left, right = opened(new, pathlib.Path(a)), opened(committed, pathlib.Path(b))
        if len(left) != len(right) or left.schema != right.schema:
            return False
        return all(
            left.key(i) == right.key(i)
            and left[i].keys() == right[i].keys()
            and all(equal(left[i][k], right[i][k]) for k in left[i])
            for i in range(len(left))
        )


def compare(new: pathlib.Path, committed: pathlib.Path, drawn: tuple[str, ...] = ()) -> str:
    """How many files are equal, and how many in their values only; raises `Failed`."""
    a, b = files_in(new), files_in(committed)
    if a.keys() != b.keys():
        raise Failed(f"other files than committed: {', '.join(sorted(a.keys() ^ b.keys())[:5])}")
    compared = [name for name in a if re.split(r"[./]", name)[0] not in drawn]
    different = [name for name in compared if content(a[name]) != content(b[name])]
    keys = (*drawn, "updated_at")  # the moment at which LitData wrote
    for name in different:
        alike = name.endswith(".json") and without(a[name], keys) == without(b[name], keys)
        if not alike and name != "expected.json":
            place = name.split("/")[0].replace(".bin", ".idx")  # a folder is a data set as a whole, and so is a pair
            try:
                alike = same_values(new / place, committed / place)
            except hr.Error as error:
                raise Failed(f"{name} has other bytes, and headrace does not read it: {error}") from None
        if not alike:
            raise Failed(f"{name} has other values than committed")
    values = f", {len(different)} in their values" if different else ""
    rest = f", {len(a) - len(compared)} not compared" if drawn else ""
    return f"{len(compared) - len(different)} files equal{values}{rest}"


# -- running -------------------------------------------------------------------------------------


def call(golden: Golden, python: pathlib.Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            golden.command(python, *arguments), capture_output=True, text=True, timeout=SECONDS, cwd=tempfile.gettempdir()
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{arguments[0]} took more than {SECONDS} s") from None
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()] or ["no message"]
        raise Failed(f"{arguments[0]}: {lines[-1]}")
    return done.stdout


def pack(golden: Golden, new: pathlib.Path, folder: pathlib.Path) -> None:
    """Of copies: opening leaves indexes beside the data."""
    source = GOLDEN / (golden.source or golden.format)
    if source.exists():
        source = pathlib.Path(shutil.copytree(source, folder.parent / "source"))
    else:
        source = new
    for name in golden.sets:
        hr.pack(source / name, folder / name.split(".")[0], to=golden.format, shards=3, keep_order=True, fields=golden.fields)


@dataclasses.dataclass
class Row:
    format: str
    peer: str
    verdict: str = "ok"
    writes: str = "–"
    reads: str = "–"
    reason: str = ""


def examine(golden: Golden, folder: pathlib.Path) -> Row:
    row = Row(golden.format, golden.pinned())

    def tell(what: str) -> None:
        print(f"{golden.format}: {what} …", flush=True)

    try:
        tell(f"environment with {row.peer}")
        python = environments.make(golden.environment or "none", golden.requirements)
        row.peer = call(golden, python, "peer").strip().splitlines()[-1]
        new, packed = folder / "new", folder / "packed"
        if golden.writes:
            tell(f"{row.peer} writes")
            call(golden, python, "write", str(new))
            row.writes = f"{len(files_in(new))} files"
            committed = GOLDEN / golden.format
            row.writes = compare(new, committed, golden.drawn) if committed.exists() else f"{row.writes}, none committed"
        if golden.sets:
            tell("headrace packs, the peer reads")
            pack(golden, new, packed)
            agree = [line for line in call(golden, python, "check", str(packed)).splitlines() if line.endswith(" agree")]
            row.reads = f"{len(agree)} readings agree"
    except environments.NotInstalled as error:
        row.verdict, row.reason = "not installable", str(error)
    except (Failed, hr.Error) as error:
        row.verdict, row.reason = "failed", str(error)
    return row


def table(rows: list[Row]) -> str:
    head = Row("format", "peer", "", "written anew", "reads headrace's")
    lines = [[r.format, r.verdict, r.writes, r.reads, r.peer] for r in (head, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(4)]
    out = ["  ".join([*(cell.ljust(width) for cell, width in zip(line, widths)), line[4]]) for line in lines]
    return "\n".join([*out, *(f"{r.format}: {r.reason}" for r in rows if r.reason)])


def chosen(only: str | None) -> list[Golden]:
    known = {g.format: g for g in ALL}
    names = only.split(",") if only else list(known)
    for name in names:
        if name not in known:
            raise SystemExit(f"no golden files of {name}; there are {', '.join(known)}")
    return [known[name] for name in names]


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev golden", description="Golden files: written anew, compared, and read back.")
    parser.add_argument("--list", action="store_true", help="which peers there are")
    parser.add_argument("--only", metavar="NAMES", help="formats, with commas between")
    parser.add_argument("--keep", metavar="FOLDER", type=pathlib.Path, help="leave what was written here")
    options = parser.parse_args()
    if options.list:
        for g in ALL:
            what = " and ".join(["writes"] * g.writes + ["reads headrace's"] * bool(g.sets))
            print(f"{g.format:9} {g.pinned():28} {what}")
        return
    rows = []
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        for golden in chosen(options.only):
            folder = (options.keep or pathlib.Path(temporary)) / golden.format
            folder.mkdir(parents=True, exist_ok=True)
            rows.append(examine(golden, folder.resolve()))
    print(f"\n{table(rows)}\n{time.monotonic() - begin:.0f} s")
    if any(row.verdict == "failed" for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
