# SPDX-License-Identifier: Apache-2.0
"""Rows of tokens: headrace, a bare gather, DataLoader, nanoGPT's get_batch, LitData and Megatron-Core, on one file, one thread each.

    ./dev bench --tokens [--rounds 3] [--seconds 2] [--tokens 200000000] [--only headrace]

A file of u16 tokens in /dev/shm; batches of 64 rows, every row once an epoch in a shuffled order, as u16 and as int64.

gather      what memory allows: `np.take` of whole rows of 2,048 by a shuffled order out of the same pages (a memory map of the
            file) into memory that is used again, for int64 widened from there into memory that is used again. headrace gives
            one token a row more, makes its order, and hands a new tensor over each time. "huge pages": out of a private copy,
            which NumPy asks huge pages for; files in /dev/shm have pages of 4 KiB unless the system says otherwise.
pread       a bare loop of os.preadv of rows of 2,049 by a shuffled order, into memory that is used again: what reading the file allows.
headrace    rows of 2,049, one compute thread; "in memory" and from the file (in the page cache). "positions and mask": a Megatron pair of
            the same tokens, documents of 1,000, with hr.array("positions") and hr.array("loss_mask").
DataLoader  a map-style data set over a memory map, shuffled, without workers; its default collate stacks.
get_batch   nanoGPT's: inputs and targets, two arrays, drawn at random, as its train.py does.
LitData     TokensLoader over its own chunks of int32, shuffled, without workers, widened to int64; in an environment of its own.
Megatron    Megatron-Core's GPTDataset over the pair under torch's DataLoader without workers: rows of 2,048 tokens and as many labels, with
            a loss mask and positions; in an environment of its own.

The first batch of headrace is compared with the file. Rounds are interleaved; the table shows medians.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import environments
import headrace as hr
import numpy as np
import torch

ROWS, SEQ = 64, 2048
WANTED = {"gather, int64": 0.9, "DataLoader, int64": 8.0, "nanoGPT's get_batch, int64": 30.0, "LitData, int64": 18.0}


def gather(path: str, dtype: Any, private: bool = False) -> Iterator[Any]:
    data = np.fromfile(path, np.uint16) if private else np.asarray(np.memmap(path, np.uint16, "r"))
    rows = data[: len(data) // SEQ * SEQ].reshape(-1, SEQ)
    out, wide = np.empty((ROWS, SEQ), np.uint16), np.empty((ROWS, SEQ), dtype)
    epoch = 0
    while True:
        order = np.random.default_rng(epoch).permutation(len(rows))
        epoch += 1
        for at in range(0, len(rows) - ROWS + 1, ROWS):
            np.take(rows, order[at : at + ROWS], axis=0, out=out, mode="clip")
            if dtype is np.uint16:
                yield out
            else:
                np.copyto(wide, out)
                yield wide


def pread(path: str) -> Iterator[Any]:
    out = np.empty((ROWS, SEQ + 1), np.uint16)
    places = [memoryview(row).cast("B") for row in out]
    fd, count = os.open(path, os.O_RDONLY), (os.path.getsize(path) // 2 - 1) // SEQ
    try:
        while True:
            order = np.random.default_rng(0).permutation(count).tolist()
            for at in range(0, count - ROWS + 1, ROWS):
                for place, i in zip(places, order[at : at + ROWS]):
                    os.preadv(fd, [place], i * SEQ * 2)
                yield out
    finally:
        os.close(fd)


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


def with_documents(path: str, folder: str, length: int = 1000) -> str:
    """The same tokens as a pair of Megatron's, in documents of one length."""
    count = os.path.getsize(path) // 2 // length
    os.truncate(path, count * length * 2)
    os.link(path, os.path.join(folder, "documents.bin"))
    index = os.path.join(folder, "documents.idx")
    with open(index, "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1))
        f.write(np.full(count, length, "<i4").tobytes() + (np.arange(count, dtype="<i8") * length * 2).tobytes())
        f.write(np.arange(count + 1, dtype="<i8").tobytes())
    return index


def headrace(path: str, dtype: str, in_memory: bool, documents: bool = False) -> Iterator[Any]:
    fields: dict[str, Any] = {"t": hr.tokens(seq_len=SEQ, stored="u16", dtype=dtype)}
    if documents:
        fields = {"t": hr.tokens(seq_len=SEQ, dtype=dtype), "p": hr.array("positions"), "m": hr.array("loss_mask")}
    data = hr.open(path, fields, in_memory=in_memory)
    stream = np.memmap(path.replace(".idx", ".bin"), dtype=np.uint16, mode="r")
    with hr.Loader(data, ROWS, threads=1) as loader:
        first = next(iter(loader))
        for row, i in zip(first["t"].numpy(), first.indices):
            if not np.array_equal(row, stream[i * SEQ : i * SEQ + SEQ + 1]):
                raise SystemExit(f"row {i} differs from the file")
        loader.set_epoch(1)
        for _, batches in loader.epochs(1 << 30):
            yield from batches


def rate(batches: Iterator[Any], seconds: float) -> float:
    for _ in range(64):
        next(batches)
    count, begin = 0, time.perf_counter()
    while (took := time.perf_counter() - begin) < seconds:
        next(batches)
        count += ROWS
    batches.close()  # type: ignore[attr-defined]
    return count / took


def peer(name: str, script: str, path: str, folder: str, seconds: float) -> float:
    command = [str(environments.make(name)), str(pathlib.Path(__file__).parent / "peers" / script), path, folder, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise environments.NotInstalled((done.stderr.strip().splitlines() or ["no message"])[-1])
    return float(done.stdout.split()[-1])


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--rounds", type=int, default=3)
    about.add_argument("--seconds", type=float, default=2.0)
    about.add_argument("--tokens", type=int, default=200_000_000)
    about.add_argument("--only", default="", help="contenders whose name holds this; the gathers always")
    about.add_argument("--json", default="build/results/tokens.json")
    given = about.parse_args()
    torch.set_num_threads(1)
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=shared) as folder, tempfile.TemporaryDirectory(dir=shared) as chunks:
        path = os.path.join(folder, "train.bin")
        np.random.default_rng(0).integers(0, 50_000, given.tokens, np.uint16).tofile(path)
        os.mkdir(os.path.join(folder, "pair"))
        pair = with_documents(path, os.path.join(folder, "pair"))
        contenders: dict[str, Callable[[], float]] = {
            "gather, u16": lambda: rate(gather(path, np.uint16), given.seconds),
            "gather, int64": lambda: rate(gather(path, np.int64), given.seconds),
            "gather, huge pages, u16": lambda: rate(gather(path, np.uint16, True), given.seconds),
            "gather, huge pages, int64": lambda: rate(gather(path, np.int64, True), given.seconds),
            "headrace in memory, u16": lambda: rate(headrace(path, "u16", True), given.seconds),
            "headrace in memory, int64": lambda: rate(headrace(path, "i64", True), given.seconds),
            "headrace from the file, u16": lambda: rate(headrace(path, "u16", False), given.seconds),
            "headrace from the file, int64": lambda: rate(headrace(path, "i64", False), given.seconds),
            "headrace in memory, int64, positions and mask": lambda: rate(headrace(pair, "i64", True, True), given.seconds),
            "pread, u16": lambda: rate(pread(path), given.seconds),
            "DataLoader, u16": lambda: rate(dataloader(path, np.uint16), given.seconds),
            "DataLoader, int64": lambda: rate(dataloader(path, np.int64), given.seconds),
            "nanoGPT's get_batch, int64": lambda: rate(get_batch(path), given.seconds),
            "LitData, int64": lambda: peer("litdata", "litdata_tokens.py", path, f"{chunks}/litdata", given.seconds),
            "Megatron-Core's GPTDataset, int64": lambda: peer(
                "megatron", "megatron_tokens.py", pair.removesuffix(".idx"), f"{chunks}/megatron", given.seconds
            ),
        }
        contenders = {n: f for n, f in contenders.items() if given.only in n or n.startswith(("gather", "pread"))}
        rates: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(given.rounds):
            for name, measure in contenders.items():
                try:
                    rates[name].append(measure())
                except environments.NotInstalled as e:
                    print(f"{name}: not measured: {e}", file=sys.stderr)
    medians = {name: statistics.median(each) for name, each in rates.items() if each}
    ours = medians["headrace in memory, int64"]
    print("| rows of 2,049 tokens, one thread | rows/s | headrace in memory, int64, over it | wanted |\n|---|---|---|---|")
    for name, median in medians.items():
        wanted = f"{WANTED[name]:g}x" if name in WANTED else ""
        print(f"| {name} | {median:,.0f} | {ours / median:.2f}x | {wanted} |")
    print(f"u16: {medians['headrace in memory, u16'] / medians['gather, u16']:.2f} of the gather (0.9 wanted)")
    pathlib.Path(given.json).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(given.json).write_text(json.dumps({"rates": rates}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
