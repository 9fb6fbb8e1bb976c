# SPDX-License-Identifier: Apache-2.0
"""How many pictures a second the loader brings to the GPU when nobody else works: python bench/gpu/alone.py [cpu gpu auto gpu:memory]."""

from __future__ import annotations

import faulthandler
import sys
import time
from typing import Any

import common


def measure(way: str, seconds: float) -> dict[str, Any]:
    common.photos(4000)
    common.synchronize()  # torch and its context are there
    begin = time.perf_counter()
    made = common.loader_of(way)
    stream = common.batches(made)
    next(stream)
    common.synchronize()
    first = time.perf_counter() - begin
    for _ in range(2 if common.is_dry() else 100):
        next(stream)
    common.synchronize()
    before = common.processor_seconds()
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        batch = next(stream)
        count += 1
    float(batch["image"].float().sum())
    common.synchronize()
    pictures = count * common.BATCH
    rate = pictures / (time.perf_counter() - begin)
    stats, after = made.stats(), common.processor_seconds()
    made.close()
    spent = {name: round(1e6 * (after[name] - before.get(name, 0)) / pictures, 1) for name in after}
    return {
        "way": way,
        "rate": round(rate),
        "first_batch_s": round(first, 3),
        "us_a_picture": {name: us for name, us in spent.items() if us >= 0.1},  # of processor time
        **stats.get("device", {}),
    }


if __name__ == "__main__":
    faulthandler.dump_traceback_later(90, exit=True)  # nothing hangs for long on a lent machine
    for way in sys.argv[1:] or ["cpu", "gpu", "auto"]:
        common.record("alone", measure(way, 0.3 if common.is_dry() else 4.0))
