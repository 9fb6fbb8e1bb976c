# SPDX-License-Identifier: Apache-2.0
"""One rank of the demo in a process of its own: ``python -m headrace.demo.rank SHARDS BATCH OUT.npz``.

Writes which samples came and the checksums of their pixels; the demo compares.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import headrace as hr

from .checks import EPOCHS, SEED, pixel_sums, training_fields


def main(shards: str, batch: str, out: str) -> None:
    loader = hr.Loader(
        shards, batch_size=int(batch), fields=training_fields(), shuffle="global", seed=SEED, tail="keep", output="numpy"
    )
    got: dict[str, Any] = {"told_by": loader.ranks.source}
    for epoch in range(EPOCHS):
        indices, pixels, batches = [], [], 0
        for b in loader.epoch(epoch):
            indices.append(b.indices)
            pixels.extend(pixel_sums(b))
            batches += 1
        got[f"indices{epoch}"] = np.concatenate(indices)
        got[f"pixels{epoch}"] = np.array(pixels, dtype=np.int64)
        got[f"batches{epoch}"] = batches
    loader.close()
    np.savez(out, **got)


if __name__ == "__main__":
    main(*sys.argv[1:4])
