# SPDX-License-Identifier: Apache-2.0
"""Loads for a long time: every epoch complete, memory flat.

./dev soak [MINUTES]
"""

from __future__ import annotations

import pathlib
import sys
import time

import headrace as hr
import numpy as np
from photo_set import ROOT, make_data


def resident_mb() -> float:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    shards = make_data(ROOT / "data/bench", 1000).shards
    fields = {"image": hr.image("jpg").random_resized_crop(224).random_flip().normalize(hr.IMAGENET), "label": hr.scalar("cls")}
    loader = hr.Loader(shards, 64, fields, seed=1, tail="keep", output="numpy", memory_budget="256MiB")
    end, first, epochs = time.time() + 60 * minutes, 0.0, 0
    for epoch, batches in loader.epochs(1 << 40):
        seen = np.concatenate([b.indices for b in batches])
        if not np.array_equal(np.sort(seen), np.arange(len(seen))) or len(seen) != 1000:
            raise SystemExit(f"epoch {epoch}: samples are missing or repeated")
        epochs += 1
        memory = resident_mb()
        first = memory if epochs == 5 else first
        if epochs % 20 == 0:
            print(
                f"epoch {epoch}: {memory:.0f} MB resident, engine peak {loader.stats()['memory_peak'] / 2**20:.0f} MiB",
                flush=True,
            )
        if time.time() > end and epochs >= 5:
            break
    last = resident_mb()
    print(f"{epochs} epochs, every sample once in each; resident memory {first:.0f} MB after epoch 5, {last:.0f} MB at the end")
    if last > 1.05 * first + 8:
        raise SystemExit("memory grew")


if __name__ == "__main__":
    main()
