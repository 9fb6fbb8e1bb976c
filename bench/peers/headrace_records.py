# SPDX-License-Identifier: Apache-2.0
"""headrace over one record format: the stored bytes, or pictures as in the image benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peers.common import BATCH, SIZE, Job, main


def batches(job: Job) -> Iterator[Any]:
    import headrace as hr

    field = job.options["field"]
    if job.mode == "bytes":
        value = hr.bytes(field)
    else:
        value = hr.image(field).random_resized_crop(SIZE).random_flip().normalize(hr.IMAGENET)
    loader = hr.Loader(job.options["source"], BATCH, {"x": value}, shuffle=True, tail="drop", seed=1, threads=job.workers)
    for _, epoch in loader.epochs(1 << 40):
        for batch in epoch:
            yield batch["x"]


if __name__ == "__main__":
    main(batches)
