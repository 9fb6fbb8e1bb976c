# SPDX-License-Identifier: Apache-2.0
"""torchdata's nodes over class folders: a sampler, a batcher, a parallel mapper with threads (its default), a prefetcher."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peers.common import BATCH, Job, main
from peers.pictures import Picture


class Pictures:
    """Numbers of files to a batch: one task for a thread."""

    def __init__(self, job: Job) -> None:
        self.files, self.picture = job.files(), Picture(job)

    def __call__(self, numbers: list[int]) -> Any:
        import torch

        return torch.stack([self.picture(self.files[i]) for i in numbers])


def batches(job: Job) -> Iterator[Any]:
    from torch.utils.data import RandomSampler, SequentialSampler
    from torchdata import nodes

    pictures = Pictures(job)
    sampler = SequentialSampler(pictures.files) if job.exact else RandomSampler(pictures.files)
    node: Any = nodes.Batcher(nodes.SamplerWrapper(sampler), BATCH, drop_last=True)
    node = nodes.ParallelMapper(node, pictures, num_workers=job.workers, in_order=True)
    loader = nodes.Loader(nodes.Prefetcher(node, 2))
    while True:
        yield from loader


if __name__ == "__main__":
    main(batches)
