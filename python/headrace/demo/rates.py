# SPDX-License-Identifier: Apache-2.0
"""The demo's rates: headrace and PyTorch's DataLoader on the same files, for the same tensors."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import headrace as hr

from .checks import SEED, training_fields
from .data import Data

BATCH = 64
_BATCHES = 8  # of a round, at least; every worker of the DataLoader gets equally many

Advance = Callable[[int], None]


@dataclass
class Contender:
    """Something that gives batches of pictures, epoch after epoch."""

    name: str
    epoch: Callable[[], Iterable[Any]]
    rates: list[float] = field(default_factory=list)  # pictures a second, round by round
    mean: float = 0.0  # of the values of the last epoch, every 16th row and column: what shows that the work is the same
    shape: tuple[int, ...] = ()

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    def run(self, advance: Advance) -> float:
        """Pictures a second over an epoch, from asking for it to its last batch."""
        pictures, sums = 0, 0.0
        start = time.perf_counter()
        for images in self.epoch():
            pictures += len(images)
            sums += len(images) * float(images[:, :, ::16, ::16].mean())
            self.shape = tuple(images.shape[1:])
            advance(len(images))
        seconds = time.perf_counter() - start
        self.mean = sums / pictures
        return pictures / seconds


def _headrace(name: str, url: str, numbers: list[int]) -> tuple[Contender, hr.Loader]:
    loader = hr.Loader(hr.open(url)[numbers], batch_size=BATCH, fields=training_fields(), seed=SEED, rank=0, world_size=1)
    # Every other epoch: after epoch n the loader would read ahead into n + 1, in the others' time.
    epochs = itertools.count(0, 2)

    def epoch() -> Iterator[Any]:
        return (batch["image"] for batch in loader.epoch(next(epochs)))

    return Contender(name, epoch), loader


def _dataloader(data: Data, workers: int, numbers: list[int]) -> Contender:
    """Class folders as everyone reads them: Pillow and torchvision's transforms."""
    from torch.utils.data import DataLoader, Subset
    from torchvision import datasets, transforms

    crop, flip = transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip()
    steps = transforms.Compose([crop, flip, transforms.ToTensor(), transforms.Normalize(*hr.IMAGENET)])
    dataset = Subset(datasets.ImageFolder(data.folder, steps), numbers)
    loader = DataLoader(dataset, BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    words = "in the main process" if workers == 0 else f"{workers} worker processes"
    return Contender(f"PyTorch DataLoader + Pillow, {words}", lambda: (images for images, _ in loader))


def compare(data: Data, rounds: int, cpus: int, bar: Callable[[str, int], Advance]) -> list[Contender]:
    """Interleaved rounds, the DataLoader last, with the workers that serve it best. All do whole
    epochs over the same pictures, so that nobody works in another's time."""
    batches = cpus * -(-_BATCHES // cpus)
    # In steps of a prime over all classes; small data sets come more than once.
    numbers = [i * 7919 % data.samples for i in range(batches * BATCH)]
    few = numbers[: max(2, cpus) * BATCH]  # decide how many workers serve the DataLoader best
    advance = bar("DataLoader: how many workers", 3 * len(few))
    trials = {}
    for workers in sorted({0, cpus}):
        trial = _dataloader(data, workers, few)
        if workers > 0:
            trial.run(advance)  # starts them
        trials[workers] = trial.run(advance)
        del trial
    best = _dataloader(data, max(trials, key=lambda w: trials[w]), numbers)
    tar, one = _headrace("headrace, tar shards", data.shards, numbers)
    folders, two = _headrace("headrace, class folders", data.folder, numbers)
    contenders = [tar, folders, best]
    advance = bar("rates", len(contenders) * rounds * len(numbers))
    with one, two:
        for _ in range(rounds):
            for c in contenders:
                c.rates.append(c.run(advance))
    return contenders
