# SPDX-License-Identifier: Apache-2.0
"""DALI with its hardware decoder on the same shards, crops, filter and output: python bench/gpu/dali.py alone|resnet50|resnet18.

Needs nvidia-dali-cuda130 (or cuda120). Crops are drawn as torchvision's RandomResizedCrop, resampled with an antialiased triangle,
mirrored by half, normalised and laid out as NHWC; DALI has no bf16, so f16.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import common
import torch


def pipeline(threads: int) -> Any:
    try:
        from nvidia.dali import fn, pipeline_def, types
    except ImportError:
        raise SystemExit("DALI is not here: pip install nvidia-dali-cuda130") from None
    shards = sorted(str(p) for p in common.photos(4000).glob("*.tar"))

    @pipeline_def(batch_size=common.BATCH, num_threads=threads, device_id=0, prefetch_queue_depth=3, seed=1)
    def made() -> Any:
        stored, label = fn.readers.webdataset(
            paths=shards,
            ext=["jpg", "cls"],
            random_shuffle=True,
            initial_fill=2048,
            missing_component_behavior="error",
            name="reader",
        )
        image = fn.decoders.image(stored, device="mixed", output_type=types.RGB, hw_decoder_load=1.0)
        image = fn.random_resized_crop(
            image,
            size=224,
            random_area=[0.08, 1.0],
            random_aspect_ratio=[3 / 4, 4 / 3],
            interp_type=types.INTERP_TRIANGULAR,
            antialias=True,
        )
        image = fn.crop_mirror_normalize(
            image,
            mirror=fn.random.coin_flip(probability=0.5),
            mean=[255 * v for v in common.MEAN],
            std=[255 * v for v in common.STD],
            dtype=types.FLOAT16,
            output_layout="HWC",
        )
        return image, label.gpu()

    out = made()
    out.build()
    return out


def batches(threads: int) -> Iterator[torch.Tensor]:
    from nvidia.dali.plugin.pytorch import feed_ndarray

    pipe = pipeline(threads)
    while True:
        image, _ = pipe.run()
        dense = image.as_tensor()
        out = torch.empty(dense.shape(), dtype=torch.float16, device="cuda")
        feed_ndarray(dense, out, cuda_stream=torch.cuda.current_stream())
        yield out


def alone(threads: int, seconds: float = 4.0) -> float:
    stream = batches(threads)
    for _ in range(100):
        next(stream)
    torch.cuda.synchronize()
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        next(stream)
        count += 1
    torch.cuda.synchronize()
    return count * common.BATCH / (time.perf_counter() - begin)


def trained(model: str, threads: int) -> dict[str, Any]:
    import train

    label = torch.randint(0, 10, (common.BATCH,), device="cuda")
    source = ((image.permute(0, 3, 1, 2), label) for image in batches(threads))
    return train.measured(train.model_of(model), train.steps_of(model), model, "dali", source)


if __name__ == "__main__":
    faulthandler.dump_traceback_later(115, exit=True)
    cores = len(os.sched_getaffinity(0))
    if sys.argv[1] == "alone":
        common.record("dali alone", {"way": "dali", "rate": round(alone(cores))})
    else:
        common.record("train", trained(sys.argv[1], cores))
