# SPDX-License-Identifier: Apache-2.0
"""SPDL: a pipeline of threads over class folders, decoding with torchvision as the others do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import torch
from spdl.pipeline import PipelineBuilder

from peers.common import BATCH, Job, main
from peers.pictures import Picture


def _names(job: Job) -> Iterator[str]:
    files = job.files()
    while True:
        if not job.exact:
            random.shuffle(files)
        yield from files


def batches(job: Job) -> Iterator[Any]:
    order = "input" if job.exact else "completion"
    pipeline = (
        PipelineBuilder()
        .add_source(_names(job))
        .pipe(Picture(job), concurrency=job.workers, output_order=order)
        .aggregate(BATCH, drop_last=True)
        .pipe(torch.stack)
        .add_sink(3)
        .build(num_threads=job.workers)
    )
    with pipeline.auto_stop():
        yield from pipeline


if __name__ == "__main__":
    main(batches)
