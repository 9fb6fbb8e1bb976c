# SPDX-License-Identifier: Apache-2.0
"""A loader used in any order of calls gives what a simple model of it says."""

from __future__ import annotations

from typing import Any

import headrace as hr
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import NUMBER, NUMBERS, Shape, on_ranks

BATCH, EPOCHS = 16, 4


class Model:
    """The order of each epoch, once; a position; whether a state waits to be gone on from."""

    orders: dict[str, list[list[int]]] = {}  # noqa: RUF012 - made once

    def __init__(self, numbers: hr.Dataset, shuffle: str) -> None:
        if shuffle not in self.orders:
            make = [
                on_ranks(numbers, Shape(1, 1), shuffle=shuffle, seed=5, tail="keep", use=lambda x, e=e: list(x.epoch(e)))
                for e in range(EPOCHS + 2)
            ]
            self.orders[shuffle] = [[int(b.indices[0]) for b in run[0]] for run in make]
        self.order = self.orders[shuffle]
        self.epoch, self.g = 0, 0  # where the consumer stands
        self.asked: int | None = None  # by set_epoch()
        self.midway = False  # some batches of the epoch were taken, not all
        self.running = False
        self.loaded = False

    @property
    def next(self) -> int:  # what iter() gives
        return self.asked if self.asked is not None else self.epoch + self.midway

    def begin(self, n: int) -> None:
        if self.midway or self.epoch != n:
            self.epoch, self.g = n, 0
        self.loaded, self.running, self.midway, self.asked = False, True, False, None

    def take(self) -> list[int]:
        part = self.order[self.epoch][self.g : self.g + BATCH]
        self.g += len(part)
        self.midway = self.g < NUMBERS
        if not self.midway:
            self.epoch, self.g, self.running = self.epoch + 1, 0, False
        return part


actions = st.one_of(
    st.tuples(st.just("take"), st.integers(1, 20)),
    st.tuples(st.just("epoch"), st.integers(0, EPOCHS - 1)),
    st.tuples(st.just("iter"), st.just(0)),
    st.tuples(st.just("set_epoch"), st.integers(0, EPOCHS - 1)),
    st.tuples(st.just("save"), st.just(0)),
    st.tuples(st.just("load"), st.integers(0, 5)),
    st.tuples(st.just("bad load"), st.just(0)),
    st.tuples(st.just("stats"), st.just(0)),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    shuffle=st.sampled_from(["global", "pool"]),
    threads=st.sampled_from([1, 2, 5]),
    steps=st.lists(actions, min_size=1, max_size=30),
)
def test_any_order_of_calls_gives_what_the_model_says(
    numbers: hr.Dataset, shuffle: str, threads: int, steps: list[tuple[str, int]]
) -> None:
    model = Model(numbers, shuffle)
    saved: list[tuple[dict[str, Any], int, int]] = []
    with hr.Loader(numbers, BATCH, NUMBER, shuffle=shuffle, seed=5, tail="keep", threads=threads, output="numpy") as loader:
        it: Any = iter(())
        for name, n in steps:
            stands = model.epoch
            if name == "take" and model.running:
                for _ in range(n):
                    if not model.running:
                        break
                    assert sorted(next(it).indices.tolist()) == sorted(model.take())  # a step is sorted by lane
            elif name in ("epoch", "iter"):
                if name == "epoch":
                    wanted = stands if model.loaded else n
                else:
                    wanted = stands if model.loaded else model.next
                if wanted >= EPOCHS:
                    continue
                it = loader.epoch(wanted) if name == "epoch" else iter(loader)
                model.begin(wanted)
            elif name == "set_epoch" and not model.loaded:
                loader.set_epoch(n)
                model.asked = n
            elif name == "save":
                saved.append((loader.state_dict(), model.epoch, model.g))
            elif name == "load" and saved:
                state, model.epoch, model.g = saved[n % len(saved)]
                loader.load_state_dict(state)
                model.loaded, model.running, model.midway, model.asked = True, False, False, None
            elif name == "bad load":
                with pytest.raises(hr.UsageError):
                    loader.load_state_dict({"headrace": 1})
            elif name == "stats":
                assert loader.stats()["memory_used"] >= 0
            state = loader.state_dict()
            assert (state["epoch"], state["g"]) == (model.epoch, model.g)
