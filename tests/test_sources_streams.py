# SPDX-License-Identifier: Apache-2.0
"""Iterables: of known length they are kept in memory; of unknown length they stream, with weaker promises."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch


def numbers(n: int = 100) -> Iterator[dict[str, Any]]:
    for i in range(n):
        yield {"x": np.full(3, i, np.float32), "i": i}


class Endless(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[Any]:
        return iter((torch.full((2,), float(i)), i) for i in range(70))


class Known(Endless):
    def __len__(self) -> int:
        return 70


def test_an_iterable_of_known_length_is_a_data_set() -> None:
    ds = hr.from_torch(Known())
    assert len(ds) == 70 and ds[3]["1"] == 3
    assert sorted(i for b in hr.Loader(ds, 7) for i in b["1"].tolist()) == list(range(70))
    assert len(hr.from_python({1: 2, 3: 4}.values())) == 2


def test_a_stream_loses_nothing_and_shuffles_within_its_buffer(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "headrace"):
        loader = hr.Loader(hr.from_python(numbers, buffer=32), 8, seed=2, tail="keep")
    assert "stream of unknown length" in caplog.text
    seen = []
    for batch in loader:
        assert np.array_equal(batch["x"][:, 0].numpy(), batch.indices) and (batch.indices == batch["i"].numpy()).all()
        seen.append(batch.indices.tolist())
    flat = [i for b in seen for i in b]
    assert sorted(flat) == list(range(100)) and flat != sorted(flat)
    assert all(i // 32 == n // 4 for n, b in enumerate(seen) for i in b)
    assert [b.indices.tolist() for b in loader] != seen  # another epoch
    again = hr.Loader(hr.from_python(numbers, buffer=32), 8, seed=2, tail="keep")
    assert [b.indices.tolist() for b in again] == seen
    with pytest.raises(TypeError, match="length is not known"):
        len(loader)


def test_a_stream_goes_on_from_a_state() -> None:
    def make() -> Any:
        return hr.Loader(hr.from_python(numbers, buffer=32), 8, seed=2)

    whole = [b.indices.tolist() for b in make()]
    for stop in (0, 1, 3, 4, 5, 11):
        loader = make()
        batches = iter(loader)
        state = loader.state_dict()
        for _ in range(stop):
            state = next(batches).state
            assert state == loader.state_dict()
        other = make()
        other.load_state_dict(state)
        assert [b.indices.tolist() for b in other] == whole[stop:]
    with pytest.raises(hr.UsageError, match="no state of a stream"):
        make().load_state_dict({"headrace": 1})


def test_ranks_share_a_stream_and_tails_are_declared() -> None:
    got = [
        [b.indices.tolist() for b in hr.Loader(hr.from_torch(Endless()), 4, rank=r, world_size=2, tail=t)]
        for t in ("drop", "keep")
        for r in range(2)
    ]
    assert len(got[0]) == len(got[1]) == 8 and len({i for r in got[:2] for b in r for i in b}) == 64
    assert sorted(i for r in got[2:] for b in r for i in b) == list(range(70))


def test_a_generator_is_used_up_after_an_epoch() -> None:
    loader = hr.Loader(hr.from_python(numbers()), 10, {"x": hr.array("x")})
    assert sum(len(b["x"]) for b in loader) == 100
    with pytest.raises(hr.UsageError, match="used up"):
        list(loader)


def test_what_a_stream_cannot_do() -> None:
    stream = hr.from_python(numbers)
    with pytest.raises(hr.UsageError, match="no sample 3"):
        stream[3]
    with pytest.raises(TypeError):
        len(stream)

    def failing() -> Iterator[int]:
        yield from range(10)
        raise ValueError("the connection is gone")

    with pytest.raises(ValueError, match="connection"):
        list(hr.Loader(hr.from_python(failing), 2))
    assert [e for e, _ in hr.Loader(stream, 10).epochs(3)] == [0, 1, 2]


def test_a_stream_says_that_it_has_no_views() -> None:
    stream = hr.from_python(lambda: iter([{"x": 1}]))
    for ask in (lambda: stream.where("x < 1"), lambda: stream.split(a=0.5, b=0.5), lambda: stream + stream):
        with pytest.raises(hr.UsageError, match="stream: it has no views"):
            ask()


def test_a_break_does_not_wait_for_the_generator() -> None:
    more = threading.Event()
    ended = threading.Event()

    def waits() -> Iterator[int]:
        try:
            yield from range(32)
            more.wait()
            yield from range(32, 100)
        finally:
            ended.set()

    loader = hr.Loader(hr.from_python(waits, buffer=16), 8, seed=1)
    for n, _ in enumerate(loader):
        if n == 2:  # of the second buffer: the third waits
            break
    loader.close()
    assert not ended.is_set()
    more.set()
    assert ended.wait(60)  # the generator is closed as soon as it lets go
    with pytest.raises(hr.UsageError, match="closed"):
        next(iter(loader))


def test_an_epoch_that_was_left_is_out_of_the_generator_before_another_begins() -> None:
    inside = threading.Lock()

    def make() -> Iterator[int]:
        for i in range(60):
            assert inside.acquire(blocking=False), "two threads are in the generators"
            time.sleep(0.001)
            inside.release()
            yield i

    loader = hr.Loader(hr.from_python(make, buffer=10), 5, seed=1, tail="keep")
    for _ in range(5):
        next(iter(loader))
    assert sorted(int(i) for b in loader for i in b["0"]) == list(range(60))


def test_processes_of_a_stream_are_started_once() -> None:
    fields = {"p": hr.scalar("i").map(lambda i: os.getpid(), shape=(), dtype="i64", processes=2), "i": hr.scalar("i")}
    with hr.Loader(hr.from_python(numbers, buffer=8), 4, fields, shuffle=False) as loader:
        for _ in range(2):
            got = [(int(p), int(i)) for b in loader for p, i in zip(b["p"], b["i"])]
            assert [i for _, i in got] == list(range(100))
            full = {p for p, i in got if i < 96}  # the last buffer is shorter
            assert len(full) <= 2 and os.getpid() not in full


def test_batches_of_a_stream_go_through_processes() -> None:
    def double(batch: dict[str, Any]) -> dict[str, Any]:
        return {**batch, "x": batch["x"] * 2}

    with hr.Loader(hr.from_python(numbers, buffer=32), 8, seed=2, tail="keep").map(double, processes=2) as loader:
        batches = list(loader.map(lambda b: {**b, "y": b["i"] + 1}))
        assert all((b["x"][:, 0] == 2 * b["i"]).all() and (b["y"] == b["i"] + 1).all() for b in batches)
        assert sorted(int(i) for b in batches for i in b["i"]) == list(range(100))
        with pytest.raises(hr.UsageError, match="come before"):
            loader.map(lambda b: None).map(double, processes=2)


def test_bad_samples_of_a_stream_are_named_by_their_place_in_it() -> None:
    def some() -> Iterator[Any]:
        for i in range(40):
            yield None if i in (9, 33) else i

    loader = hr.Loader(hr.from_python(some, buffer=10), 5, seed=1, tail="keep", bad_samples="replace")
    with pytest.raises(hr.UsageError, match="no batch yet"):
        loader.verdict()
    got = [int(i) for b in loader for i in b["0"]]
    assert len(got) == 40 and {9, 33} & set(got) == set()
    assert [q["sample"] for q in loader.quarantine] == [9, 33] and "returned None" in loader.quarantine[0]["cause"]
    assert loader.stats()["consumer"]["batches"] > 0 and loader.verdict().cause
