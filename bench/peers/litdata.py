# SPDX-License-Identifier: Apache-2.0
"""LitData: chunks with the JPEG bytes as they are, under its own loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import litdata

from peers.common import BATCH, Job, main
from peers.pictures import Picture


def _stored(name: str) -> dict[str, bytes]:
    with open(name, "rb") as file:
        return {"jpg": file.read()}


class Pictures(litdata.StreamingDataset):
    def __init__(self, job: Job) -> None:
        super().__init__(job.cache, shuffle=not job.exact, drop_last=True)
        self.stored = job.mode == "bytes"
        self.picture = Picture(job)

    def __getitem__(self, at: Any) -> Any:
        jpeg = super().__getitem__(at)["jpg"]
        return jpeg if self.stored else self.picture(jpeg)


def prepare(job: Job) -> None:
    litdata.optimize(
        _stored,
        job.files(),
        job.cache,
        chunk_bytes="16MB",
        num_workers=1,
        reorder_files=False,
        keep_data_ordered=True,
        verbose=False,
    )


def batches(job: Job) -> Iterator[Any]:
    data = Pictures(job)
    options = {"collate_fn": list} if job.mode == "bytes" else {}
    loader = litdata.StreamingDataLoader(data, batch_size=BATCH, num_workers=job.workers, drop_last=True, **options)
    while True:
        yield from loader


if __name__ == "__main__":
    main(batches, prepare)
