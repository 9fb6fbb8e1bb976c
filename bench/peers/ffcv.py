# SPDX-License-Identifier: Apache-2.0
"""FFCV in JPEG mode: it decodes all of the picture, then takes a random crop with OpenCV's area filter.

Batches are NCHW tensors that lie channels-last in memory, FFCV's default: the other order costs it two more copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from ffcv.fields import RGBImageField

from peers.common import BATCH, MEAN, RATIO, SCALE, SHORT, SIZE, STD, Job, main


class JpegField(RGBImageField):
    """Stores JPEG bytes as they are, where FFCV's own field would decode them and encode them again."""

    def encode(self, destination: Any, image: Any, malloc: Any) -> None:
        jpeg, height, width = image
        destination["mode"] = 0  # jpg
        destination["height"], destination["width"] = height, width
        destination["data_ptr"], storage = malloc(jpeg.nbytes)
        storage[:] = jpeg

    @staticmethod
    def from_binary(binary: Any) -> JpegField:
        return JpegField()


class Files:
    def __init__(self, files: list[str]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> Any:
        from PIL import Image

        with Image.open(self.files[i]) as picture:
            return ((np.fromfile(self.files[i], np.uint8), picture.height, picture.width),)


def prepare(job: Job) -> None:
    from ffcv.writer import DatasetWriter

    DatasetWriter(job.cache, {"image": JpegField()}, num_workers=1).from_indexed_dataset(Files(job.files()))


def batches(job: Job) -> Iterator[Any]:
    from ffcv.fields.rgb_image import CenterCropRGBImageDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage

    shape = (SIZE, SIZE)
    if job.exact:
        steps: list[Any] = [CenterCropRGBImageDecoder(shape, SIZE / SHORT)]
    else:
        steps = [RandomResizedCropRGBImageDecoder(shape, SCALE, RATIO), RandomHorizontalFlip()]
    if job.mode == "f32":
        steps.append(NormalizeImage(np.array(MEAN) * 255, np.array(STD) * 255, np.float32))
    steps += [ToTensor(), ToTorchImage()]
    loader = Loader(
        job.cache,
        batch_size=BATCH,
        num_workers=job.workers,
        order=OrderOption.SEQUENTIAL if job.exact else OrderOption.RANDOM,
        os_cache=True,
        drop_last=True,
        pipelines={"image": steps},
        custom_fields={"image": JpegField},
    )
    while True:
        for (images,) in loader:
            yield images


if __name__ == "__main__":
    main(batches, prepare)
