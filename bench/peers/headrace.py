# SPDX-License-Identifier: Apache-2.0
"""headrace itself, over tar shards, the same shards held in memory, or class folders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peers.common import BATCH, SHORT, SIZE, Job, main


def batches(job: Job) -> Iterator[Any]:
    import headrace as hr

    image = hr.image("jpg")
    image = image.resize(SHORT).center_crop(SIZE) if job.exact else image.random_resized_crop(SIZE).random_flip()
    if job.mode == "f32":
        image = image.normalize(hr.IMAGENET)
    source: Any = job.photos if job.options["source"] == "folder" else job.shards
    if job.options["source"] == "memory":
        source = hr.open(source, in_memory=True)
    fields = {"image": image, "label": hr.scalar("cls")}
    loader = hr.Loader(source, BATCH, fields, shuffle=not job.exact, tail="drop", seed=1, threads=job.workers)
    for _, epoch in loader.epochs(1 << 40):
        for batch in epoch:
            yield batch["image"]


if __name__ == "__main__":
    main(batches)
