# SPDX-License-Identifier: Apache-2.0
"""Mixtures: exact proportions, every source without loss or repetition, resumable, weights that change."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from typing import Any

import headrace as hr
import numpy as np
import pytest
from support import COUNT, NUMBER, NUMBERS, Data, Shape, digest, indices_of, on_ranks, rest_of_epoch


@pytest.fixture(scope="module")
def three(numbers: hr.Dataset) -> dict[str, tuple[hr.Dataset, float]]:
    return {"a": (numbers[:100], 5), "b": (numbers[100:150], 3), "c": (numbers[150:], 2)}


def draws(batches: Any) -> list[tuple[int, int]]:
    """(source, sample) in the order delivered."""
    return [(int(s), int(i)) for b in batches for s, i in zip(b.sources, b.indices)]


def load(parts: Any, batch: int, *, epoch_samples: int = 0, **options: Any) -> hr.Loader:
    options = {"seed": 4, "output": "numpy", "threads": 2, "tail": "keep", **options}
    return hr.Loader(hr.blend(parts, epoch_samples=epoch_samples), batch, NUMBER, **options)


SHUFFLES = [False, "global", "pool"]
BLOCK = 64  # draws of a mixing block, for weights that are not tiny


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_proportions_are_exact_to_within_one_sample_at_the_borders_of_mixing_blocks(three: Any, shuffle: object) -> None:
    with load(three, BLOCK, epoch_samples=16 * BLOCK, shuffle=shuffle) as loader:
        counts: Counter[int] = Counter()
        for b in loader.epoch(0):
            counts += Counter(b.sources.tolist())
            assert all(abs(counts[k] - sum(counts.values()) * share) < 1 for k, share in enumerate((0.5, 0.3, 0.2)))


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_proportions_stay_exact_for_ever(three: Any, shuffle: object) -> None:
    with load(three, 50, epoch_samples=1000, shuffle=shuffle) as loader:
        order = [s for epoch in range(8) for s, _ in draws(loader.epoch(epoch))]
    for g in range(1600, 8001, 1600):  # borders of steps and of blocks
        counts = Counter(order[:g])
        assert all(abs(counts[k] - g * share) < 1 for k, share in enumerate((0.5, 0.3, 0.2))), g


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_every_source_runs_through_its_samples_without_loss_or_repetition(three: Any, shuffle: object) -> None:
    with load(three, 10, epoch_samples=1000, shuffle=shuffle) as loader:
        order = draws(loader.epoch(0))
    for source, (ds, _) in enumerate(three.values()):
        counts = Counter(i for s, i in order if s == source)
        assert set(counts) == set(range(len(ds)))
        assert max(counts.values()) - min(counts.values()) <= 1


def test_what_is_delivered_is_what_source_and_index_say(three: Any) -> None:
    starts = (0, 100, 150)
    with load(three, 10, epoch_samples=300) as loader:
        for b in loader.epoch(0):
            assert b["n"].tolist() == [starts[s] + i for s, i in zip(b.sources, b.indices)]


def test_an_epoch_is_all_samples_of_all_sources_unless_told_otherwise(three: Any) -> None:
    with load(three, 10) as loader:
        assert len(draws(loader.epoch(0))) == NUMBERS


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_sources_are_mixed_within_a_batch(three: Any, shuffle: object) -> None:
    with load(three, 40, epoch_samples=1000, shuffle=shuffle) as loader:
        for b in loader.epoch(0):
            assert len(set(b.sources.tolist())) >= 2


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_no_rank_sees_one_source_only(three: Any, shuffle: object) -> None:
    ranks = on_ranks(hr.blend(three, epoch_samples=1000), Shape(4, 10), shuffle=shuffle, use=lambda x: draws(x.epoch(0)))
    for order in ranks:
        counts = Counter(s for s, _ in order)
        assert all(abs(counts[k] / len(order) - share) < 0.15 for k, share in enumerate((0.5, 0.3, 0.2)))


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_the_draws_depend_neither_on_ranks_nor_batch_nor_threads(three: Any, shuffle: object) -> None:
    with load(three, 1, epoch_samples=300, shuffle=shuffle, threads=1) as loader:
        order = draws(loader.epoch(0))
    for shape in (Shape(1, 20), Shape(2, 10), Shape(5, 4), Shape(3, 7)):
        ranks = on_ranks(
            hr.blend(three, epoch_samples=300), shape, shuffle=shuffle, seed=4, tail="keep", use=lambda x: list(x.epoch(0))
        )
        g = 0
        for step in zip(*ranks):
            got = draws(step)
            assert sorted(got) == sorted(order[g : g + len(got)])
            g += len(got)


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("shape", [Shape(1, 10), Shape(2, 7), Shape(3, 5)])
def test_resume_on_other_ranks_gives_exactly_the_rest(three: Any, shape: Shape, shuffle: object) -> None:
    with load(three, 10, epoch_samples=300, shuffle=shuffle) as loader:
        states = [(loader.state_dict(), 0)]
        order: list[tuple[int, int]] = []
        for b in loader.epoch(0):
            order += draws([b])
            states.append((loader.state_dict(), len(order)))
    for state, g in states[1:-1:4]:
        ranks = on_ranks(
            hr.blend(three, epoch_samples=300),
            shape,
            state=json.loads(json.dumps(state)),
            shuffle=shuffle,
            seed=4,
            tail="keep",
            use=rest_of_epoch,
        )
        rest = [d for batches in ranks for d in draws(batches)]
        assert sorted(rest) == sorted(order[g:])


def test_a_source_goes_on_into_its_own_next_epoch_with_new_draws(data: Data) -> None:
    """The second time a picture comes in one epoch of the blend, it is augmented otherwise."""
    parts = {"few": (hr.open(data.tar)[:4], 1.0), "many": (hr.open(data.tar)[4:], 1.0)}
    field = {"image": hr.image("jpg").random_resized_crop(16)}
    with hr.Loader(hr.blend(parts, epoch_samples=40), 8, field, output="numpy") as loader:
        seen: dict[int, list[bytes]] = {}
        for b in loader.epoch(0):
            for s, i, p in zip(b.sources, b.indices, b["image"]):
                if s == 0:
                    seen.setdefault(int(i), []).append(p.tobytes())
    assert len(seen) == 4 and all(len(v) > 3 and len(set(v)) == len(v) for v in seen.values())


def test_sources_of_equal_data_have_orders_and_draws_of_their_own(data: Data) -> None:
    ds = hr.open(data.tar)
    field = {"image": hr.image("jpg").random_resized_crop(16)}
    with hr.Loader(hr.blend({"x": (ds, 1.0), "y": (ds, 1.0)}, epoch_samples=2 * BLOCK), 16, field, output="numpy") as loader:
        order, pictures = [], {}
        for b in loader.epoch(0):
            order += draws([b])
            for s, i, p in zip(b.sources, b.indices, b["image"]):
                pictures.setdefault((int(s), int(i)), p.tobytes())
    assert [i for s, i in order if s == 0] != [i for s, i in order if s == 1]
    assert not any(pictures[0, i] == pictures[1, i] for i in range(COUNT))


@pytest.mark.parametrize("first", ["folder", "tar"])
def test_folders_and_shards_may_be_blended(data: Data, first: str) -> None:
    """Labels lie in the index of one and in members of the other."""
    second = "tar" if first == "folder" else "folder"
    parts = {first: (data.everywhere[first], 1.0), second: (data.everywhere[second], 1.0)}
    fields = {"image": hr.image("jpg").resize((8, 8)), "label": hr.scalar("cls"), "key": hr.key()}
    with hr.Loader(hr.blend(parts), 10, fields, tail="keep", output="numpy") as loader:
        labels = {s.key: s.label for s in data.samples}
        n = 0
        for b in loader.epoch(0):
            assert b["label"].tolist() == [labels[k] for k in b["key"]]
            n += len(b["label"])
    assert n == 2 * COUNT


def test_sources_without_a_field_that_is_asked_for_are_refused(data: Data) -> None:
    with pytest.raises(hr.UsageError, match="'txt'"):
        hr.Loader(hr.blend({"t": (data.tar, 1.0), "f": (data.folder, 1.0)}), 4, {"t": hr.text("txt")})


def test_a_weight_of_zero_leaves_a_source_out(three: Any) -> None:
    parts = {name: (ds, 0 if name == "b" else w) for name, (ds, w) in three.items()}
    with load(parts, 10, epoch_samples=200) as loader:
        assert {s for s, _ in draws(loader.epoch(0))} == {0, 2}


def test_tiny_weights_are_honoured(numbers: hr.Dataset) -> None:
    with load({"a": (numbers, 999), "b": (numbers, 1)}, 100, epoch_samples=5000) as loader:
        counts = Counter(s for s, _ in draws(loader.epoch(0)))
    assert abs(counts[1] - 5) <= 1


def test_a_blend_of_one_source_is_that_source(numbers: hr.Dataset) -> None:
    with load({"a": (numbers, 1)}, 8) as loader:
        assert sorted(indices_of(loader.epoch(0))) == list(range(NUMBERS))


def test_the_state_of_a_blend_is_small_and_equal_on_all_ranks(three: Any) -> None:
    def steps(loader: hr.Loader) -> list[dict[str, Any]]:
        return [loader.state_dict() for _ in loader.epoch(0)]

    ranks = on_ranks(hr.blend(three, epoch_samples=300), Shape(3, 10), use=steps)
    assert all(r == ranks[0] for r in ranks)
    assert all(len(json.dumps(s)) < 4096 for s in ranks[0])


# -- weights that change -----------------------------------------------------------------------------


def test_set_weights_changes_the_proportions_from_the_step_named(three: Any) -> None:
    with load(three, 16, epoch_samples=16 * BLOCK) as loader:
        sources = []
        for step, b in enumerate(loader.epoch(0)):
            sources += b.sources.tolist()
            if step == 20:
                loader.set_weights({"a": 0, "b": 1, "c": 1}, at_step=32)
    before, after = Counter(sources[: 8 * BLOCK]), Counter(sources[8 * BLOCK :])
    assert all(abs(before[k] - 8 * BLOCK * share) < 1 for k, share in enumerate((0.5, 0.3, 0.2)))
    assert after == {1: 4 * BLOCK, 2: 4 * BLOCK}


def test_set_weights_loses_and_repeats_nothing(three: Any) -> None:
    with load(three, 10, epoch_samples=1000) as loader:
        order = []
        for step, b in enumerate(loader.epoch(0)):
            order += draws([b])
            if step in (10, 33, 60):
                loader.set_weights({"a": step % 7 + 1, "b": 2, "c": 3}, at_step=step + 5)
    for source, (ds, _) in enumerate(three.values()):
        counts = Counter(i for s, i in order if s == source)
        assert max(counts.values()) - min(counts.get(i, 0) for i in range(len(ds))) <= 1


def test_set_weights_before_the_first_batch_counts(three: Any) -> None:
    with load(three, 10, epoch_samples=200) as loader:
        loader.set_weights({"a": 1, "b": 0, "c": 0}, at_step=0)
        assert {s for s, _ in draws(loader.epoch(0))} == {0}


@pytest.mark.parametrize("how", ["epoch", "epochs", "iter"])
def test_set_weights_between_epochs_counts(three: Any, how: str) -> None:
    """Also where the loader had already prepared the next epoch."""
    with load(three, 10, epoch_samples=100) as loader:

        def change(e: int) -> None:
            if e == 1:
                loader.set_weights({"a": 0, "b": 0, "c": 1}, at_step=0)

        sources = []
        if how == "epochs":
            for e, batches in loader.epochs(4):
                sources.append({s for s, _ in draws(batches)})
                change(e)
        else:
            for e in range(4):
                sources.append({s for s, _ in draws(loader.epoch(e) if how == "epoch" else loader)})
                change(e)
    assert sources[2:] == [{2}, {2}] and sources[0] == {0, 1, 2}


def test_set_weights_on_all_ranks_keeps_them_one_sequence(three: Any) -> None:
    def use(loader: hr.Loader) -> list[hr.Batch]:
        out = []
        for step, b in enumerate(loader.epoch(0)):
            out.append(b)
            if step == 5:
                loader.set_weights({"a": 1, "b": 1, "c": 8}, at_step=9)
        return out

    parts = hr.blend(three, epoch_samples=400)
    (one,) = on_ranks(parts, Shape(1, 20), seed=4, use=use)
    two = on_ranks(parts, Shape(2, 10), seed=4, use=use)
    for a, step in zip(one, zip(*two)):
        assert sorted(draws([a])) == sorted(draws(step))


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("shape", [Shape(1, 20), Shape(2, 10), Shape(4, 5)])
def test_weights_set_while_running_give_the_order_of_a_loader_that_knew_them(three: Any, shape: Shape, shuffle: object) -> None:
    """Steps are planned, read and decoded far ahead of the step that is changed."""

    def knew(loader: hr.Loader) -> list[list[tuple[int, int]]]:
        loader.set_weights({"a": 1, "b": 1, "c": 8}, at_step=9)
        return [draws([b]) for b in loader.epoch(0)]

    def running(loader: hr.Loader) -> list[list[tuple[int, int]]]:
        out = []
        for step, b in enumerate(loader.epoch(0)):
            out.append(draws([b]))
            if step == tell:
                while loader.stats()["stages"]["decode"]["items"] < (step + 3) * shape.batch:
                    time.sleep(0.001)
                loader.set_weights({"a": 1, "b": 1, "c": 8}, at_step=9)
        return out

    parts = hr.blend(three, epoch_samples=400)
    want = on_ranks(parts, shape, seed=4, shuffle=shuffle, use=knew)
    for tell in (0, 6, 7, 8):
        assert on_ranks(parts, shape, seed=4, shuffle=shuffle, use=running) == want, tell


def test_the_step_at_hand_may_be_changed_and_one_that_was_delivered_may_not(three: Any) -> None:
    with load(three, 10, epoch_samples=400) as loader:
        it = loader.epoch(0)
        for _ in range(5):
            next(it)
        with pytest.raises(hr.UsageError, match="step 4 is already past: the loader stands at step 5"):
            loader.set_weights({"a": 0, "b": 0, "c": 1}, at_step=4)
        loader.set_weights({"a": 0, "b": 0, "c": 1}, at_step=5)
        rest = draws(it)
        assert {s for s, _ in rest} == {2} and len(rest) == 350


def test_weights_set_while_running_keep_what_was_read_before_their_step(three: Any) -> None:
    with load(three, 10, epoch_samples=400) as loader:
        it = loader.epoch(0)
        next(it)
        for _ in range(20):  # far ahead of the step: nothing is dropped, nothing read twice
            loader.set_weights({"a": 1, "b": 1, "c": 8}, at_step=39)
        assert len(draws(it)) == 390
        assert loader.stats()["stages"]["decode"]["items"] <= 400 + 10


def test_a_state_knows_the_weights_that_were_set(three: Any) -> None:
    def run(stop: int | None, state: Any = None) -> tuple[list[tuple[int, int]], Any]:
        with load(three, 10, epoch_samples=400) as loader:
            if state:
                loader.load_state_dict(json.loads(json.dumps(state)))
            order, at = [], 0
            for at, b in enumerate(itertools.islice(iter(loader), stop)):
                order += draws([b])
                if at == 8 and not state:
                    loader.set_weights({"a": 1, "b": 1, "c": 8}, at_step=20)
            return order, loader.state_dict()

    straight, _ = run(None)
    for stop in (10, 20, 30):
        first, state = run(stop)
        rest, _ = run(None, state)
        assert first + rest == straight, stop


def test_a_long_history_of_weights_keeps_the_state_small(three: Any) -> None:
    with load(three, 10, epoch_samples=10**6) as loader:
        it = loader.epoch(0)
        for step in range(1, 200):
            next(it)
            loader.set_weights({"a": step, "b": 3, "c": 2}, at_step=step + 1)
        assert len(json.dumps(loader.state_dict())) < 4096 + 48 * 3


def test_a_step_that_is_past_is_refused(three: Any) -> None:
    with load(three, 10, epoch_samples=400) as loader:
        list(itertools.islice(loader.epoch(0), 5))
        with pytest.raises(hr.UsageError, match="already past"):
            loader.set_weights({"a": 1, "b": 1, "c": 1}, at_step=2)


@pytest.mark.parametrize(
    "weights",
    [{"a": 1}, {"a": 1, "b": 1, "d": 1}, {}, {"a": -1, "b": 1, "c": 1}, {"a": 0, "b": 0, "c": 0}, {"a": "x", "b": 1, "c": 1}],
)
def test_weights_that_make_no_sense_are_refused_and_change_nothing(three: Any, weights: dict[str, Any]) -> None:
    with load(three, 10, epoch_samples=400) as loader:
        want = digest(loader.epoch(0))
        it = loader.epoch(0)
        got = [next(it) for _ in range(3)]
        with pytest.raises(hr.UsageError):
            loader.set_weights(weights, at_step=10)
        assert digest([*got, *it]) == want


def test_weights_of_a_loader_without_a_blend_are_refused(numbers: hr.Dataset) -> None:
    with hr.Loader(numbers, 8, NUMBER, output="numpy") as loader, pytest.raises(hr.UsageError):
        loader.set_weights({"": 1.0}, at_step=1)


def test_a_blend_of_other_sources_refuses_the_state(three: Any, numbers: hr.Dataset) -> None:
    with load(three, 10) as loader:
        state = loader.state_dict()
    with load({**three, "c": (numbers[:10], 2)}, 10) as loader, pytest.raises(hr.UsageError, match="other data"):
        loader.load_state_dict(state)


def test_class_counts_of_batches_follow_the_proportions(three: Any) -> None:
    """Mixing inside a block is by permutation: batches of 50 stay near 25, 15, 10."""
    with load(three, 50, epoch_samples=5000) as loader:
        rows = np.array([np.bincount(b.sources, minlength=3) for b in loader.epoch(0)])
    assert np.abs(rows.mean(axis=0) - [25, 15, 10]).max() < 0.05
    assert np.abs(rows - [25, 15, 10]).max() < 20


@pytest.mark.parametrize("options", [{"epochs": {"a": 1, "b": 2}}, {"exhausted": "stop"}, {"epoch_samples": 100}])
def test_a_blend_within_a_blend_has_no_length_of_its_own(numbers: hr.Dataset, options: Any) -> None:
    inner = hr.blend({"a": (numbers[:100], 1), "b": (numbers[100:], 1)}, **options)
    with pytest.raises(hr.UsageError, match="outermost"):
        hr.blend({"inner": (inner, 1), "c": (numbers[:50], 1)})


def test_a_blend_of_one_source_counts_it(numbers: hr.Dataset) -> None:
    with hr.Loader(hr.blend({"only": (numbers[:100], 2)}), 10, NUMBER) as loader:
        assert sum(len(b.indices) for b in loader.epoch(0)) == 100
        assert loader.stats()["sources"] == {"only": {"samples": 100, "share": 1.0, "epochs": 1.0}}
