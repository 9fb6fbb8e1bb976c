# SPDX-License-Identifier: Apache-2.0
"""Training on what a loader brings, as a share of the rate with one batch again and again.

python bench/gpu/train.py resnet50 gpu     (or resnet18; gpu, auto, cpu, gpu:memory, dataloader)
dataloader is torch's DataLoader with torchvision's decoder, crop and flip, a process for each core, pinned.
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
import torchvision

WHERE = "cpu" if common.is_dry() else "cuda"
BATCH = 16 if common.is_dry() else common.BATCH


def model_of(name: str) -> Any:
    torch.backends.cudnn.benchmark = True
    model = getattr(torchvision.models, name)(num_classes=10).to(WHERE).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(image: torch.Tensor, label: torch.Tensor) -> None:
        with torch.autocast(WHERE, torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def rate(step: Any, source: Iterator[tuple[torch.Tensor, torch.Tensor]], steps: int) -> float:
    for _ in range(1 if common.is_dry() else 30):
        step(*next(source))
    common.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step(*next(source))
    common.synchronize()
    return steps * BATCH / (time.perf_counter() - begin)


def again() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    image = torch.randn(BATCH, 224, 224, 3, device=WHERE, dtype=torch.bfloat16).permute(0, 3, 1, 2)
    label = torch.randint(0, 10, (BATCH,), device=WHERE)
    while True:
        yield image, label


def ours(way: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for batch in common.batches(common.loader_of(way)):
        yield batch["image"].permute(0, 3, 1, 2), batch["label"]


class Folder(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """The pictures of the shards, in memory, decoded and cropped as torchvision does it."""

    def __init__(self) -> None:
        import headrace as hr
        from torchvision.transforms import v2

        data = hr.open(str(common.photos(4000)), {"jpg": hr.bytes("jpg"), "cls": hr.scalar("cls")})
        self.items = [(bytes(s["jpg"]), int(s["cls"])) for s in (data[i] for i in range(len(data)))]
        self.crop = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()])

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        stored, label = self.items[i]
        picture = torchvision.io.decode_jpeg(
            torch.frombuffer(bytearray(stored), dtype=torch.uint8), mode=torchvision.io.ImageReadMode.RGB
        )
        return self.crop(picture), label


def dataloader() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    made = torch.utils.data.DataLoader(
        Folder(),
        BATCH,
        shuffle=True,
        drop_last=True,
        num_workers=len(os.sched_getaffinity(0)),
        pin_memory=WHERE == "cuda",
        persistent_workers=True,
    )
    mean, std = (torch.tensor(v, device=WHERE).view(1, 3, 1, 1) * 255 for v in (common.MEAN, common.STD))
    while True:
        for image, label in made:
            there = image.to(WHERE, non_blocking=True)
            scaled = ((there - mean) / std).to(torch.bfloat16).contiguous(memory_format=torch.channels_last)
            yield scaled, label.to(WHERE, non_blocking=True)


def steps_of(name: str) -> int:
    """Some seconds."""
    return int(os.environ.get("HEADRACE_BENCH_STEPS", "1" if common.is_dry() else "100" if name == "resnet50" else "240"))


def measured(step: Any, steps: int, name: str, way: str, source: Iterator[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, Any]:
    """The rate between two of one batch again and again."""
    before = rate(step, again(), steps // 2 or 1)
    got = rate(step, source, steps)
    replayed = (before + rate(step, again(), steps // 2 or 1)) / 2
    return {"model": name, "way": way, "rate": round(got), "replayed": round(replayed), "share": round(got / replayed, 3)}


def main(name: str, ways: list[str]) -> None:
    step, steps = model_of(name), steps_of(name)
    for way in ways:
        common.record("train", measured(step, steps, name, way, dataloader() if way == "dataloader" else ours(way)))


if __name__ == "__main__":
    faulthandler.dump_traceback_later(120, exit=True)
    main(sys.argv[1], sys.argv[2:] or ["gpu", "auto", "cpu"])
