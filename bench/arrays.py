# SPDX-License-Identifier: Apache-2.0
"""Files of arrays: headrace beside bare Blosc and what people read them with.

    ./dev bench --arrays [--rounds 5] [--seconds 3] [--only steps,values,volumes,patches]

Everything in a shuffled order, in batches, the same values (compared before). Rounds are interleaved; medians.
"1" is one processor, whatever threads there are. It fails where headrace would have to read through h5py. Results: `build/results/arrays.json`, `arrays.md`.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys

import environments
import harness
import headrace as hr
import numpy as np
import report
from contenders import CORES, Contender
from cube_set import Arrays, field, make_arrays
from peers.array_readers import read_natively
from photo_set import Data, make_data
from records import show
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

ROOT = environments.ROOT
RESULTS = ROOT / "build/results"
BATCH = {"steps": 8, "values": 64, "volumes": 2, "patches": 16}
# (who of headrace, over whom, at least): what is asked.
WANTED = [
    ("headrace Zarr, 1", "bare Blosc, 1", 0.9),
    ("headrace Zarr", "bare Blosc", 0.9),
    ("headrace Zarr, 1", "bare Blosc, files read, 1", 0.9),
    ("headrace Zarr", "bare Blosc, files read", 0.9),
    ("headrace Zarr, 1", "zarr-python, 1", 2.5),
    ("headrace Zarr", "zarr-python", 2.5),
    ("headrace Zarr, 1", "TensorStore, 1", 1.6),
    ("headrace Zarr", "TensorStore", 1.6),
    ("headrace Zarr, 1", "TensorStore one by one, 1", 1.6),
    ("headrace Zarr", "TensorStore one by one", 1.6),
    ("headrace HDF5 gzip", "h5py gzip", 6.0),
    ("headrace HDF5 values", "h5py values", 8.0),
    ("headrace npz", "NumPy npz", 2.0),
    ("headrace npz, deflated", "NumPy npz, deflated", 2.0),
    ("headrace patches", "xarray + DataLoader", 5.0),
]


def contenders(arrays: Arrays, what: set[str]) -> list[Contender]:
    out: list[Contender] = []

    def add(name: str, who: str, kind: str, source: pathlib.Path, threads: int, script: str = "array_readers") -> None:
        if kind in what:
            options = {"who": who, "what": kind, "source": str(source), "batch": BATCH[kind]}
            options["pinned"] = kind == "steps" and threads == 1 and CORES > 1 and source == arrays.zarr
            if source in (arrays.zarr, arrays.packed) and kind != "steps":
                options["memory"] = "128MiB"  # less than the data: what was opened does not stay from epoch to epoch
            out.append(Contender(name, script, (threads,), options=options))

    for threads, more in ((1, ", 1"), (CORES, "")) if CORES > 1 else ((1, ""),):
        add(f"bare Blosc{more}", "", "steps", arrays.zarr, threads, "blosc_loop")
        add(f"bare Blosc, files read{more}", "read", "steps", arrays.zarr, threads, "blosc_loop")
        add(f"headrace Zarr{more}", "headrace", "steps", arrays.zarr, threads)
        add(f"zarr-python{more}", "zarr-python", "steps", arrays.zarr, threads)
        add(f"TensorStore{more}", "TensorStore", "steps", arrays.zarr, threads)
        add(f"TensorStore one by one{more}", "TensorStore items", "steps", arrays.zarr, threads)
    add("headrace HDF5 gzip", "headrace", "steps", arrays.hdf5, CORES)
    add("h5py gzip", "h5py", "steps", arrays.hdf5, 1)
    add("headrace HDF5 values", "headrace", "values", arrays.images, 1)
    add("h5py values", "h5py items", "values", arrays.images, 1)
    for source, more in ((arrays.volumes, ""), (arrays.packed, ", deflated")):
        add(f"headrace npz{more}", "headrace", "volumes", source, 1)
        add(f"NumPy npz{more}", "NumPy", "volumes", source, 1)
    add("headrace patches", "headrace", "patches", arrays.zarr, CORES)
    add("xarray + DataLoader", "xarray + DataLoader", "patches", arrays.zarr, CORES)
    return out


def check(arrays: Arrays, data: Data) -> None:
    """The values, and that headrace reads them itself."""
    for source in (arrays.zarr, arrays.hdf5):
        cube = hr.open(source)
        for step in (0, 7, len(cube) - 1):
            np.testing.assert_array_equal(cube[step]["t2m"], field(step))
    images = hr.open(arrays.images)
    files = sorted(data.photos.glob("*/*.jpg"))
    for i in (0, 1, len(files) - 1):
        assert bytes(images[i]["images"]) == files[i].read_bytes(), f"image {i} differs"
    for folder in (arrays.volumes, arrays.packed):
        volumes = hr.open(folder)
        for i in (0, len(volumes) - 1):
            with np.load(folder / f"{i:03d}.npz") as want:
                np.testing.assert_array_equal(volumes[i]["x"], want["x"])
                np.testing.assert_array_equal(volumes[i]["y"], want["y"])
    read_natively()


def measure(todo: list[Contender], data: Data, rounds: int, seconds: float, progress: Progress) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {c.name: [] for c in todo}
    task = progress.add_task("", total=rounds * len(todo))
    for _ in range(rounds):
        for c in todo:
            progress.update(task, description=c.name)
            rates[c.name].append(harness.run(c, data, "rate", "arrays", c.workers[0], seconds)["rate"])
            progress.advance(task)
    return rates


def tables(rates: dict[str, list[float]], todo: list[Contender]) -> list[report.Table]:
    median = {name: statistics.median(values) for name, values in rates.items()}
    out: report.Table = [("arrays", "threads", "samples/s", "least", "most")]
    for c in todo:
        values = rates[c.name]
        out.append((c.name, str(c.workers[0]), *(f"{v:,.1f}" for v in (median[c.name], min(values), max(values)))))
    ratios: report.Table = [("", "over", "is", "wanted")]
    for ours, theirs, wanted in WANTED:
        if ours in median and theirs in median:
            ratios.append((ours, theirs, f"{median[ours] / median[theirs]:.2f}", f"{wanted:g}"))
    return [out, ratios]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--dir", type=pathlib.Path, default=ROOT / "data/bench")
    parser.add_argument("--only", default=",".join(BATCH), metavar="KINDS", help="some of steps, values, volumes, patches")
    args = parser.parse_args()
    console = Console() if sys.stdout.isatty() else Console(width=140)
    data = make_data(args.dir, args.images)
    arrays = make_arrays(args.dir, data)
    check(arrays, data)
    todo = contenders(arrays, set(args.only.split(",")))
    columns = (TextColumn("{task.description:<36}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        rates = measure(todo, data, args.rounds, args.seconds, progress)
    found = tables(rates, todo)
    for table in found:
        show(console, table)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "arrays.md").write_text(report.markdown(found))
    (RESULTS / "arrays.json").write_text(json.dumps(rates, indent=1) + "\n")


if __name__ == "__main__":
    main()
