# SPDX-License-Identifier: Apache-2.0
"""Grain over class folders, with its reading threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grain
import torch

from peers.common import BATCH, Job, main
from peers.pictures import Picture


def batches(job: Job) -> Iterator[Any]:
    data = grain.MapDataset.source(job.files()).seed(1)
    if not job.exact:
        data = data.shuffle().repeat()
    data = data.map(Picture(job))
    options = grain.ReadOptions(num_threads=job.workers, prefetch_buffer_size=2 * BATCH if job.workers else 0)
    yield from data.to_iter_dataset(options).batch(BATCH, drop_remainder=True, batch_fn=torch.stack)


if __name__ == "__main__":
    main(batches)
