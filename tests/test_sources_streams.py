# SPDX-License-Identifier: Apache-2.0
"""Iterables: of known length they are kept in memory; of unknown length they stream, with weaker promises."""

from __future__ import annotations

import logging
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
