# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over class folders, decoding with Pillow or torchvision: what people write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peers.common import BATCH, Job, main
from peers.pictures import Picture


class FolderSet:
    def __init__(self, job: Job) -> None:
        self.files, self.picture = job.files(), Picture(job, job.options["decoder"])

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> Any:
        return self.picture(self.files[i])


def batches(job: Job) -> Iterator[Any]:
    from torch.utils.data import DataLoader

    loader = DataLoader(
        FolderSet(job),
        BATCH,
        shuffle=not job.exact,
        drop_last=True,
        num_workers=job.workers,
        persistent_workers=job.workers > 0,
    )
    while True:
        yield from loader


if __name__ == "__main__":
    main(batches)
