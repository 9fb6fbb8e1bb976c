# SPDX-License-Identifier: Apache-2.0
"""Rows of tokens: headrace, a bare gather, nanoGPT's get_batch and PyTorch's DataLoader, on one file, one thread each.

    ./dev bench --tokens [--rounds 3] [--seconds 2] [--tokens 200000000]

A file of u16 tokens in /dev/shm; batches of 64 rows of 2,049, drawn at random. "gather" is what memory allows:
`np.take` of whole rows. nanoGPT's get_batch makes inputs and targets, two arrays, as its train.py does; DataLoader has
a map-style data set over a memory map, without workers. Rounds are interleaved; the table shows medians.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import headrace as hr
import numpy as np
import torch

ROWS, SEQ = 64, 2048


def gather(path: str, dtype: Any) -> Iterator[Any]:
    data = np.fromfile(path, np.uint16)
    rows = data[: len(data) // SEQ * SEQ].reshape(-1, SEQ)
    rng = np.random.default_rng(0)
    out = np.empty((ROWS, SEQ), np.uint16)
    while True:
        np.take(rows, rng.integers(0, len(rows), ROWS), axis=0, out=out, mode="clip")
        yield out if dtype is np.uint16 else out.astype(dtype)


def get_batch(path: str) -> Iterator[Any]:
    data = np.memmap(path, dtype=np.uint16, mode="r")
    while True:
        ix = torch.randint(len(data) - SEQ, (ROWS,))
        x = torch.stack([torch.from_numpy(data[i : i + SEQ].astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + SEQ].astype(np.int64)) for i in ix])
        yield x, y


class _Rows(torch.utils.data.Dataset[Any]):
    def __init__(self, path: str, dtype: Any) -> None:
        self.data, self.dtype = np.memmap(path, dtype=np.uint16, mode="r"), dtype

    def __len__(self) -> int:
        return (len(self.data) - 1) // SEQ

    def __getitem__(self, i: int) -> Any:
        row = self.data[i * SEQ : i * SEQ + SEQ + 1]
        return torch.from_numpy(row.astype(self.dtype))


def dataloader(path: str, dtype: Any) -> Iterator[Any]:
    while True:
        yield from torch.utils.data.DataLoader(_Rows(path, dtype), ROWS, shuffle=True, drop_last=True)


def headrace(path: str, dtype: str, in_memory: bool) -> Iterator[Any]:
    data = hr.open(path, {"t": hr.tokens(seq_len=SEQ, stored="u16", dtype=dtype)}, in_memory=in_memory)
    with hr.Loader(data, ROWS, threads=1) as loader:
        for _, batches in loader.epochs(1 << 30):
            yield from batches


def rate(batches: Iterator[Any], seconds: float) -> float:
    for _ in range(8):
        next(batches)
    count, begin = 0, time.perf_counter()
    while (took := time.perf_counter() - begin) < seconds:
        next(batches)
        count += ROWS
    batches.close()  # type: ignore[attr-defined]
    return count / took


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--rounds", type=int, default=3)
    about.add_argument("--seconds", type=float, default=2.0)
    about.add_argument("--tokens", type=int, default=200_000_000)
    about.add_argument("--json", default="build/results/tokens.json")
    given = about.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        path = os.path.join(folder, "train.bin")
        np.random.default_rng(0).integers(0, 50_000, given.tokens, np.uint16).tofile(path)
        contenders: dict[str, Callable[[], Iterator[Any]]] = {
            "gather, u16": lambda: gather(path, np.uint16),
            "gather, int64": lambda: gather(path, np.int64),
            "headrace in memory, u16": lambda: headrace(path, "u16", True),
            "headrace in memory, int64": lambda: headrace(path, "i64", True),
            "headrace from the file, int64": lambda: headrace(path, "i64", False),
            "DataLoader, int64": lambda: dataloader(path, np.int64),
            "nanoGPT's get_batch, int64": lambda: get_batch(path),
        }
        rates: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(given.rounds):
            for name, make in contenders.items():
                rates[name].append(rate(make(), given.seconds))
    medians = {name: statistics.median(each) for name, each in rates.items()}
    ours = medians["headrace in memory, int64"]
    print("| rows of 2,049 tokens, one thread | rows/s | headrace in memory, int64, over it |\n|---|---|---|")
    for name, median in medians.items():
        print(f"| {name} | {median:,.0f} | {ours / median:.2f}x |")
    print(f"u16: {medians['headrace in memory, u16'] / medians['gather, u16']:.2f} of the gather")
    pathlib.Path(given.json).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(given.json).write_text(json.dumps({"rates": rates}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
