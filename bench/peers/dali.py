# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI on the CPU: the fused decoder that decodes only a random crop. `antialias` is an option of its resize."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nvidia.dali import fn, pipeline_def, types

from peers.common import BATCH, MEAN, RATIO, SCALE, SHORT, SIZE, STD, Job, main


def batches(job: Job) -> Iterator[Any]:
    filters = {"interp_type": types.INTERP_LINEAR, "antialias": job.options["antialias"]}

    @pipeline_def(batch_size=BATCH, num_threads=job.workers, device_id=None, prefetch_queue_depth=2)
    def pipeline() -> Any:
        jpegs, _ = fn.readers.file(files=job.files(), random_shuffle=not job.exact, initial_fill=1024)
        if job.exact:
            images = fn.decoders.image(jpegs, device="cpu", output_type=types.RGB)
            images = fn.resize(images, resize_shorter=SHORT, subpixel_scale=False, **filters)
            mirror: Any = 0
        else:
            images = fn.decoders.image_random_crop(
                jpegs, device="cpu", output_type=types.RGB, random_area=SCALE, random_aspect_ratio=RATIO
            )
            images = fn.resize(images, size=(SIZE, SIZE), **filters)
            mirror = fn.random.coin_flip()
        # truncate: the same middle as torchvision, which rounds half to even.
        shape = {"crop": (SIZE, SIZE), "mirror": mirror, "output_layout": "CHW", "rounding": "truncate"}
        if job.mode == "f32":
            mean, std = [255 * m for m in MEAN], [255 * s for s in STD]
            return fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=mean, std=std, **shape)
        return fn.crop_mirror_normalize(images, dtype=types.UINT8, mean=[0.0], std=[1.0], **shape)

    pipe = pipeline()
    pipe.build()
    while True:
        (batch,) = pipe.run()
        yield batch.as_array()


if __name__ == "__main__":
    main(batches)
