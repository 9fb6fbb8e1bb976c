# SPDX-License-Identifier: Apache-2.0
"""Whether pictures decoded by the GPU equal those of the CPU: python bench/gpu/check.py [pictures].

Samplings, odd sizes, restart marks, grayscale, progressive, EXIF, qualities 1 to 100; random crops, flips, colours and erasing; u8 and floats.
"""

from __future__ import annotations

import io
import multiprocessing
import random
import sys
import tarfile
from typing import Any

import common
import headrace as hr
import numpy as np
import torch
from PIL import Image, ImageFile

WHERE = "cpu" if common.is_dry() else "cuda"
ImageFile.MAXBLOCK = 1 << 22  # optimised tables of small pictures of high quality


def picture(seed: int) -> bytes:
    draw = random.Random(seed)
    width, height = draw.randint(8, 420), draw.randint(8, 420)
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
    image = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    noisy = np.asarray(image, np.int16) + rng.integers(-20, 21, (height, width, 3))
    image = Image.fromarray(noisy.clip(0, 255).astype(np.uint8))
    if draw.random() < 0.1:
        image = image.convert("L")
    options: dict[str, Any] = {"quality": draw.randint(1, 100), "optimize": draw.random() < 0.5}
    if image.mode != "L":
        options["subsampling"] = draw.choice([0, 1, 2])
    if draw.random() < 0.2:
        options["restart_marker_blocks"] = draw.randint(1, 9)
    if draw.random() < 0.05:
        options["progressive"] = True
    if draw.random() < 0.1:
        exif = Image.Exif()
        exif[0x112] = draw.randint(1, 8)
        options["exif"] = exif
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def tar_of(pictures: int) -> str:
    path = common.root() / f"odd-{pictures}.tar"
    common.root().mkdir(parents=True, exist_ok=True)
    if not path.exists():
        with multiprocessing.get_context("spawn").Pool() as pool, tarfile.open(path, "w") as tar:
            for i, data in enumerate(pool.imap(picture, range(pictures), chunksize=64)):
                info = tarfile.TarInfo(f"{i:06d}.jpg")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return str(path)


def ways() -> dict[str, Any]:
    crop = hr.image("jpg").random_resized_crop(64).random_flip()
    jittered = crop.color_jitter(0.4, 0.4, 0.4, 0.2).random_grayscale(0.2).random_erasing(0.5, value="random")
    return {
        "jitter, grayscale, erasing, u8": jittered,
        "turned by EXIF": hr.image("jpg", orient=True).random_resized_crop(64),
        "crops, u8": crop,
        "crops, bf16": crop.normalize(common.MEAN, common.STD).cast("bf16").layout("NHWC"),
        "bicubic, f32": hr.image("jpg").resize((96, 80), filter="bicubic").normalize(common.MEAN, common.STD),
        "gray": hr.image("jpg", mode="L").resize((64, 64)),
    }


def differences(source: str, field: Any, decode: str) -> dict[str, int]:
    made = [
        hr.Loader(
            source, 500, {"image": field}, seed=3, tail="keep", **({} if common.is_dry() else {"device": "cuda", "decode": d})
        )
        for d in (decode, "cpu")
    ]
    different, values = torch.zeros((), dtype=torch.int64, device=WHERE), 0  # nobody waits before the end
    for a, b in zip(*made, strict=True):
        x, y = a["image"], b["image"]
        assert x.shape == y.shape and x.dtype == y.dtype
        different += (x != y).sum()
        values += x.numel()
    plain = hr.Loader(source, 500, {"image": field}, seed=3, tail="keep", output="torch")
    for a, b in zip(made[0], plain.epoch(1), strict=True):
        different += (a["image"] != b["image"].to(WHERE, non_blocking=True)).sum()
        values += b["image"].numel()
        if values > 1e9:
            break
    device = made[0].stats().get("device", {"decoded_on_device": 0, "decoded_on_cpu": 0})
    return {
        "values": values,
        "different": int(different),
        "on_device": device["decoded_on_device"],
        "on_cpu": device["decoded_on_cpu"],
    }


if __name__ == "__main__":
    if not common.is_dry():
        torch.cuda.init()
    tar = tar_of(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    wrong = 0
    for name, field in ways().items():
        result = differences(tar, field, "gpu" if name != "gray" else "auto")
        wrong += result["different"]
        common.record("check", {"what": name, **result})
    raise SystemExit(1 if wrong else 0)
