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
    sources = {"tar": lambda: job.shards, "memory": lambda: hr.open(job.shards, in_memory=True), "folder": lambda: job.photos}
    source = sources[job.options["source"]]()
    fields = {"image": image, "label": hr.scalar("cls")}
    loader = hr.Loader(source, BATCH, fields, shuffle=not job.exact, tail="drop", seed=1, threads=job.workers)
    for _, epoch in loader.epochs(1 << 40):
        for batch in epoch:
            yield batch["image"]


if __name__ == "__main__":
    main(batches)
