# SPDX-License-Identifier: Apache-2.0
"""Every sample exactly once, the same number of batches on every rank, an order that is a pure function."""

from __future__ import annotations

import itertools
import sys

import headrace as hr
import numpy as np
import pytest
from support import COUNT, NUMBER, NUMBERS, Data, Shape, crop, digest, indices_of, on_ranks, one_epoch, run_python, valid_of

SHUFFLES = [False, True, "global", "pool"]
RANKS = [1, 2, 3, 4, 7]
BATCHES = [1, 3, 8, 40]
SHAPES = [Shape(r, b) for r in RANKS for b in BATCHES]


def run(numbers: hr.Dataset, shape: Shape, shuffle: object, tail: str, epoch: int = 0) -> list[list[hr.Batch]]:
    return on_ranks(numbers, shape, shuffle=shuffle, tail=tail, seed=3, threads=1, use=one_epoch(epoch))


def fits(shape: Shape, tail: str) -> bool:
    return tail != "drop" or shape.ranks * shape.batch <= NUMBERS


@pytest.mark.parametrize("tail", ["drop", "pad", "keep"])
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_all_ranks_get_the_same_number_of_batches(numbers: hr.Dataset, shuffle: object, tail: str) -> None:
    for shape in SHAPES:
        if not fits(shape, tail):
            continue
        rest = NUMBERS % (shape.ranks * shape.batch)
        steps = NUMBERS // (shape.ranks * shape.batch) + (tail != "drop" and rest > 0)
        assert [len(b) for b in run(numbers, shape, shuffle, tail)] == [steps] * shape.ranks, shape


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_keep_gives_every_sample_exactly_once(numbers: hr.Dataset, shuffle: object) -> None:
    for shape in SHAPES:
        got = [i for batches in run(numbers, shape, shuffle, "keep") for i in indices_of(batches)]
        assert sorted(got) == list(range(NUMBERS)), shape


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_pad_marks_every_sample_exactly_once_as_valid(numbers: hr.Dataset, shuffle: object) -> None:
    for shape in SHAPES:
        got = [i for batches in run(numbers, shape, shuffle, "pad") for i in valid_of(batches)]
        assert sorted(got) == list(range(NUMBERS)), shape


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_pad_fills_every_batch(numbers: hr.Dataset, shuffle: object) -> None:
    for shape in SHAPES:
        for batches in run(numbers, shape, shuffle, "pad"):
            assert all(len(b.indices) == len(b.valid) == len(b["n"]) == shape.batch for b in batches), shape


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_drop_gives_full_batches_of_samples_that_differ(numbers: hr.Dataset, shuffle: object) -> None:
    for shape in SHAPES:
        if not fits(shape, "drop"):
            continue
        ranks = run(numbers, shape, shuffle, "drop")
        assert all(len(b.indices) == shape.batch and b.valid.all() for batches in ranks for b in batches)
        got = [i for batches in ranks for i in indices_of(batches)]
        assert len(got) == len(set(got)) == NUMBERS // (shape.ranks * shape.batch) * shape.ranks * shape.batch


def test_keep_cuts_the_last_step_evenly_and_gives_empty_batches_where_due(numbers: hr.Dataset) -> None:
    # 211 = 10 steps of 21 and one sample: six of seven ranks get nothing.
    last = [batches[-1] for batches in run(numbers, Shape(7, 3), "global", "keep")]
    assert sorted(len(b.indices) for b in last) == [0, 0, 0, 0, 0, 0, 1]
    empty = next(b for b in last if len(b.indices) == 0)
    assert empty["n"].shape == (0,) and empty["n"].dtype == np.int64
    assert empty.valid.shape == (0,) and empty.indices.shape == (0,)


def test_keep_cuts_to_within_one_sample(numbers: hr.Dataset) -> None:
    for shape in SHAPES:
        for step in zip(*run(numbers, shape, "pool", "keep")):
            sizes = [len(b.indices) for b in step]
            assert max(sizes) - min(sizes) <= 1, shape


def test_what_is_delivered_is_what_the_indices_say(numbers: hr.Dataset) -> None:
    for shuffle in SHUFFLES:
        for batches in run(numbers, Shape(3, 8), shuffle, "pad"):
            assert all(np.array_equal(b["n"], b.indices) for b in batches)


@pytest.mark.parametrize("tail", ["drop", "pad", "keep"])
def test_the_length_is_known_before_the_first_batch(numbers: hr.Dataset, tail: str) -> None:
    for shape in (Shape(1, 8), Shape(3, 8), Shape(7, 3)):
        said = on_ranks(numbers, shape, tail=tail, use=len)
        assert said == [len(b) for b in run(numbers, shape, True, tail)]


def test_shuffled_data_drops_its_tail_unless_told_otherwise(numbers: hr.Dataset) -> None:
    assert on_ranks(numbers, Shape(1, 8), use=len) == [NUMBERS // 8]


def test_data_in_order_keeps_its_tail_unless_told_otherwise(numbers: hr.Dataset) -> None:
    assert on_ranks(numbers, Shape(1, 8), shuffle=False, use=len) == [NUMBERS // 8 + 1]


def test_global_batch_size_is_cut_over_the_ranks(numbers: hr.Dataset) -> None:
    for rank in range(3):
        with (
            hr.Loader(numbers, fields=NUMBER, global_batch_size=24, rank=rank, world_size=3, output="numpy") as a,
            hr.Loader(numbers, 8, NUMBER, rank=rank, world_size=3, output="numpy") as b,
        ):
            assert digest(a.epoch(0)) == digest(b.epoch(0))


def test_false_is_the_order_of_the_data(numbers: hr.Dataset) -> None:
    (batches,) = run(numbers, Shape(1, 8), False, "keep")
    assert indices_of(batches) == list(range(NUMBERS))


@pytest.mark.parametrize("shuffle", [True, "global", "pool"])
def test_shuffling_shuffles(numbers: hr.Dataset, shuffle: object) -> None:
    (batches,) = run(numbers, Shape(1, 8), shuffle, "keep")
    order = np.array(indices_of(batches))
    assert np.count_nonzero(np.diff(order) == 1) < NUMBERS / 10
    assert abs(np.corrcoef(order, np.arange(NUMBERS))[0, 1]) < 0.35


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_the_order_depends_neither_on_ranks_nor_on_batch_size(numbers: hr.Dataset, shuffle: object) -> None:
    """After g samples of all ranks together, the same set was consumed."""
    (straight,) = run(numbers, Shape(1, 1), shuffle, "keep")
    order = indices_of(straight)
    for shape in SHAPES:
        g = 0
        for step in zip(*run(numbers, shape, shuffle, "keep")):
            got = indices_of(step)
            assert sorted(got) == sorted(order[g : g + len(got)]), shape
            g += len(got)


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_batches_are_byte_identical_for_any_number_of_threads(data: Data, shuffle: object) -> None:
    fields = {"image": crop(), "label": hr.scalar("cls"), "key": hr.key()}
    digests = set()
    for threads in (1, 2, 7):
        with hr.Loader(data.tar, 5, fields, shuffle=shuffle, seed=8, tail="pad", threads=threads, output="numpy") as loader:
            digests.add((digest(loader.epoch(0)), digest(loader.epoch(1))))
    assert len(digests) == 1


@pytest.mark.parametrize("shuffle", [False, "global"])
@pytest.mark.parametrize("where", ["tar", "pickle", "csv", "list", "jsonl"])
def test_folder_and_shards_and_lists_of_the_same_samples_give_the_same_bytes(data: Data, where: str, shuffle: object) -> None:
    fields = {"image": crop(), "label": hr.scalar("cls")}

    def digest_of(source: str) -> str:
        with hr.Loader(source, 5, fields, shuffle=shuffle, seed=8, tail="keep", output="numpy") as loader:
            return digest(loader.epoch(2))

    assert digest_of(data.everywhere[where]) == digest_of(str(data.folder))


def test_another_seed_gives_another_order(numbers: hr.Dataset) -> None:
    orders = {tuple(indices_of(on_ranks(numbers, Shape(1, 8), seed=s, use=one_epoch())[0])) for s in range(4)}
    assert len(orders) == 4


def test_another_epoch_gives_another_order(numbers: hr.Dataset) -> None:
    orders = {tuple(indices_of(run(numbers, Shape(1, 8), True, "drop", epoch=e)[0])) for e in range(4)}
    assert len(orders) == 4


def pictures(data: Data, *, seed: int, epoch: int) -> dict[int, bytes]:
    """Index → augmented pixels."""
    with hr.Loader(data.tar, 7, {"image": crop()}, seed=seed, tail="keep", output="numpy") as loader:
        return {int(i): p.tobytes() for b in loader.epoch(epoch) for i, p in zip(b.indices, b["image"])}


def test_another_seed_gives_other_augmentations(data: Data) -> None:
    a, b = pictures(data, seed=1, epoch=0), pictures(data, seed=2, epoch=0)
    assert sum(a[i] == b[i] for i in range(COUNT)) == 0


def test_another_epoch_gives_other_augmentations(data: Data) -> None:
    a, b = pictures(data, seed=1, epoch=0), pictures(data, seed=1, epoch=1)
    assert sum(a[i] == b[i] for i in range(COUNT)) == 0


def test_augmentations_depend_on_the_sample_not_on_its_place(data: Data) -> None:
    shuffled = pictures(data, seed=1, epoch=0)
    with hr.Loader(data.tar, 3, {"image": crop()}, seed=1, shuffle=False, output="numpy") as loader:
        for batch in loader.epoch(0):
            assert all(shuffled[int(i)] == p.tobytes() for i, p in zip(batch.indices, batch["image"]))


def test_two_fields_of_one_picture_draw_for_themselves(data: Data) -> None:
    with hr.Loader(data.tar, COUNT, {"a": crop(), "b": crop()}, tail="keep", output="numpy") as loader:
        (batch,) = loader.epoch(0)
    assert not any(np.array_equal(a, b) for a, b in zip(batch["a"], batch["b"]))


def test_an_epoch_is_the_same_after_others_and_on_its_own(data: Data) -> None:
    with hr.Loader(data.tar, 7, {"image": crop()}, output="numpy") as loader:
        for epoch in range(3):
            last = digest(loader.epoch(epoch))
    with hr.Loader(data.tar, 7, {"image": crop()}, output="numpy") as loader:
        assert digest(loader.epoch(2)) == last


def test_another_process_gives_the_same_bytes(data: Data) -> None:
    code = """
import sys
sys.path.insert(0, sys.argv[2])
import headrace as hr
from support import crop, digest
for shuffle in (True, "pool"):
    with hr.Loader(sys.argv[1], 7, {"image": crop()}, seed=4, shuffle=shuffle, output="numpy", threads=3) as loader:
        print(digest(loader.epoch(5)))
"""
    run = run_python(code, data.tar, sys.path[0] if "tests" in sys.path[0] else __file__.rsplit("/", 1)[0])
    assert run.returncode == 0, run.stderr
    here = []
    for shuffle in (True, "pool"):
        with hr.Loader(data.tar, 7, {"image": crop()}, seed=4, shuffle=shuffle, output="numpy", threads=1) as loader:
            here.append(digest(loader.epoch(5)))
    assert run.stdout.split() == here


def test_plan_id_is_equal_on_all_ranks_and_tells_seeds_apart(numbers: hr.Dataset) -> None:
    ids = on_ranks(numbers, Shape(3, 8), seed=1, use=hr.Loader.plan_id)
    assert len(set(ids)) == 1
    assert on_ranks(numbers, Shape(1, 8), seed=2, use=hr.Loader.plan_id)[0] != ids[0]


def test_reassign_every_keeps_which_blocks_meet(numbers: hr.Dataset) -> None:
    """With pools, epochs that share the order of blocks consume them in one order, shuffled within."""
    options = {"shuffle": "pool", "window": 1, "tail": "keep", "seed": 5}
    blocks = {}
    for every in (1, 4):
        with hr.Loader(numbers, 8, NUMBER, reassign_every=every, output="numpy", **options) as loader:
            blocks[every] = [indices_of(loader.epoch(e)) for e in range(2)]
    assert blocks[4][0] != blocks[4][1]
    halves = [set(order[: NUMBERS // 2]) for order in blocks[4]]
    assert len(halves[0] & halves[1]) > NUMBERS // 2 - 45  # a pool may straddle the middle
    other = [set(order[: NUMBERS // 2]) for order in blocks[1]]
    assert len(other[0] & other[1]) < NUMBERS // 2 - 15


def test_the_window_bounds_how_far_a_sample_moves(numbers: hr.Dataset) -> None:
    """One lane: consecutive samples of the order come from few blocks at a time."""
    with hr.Loader(numbers, 8, NUMBER, shuffle="pool", window=1, tail="keep", output="numpy") as loader:
        state = loader.state_dict()
        order = np.array(indices_of(loader.epoch(0)))
    assert state["lanes"] == 1
    pool = state["pools"][0]
    spreads = [
        len(set(order[i : i + 2 * pool].tolist()) & set(range(int(order[i]) - 60, int(order[i]) + 60)))
        for i in range(0, NUMBERS - 2 * pool, pool)
    ]
    assert np.mean(spreads) > pool / 2


def test_padding_wraps_around_the_epoch(numbers: hr.Dataset) -> None:
    (batches,) = run(numbers, Shape(1, 40), "global", "pad")
    last = batches[-1]
    assert last.valid.tolist() == [True] * 11 + [False] * 29
    assert last.indices[11:].tolist() == indices_of(batches)[:29]


@pytest.mark.parametrize("tail", ["pad", "keep"])
@pytest.mark.parametrize("shuffle", [False, "global", "pool"])
def test_tiny_data_sets_come_exactly_once_on_any_ranks(numbers: hr.Dataset, shuffle: object, tail: str) -> None:
    for size in range(1, 10):
        view = numbers[:size]
        for shape in (Shape(1, 1), Shape(1, 16), Shape(2, 1), Shape(3, 2), Shape(7, 1), Shape(7, 5)):
            ranks = on_ranks(view, shape, shuffle=shuffle, tail=tail, threads=1, use=one_epoch(1))
            assert sorted(i for batches in ranks for i in valid_of(batches)) == list(range(size)), (size, shape)
            assert len({len(batches) for batches in ranks}) == 1


def test_padding_of_a_tiny_data_set_wraps_around_more_than_once(numbers: hr.Dataset) -> None:
    ranks = on_ranks(numbers[:2], Shape(3, 5), shuffle=False, tail="pad", use=one_epoch())
    assert [len(b.indices) for batches in ranks for b in batches] == [5, 5, 5]
    assert {int(i) for batches in ranks for b in batches for i in b.indices} == {0, 1}


GOLDEN = {
    "global": [71, 183, 99, 105, 123, 89, 177, 120, 131, 51],
    "pool": [126, 192, 102, 36, 78, 90, 13, 54, 122, 160],
}


@pytest.mark.parametrize("shuffle", GOLDEN)
def test_orders_are_frozen(numbers: hr.Dataset, shuffle: str) -> None:
    """An upgrade never changes a running order: where this fails, plan_version must change."""
    with hr.Loader(numbers, 1, NUMBER, shuffle=shuffle, seed=42, output="numpy") as loader:
        assert loader.state_dict()["plan_version"] == 1
        assert indices_of(itertools.islice(loader.epoch(3), 10)) == GOLDEN[shuffle]


def test_fingerprints_are_frozen(numbers: hr.Dataset) -> None:
    """A state of an older headrace must still be known for one of this data."""
    assert numbers.fingerprint == "19abc931f263abe257675d50f8c84262"
