# SPDX-License-Identifier: Apache-2.0
"""Python functions in processes, beside PyTorch's DataLoader doing the same work in as many workers.

    python bench/processes.py [--processes 2] [--seconds 6] [--rounds 3] [--images 2000] [--only NAME …]

Each contender runs in a fresh process, in turns, and says when its first batch came (from the call that makes the loader;
modules are imported before), how many samples a second came after it, and how much processor time each took, which other work
on the machine changes little. Batches are 64 x 3 x 224 x 224 float32: 38.5 MB.
Medians over the rounds; everything lies in the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

BATCH, SHAPE = 64, (3, 224, 224)
# name: (what it is, work)
CONTENDERS = {
    "function": ("headrace, .map(fn, processes=n)", "a 2 ms function"),
    "function-dataloader": ("DataLoader, n workers", "a 2 ms function"),
    "function-dataloader-spawn": ("DataLoader, n workers spawned", "a 2 ms function"),
    "albumentations": ("headrace: decode native", "albumentations"),
    "albumentations-crop": ("headrace: decode, crop, flip native", "albumentations"),
    "albumentations-dataloader": ("DataLoader doing all (cv2)", "albumentations"),
    "torchvision": ("headrace: decode native", "torchvision v2"),
    "torchvision-crop": ("headrace: decode, crop, flip native", "torchvision v2"),
    "torchvision-dataloader": ("DataLoader doing all (PIL)", "torchvision v2"),
}


def memory_mb(pid: int) -> float:
    """What a process takes beside shared memory: its share of files and its own pages."""
    rows = dict(line.split(":") for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return sum(int(rows[k].split()[0]) for k in ("Pss_Anon", "Pss_File")) / 1024


def cpu_s() -> float:
    """Of this process and its children that live."""
    out, ticks = time.process_time(), os.sysconf("SC_CLK_TCK")
    for task in pathlib.Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            rows = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            out += (int(rows[11]) + int(rows[12])) / ticks
    return out


def headrace_loader(name: str, data: dict[str, Any], n: int) -> Any:
    import headrace as hr
    import process_work as work

    options: dict[str, Any] = {"batch_size": BATCH, "seed": 1, "shuffle": "global"}
    declared = {"shape": SHAPE, "dtype": "f32", "processes": n}
    if name == "function":
        return hr.Loader(data["arrays"], fields={"x": hr.array("npy").map(work.turned, **declared)}, **options)
    kind, _, crop = name.partition("-")
    image = hr.image("jpg")
    if crop:
        image = image.random_resized_crop(SHAPE[1]).random_flip()
    function = (work.Albumentations if kind == "albumentations" else work.TorchvisionV2)(not crop)
    if kind == "albumentations":
        image = image.layout("NHWC")
    return hr.Loader(data["photos"], fields={"x": image.map(function, **declared)}, **options)


def other_loader(name: str, data: dict[str, Any], n: int) -> Any:
    import process_work as work
    import torch.utils.data

    kind = name.partition("-")[0]
    if kind == "function":
        files = work.Files(sorted(str(p) for p in pathlib.Path(data["arrays"]).rglob("*.npy")), "npy", work.turned)
    else:
        made = (work.Albumentations if kind == "albumentations" else work.TorchvisionV2)(True)
        paths = sorted(str(p) for p in pathlib.Path(data["photos"]).rglob("*.jpg"))
        files = work.Files(paths, "cv2" if kind == "albumentations" else "pil", made)
    context = "spawn" if name.endswith("spawn") else "fork"
    return torch.utils.data.DataLoader(
        files, BATCH, shuffle=True, num_workers=n, drop_last=True, multiprocessing_context=context, persistent_workers=True
    )


def endless(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def one(name: str, data: dict[str, Any], n: int, seconds: float) -> dict[str, float]:
    """One contender, in this process."""
    import torch  # noqa: F401  # both sides deliver its tensors: not part of the first batch

    is_ours = "dataloader" not in name
    if is_ours:
        import headrace  # noqa: F401
    start = time.perf_counter()
    loader = (headrace_loader if is_ours else other_loader)(name, data, n)
    batches = endless(loader)
    first = next(batches)
    out = {"first_s": time.perf_counter() - start, "load": os.getloadavg()[0]}
    assert tuple((first["x"] if is_ours else first).shape) == (BATCH, *SHAPE)
    start, used, count = time.perf_counter(), cpu_s(), 0
    while time.perf_counter() - start < seconds:
        next(batches)
        count += BATCH
    out["rate"] = count / (time.perf_counter() - start)
    out["cpu_ms"] = (cpu_s() - used) / count * 1e3
    if is_ours:
        out["process_mb"] = max(memory_mb(p) for p in loader._running.pool.core.pids())
        loader.close()
    return out


def large_batch(data: dict[str, Any]) -> dict[str, float]:
    """What it costs to send a batch of 38.5 MB through a process and back, beside copying it once."""
    import headrace as hr
    import process_work as work

    fields = {"x": hr.image("jpg").resize(SHAPE[1:]).cast("f32")}
    with hr.Loader(data["photos"], BATCH, fields, output="numpy") as loader:
        mapped = loader.map(work.nothing, processes=1)
        (calls,) = mapped._batch_calls
        taken = mapped._next
        next(iter(mapped))
        calls.stop()
        mapped._inner.begin(1, None)
        times, copies, same = [], [], True
        while (got := taken()) is not None:
            batch, raw = got
            start = time.perf_counter()
            back = calls._called(batch, raw)
            times.append(time.perf_counter() - start)
            same = same and back["x"].ctypes.data == batch["x"].ctypes.data
            start = time.perf_counter()
            np.array(back["x"])
            copies.append(time.perf_counter() - start)
    return {"bytes": float(back["x"].nbytes), "call_ms": statistics.median(times) * 1e3,
            "copy_ms": statistics.median(copies) * 1e3, "same_memory": float(same)}  # fmt: skip


def make_data(folder: pathlib.Path, images: int) -> dict[str, Any]:
    from photo_set import make_data as make_photos

    photos = make_photos(folder, images)
    arrays = folder / f"arrays-{images}"
    if not (folder / f"arrays-{images}.done").exists():
        from PIL import Image

        arrays.mkdir(parents=True, exist_ok=True)
        for path in sorted(photos.photos.rglob("*.jpg")):
            with Image.open(path) as picture:
                np.save(arrays / f"{path.stem}.npy", np.asarray(picture.convert("RGB").resize((192, 192))))
        (folder / f"arrays-{images}.done").touch()
    return {"photos": str(photos.photos), "arrays": str(arrays)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--dir", default=str(pathlib.Path(__file__).resolve().parent.parent / "data" / "bench"))
    parser.add_argument("--only", nargs="*", default=list(CONTENDERS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    data = make_data(pathlib.Path(args.dir), args.images)
    if args.one:
        got = large_batch(data) if args.one == "batch" else one(args.one, data, args.processes, args.seconds)
        print(json.dumps(got), flush=True)
        os._exit(0)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in args.only}
    command = [sys.executable, __file__, "--processes", str(args.processes), "--seconds", str(args.seconds),
               "--images", str(args.images), "--dir", args.dir, "--one"]  # fmt: skip
    for _ in range(args.rounds):
        for name in args.only:
            out = subprocess.run([*command, name], capture_output=True, text=True)
            if out.returncode != 0:
                raise SystemExit(f"{name}: {out.stderr[-2000:]}")
            found[name].append(json.loads(out.stdout.splitlines()[-1]))
    batch = json.loads(subprocess.run([*command, "batch"], capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    middle = {name: {k: statistics.median(r[k] for r in runs) for k in runs[0]} for name, runs in found.items()}
    if args.json:
        print(json.dumps({"results": middle, "batch": batch}))
        return
    report(middle, batch, args)


def report(middle: dict[str, dict[str, float]], batch: dict[str, float], args: argparse.Namespace) -> None:
    loads = [r["load"] for r in middle.values()]
    print(
        f"{args.processes} processes each, {args.rounds} rounds of {args.seconds:g} s, load of the machine {min(loads):.1f} to {max(loads):.1f}"
    )
    for work in dict.fromkeys(CONTENDERS[n][1] for n in middle):
        print(f"\n{work}")
        for name, got in middle.items():
            if CONTENDERS[name][1] != work:
                continue
            rival = middle.get(name.partition("-")[0] + "-dataloader")
            times = f", {got['rate'] / rival['rate']:.2f}x DataLoader" if rival and "dataloader" not in name else ""
            memory = f", {got['process_mb']:.0f} MB a process" if "process_mb" in got else ""
            spawned = middle.get(name + "-dataloader-spawn")
            sooner = f" ({spawned['first_s'] / got['first_s']:.1f}x sooner than with spawned workers)" if spawned else ""
            print(
                f"  {CONTENDERS[name][0]:38} {got['rate']:7.0f} samples/s{times}, {got['cpu_ms']:.2f} ms of CPU a sample, first batch after {got['first_s']:.2f} s{sooner}{memory}"
            )
    where = "in the same memory" if batch["same_memory"] else "COPIED"
    print(
        f"\na batch of {batch['bytes'] / 1e6:.1f} MB through a process and back, {where}: {batch['call_ms']:.2f} ms; a copy of it takes {batch['copy_ms']:.1f} ms"
    )


if __name__ == "__main__":
    main()
