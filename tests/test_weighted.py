# SPDX-License-Identifier: Apache-2.0
"""``hr.weighted``: counts by systematic sampling, computed here a second time in plain Python."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import headrace as hr
import numpy as np
import pytest
from support import NUMBER, NUMBERS, Data, Shape, digest, indices_of, on_ranks, one_epoch

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix64(x: int) -> int:
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def key(seed: int, *names: int | str) -> int:
    state = mix64((seed + GOLDEN) & MASK)
    for name in names:
        for part in [name] if isinstance(name, int) else [len(name), *name.encode()]:
            state = (mix64(state ^ mix64((part + GOLDEN) & MASK)) + GOLDEN) & MASK
    return state


def below(state: int, n: int) -> int:
    """The first number of the generator that starts at the key, in [0, n)."""
    while True:
        state = (state + GOLDEN) & MASK
        product = mix64(state) * n
        if product & MASK >= (1 << 64) % n:
            return product >> 64


def counts(weights: Any, draws: int, seed: int, epoch: int, source: str = "") -> list[int]:
    """How often each sample comes: exact fractions, one after the other."""
    share = np.asarray(weights, np.float64) / np.max(weights)
    whole = [int(v) for v in np.rint(share / share.sum() * 2.0**62)]
    whole = [max(v, 1) if w > 0 else 0 for v, w in zip(whole, weights)]
    total = sum(whole)
    start = Fraction(below(key(seed, "weights", source, epoch), total), total)
    out, end = [], start
    for w in whole:
        begin, end = end, end + Fraction(w * draws, total)
        out.append(end.__floor__() - begin.__floor__())
    return out


WEIGHTS = np.random.default_rng(1).random(NUMBERS) ** 4 * 3
WEIGHTS[[0, 50, NUMBERS - 1]] = 0


def seen(ds: Any, epoch: int, **options: Any) -> Counter[int]:
    options = {"seed": 3, "output": "numpy", "tail": "keep", "threads": 2, **options}
    with hr.Loader(ds, 16, NUMBER, **options) as loader:
        return Counter(i for b in loader.epoch(epoch) for i in b.indices.tolist())


@pytest.mark.parametrize("shuffle", [False, "global", "pool"])
@pytest.mark.parametrize("samples", [None, 40, 1000])
def test_an_epoch_is_what_plain_arithmetic_says(numbers: hr.Dataset, shuffle: Any, samples: int | None) -> None:
    ds = hr.weighted(numbers, WEIGHTS, samples=samples)
    for epoch in (0, 1, 7):
        want = counts(WEIGHTS, samples or NUMBERS, 3, epoch)
        got = seen(ds, epoch, shuffle=shuffle)
        assert [got[i] for i in range(NUMBERS)] == want


def test_each_count_is_within_one_of_its_expectation_and_their_mean_is_it(numbers: hr.Dataset) -> None:
    ds = hr.weighted(numbers, WEIGHTS)
    expected = WEIGHTS / WEIGHTS.sum() * NUMBERS
    total = np.zeros(NUMBERS)
    epochs = 60
    with hr.Loader(ds, 16, NUMBER, seed=9, output="numpy", tail="keep", threads=1) as loader:
        for epoch in range(epochs):
            got = np.bincount(np.concatenate([b.indices for b in loader.epoch(epoch)]), minlength=NUMBERS)
            assert got.sum() == NUMBERS and (np.abs(got - expected) < 1).all()
            total += got
    # Each epoch rounds up with the probability of the rest: six standard deviations are never met.
    rest = expected % 1
    assert (np.abs(total / epochs - expected) <= 6 * np.sqrt(rest * (1 - rest) / epochs) + 1e-9).all()


def test_what_is_delivered_is_the_sample_of_its_number(numbers: hr.Dataset) -> None:
    with hr.Loader(hr.weighted(numbers, WEIGHTS), 16, NUMBER, output="numpy") as loader:
        assert all(b["n"].tolist() == b.indices.tolist() for b in loader)


@pytest.mark.parametrize("shuffle", [False, "global", "pool"])
def test_ranks_share_the_draws_equally(numbers: hr.Dataset, shuffle: Any) -> None:
    ds = hr.weighted(numbers, WEIGHTS)
    want = seen(ds, 2, shuffle=shuffle)
    for shape in (Shape(2, 8), Shape(3, 5), Shape(7, 3)):
        ranks = on_ranks(ds, shape, fields=NUMBER, shuffle=shuffle, tail="keep", seed=3, threads=1, use=one_epoch(2))
        assert Counter(i for batches in ranks for i in indices_of(batches)) == want
        assert len({len(batches) for batches in ranks}) == 1


def test_a_state_goes_on_on_other_ranks_and_names_its_plan_version(numbers: hr.Dataset) -> None:
    ds = hr.weighted(numbers, WEIGHTS)
    with hr.Loader(ds, 12, NUMBER, seed=4, output="numpy", tail="keep") as loader:
        it = loader.epoch(1)
        for _ in range(5):
            next(it)
        state = loader.state_dict()
        rest = [i for b in it for i in b.indices.tolist()]
    assert state["plan_version"] == 2
    again = []
    for rank in range(3):
        with hr.Loader(ds, 4, NUMBER, seed=4, output="numpy", tail="keep", rank=rank, world_size=3) as loader:
            loader.load_state_dict(state)
            again += [i for b in loader.epoch(1) for i in b.indices.tolist()]
    assert sorted(again) == sorted(rest)


def test_states_without_weights_keep_their_version_and_load(numbers: hr.Dataset) -> None:
    with hr.Loader(numbers, 12, NUMBER, output="numpy") as loader:
        next(loader.epoch(0))
        state = loader.state_dict()
        assert state["plan_version"] == 1
        loader.load_state_dict(state)
    with hr.Loader(hr.weighted(numbers, WEIGHTS), 12, NUMBER, output="numpy") as loader:
        with pytest.raises(hr.UsageError, match="other data"):
            loader.load_state_dict(state)
        other = dict(loader.state_dict(), plan_version=3)
        with pytest.raises(hr.Error, match="plan version 3"):
            loader.load_state_dict(other)
    with hr.Loader(hr.weighted(numbers, WEIGHTS), 12, NUMBER, output="numpy") as loader:
        mine = loader.state_dict()
    with hr.Loader(hr.weighted(numbers, WEIGHTS + 1), 12, NUMBER, output="numpy") as loader:
        with pytest.raises(hr.UsageError, match="other data"):
            loader.load_state_dict(mine)


def test_weights_of_classes_by_number_and_by_name(data: Data) -> None:
    ds = hr.open(data.folder)
    labels = ds["cls"]
    by_name = hr.weighted(ds, {ds.classes[3]: 40.0, ds.classes[0]: 0.5})
    want = np.where(labels == 3, 40.0, np.where(labels == 0, 0.5, 1.0))
    fields = {"n": hr.scalar("cls")}
    with hr.Loader(by_name, 8, fields, seed=3, output="numpy", tail="keep") as loader:
        got = Counter(i for b in loader.epoch(0) for i in b.indices.tolist())
    assert [got[i] for i in range(len(ds))] == counts(want, len(ds), 3, 0)
    by_number = hr.weighted(ds, {3: 40.0, 0: 0.5}, "cls")
    with hr.Loader(by_number, 8, fields, seed=3, output="numpy") as a, hr.Loader(by_name, 8, fields, seed=3, output="numpy") as b:
        assert a.plan_id() == b.plan_id()
    with pytest.raises(hr.UsageError, match="no sample has the class 'nosuch'"):
        hr.weighted(ds, {"nosuch": 1.0})


def test_a_blend_of_weighted_sources_keeps_both(numbers: hr.Dataset) -> None:
    parts = {"w": (hr.weighted(numbers[:100], WEIGHTS[:100], samples=128), 0.5), "p": (numbers[100:], 0.5)}
    with hr.Loader(hr.blend(parts, epoch_samples=256), 32, NUMBER, seed=3, output="numpy", shuffle="pool") as loader:
        got = [(int(s), int(i)) for b in loader.epoch(0) for s, i in zip(b.sources, b.indices)]
    first = Counter(i for s, i in got if s == 0)
    assert [first[i] for i in range(100)] == counts(WEIGHTS[:100], 128, 3, 0, "w")


def test_repeats_of_a_sample_are_augmented_in_their_own_ways(data: Data) -> None:
    ds = hr.open(data.folder)
    weights = np.zeros(len(ds))
    weights[7] = 1
    fields = {"image": hr.image("jpg").random_resized_crop(16)}
    with hr.Loader(hr.weighted(ds, weights, samples=12), 12, fields, seed=1, output="numpy") as loader:
        (batch,) = loader.epoch(0)
        again = next(loader.epoch(0))
    assert set(batch.indices.tolist()) == {7}
    assert len({image.tobytes() for image in batch["image"]}) == 12
    assert digest([batch]) == digest([again])


def test_a_weighted_data_set_is_indexed_as_its_base_and_can_be_pickled(numbers: hr.Dataset) -> None:
    import pickle

    ds = hr.weighted(numbers, WEIGHTS)
    assert len(ds) == NUMBERS and ds[5] == numbers[5]
    assert seen(pickle.loads(pickle.dumps(ds)), 0) == seen(ds, 0)


def test_what_makes_no_sense_is_refused(numbers: hr.Dataset) -> None:
    for weights, words in [
        (WEIGHTS[:-1], f"{NUMBERS - 1} for {NUMBERS}"),
        (-WEIGHTS, "from 0 on"),
        (np.full(NUMBERS, np.nan), "from 0 on"),
        (np.zeros(NUMBERS), "all weights are 0"),
        ({"a": 1}, "no sample has the class"),
        (object(), "numbers"),
    ]:
        with pytest.raises(hr.UsageError, match=words):
            hr.weighted(numbers, weights)
    ds = hr.weighted(numbers, WEIGHTS)
    for call in (lambda: ds[2:5], lambda: ds.where("cls < 3"), lambda: ds + numbers, lambda: hr.join(a=ds, b=numbers)):
        with pytest.raises(hr.UsageError, match="weights"):
            call()
