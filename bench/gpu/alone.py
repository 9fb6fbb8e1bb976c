# SPDX-License-Identifier: Apache-2.0
"""How many pictures a second the loader brings to the GPU when nobody else works: python bench/gpu/alone.py [cpu gpu auto]."""

from __future__ import annotations

import faulthandler
import sys
import time

import common
import torch


def measure(decode: str, seconds: float, images: int) -> dict[str, float]:
    begin = time.perf_counter()
    made = common.loader(common.photos(images), device="cuda", decode=decode)
    stream = common.batches(made)
    next(stream)
    torch.cuda.synchronize()
    first = time.perf_counter() - begin
    for _ in range(20):
        next(stream)
    torch.cuda.synchronize()
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        batch = next(stream)
        count += 1
    float(batch["image"].float().sum())
    torch.cuda.synchronize()
    rate = count * common.BATCH / (time.perf_counter() - begin)
    stats = made.stats()
    made.close()
    return {"decode": decode, "rate": round(rate), "first_batch_s": round(first, 3), **stats["device"]}


if __name__ == "__main__":
    faulthandler.dump_traceback_later(90, exit=True)  # nothing hangs for long on a lent machine
    for way in sys.argv[1:] or ["cpu", "gpu", "auto"]:
        common.record("alone", measure(way, 4.0, 4000))
