# SPDX-License-Identifier: Apache-2.0
"""A contact sheet: some pictures, and what training sees of them in one epoch after the other."""

from __future__ import annotations

from pathlib import Path

import headrace as hr

from ..notebook import spread
from .data import SIZE

_CELL, _GAP, _HEAD = 128, 4, 18
_ROWS, _EPOCHS = 6, 7
_PAPER, _INK = (250, 250, 250), (40, 40, 40)


def write(shards: str, path: Path, seed: int) -> None:
    """One row a picture: the whole of it, then its augmentations in epochs 0, 1, …"""
    from PIL import Image, ImageDraw

    everything = hr.open(shards)
    some = everything[spread(len(everything), _ROWS)]
    width, height = _CELL, _CELL * SIZE[1] // SIZE[0]
    originals = hr.Loader(
        some, batch_size=_ROWS, fields={"image": hr.image("jpg").resize((height, width)).layout("NHWC")},
        shuffle=False, rank=0, world_size=1, output="numpy",
    )  # fmt: skip
    augmented = hr.Loader(
        some, batch_size=_ROWS, fields={"image": hr.image("jpg").random_resized_crop(_CELL).random_flip().layout("NHWC")},
        shuffle=False, seed=seed, rank=0, world_size=1, output="numpy",
    )  # fmt: skip
    step = _CELL + _GAP
    sheet = Image.new("RGB", ((1 + _EPOCHS) * step + _GAP, _ROWS * step + _HEAD + _GAP), _PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((_GAP, 3), "original", fill=_INK)
    with originals, augmented:
        for batch in originals.epoch(0):
            for row, picture in enumerate(batch["image"]):
                sheet.paste(Image.fromarray(picture), (_GAP, _HEAD + row * step + (_CELL - height) // 2))
        for epoch in range(_EPOCHS):
            left = _GAP + (1 + epoch) * step
            draw.text((left, 3), f"epoch {epoch}", fill=_INK)
            for batch in augmented.epoch(epoch):
                for row, picture in enumerate(batch["image"]):
                    sheet.paste(Image.fromarray(picture), (left, _HEAD + row * step))
    sheet.save(path)
