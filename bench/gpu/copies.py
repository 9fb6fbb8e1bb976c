# SPDX-License-Identifier: Apache-2.0
"""How fast bytes reach the GPU: a pinned copy alone, and raw arrays through a Loader: python bench/gpu/copies.py."""

from __future__ import annotations

import time

import common
import headrace as hr
import numpy as np
import torch

ROW = 1 << 18  # floats of a sample: 1 MiB


def array_file(rows: int) -> str:
    path = common.root() / f"rows-{rows}.npy"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        np.save(path, np.random.default_rng(0).random((rows, ROW), dtype=np.float32))
    return str(path)


def alone(seconds: float) -> float:
    device = "cpu" if common.is_dry() else "cuda"
    here = torch.empty(64 << 20, dtype=torch.uint8, pin_memory=not common.is_dry())
    there = torch.empty_like(here, device=device)
    there.copy_(here, non_blocking=True)
    common.synchronize()
    begin, copies = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for _ in range(16):
            there.copy_(here, non_blocking=True)
        copies += 16
        common.synchronize()
    return copies * here.numel() / (time.perf_counter() - begin) / 1e9


def arrays(seconds: float) -> float:
    rows = 128 if common.is_dry() else 4096
    options = {} if common.is_dry() else {"device": "cuda"}
    made = hr.Loader(array_file(rows), 64, {"x": hr.array("data")}, shuffle=False, **options)
    stream = common.batches(made)
    for _ in range(2 if common.is_dry() else 10):
        next(stream)
    common.synchronize()
    begin, size = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        batch = next(stream)
        size += batch["x"].numel() * 4
    common.synchronize()
    rate = size / (time.perf_counter() - begin) / 1e9
    made.close()
    return rate


if __name__ == "__main__":
    length = 0.2 if common.is_dry() else 4.0
    common.record("copies", {"what": "pinned, 64 MiB at a time", "gigabytes": round(alone(length), 2)})
    common.record("copies", {"what": "raw f32 rows through a Loader", "gigabytes": round(arrays(length), 2)})
