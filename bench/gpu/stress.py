# SPDX-License-Identifier: Apache-2.0
"""Batches on the GPU under a consumer that dawdles: python bench/gpu/stress.py [batches].

Pictures (decoded by the GPU), rows of numbers and labels. The consumer waits at random, on the CPU and in its stream, keeps some batches for long, and
uses some in other streams. Every byte of every batch is compared on the GPU with what the CPU made of the same samples. At the end: how
many values were wrong, and how much memory the process and the GPU had at a tenth of the batches and at the last.
"""

from __future__ import annotations

import faulthandler
import io
import pathlib
import random
import sys
import tarfile
import time
from typing import Any

import common
import headrace as hr
import numpy as np
import torch

WHERE = "cpu" if common.is_dry() else "cuda"
SAMPLES, BATCH, ROW = 2048, 64, 4096
KEPT = 5  # batches that are held back


def data() -> str:
    """A tar of pictures, each with a row of numbers and a label, of several samplings and sizes."""
    from check import picture

    path = common.root() / f"stress-{SAMPLES}.tar"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return str(path)
    rows = np.random.default_rng(7).integers(0, 2**31, (SAMPLES, ROW), dtype=np.int32)
    with tarfile.open(path, "w") as tar:
        for i in range(SAMPLES):
            stored = io.BytesIO()
            np.save(stored, rows[i])
            for name, value in (
                (f"{i:05d}.jpg", picture(i)),
                (f"{i:05d}.npy", stored.getvalue()),
                (f"{i:05d}.cls", str(i).encode()),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(value)
                tar.addfile(info, io.BytesIO(value))
    return str(path)


def fields() -> dict[str, Any]:
    return {"image": hr.image("jpg").resize((96, 96)), "row": hr.array("npy"), "label": hr.scalar("cls")}


def expected(source: str) -> dict[str, torch.Tensor]:
    """Of all samples, made by the CPU, in their order."""
    parts: dict[str, list[torch.Tensor]] = {}
    for batch in hr.Loader(source, 256, fields(), shuffle=False):
        for name in ("image", "row", "label"):
            parts.setdefault(name, []).append(batch[name].clone())
    return {name: torch.cat(tensors).to(WHERE) for name, tensors in parts.items()}


def resident_mib() -> int:
    fields = pathlib.Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096 >> 20


def device_mib() -> int:
    if common.is_dry():
        return 0
    free, total = torch.cuda.mem_get_info()
    return (total - free) >> 20


def differences(batch: Any, indices: torch.Tensor, right: dict[str, torch.Tensor]) -> torch.Tensor:
    return sum(((batch[name] != right[name][indices]).sum() for name in right), torch.zeros((), dtype=torch.int64, device=WHERE))


def run(batches: int) -> dict[str, Any]:
    source = data()
    right = expected(source)
    draw = random.Random(1)
    where = {} if common.is_dry() else {"device": "cuda", "decode": "gpu"}
    made = hr.Loader(source, BATCH, fields(), seed=5, **where)
    streams = [] if common.is_dry() else [torch.cuda.Stream() for _ in range(2)]
    wrong, kept = torch.zeros((), dtype=torch.int64, device=WHERE), []
    begin, early = time.perf_counter(), (0, 0)
    for number, batch in enumerate(common.batches(made)):
        if number == batches:
            break
        if number == batches // 10:
            early = (resident_mib(), device_mib())
        indices = torch.as_tensor(np.asarray(batch.indices), device=WHERE)
        if streams and draw.random() < 0.02:
            torch.cuda._sleep(draw.randrange(20_000_000))  # its stream falls behind, and the next batches wait in it
        if draw.random() < 0.02:
            time.sleep(draw.random() * 0.03)
        if streams and draw.random() < 0.2:
            own, other = torch.cuda.current_stream(), draw.choice(streams)
            other.wait_stream(own)
            with torch.cuda.stream(other):
                found = differences(batch, indices, right)
            own.wait_stream(other)
            wrong += found
        else:
            wrong += differences(batch, indices, right)
        if draw.random() < 0.05:
            kept.append((batch, indices))
        if len(kept) > KEPT:
            late, at = kept.pop(draw.randrange(KEPT))
            wrong += differences(late, at, right)
    took = time.perf_counter() - begin
    for late, at in kept:
        wrong += differences(late, at, right)
    common.synchronize()
    device = made.stats().get("device", {"decoded_on_device": 0})
    return {
        "batches": batches,
        "wrong": int(wrong),
        "on_device": device["decoded_on_device"],
        "seconds": round(took, 1),
        "resident_mib": [early[0], resident_mib()],
        "device_mib": [early[1], device_mib()],
    }


if __name__ == "__main__":
    faulthandler.dump_traceback_later(300, exit=True)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40 if common.is_dry() else 10_000
    result = run(count)
    common.record("stress", result)
    raise SystemExit(1 if result["wrong"] else 0)
