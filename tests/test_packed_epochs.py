# SPDX-License-Identifier: Apache-2.0
"""Samples that are grouped by their lengths, anew each epoch: rows of packed samples, batches by tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest
from test_packed import SEQ, corpus

Groups = list[list[int]]
Make = Callable[..., hr.Loader]


def groups_of(batch: Any) -> Groups:
    return [batch.indices[a:b].tolist() for a, b in pairwise(batch.groups)]


@pytest.fixture(params=["packed", "packed in pools", "by tokens"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """A Loader of 400 documents that are grouped, on these ranks."""
    corpus(tmp_path, count=400)
    url = str(tmp_path / "a.idx")

    def loader(rank: int = 0, ranks: int = 1, **more: Any) -> hr.Loader:
        options: dict[str, Any] = {"tail": "keep", "output": "numpy", "seed": 3, "rank": rank, "world_size": ranks, **more}
        if request.param == "by tokens":
            return hr.Loader(url, fields={"tokens": hr.tokens(documents=True)}, max_tokens=300, **options)
        if request.param == "packed in pools":
            options |= {"shuffle": "pool"} if "shuffle" not in more else {}
        return hr.Loader(hr.packed(url, SEQ, within=100), global_batch_size=6, **options)

    return loader


def test_other_samples_come_together_in_every_epoch(make: Make) -> None:
    epochs: list[Groups] = []
    with make() as loader:
        for _, batches in loader.epochs(4):
            epochs.append([g for batch in batches for g in groups_of(batch)])
    for groups in epochs:
        assert sorted(i for g in groups for i in g) == list(range(400))  # every document once
    shared = [{tuple(sorted(g)) for g in groups if len(g) > 1} for groups in epochs]
    for a, b in pairwise(shared):
        assert len(a & b) * 5 < len(a)


def test_the_length_is_that_of_the_epoch_at_hand(make: Make) -> None:
    with make() as loader:
        assert len(loader) == sum(1 for _ in loader.epoch(0))
        for n, batches in loader.epochs(7):
            assert len(loader) == len(batches)
            for left, _ in enumerate(batches):
                assert len(loader) >= left  # while it is under way, still its own
            counted = left + 1
            with make() as another:
                another.set_epoch(n)
                assert len(another) == counted
                assert sum(1 for _ in another) == counted


def test_a_run_goes_on_at_every_step_on_other_ranks(make: Make) -> None:
    straight: list[list[list[int]]] = []
    states = []
    with make() as loader:
        for batch in loader.epoch(2):
            straight.append(groups_of(batch))
            states.append(json.loads(json.dumps(batch.state)))
    flat = [sorted(g for step in straight[n:] for g in step) for n in range(len(straight))]
    for n, state in list(enumerate(states))[:-1:3]:
        for ranks in (1, 2, 3):
            rest: list[Groups] = []
            for rank in range(ranks):
                with make(rank, ranks) as some:
                    some.load_state_dict(state)
                    rest.append([g for batch in some.epoch(2) for g in groups_of(batch) if g])
                    assert len({len(r) for r in rest}) <= 2  # the last step may leave some without
            assert sorted(g for r in rest for g in r) == flat[n + 1]
    with make() as after:
        after.load_state_dict(states[-1])
        assert after.state_dict()["epoch"] == 3


def test_without_shuffling_epochs_are_alike(make: Make) -> None:
    with make(shuffle=False) as loader:
        first, second = ([groups_of(b) for b in batches] for _, batches in loader.epochs(2))
    assert first == second


def test_rows_that_stay_together_where_that_is_wanted(tmp_path: Path) -> None:
    corpus(tmp_path, count=300)
    rows = hr.packed(str(tmp_path / "a.idx"), SEQ, repack=False)
    wanted = sorted(rows[i] for i in range(len(rows)))
    with hr.Loader(rows, 1, output="numpy") as loader:
        assert len(loader) == len(rows)
        for _, batches in loader.epochs(2):
            assert sorted(g for b in batches for g in groups_of(b)) == wanted


def test_a_state_from_before_goes_on_with_rows_that_stay_together(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus(tmp_path, count=300)
    url = str(tmp_path / "a.idx")
    with hr.Loader(hr.packed(url, SEQ, repack=False), 4, output="numpy", tail="keep", seed=1) as old:
        batches = [(groups_of(b), b.state) for b in old.epoch(1)]
    with hr.Loader(hr.packed(url, SEQ), 4, output="numpy", tail="keep", seed=1) as new:
        new.load_state_dict(batches[4][1])
        assert [groups_of(b) for b in new.epoch(1)] == [g for g, _ in batches[5:]]
    assert "grouped anew each epoch is false in the state" in caplog.text


def test_an_epoch_that_has_no_batch_is_an_error(tmp_path: Path) -> None:
    from test_token_windows import write_megatron

    rng = np.random.default_rng(2)
    write_megatron(tmp_path / "a", [np.ones(n, np.uint16) for n in rng.integers(1, SEQ + 1, 40)])
    rows = hr.packed(str(tmp_path / "a.idx"), SEQ, within=8)
    for seed in range(20):
        with hr.Loader(rows, 1, seed=seed) as loader:
            counts = []
            for n in range(8):
                loader.set_epoch(n)
                counts.append(len(loader))
        if min(counts) < counts[0]:
            break
    short = next(n for n, count in enumerate(counts) if count < counts[0])
    with hr.Loader(rows, counts[0], seed=seed) as loader:
        assert sum(1 for _ in loader.epoch(0)) == 1
        with pytest.raises(hr.UsageError, match=f"epoch {short} has no batch: {counts[short]} groups of samples, {counts[0]} in"):
            list(loader.epoch(short))
        with pytest.raises(hr.UsageError, match=f"epoch {short} has no batch"):  # also where the one before runs on into it
            for _, batches in loader.epochs(short + 1):
                list(batches)
