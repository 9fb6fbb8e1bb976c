# SPDX-License-Identifier: Apache-2.0
"""Large values come as bytes in the memory that they were read into: a subclass of `bytes` that behaves as one."""

from __future__ import annotations

import copy
import gc
import io
import pathlib
import pickle
import random

import headrace as hr
import numpy as np
import pytest
from support import write_tar

SIZES = [0, 1, 100, 16 << 10, (16 << 10) - 1, 40_000, 100_000, 3 << 20]


@pytest.fixture(scope="module")
def values() -> list[bytes]:
    rng = random.Random(2)
    return [rng.randbytes(n) for n in SIZES]


@pytest.fixture(scope="module")
def shard(values: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("stored")
    return write_tar(folder / "x.tar", ((f"{i:03d}.bin", v) for i, v in enumerate(values)))


def batch(shard: pathlib.Path) -> list[bytes]:
    with hr.Loader(shard, len(SIZES), {"x": hr.bytes("bin")}, shuffle=False) as loader:
        return next(iter(loader))["x"]


def test_they_behave_as_bytes(shard: pathlib.Path, values: list[bytes]) -> None:
    got = batch(shard)
    assert got == values and all(isinstance(v, bytes) for v in got)
    assert {v: i for i, v in enumerate(got)} == {v: i for i, v in enumerate(values)}  # hashes agree
    for mine, theirs in zip(got, values):
        assert mine[:7] == theirs[:7] and mine + b"x" == theirs + b"x" and bytes(mine) == theirs
        assert io.BytesIO(mine).getvalue() == theirs
        assert np.array_equal(np.frombuffer(mine, np.uint8), np.frombuffer(theirs, np.uint8))
        assert repr(mine[:20]) == repr(theirs[:20])


def test_pickled_and_copied_they_are_plain_bytes(shard: pathlib.Path, values: list[bytes]) -> None:
    for mine, theirs in zip(batch(shard), values):
        for other in (pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine), copy.copy(mine)):
            assert other == theirs and type(other) is bytes


def test_they_outlive_loader_and_batch(shard: pathlib.Path, values: list[bytes]) -> None:
    kept = []
    loader = hr.Loader(shard, len(SIZES), {"x": hr.bytes("bin")}, shuffle=False)
    for _, epoch in loader.epochs(6):
        kept += [b["x"] for b in epoch]
    loader.close()
    del loader
    gc.collect()
    assert kept == [values] * 6
    view = memoryview(kept[2][-1])  # the memory is not used again while somebody looks at it
    del kept
    gc.collect()
    assert all(batch(shard) == values for _ in range(5)) and bytes(view) == values[-1]


def test_nobody_makes_one(shard: pathlib.Path) -> None:
    kind = type(batch(shard)[-1])
    assert kind is not bytes
    with pytest.raises(TypeError):
        kind(b"abc")
    with pytest.raises(TypeError):
        bytes.__new__(kind, b"abc")
    with pytest.raises(TypeError):
        type("more", (kind,), {})
