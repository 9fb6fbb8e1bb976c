# SPDX-License-Identifier: Apache-2.0
"""The second epoch from ``cache=`` beside plain local reading, and ``hr.stage`` beside ``cp``.

    python bench/cache.py [--samples 2000] [--rounds 5] [--dir FOLDER]

All in one run, in turns, medians. Samples of 100 KB in tars, as bytes, batches of 64, shuffled; everything lies in the page cache.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

import headrace as hr

SAMPLE, SHARD = 100_000, 250


def make(folder: Path, samples: int) -> str:
    folder.mkdir(parents=True)
    for shard in range(-(-samples // SHARD)):
        with tarfile.open(folder / f"{shard:04}.tar", "w") as tar:
            for n in range(shard * SHARD, min(samples, (shard + 1) * SHARD)):
                member = tarfile.TarInfo(f"{n:06}.bin")
                member.size = SAMPLE
                tar.addfile(member, io.BytesIO(os.urandom(SAMPLE)))
    return str(folder)


def epoch(loader: hr.Loader, n: int) -> float:
    """Samples a second."""
    start, count = time.perf_counter(), 0
    for batch in loader.epoch(n):
        count += len(batch.indices)
    return count / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default=None, help="where the data are made; a temporary folder unless given")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as name:
        root = Path(name)
        data = make(root / "data", args.samples)
        options = {"batch_size": 64, "output": "numpy", "shuffle": "global"}
        plain = hr.Loader(data, **options)
        cached = hr.Loader(data, **options, cache=hr.cache(root / "cache", keep_free=0))
        first = epoch(cached, 0)
        epoch(plain, 0)
        rates: dict[str, list[float]] = {"plain": [], "cached": []}
        for n in range(1, args.rounds + 1):
            rates["plain"].append(epoch(plain, n))
            rates["cached"].append(epoch(cached, n))
        misses = cached.stats()["cache"]["misses"]
        fresh = hr.Loader(data, **options, cache=hr.cache(root / "cache", keep_free=0))
        second_job = epoch(fresh, 0)
        size = sum(p.stat().st_size for p in Path(data).glob("*.tar"))
        copies: dict[str, list[float]] = {"cp": [], "stage": []}
        for _ in range(args.rounds):
            shutil.rmtree(root / "cp", ignore_errors=True)
            start = time.perf_counter()
            subprocess.run(["cp", "-r", data, str(root / "cp")], check=True)
            copies["cp"].append(size / (time.perf_counter() - start))
            start = time.perf_counter()
            hr.stage(data, root / "stage")
            copies["stage"].append(size / (time.perf_counter() - start))
            hr.remove_stage(root / "stage")
    middle = {k: statistics.median(v) for k, v in (rates | copies).items()}
    found = middle | {"first_epoch": first, "second_job": second_job, "misses": misses}
    if args.json:
        print(json.dumps(found))
        return
    print(f"samples/s: plain local {middle['plain']:,.0f}; from the cache {middle['cached']:,.0f}", end=" ")
    print(f"({middle['cached'] / middle['plain']:.0%}); first epoch {first:,.0f}; a second job's first {second_job:,.0f}")
    print(f"MB/s: cp {middle['cp'] / 1e6:,.0f}; hr.stage {middle['stage'] / 1e6:,.0f} ({middle['stage'] / middle['cp']:.0%})")


if __name__ == "__main__":
    main()
