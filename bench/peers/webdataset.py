# SPDX-License-Identifier: Apache-2.0
"""WebDataset over the tar shards that headrace reads: shards and a buffer of 1,000 samples shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import webdataset as wds

from peers.common import BATCH, Job, main
from peers.pictures import Picture


def _stack(samples: list[Any]) -> Any:
    import torch

    return torch.stack([image for (image,) in samples])


def batches(job: Job) -> Iterator[Any]:
    data = wds.WebDataset(job.tars(), shardshuffle=False if job.exact else 100, empty_check=False)
    if not job.exact:
        data = data.shuffle(1000)
    data = data.to_tuple("jpg")
    if job.mode == "bytes":
        data = data.batched(BATCH, partial=False, collation_fn=lambda samples: [jpeg for (jpeg,) in samples])
    else:
        data = data.map_tuple(Picture(job)).batched(BATCH, partial=False, collation_fn=_stack)
    loader = wds.WebLoader(data, batch_size=None, num_workers=job.workers, persistent_workers=job.workers > 0)
    while True:
        yield from loader


if __name__ == "__main__":
    main(batches)
