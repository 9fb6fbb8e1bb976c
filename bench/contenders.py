# SPDX-License-Identifier: Apache-2.0
"""Who takes part: a name for the table, a script below `peers/`, its options, and how many workers to try.

A new peer is one script and one requirements file below `peers/`, and one line here.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

CORES = os.cpu_count() or 1


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    script: str  # bench/peers/SCRIPT.py; bench/peers/SCRIPT.txt where it has an environment of its own
    workers: tuple[int, ...]  # threads or processes; of several, a short calibration takes the best
    unit: str = "threads"
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    crop_first: bool = False  # its unrandom picture is a crop, then resized, not the other way round
    filter: str = "antialiased"  # what it says of itself; the comparison with Pillow says what is so

    @property
    def has_batches(self) -> bool:
        return self.script != "bare_loop"


def _ours(threads: int) -> list[Contender]:
    return [
        Contender("bare loop", "bare_loop", (threads,), options={"decode": "crop"}),
        Contender("headrace in memory", "headrace", (threads,), options={"source": "memory"}),
        Contender("bare loop that reads", "bare_loop", (threads,), options={"decode": "crop", "read": 1}),
        Contender("headrace tar", "headrace", (threads,), options={"source": "tar"}),
        Contender("bare loop, full decode", "bare_loop", (threads,), options={"decode": "full"}),
        Contender("headrace folder", "headrace", (threads,), options={"source": "folder"}),
    ]


def _dataloaders() -> list[Contender]:
    return [
        Contender(f"DataLoader + {decoder}", "dataloader", (CORES,), "workers", {"decoder": decoder})
        for decoder in ("pil", "torchvision")
    ]


def base() -> list[Contender]:
    """headrace, its limit, and what most people use."""
    single = [c for c in _ours(1) if c.name not in ("bare loop, full decode", "headrace folder")] if CORES > 1 else []
    return [*single, *_ours(CORES), *_dataloaders()]


def peers() -> list[Contender]:
    """All of `base` on all cores, and everyone else."""
    processes = tuple(sorted({0, 1, CORES}))
    more = tuple(sorted({CORES, 2 * CORES}))
    return [
        *_ours(CORES),
        *_dataloaders(),
        Contender("DALI", "dali", tuple(sorted({1, CORES})), options={"antialias": True}),
        Contender("DALI, aliased", "dali", tuple(sorted({1, CORES})), options={"antialias": False}, filter="aliased"),
        # Its documentation advises the number of cores; a start takes 15 s.
        Contender("FFCV", "ffcv", (CORES,), crop_first=True, filter="area filter"),
        Contender("SPDL", "spdl", more),
        # 0: as many as tf.data finds best.
        Contender("tf.data", "tfdata", (0, CORES), options={"antialias": True}),
        Contender("tf.data, aliased", "tfdata", (0, CORES), options={"antialias": False}, filter="aliased"),
        Contender("Grain", "grain", more),
        Contender("LitData", "litdata", processes, "workers"),
        Contender("MosaicML Streaming", "mosaic", processes, "workers"),
        Contender("WebDataset", "webdataset", processes, "workers"),
        Contender("torchdata nodes", "torchdata", more),
    ]
