# SPDX-License-Identifier: Apache-2.0
"""JPEG to tensor: headrace, the bare kernel loop, and PyTorch's DataLoader, on the same files.

    ./dev bench [--images 1000] [--rounds 5] [--seconds 4] [--markdown FILE]

Every contender gives batches of 64 pictures, shuffled, RandomResizedCrop(224) with antialiased
bilinear filter and horizontal flip, either u8 or f32 normalised (NCHW). Rounds are interleaved;
the table shows medians. Before anything is timed the pixels are compared: the same crops, by the
same draws, must agree within one level.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import headrace as hr
import numpy as np
from headrace.photos import make_photo

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH, SIZE = 64, 224


# -- data --------------------------------------------------------------------------------------------


def _write(job: tuple[int, str]) -> None:
    seed, path = job
    pathlib.Path(path).write_bytes(make_photo(seed))


def make_data(folder: pathlib.Path, images: int) -> tuple[pathlib.Path, pathlib.Path]:
    """Class folders and the same pictures as tar shards."""
    root, shards = folder / f"photos-{images}", folder / f"shards-{images}"
    jobs = [(i, str(root / f"class{i % 10}" / f"{i:06d}.jpg")) for i in range(images)]
    missing = [j for j in jobs if not os.path.exists(j[1])]
    if missing:
        for c in range(10):
            (root / f"class{c}").mkdir(parents=True, exist_ok=True)
        with multiprocessing.get_context("spawn").Pool() as pool:
            pool.map(_write, missing, chunksize=16)
    hr.pack(root, shards, shards=8, keep_order=True)
    return root, shards


# -- contenders: each gives batches for ever ---------------------------------------------------------


def headrace_batches(source: pathlib.Path, mode: str, threads: int) -> Iterator[Any]:
    image = hr.image("jpg").random_resized_crop(SIZE).random_flip()
    if mode == "f32":
        image = image.normalize(hr.IMAGENET)
    loader = hr.Loader(source, BATCH, {"image": image, "label": hr.scalar("cls")}, seed=1, threads=threads)
    for _, batches in loader.epochs(1 << 40):
        for batch in batches:
            yield batch["image"]


class FolderSet:
    """What people write: decode with Pillow or torchvision, then torchvision's transforms."""

    def __init__(self, root: str, mode: str, decoder: str) -> None:
        self.files = sorted(str(p) for p in pathlib.Path(root).glob("*/*.jpg"))
        self.mode, self.decoder, self.steps = mode, decoder, None

    def _make(self) -> Any:
        import torch
        from torchvision import transforms
        from torchvision.transforms import v2

        mean, std = hr.IMAGENET
        if self.decoder == "pil":
            steps = [transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip()]
            steps += (
                [transforms.ToTensor(), transforms.Normalize(mean, std)] if self.mode == "f32" else [transforms.PILToTensor()]
            )
            return transforms.Compose(steps)
        steps = [v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()]
        if self.mode == "f32":
            steps += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std)]
        return v2.Compose(steps)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> Any:
        if self.steps is None:
            import torch

            torch.set_num_threads(1)
            self.steps = self._make()
        if self.decoder == "pil":
            from PIL import Image

            with Image.open(self.files[i]) as picture:
                return self.steps(picture.convert("RGB"))
        from torchvision.io import ImageReadMode, decode_jpeg, read_file

        return self.steps(decode_jpeg(read_file(self.files[i]), mode=ImageReadMode.RGB))


def dataloader_batches(root: pathlib.Path, mode: str, decoder: str, workers: int) -> Iterator[Any]:
    from torch.utils.data import DataLoader

    loader = DataLoader(
        FolderSet(str(root), mode, decoder),
        BATCH,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    while True:
        yield from loader


def bare_loop(root: pathlib.Path, mode: str, threads: int, seconds: float) -> float:
    """Images per second of the kernels alone, from memory."""
    out = subprocess.run(
        [ROOT / "build/release/jpeg_loop", root, f"threads={threads}", f"seconds={seconds}", f"mode={mode}", "decode=crop"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = re.search(r"([\d.]+) images/s", out)
    if found is None:
        raise RuntimeError(f"jpeg_loop said: {out}")
    return float(found[1])


def rate(batches: Iterator[Any], seconds: float) -> float:
    """Images per second, after a second of warming up: memory is there, workers are up."""
    next(batches)
    warm = time.perf_counter() + 1
    while time.perf_counter() < warm:
        next(batches)
    start, images = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - start) < seconds:
        images += len(next(batches))
    return images / elapsed


# -- the same pixels ---------------------------------------------------------------------------------


def check_pixels(root: pathlib.Path) -> int:
    """The largest difference in levels between headrace and Pillow + torchvision, without random steps."""
    from PIL import Image
    from torchvision.transforms import functional as F

    worst = 0
    ds = hr.open(root, {"image": hr.image("jpg").resize(256).center_crop(SIZE)})
    files = sorted(pathlib.Path(root).glob("*/*.jpg"))
    for i in range(0, len(files), max(1, len(files) // 32)):
        with Image.open(files[i]) as picture:
            want = F.pil_to_tensor(F.center_crop(F.resize(picture.convert("RGB"), 256), SIZE)).numpy()
        worst = max(worst, int(np.abs(want.astype(int) - ds[i]["image"].astype(int)).max()))
    return worst


# -- the table ---------------------------------------------------------------------------------------


def contenders(root: pathlib.Path, shards: pathlib.Path, seconds: float) -> dict[str, Callable[[], float]]:
    """Name → a function that measures it once. DataLoader runs in a process of its own each time."""
    out: dict[str, Callable[[], float]] = {}
    cores = os.cpu_count() or 1
    for mode in ("f32", "u8"):
        for threads in sorted({1, cores}):
            out[f"{mode} bare loop, {threads} threads"] = lambda m=mode, t=threads: bare_loop(root, m, t, seconds)
            out[f"{mode} headrace tar, {threads} threads"] = lambda m=mode, t=threads: in_process(
                "headrace", shards, m, t, seconds
            )
        out[f"{mode} headrace folder, {cores} threads"] = lambda m=mode: in_process("headrace", root, m, cores, seconds)
        for decoder in ("pil", "torchvision"):
            out[f"{mode} DataLoader + {decoder}, {cores} workers"] = lambda m=mode, d=decoder: in_process(
                d, root, m, cores, seconds
            )
    return out


def in_process(what: str, source: pathlib.Path, mode: str, threads: int, seconds: float) -> float:
    command = [sys.executable, __file__, "--one", json.dumps([what, str(source), mode, threads, seconds])]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def one(what: str, source: str, mode: str, threads: int, seconds: float) -> float:
    if what == "headrace":
        return rate(headrace_batches(pathlib.Path(source), mode, threads), seconds)
    return rate(dataloader_batches(pathlib.Path(source), mode, what, threads), seconds)


def ratios(median: dict[str, float]) -> list[tuple[str, float]]:
    cores = os.cpu_count() or 1
    out = []
    for mode in ("f32", "u8"):
        for threads in sorted({1, cores}):
            out.append(
                (
                    f"{mode}: headrace tar / bare loop, {threads} threads",
                    median[f"{mode} headrace tar, {threads} threads"] / median[f"{mode} bare loop, {threads} threads"],
                )
            )
        ours = median[f"{mode} headrace tar, {cores} threads"]
        for decoder in ("pil", "torchvision"):
            out.append(
                (
                    f"{mode}: headrace tar / DataLoader + {decoder}",
                    ours / median[f"{mode} DataLoader + {decoder}, {cores} workers"],
                )
            )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--dir", type=pathlib.Path, default=ROOT / "data/bench")
    parser.add_argument("--markdown", type=pathlib.Path, help="also write the table here")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(one(*json.loads(args.one)), flush=True)
        os._exit(0)  # DataLoader's workers need no farewell
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    root, shards = make_data(args.dir, args.images)
    worst = check_pixels(root)
    if worst > 1:
        raise SystemExit(f"the pixels differ by {worst} levels: nothing to compare")
    todo = contenders(root, shards, args.seconds)
    results: dict[str, list[float]] = {name: [] for name in todo}
    with Progress() as progress:
        task = progress.add_task("measuring", total=args.rounds * len(todo))
        for _ in range(args.rounds):
            for name, measure in todo.items():
                progress.update(task, description=name)
                results[name].append(measure())
                progress.advance(task)
    median = {name: statistics.median(values) for name, values in results.items()}
    table = Table(
        "contender",
        "images/s",
        "least",
        "most",
        title=f"JPEG 500x375 to 224, batch {BATCH}, medians of {args.rounds} interleaved rounds",
    )
    lines = ["| contender | images/s | least | most |", "|---|---|---|---|"]
    for name, values in results.items():
        row = (name, f"{median[name]:,.0f}", f"{min(values):,.0f}", f"{max(values):,.0f}")
        table.add_row(*row)
        lines.append("| " + " | ".join(row) + " |")
    share = Table("ratio", "")
    lines += ["", "| ratio | |", "|---|---|"]
    for name, value in ratios(median):
        share.add_row(name, f"{value:.2f}")
        lines.append(f"| {name} | {value:.2f} |")
    console = Console()
    console.print(table, share)
    console.print(f"pixels: headrace and Pillow + torchvision differ by at most {worst} level")
    if args.markdown:
        args.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
