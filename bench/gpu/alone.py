# SPDX-License-Identifier: Apache-2.0
"""How many pictures a second the loader brings to the GPU when nobody else works: python bench/gpu/alone.py [cpu gpu auto]."""

from __future__ import annotations

import faulthandler
import sys
import time

import common


def measure(decode: str, seconds: float, images: int) -> dict[str, float]:
    begin = time.perf_counter()
    made = common.loader(common.photos(images), device="cuda", decode=decode)
    stream = common.batches(made)
    next(stream)
    common.synchronize()
    first = time.perf_counter() - begin
    for _ in range(2 if common.is_dry() else 20):
        next(stream)
    common.synchronize()
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        batch = next(stream)
        count += 1
    float(batch["image"].float().sum())
    common.synchronize()
    rate = count * common.BATCH / (time.perf_counter() - begin)
    stats = made.stats()
    made.close()
    return {"way": decode, "rate": round(rate), "first_batch_s": round(first, 3), **stats.get("device", {})}


if __name__ == "__main__":
    faulthandler.dump_traceback_later(90, exit=True)  # nothing hangs for long on a lent machine
    for way in sys.argv[1:] or ["cpu", "gpu", "auto"]:
        common.record("alone", measure(way, 0.3 if common.is_dry() else 4.0, 4000))
