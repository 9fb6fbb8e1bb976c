# SPDX-License-Identifier: Apache-2.0
"""loader.map(fn, processes=n): batches through processes, in their order, uncopied, to be gone on with."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch
from small_functions import darker
from support import COUNT, Data

FIELDS = {"x": hr.image("jpg").resize((16, 16)), "y": hr.scalar("cls"), "t": hr.text("txt"), "j": hr.json("json")}


def test_batches_come_in_order_and_know_their_samples(data: Data) -> None:
    def fn(batch: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.02 * (batch["y"][0] % 3))
        return {**batch, "sum": batch["x"].astype(np.int64).sum((1, 2, 3)), "who": np.asarray([os.getpid()])}

    with hr.Loader(data.tar, 4, FIELDS, seed=3, tail="keep", output="numpy") as loader:
        want = list(loader.epoch(0))
    with hr.Loader(data.tar, 4, FIELDS, seed=3, tail="keep", output="numpy") as loader:
        mapped = loader.map(fn, processes=3)
        got = list(mapped.epoch(0))
        assert [b.indices.tolist() for b in got] == [b.indices.tolist() for b in want]
        assert [b.state for b in got] == [b.state for b in want] and mapped.state_dict() == want[-1].state
        assert next(iter(mapped.epoch(1))).indices.tolist() != got[0].indices.tolist()
    for a, b in zip(got, want):
        assert np.array_equal(a["sum"], b["x"].astype(np.int64).sum((1, 2, 3)))
        assert a["t"] == b["t"] and a["j"] == b["j"] and np.array_equal(a["x"], b["x"])
    assert len({int(b["who"][0]) for b in got}) > 1


@pytest.mark.parametrize("output", ["numpy", "torch", "jax"])
def test_what_is_changed_in_place_is_changed(data: Data, output: Any) -> None:
    if output == "jax":
        pytest.importorskip("jax")
    with hr.Loader(data.tar, 5, FIELDS, shuffle=False, output=output) as loader:
        want = [np.asarray(b["x"]) // 2 for b in loader.epoch(0)]
    with hr.Loader(data.tar, 5, FIELDS, shuffle=False, output=output) as loader:
        got = list(loader.map(darker, processes=1).epoch(0))
    assert output != "torch" or isinstance(got[0]["x"], torch.Tensor)
    assert len(got) == len(want) and all(np.array_equal(np.asarray(b["x"]), w) for b, w in zip(got, want))


def test_a_state_goes_on_in_the_middle(data: Data) -> None:
    with hr.Loader(data.tar, 4, FIELDS, seed=3, tail="keep", output="numpy") as loader:
        rest = [b.indices.tolist() for b in loader.map(darker, processes=2).epoch(0)][5:]
    with hr.Loader(data.tar, 4, FIELDS, seed=3, tail="keep", output="numpy") as loader:
        mapped = loader.map(darker, processes=2)
        batches = iter(mapped.epoch(0))
        for _ in range(5):
            next(batches)
        state = mapped.state_dict()  # of what was received, not of what is under way
        mapped.load_state_dict(state)
        assert [b.indices.tolist() for b in mapped.epoch(0)] == rest


def test_an_epoch_may_be_left_and_a_plain_function_may_follow(data: Data) -> None:
    with hr.Loader(data.tar, 4, FIELDS, shuffle=False, output="numpy") as loader:
        mapped = loader.map(darker, processes=2).map(lambda b: {"n": len(b["x"]), "pids": loader._running.calls[0].pids})
        pids = {tuple(next(iter(mapped.epoch(e)))["pids"]) for e in range(4)}
        assert len(pids) == 1 and sum(b["n"] for b in mapped.epoch(4)) == COUNT
        with pytest.raises(hr.UsageError, match="come before those"):
            mapped.map(darker, processes=1)


def test_what_fails_is_named_and_the_next_epoch_works(data: Data) -> None:
    def fn(batch: dict[str, Any]) -> Any:
        if (batch["y"] == 2).any():
            os.kill(os.getpid(), signal.SIGKILL)
        if (batch["y"] == 3).any():
            raise LookupError("three")
        return batch if not (batch["y"] == 4).any() else 7

    for first, error, text in (
        (2, hr.DataError, "killed by signal 9"),
        (3, hr.UsageError, "LookupError: three"),
        (4, hr.UsageError, "returned int"),
    ):
        ds = hr.open(data.tar)
        samples = [i for i, s in enumerate(data.samples) if s.label in (0, first)]
        with hr.Loader(ds[samples], 4, FIELDS, shuffle=False, output="numpy") as loader:
            mapped = loader.map(fn, processes=2)
            for _ in range(2):
                with pytest.raises(error, match=text):
                    list(mapped.epoch(0))


def test_it_is_asked_for_before_an_epoch_begins(data: Data) -> None:
    with hr.Loader(data.tar, 4, FIELDS, output="numpy") as loader:
        next(iter(loader))
        with pytest.raises(hr.UsageError, match="before the first epoch"):
            loader.map(darker, processes=1)


def test_a_large_batch_comes_over_without_a_copy(data: Data) -> None:
    def fn(batch: dict[str, Any]) -> dict[str, Any]:
        batch["x"][0, 0, 0, 0] = 77.0
        return {"x": batch["x"]}

    fields = {"x": hr.image("jpg").resize((448, 448)).cast("f32")}
    with hr.Loader(data.tar, 16, fields, shuffle=False, output="numpy", threads=1) as loader:
        mapped = loader.map(fn, processes=1)
        inner: list[int] = []
        plain = mapped._next

        def spy() -> Any:
            taken = plain()
            if taken is not None:
                inner.append(taken[0]["x"].ctypes.data)
            return taken

        mapped._next = spy  # type: ignore[method-assign]
        batch = next(iter(mapped))
        assert batch["x"].nbytes == 16 * 3 * 448 * 448 * 4 and batch["x"][0, 0, 0, 0] == 77.0
        assert batch["x"].ctypes.data == inner[0]
