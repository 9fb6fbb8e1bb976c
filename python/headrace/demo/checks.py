# SPDX-License-Identifier: Apache-2.0
"""The demo's proofs: each loads data, and compares sample numbers and bytes with what must come."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr

from .data import Data

SEED = 42
EPOCHS = 2
_PATIENCE_S = 300

#: Checksums of the pixels by (epoch, sample number), as one rank got them.
Pixels = dict[tuple[int, int], int]
Advance = Callable[[int], None]


def training_fields(size: int = 224) -> dict[str, hr.Field]:
    picture = hr.image("jpg").random_resized_crop(size).random_flip().normalize(hr.IMAGENET)
    return {"image": picture, "label": hr.scalar("cls")}


@dataclass
class Faults:
    """What must not happen to a sample in an epoch, and how often it did."""

    missing: int = 0
    repeated: int = 0
    wrong: int = 0  # bytes, pixels or label are not what they must be

    def count(self, indices: np.ndarray, samples: int) -> None:
        times = np.bincount(indices, minlength=samples)
        self.missing += int((times == 0).sum())
        self.repeated += int((times - 1).clip(0).sum())

    @classmethod
    def of(cls, tallies: Iterable[Tally], samples: int) -> Faults:
        """Of whole epochs."""
        found = cls()
        for t in tallies:
            found.wrong += t.wrong
            for epoch in range(len(t.indices)):
                found.count(t.samples(epoch), samples)
        return found

    def any(self) -> bool:
        return self.missing + self.repeated + self.wrong > 0

    def __str__(self) -> str:
        return f"{self.missing} missing, {self.repeated} twice, {self.wrong} wrong"


@dataclass
class Tally:
    """What the ranks of one run got, epoch by epoch."""

    ranks: int
    batches: list[list[int]] = field(default_factory=list)  # [epoch][rank]
    indices: list[list[list[np.ndarray]]] = field(default_factory=list)  # [epoch][step][rank]
    wrong: int = 0  # samples whose bytes, pixels or label are not what they must be

    def samples(self, epoch: int) -> np.ndarray:
        return np.concatenate([part for step in self.indices[epoch] for part in step] or [np.empty(0, np.int64)])

    def even(self) -> bool:
        """Every rank got the same number of batches."""
        return all(len(set(counts)) == 1 for counts in self.batches)

    def steps_equal(self, other: Tally) -> bool:
        """Each step holds the samples of the same stretch of `other`, which ran on one rank."""
        for mine, theirs in zip(self.indices, other.indices):
            flat = [part for step in theirs for part in step]
            at = 0
            for step in mine:
                wanted = np.concatenate(flat[at : at + self.ranks])
                if not np.array_equal(np.sort(np.concatenate(step)), np.sort(wanted)):
                    return False
                at += self.ranks
        return True


def _loaders(source: str, ranks: int, batch: int, fields: dict[str, hr.Field], shuffle: str, output: str) -> list[hr.Loader]:
    options: dict[str, Any] = {"shuffle": shuffle, "seed": SEED, "tail": "keep", "output": output}
    return [hr.Loader(source, batch, fields, rank=r, world_size=ranks, **options) for r in range(ranks)]


def _drain(epochs: Iterable[tuple[int, list[Any]]], tally: Tally, look: Callable[[int, hr.Batch], int], advance: Advance) -> None:
    """Takes a batch from every rank in turn until none has one left."""
    for epoch, iterators in epochs:
        tally.indices.append([])
        tally.batches.append([0] * len(iterators))
        while True:
            batches = [(r, b) for r, b in enumerate(next(it, None) for it in iterators) if b is not None]
            if not batches:
                break
            tally.indices[-1].append([b.indices for _, b in batches])
            for r, b in batches:
                tally.batches[-1][r] += 1
                tally.wrong += look(epoch, b)
            advance(sum(len(b.indices) for _, b in batches))


def numpy_of(values: Any) -> np.ndarray:
    return values if isinstance(values, np.ndarray) else np.asarray(values.numpy())


def pixel_sums(batch: hr.Batch) -> list[int]:
    return [zlib.crc32(np.ascontiguousarray(picture).data) for picture in numpy_of(batch["image"])]


def one_rank(data: Data, batch: int, output: str, advance: Advance) -> tuple[dict[str, Tally], dict[str, int], Pixels]:
    """All sources side by side: tallies, batches that differ from the class folders', and the pixels."""
    names = list(data.sources())
    tallies = {name: Tally(1) for name in names}
    differing = dict.fromkeys(names[1:], 0)
    pixels: Pixels = {}
    loaders = [_loaders(url, 1, batch, training_fields(), "global", output)[0] for url in data.sources().values()]
    for epoch in range(EPOCHS):
        for t in tallies.values():
            t.indices.append([])
            t.batches.append([0])
        iterators = [loader.epoch(epoch) for loader in loaders]
        for batches in zip(*iterators):
            first = batches[0]
            for name, b in zip(names, batches):
                t = tallies[name]
                t.indices[-1].append([b.indices])
                t.batches[-1][0] += 1
                t.wrong += int((numpy_of(b["label"]) != data.labels[b.indices]).sum())
                if b is not first:
                    same = all(np.array_equal(numpy_of(b[f]), numpy_of(first[f])) for f in first)
                    differing[name] += not (same and np.array_equal(b.indices, first.indices))
                advance(len(b.indices))
            pixels.update({(epoch, int(i)): s for i, s in zip(first.indices, pixel_sums(first))})
    for loader in loaders:
        loader.close()
    return tallies, differing, pixels


def several_ranks(data: Data, url: str, ranks: int, batch: int, shuffle: str, output: str, advance: Advance) -> Tally:
    """Ranks as objects in this process. The files come as they lie, and are compared with the disk's."""
    fields = {"file": hr.bytes("jpg"), "label": hr.scalar("cls")}
    loaders = _loaders(url, ranks, batch, fields, shuffle, output)

    def look(_: int, b: hr.Batch) -> int:
        sums = np.array([zlib.crc32(f) for f in b["file"]], dtype=np.int64)
        return int(((sums != data.checksums[b.indices]) | (numpy_of(b["label"]) != data.labels[b.indices])).sum())

    tally = Tally(ranks)
    _drain(((e, [loader.epoch(e) for loader in loaders]) for e in range(EPOCHS)), tally, look, advance)
    for loader in loaders:
        loader.close()
    return tally


@dataclass
class Resumed:
    """A run of `before.ranks` ranks stopped in the middle of epoch 1, and gone on from on `after.ranks`."""

    before: Tally
    after: Tally
    states_equal: bool

    def faults(self, samples: int) -> Faults:
        found = Faults(wrong=self.before.wrong + self.after.wrong)
        found.count(np.concatenate((self.before.samples(0), self.after.samples(0))), samples)
        return found


def resume(data: Data, ranks: tuple[int, int], batch: int, output: str, pixels: Pixels, advance: Advance) -> Resumed:
    """Half an epoch on some ranks, the rest on others, from the state alone."""

    def look(epoch: int, b: hr.Batch) -> int:
        return sum(pixels.get((epoch, int(i))) != s for i, s in zip(b.indices, pixel_sums(b)))

    before, after = Tally(ranks[0]), Tally(ranks[1])
    first = _loaders(data.shards, ranks[0], batch, training_fields(), "global", output)
    half = max(1, len(first[0]) // 2)
    iterators = [(b for _, b in zip(range(half), loader.epoch(1))) for loader in first]
    _drain([(1, iterators)], before, look, advance)
    states = [loader.state_dict() for loader in first]
    for loader in first:
        loader.close()
    second = _loaders(data.shards, ranks[1], batch, training_fields(), "global", output)
    for loader in second:
        loader.load_state_dict(states[0])
    _drain([(1, [loader.epoch(1) for loader in second])], after, look, advance)
    for loader in second:
        loader.close()
    return Resumed(before, after, all(s == states[0] for s in states))


def _rank_environment(rank: int, ranks: int) -> dict[str, str]:
    """As torchrun sets it; what another launcher said about the demo itself is left out."""
    others = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "PALS_", "MV2_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(others)}
    return {**env, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}


def processes(data: Data, ranks: int, batch: int, pixels: Pixels) -> tuple[Tally, list[str]]:
    """Ranks as processes that know of each other only by RANK and WORLD_SIZE; and who told them."""
    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as scratch:
        outs = [Path(scratch) / f"{r}.npz" for r in range(ranks)]
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "headrace.demo.rank", data.shards, str(batch), str(out)],
                env=_rank_environment(r, ranks), stderr=subprocess.PIPE, text=True,
            )
            for r, out in enumerate(outs)
        ]  # fmt: skip
        try:
            for r, p in enumerate(running):
                _, said = p.communicate(timeout=_PATIENCE_S)
                if p.returncode != 0:
                    last = (said.strip().splitlines() or ["nothing said"])[-1]
                    raise hr.Error(f"rank {r} of {ranks} ended with code {p.returncode}: {last}")
        except subprocess.TimeoutExpired:
            raise hr.Error(f"the {ranks} ranks as processes were not done after {_PATIENCE_S} s") from None
        finally:
            for p in running:
                p.kill()
        got = [dict(np.load(out)) for out in outs]
    tally = Tally(ranks)
    for epoch in range(EPOCHS):
        tally.batches.append([int(g[f"batches{epoch}"]) for g in got])
        tally.indices.append([[g[f"indices{epoch}"] for g in got]])
        for g in got:
            tally.wrong += sum(pixels.get((epoch, int(i))) != int(s) for i, s in zip(g[f"indices{epoch}"], g[f"pixels{epoch}"]))
    return tally, [str(g["told_by"]) for g in got]
