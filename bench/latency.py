# SPDX-License-Identifier: Apache-2.0
"""Start-up, hand-over and memory: the promises beside throughput.

    .venv/bin/python bench/latency.py        (./dev bench makes the data)

Medians of several fresh processes; the index is there, the files are in the page cache.
"""

from __future__ import annotations

import json
import pathlib
import statistics
import subprocess
import sys
import time

from photo_set import ROOT, make_data

ROUNDS = 9

FIRST_BATCH = """
import sys, time
start = float(sys.argv[2])                       # when the parent started this process
import headrace as hr
fields = {"image": hr.image("jpg").random_resized_crop(224).random_flip().normalize(hr.IMAGENET), "label": hr.scalar("cls")}
made = time.time()
loader = hr.Loader(sys.argv[1], 64, fields, seed=1, output="numpy")
batch = next(iter(loader))
print((time.time() - start) * 1000, (time.time() - made) * 1000)
"""

MEMORY = """
import sys, pathlib
import numpy
import headrace as hr
def resident():
    return int(next(l for l in pathlib.Path("/proc/self/status").read_text().splitlines() if l.startswith("VmRSS:")).split()[1]) / 1024
before = resident()
fields = {"image": hr.image("jpg").random_resized_crop(224).random_flip().normalize(hr.IMAGENET), "label": hr.scalar("cls")}
loader = hr.Loader(sys.argv[1], 64, fields, seed=1, output="numpy")
seen, most = [], 0
for epoch, batches in loader.epochs(20):
    for batch in batches:
        pass
    seen.append(resident())
stats = loader.stats()
ahead = stats["batches_ahead"] + 1                # and the one in the consumer's hands
batch_mb = batch["image"].nbytes / 2**20
print(before, seen[1], seen[-1], ahead * batch_mb, stats["memory_peak"] / 2**20)
"""

HAND_OVER = """
import sys, time, statistics
import numpy as np
import headrace as hr
kind = sys.argv[2]
bare = lambda memory: np.ndarray((64, 3, 224, 224), np.float32, memory)
if kind == "torch":
    import torch
    bare = lambda memory: torch.from_numpy(np.ndarray((64, 3, 224, 224), np.float32, memory))
def busy(seconds):                                # a training step that needs no memory
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
def took(call):
    start = time.perf_counter()
    kept = call()
    return (time.perf_counter() - start) * 1e6, kept
fields = {"image": hr.image("jpg").random_resized_crop(224).random_flip().normalize(hr.IMAGENET), "label": hr.scalar("cls")}
loader = hr.Loader(sys.argv[1], 64, fields, seed=1, output=kind)
first, second, cold = [], [], []
memory = bytearray(64 * 3 * 224 * 224 * 4)
kept = None
for epoch, batches in loader.epochs(4):
    for _ in range(len(batches) // 3):
        busy(0.3)                                 # two batches are ready long before
        first.append(took(lambda: next(batches))[0])
        second.append(took(lambda: next(batches))[0])
        next(batches)
        busy(0.3)
        cold.append(took(lambda: bare(memory))[0])
    for _ in batches:
        pass
print(statistics.median(first), statistics.median(second), statistics.median(cold))
"""


def run(code: str, *args: str) -> list[float]:
    out = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True).stdout
    return [float(x) for x in out.split()]


def main() -> None:
    source = str(make_data(ROOT / "data/bench", 1000).shards)
    whole, first = [], []
    for _ in range(ROUNDS):
        a, b = run(FIRST_BATCH, source, str(time.time()))
        whole.append(a)
        first.append(b)
    hand_over = {name: run(HAND_OVER, source, kind) for name, kind in (("NumPy", "numpy"), ("torch", "torch"))}
    before, early, late, batches, peak = run(MEMORY, source)
    result = {
        "import and first batch of 64 in a fresh process, ms": statistics.median(whole),
        "construction to first batch of 64, ms": statistics.median(first),
        "resident memory before the loader, MB": before,
        "after 2 epochs, MB": early,
        "after 20 epochs, MB": late,
        "of which batches (ahead, and in hand), MB": batches,
        "the loader beside its batches, MB": late - before - batches,
        "the engine's own peak account, MiB": peak,
    }
    for name, (first_us, second_us, cold_us) in hand_over.items():
        result[f"hand-over of a ready batch of 38.5 MB, {name}, µs"] = second_us
        result[f"the same after 0.3 s of other work (cold caches), {name}, µs"] = first_us
        result[f"a bare array over memory that is there, as cold, {name}, µs"] = cold_us
    for name, value in result.items():
        print(f"{name:66} {value:10.1f}")
    (ROOT / "build/results").mkdir(parents=True, exist_ok=True)
    pathlib.Path(ROOT / "build/results/latency.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
