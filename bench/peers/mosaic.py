# SPDX-License-Identifier: Apache-2.0
"""MosaicML Streaming: MDS shards with the JPEG bytes as they are, under PyTorch's DataLoader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streaming import MDSWriter, StreamingDataset

from peers.common import BATCH, Job, main
from peers.pictures import Picture


class Pictures(StreamingDataset):
    def __init__(self, job: Job) -> None:
        super().__init__(local=job.cache, shuffle=not job.exact, batch_size=BATCH, num_canonical_nodes=1)
        self.stored = job.mode == "bytes"
        self.picture = Picture(job)

    def __getitem__(self, at: Any) -> Any:
        jpeg = super().__getitem__(at)["jpg"]
        return jpeg if self.stored else self.picture(jpeg)


def prepare(job: Job) -> None:
    with MDSWriter(out=job.cache, columns={"jpg": "bytes"}, size_limit=1 << 24) as out:
        for name in job.files():
            with open(name, "rb") as file:
                out.write({"jpg": file.read()})


def batches(job: Job) -> Iterator[Any]:
    from torch.utils.data import DataLoader

    data = Pictures(job)
    collate = list if job.mode == "bytes" else None
    loader = DataLoader(
        data, BATCH, drop_last=True, num_workers=job.workers, persistent_workers=job.workers > 0, collate_fn=collate
    )
    while True:
        yield from loader


if __name__ == "__main__":
    main(batches, prepare)
