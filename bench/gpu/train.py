# SPDX-License-Identifier: Apache-2.0
"""Training on what a loader brings, as a share of the rate with one batch again and again.

python bench/gpu/train.py resnet50 gpu     (or resnet18; gpu, auto, cpu, dataloader)
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


def model_of(name: str) -> Any:
    torch.backends.cudnn.benchmark = True
    model = getattr(torchvision.models, name)(num_classes=10).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(image: torch.Tensor, label: torch.Tensor) -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def rate(step: Any, source: Iterator[tuple[torch.Tensor, torch.Tensor]], steps: int) -> float:
    for _ in range(8):
        step(*next(source))
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step(*next(source))
    torch.cuda.synchronize()
    return steps * common.BATCH / (time.perf_counter() - begin)


def again() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    image = torch.randn(common.BATCH, 224, 224, 3, device="cuda", dtype=torch.bfloat16).permute(0, 3, 1, 2)
    label = torch.randint(0, 10, (common.BATCH,), device="cuda")
    while True:
        yield image, label


def ours(decode: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    made = common.loader(common.photos(4000), device="cuda", decode=decode)
    for batch in common.batches(made):
        yield batch["image"].permute(0, 3, 1, 2), batch["label"]


def main(name: str, ways: list[str]) -> None:
    step, steps = model_of(name), int(os.environ.get("HEADRACE_BENCH_STEPS", "60"))
    full = rate(step, again(), steps)
    for way in ways:
        got = rate(step, ours(way), steps)
        common.record(
            "train", {"model": name, "way": way, "rate": round(got), "replayed": round(full), "share": round(got / full, 3)}
        )


if __name__ == "__main__":
    faulthandler.dump_traceback_later(120, exit=True)
    main(sys.argv[1], sys.argv[2:] or ["gpu", "auto", "cpu"])
