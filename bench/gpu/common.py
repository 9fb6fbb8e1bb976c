# SPDX-License-Identifier: Apache-2.0
"""What the stages of bench/gpu share: the data, the loader that is measured, where results go."""

from __future__ import annotations

import json
import multiprocessing
import os
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import headrace as hr
from headrace.photos import make_photo as make_photo

# Of every contender: CUDA's own eight queues make the decoder's copies wait behind the training step.
os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BATCH = 256
DISTINCT = 512  # photographs; each comes several times


def root() -> pathlib.Path:
    return pathlib.Path(os.environ.get("HEADRACE_BENCH_DATA", "/dev/shm/headrace-gpu"))


def _photo(seed: int) -> bytes:
    return make_photo(seed % DISTINCT)


def photos(images: int) -> pathlib.Path:
    """Tar shards of JPEGs of 500x375, made once from seeds."""
    images = min(images, 64) if is_dry() else images
    shards = root() / f"shards-{images}"
    if (shards / "headrace.json").exists():
        return shards
    with multiprocessing.get_context("spawn").Pool() as pool:
        distinct = pool.map(_photo, range(min(images, DISTINCT)), chunksize=16)
    pictures = [distinct[i % DISTINCT] for i in range(images)]
    folder = root() / f"photos-{images}"
    for c in range(10):
        (folder / f"class{c}").mkdir(parents=True, exist_ok=True)
    for i, picture in enumerate(pictures):
        (folder / f"class{i % 10}" / f"{i:06d}.jpg").write_bytes(picture)
    hr.pack(folder, shards, shards=8, keep_order=True)
    return shards


def fields(dtype: str = "bf16") -> dict[str, Any]:
    image = hr.image("jpg").random_resized_crop(224).random_flip()
    if dtype != "u8":
        image = image.normalize(MEAN, STD).cast(dtype)
    return {"image": image.layout("NHWC"), "label": hr.scalar("cls")}


def loader(shards: pathlib.Path, **options: Any) -> hr.Loader:
    """``in_memory=True``: the shards are held in memory, else they are read from their files."""
    data = hr.open(str(shards), in_memory=options.pop("in_memory", False))
    if is_dry():
        options |= {"device": "cpu", "decode": "cpu", "batch_size": 16}
    return hr.Loader(data, options.pop("batch_size", BATCH), fields(options.pop("dtype", "bf16")), seed=1, **options)


def loader_of(way: str) -> hr.Loader:
    """Of 4,000 photographs; ``way``: who decodes them, with ":memory" of shards that are held in memory."""
    decode, _, where = way.partition(":")
    return loader(photos(4000), device="cuda", decode=decode, in_memory=where == "memory")


def batches(made: hr.Loader) -> Iterator[Any]:
    """For ever."""
    while True:
        yield from made


def is_dry() -> bool:
    """Nothing is measured: the programs run for a moment on the CPU."""
    return os.environ.get("HEADRACE_BENCH_DRY") == "1"


def processor_seconds() -> dict[str, float]:
    """Of this process's threads, by their names without numbers."""
    ticks, out = os.sysconf("SC_CLK_TCK"), dict[str, float]()
    for thread in pathlib.Path("/proc/self/task").iterdir():
        try:
            name, _, rest = (thread / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        fields = rest.split()
        kind = name.rstrip("0123456789").rstrip("-")
        out[kind] = out.get(kind, 0.0) + (int(fields[11]) + int(fields[12])) / ticks
    return out


def synchronize() -> None:
    if not is_dry():
        import torch

        torch.cuda.synchronize()


def _results() -> pathlib.Path:
    return pathlib.Path(os.environ.get("HEADRACE_BENCH_RESULTS", "build/results/gpu.jsonl"))


def results() -> list[dict[str, Any]]:
    where = _results()
    return [json.loads(line) for line in where.read_text().splitlines()] if where.exists() else []


def record(stage: str, result: dict[str, Any]) -> None:
    """Adds a line to the results; they are gathered by table.py."""
    task = os.environ.get("HEADRACE_BENCH_TASK")
    line = {
        "stage": stage,
        "cores": len(os.sched_getaffinity(0)),
        "time": time.strftime("%F %T"),
        **({"task": task} if task else {}),
        **result,
    }
    print(json.dumps(line), flush=True)
    where = _results()
    where.parent.mkdir(parents=True, exist_ok=True)
    with where.open("a") as out:
        out.write(json.dumps(line) + "\n")
