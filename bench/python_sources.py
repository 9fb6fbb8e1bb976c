# SPDX-License-Identifier: Apache-2.0
"""hr.from_torch beside DataLoader: a data set whose items cost 10 us of Python and NumPy on this machine.

    .venv/bin/python bench/python_sources.py [--items 20000] [--us 10] [--batch 64] [--rounds 7]        (./dev bench --sources)

Equal work: the same data set, shuffled, batches of tensors, all of an epoch. The contenders take turns; medians of the rounds, with the
machine's load before each. DataLoader with 0, 1 and 2 workers, which live on from epoch to epoch; a bare loop over the shuffled items
with np.stack, which is what one thread can give. Beside it, arrays in memory: TensorDataset under DataLoader, and hr.from_torch of it,
which is read without Python.
"""

from __future__ import annotations

import argparse
import inspect
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import headrace as hr
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

PICTURES = 2000  # that the items are made of


class Items(Dataset[tuple[torch.Tensor, int]]):
    """A crop of a small picture, flipped or not, as floating point, with so many more passes over it."""

    def __init__(self, items: int, passes: int = 0) -> None:
        self.items, self.passes = items, passes
        self.pictures = np.random.default_rng(0).integers(0, 256, (PICTURES, 36, 36, 3), dtype=np.uint8)

    def __len__(self) -> int:
        return self.items

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        y, x = i % 5, i // 5 % 5
        picture = self.pictures[i % PICTURES][y : y + 32, x : x + 32]
        if i & 1:
            picture = picture[:, ::-1]
        scaled = picture.astype(np.float32)
        scaled *= np.float32(1 / 255)
        for _ in range(self.passes):
            scaled += np.float32(0.125)
        return torch.from_numpy(scaled), i % 10


def alone(data: Dataset[Any], items: int) -> float:
    """Microseconds of an item, in a bare loop."""
    start = time.perf_counter()
    for i in range(items):
        data[i]
    return (time.perf_counter() - start) / items * 1e6


def items_that_take(us: float, items: int) -> Items:
    """Items of so many microseconds, as fast as this machine is."""
    passes = 0
    while min(alone(Items(items, passes), 2000) for _ in range(3)) < us and passes < 1000:
        passes += 1
    return Items(items, passes)


def bare(data: Items, batch: int, processes: int, seconds: float = 1.0) -> float:
    """Items a second of bare loops in so many processes at a time: what the machine gives, whoever loads."""
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return sum(pool.starmap(bare_loop, [(data, batch, seconds)] * processes, chunksize=1))


def bare_loop(data: Items, batch: int, seconds: float) -> float:
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in Bare(data, batch):
            count += batch
            if time.perf_counter() - start >= seconds:
                break
    return count / (time.perf_counter() - start)


class Bare:
    """No loader: the items of a shuffled batch, made in the thread that consumes and stacked into memory that is used again."""

    def __init__(self, data: Items, batch: int) -> None:
        self.data, self.batch, self.epochs = data, batch, 0
        self.out = np.empty((batch, 32, 32, 3), np.float32)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        order = np.random.default_rng(self.epochs).permutation(len(self.data)).tolist()
        self.epochs += 1
        data = self.data
        for at in range(0, len(order), self.batch):
            items = [data[i] for i in order[at : at + self.batch]]
            np.stack([x.numpy() for x, _ in items], out=self.out[: len(items)])
            yield torch.from_numpy(self.out[: len(items)]), torch.tensor([y for _, y in items])


def epoch(batches: Iterator[Any], values: Callable[[Any], tuple[torch.Tensor, torch.Tensor]]) -> tuple[float, int, float]:
    """Seconds, samples, and a sum that says whether they are the same."""
    count, total = 0, 0.0
    start = time.perf_counter()
    for batch in batches:
        x, y = values(batch)
        count += len(y)
        total += float(y.sum()) + float(x[0, 0].sum()) * 0
    return time.perf_counter() - start, count, total


def contenders(data: Dataset[Any], batch: int, workers: tuple[int, ...]) -> dict[str, tuple[Any, Any]]:
    out: dict[str, tuple[Any, Any]] = {
        "headrace": (hr.Loader(hr.from_torch(data), batch, tail="keep"), lambda b: (b["0"], b["1"]))
    }
    if "processes" in inspect.signature(hr.from_torch).parameters and isinstance(data, Items):
        n = max(workers)
        source = hr.from_torch(data, processes=n)
        out[f"headrace, {n} processes"] = (hr.Loader(source, batch, tail="keep"), lambda b: (b["0"], b["1"]))
        chosen = hr.from_torch(data, processes="auto")
        out['headrace, processes="auto"'] = (hr.Loader(chosen, batch, tail="keep"), lambda b: (b["0"], b["1"]))
    if isinstance(data, Items):
        out["bare loop and np.stack"] = (Bare(data, batch), lambda b: b)
    for n in workers:
        loader = DataLoader(data, batch, shuffle=True, num_workers=n, persistent_workers=n > 0)
        out[f"DataLoader, {n} workers"] = (loader, lambda b: b)
    return out


def compare(data: Dataset[Any], batch: int, rounds: int, workers: tuple[int, ...]) -> None:
    sides = contenders(data, batch, workers)
    rates: dict[str, list[float]] = {name: [] for name in sides}
    sums = set()
    loads = []
    for n in range(rounds + 1):  # the first warms up
        for name, (loader, values) in sides.items():
            loads.append(os.getloadavg()[0])
            # Not one after the other: of the next epoch headrace would make the first batches ahead, in another's time.
            batches = loader.epoch(2 * n) if isinstance(loader, hr.Loader) else iter(loader)
            seconds, count, total = epoch(batches, values)
            sums.add((count, total))
            if n > 0:
                rates[name].append(count / seconds)
    assert len(sums) == 1, f"the contenders saw other samples: {sums}"
    best = max(statistics.median(v) for k, v in rates.items() if k.startswith("DataLoader"))
    print(f"{'':28}{'samples/s':>12}{'us/sample':>12}{'of the best DataLoader':>26}")
    for name, values in rates.items():
        middle = statistics.median(values)
        print(f"{name:28}{middle:12,.0f}{1e6 / middle:12.2f}{middle / best:25.2f}x")
    print(f"load of the machine before each epoch: {min(loads):.1f} to {max(loads):.1f}, on {os.cpu_count()} CPUs\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--us", type=float, default=10.0, help="what an item takes")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(1)
    data = items_that_take(given.us, given.items)
    print(f"items of {alone(data, 5000):.1f} us alone, {given.items:,} an epoch, batches of {given.batch}")
    one, two = bare(data, given.batch, 1), bare(data, given.batch, 2)
    print(f"bare loops and np.stack: {one:,.0f} items/s in one process, {two:,.0f} in two at a time ({two / one:.2f}x)")
    compare(data, given.batch, given.rounds, (0, 1, 2))
    tensors = TensorDataset(torch.rand(given.items, 32, 32), torch.arange(given.items) % 10)
    print(f"TensorDataset of {given.items:,} rows of 4 KiB")
    compare(tensors, given.batch, given.rounds, (0, 2))


if __name__ == "__main__":
    main()
