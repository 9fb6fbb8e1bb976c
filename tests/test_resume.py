# SPDX-License-Identifier: Apache-2.0
"""A state is a few numbers: from any step, on any number of ranks, it gives exactly the rest."""

from __future__ import annotations

import itertools
import json
from typing import Any

import headrace as hr
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import COUNT, NUMBER, NUMBERS, Data, Shape, crop, digest, indices_of, on_ranks, rest_of_epoch

SHUFFLES = [False, "global", "pool"]


def load(source: Any, batch: int, fields: Any = NUMBER, **options: Any) -> hr.Loader:
    return hr.Loader(source, batch, fields, **{"output": "numpy", "threads": 2, "seed": 6, "tail": "keep", **options})


def states_at_every_step(source: Any, batch: int, fields: Any = NUMBER, **options: Any) -> list[tuple[dict[str, Any], list[int]]]:
    """(state, indices consumed so far) before each batch and after the last."""
    with load(source, batch, fields, **options) as loader:
        out = [(loader.state_dict(), [])]
        for b in loader.epoch(0):
            out.append((loader.state_dict(), out[-1][1] + [int(i) for i in b.indices]))
    return out


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("shape", [Shape(1, 8), Shape(1, 5), Shape(2, 4), Shape(3, 7), Shape(7, 2)])
def test_resume_at_every_step_gives_exactly_the_rest(numbers: hr.Dataset, shape: Shape, shuffle: object) -> None:
    for state, seen in states_at_every_step(numbers, 8, shuffle=shuffle)[:-1]:
        ranks = on_ranks(numbers, shape, state=state, shuffle=shuffle, seed=6, tail="keep", use=rest_of_epoch)
        rest = [i for batches in ranks for i in indices_of(batches)]
        assert sorted(seen + rest) == list(range(NUMBERS)), (shape, state["g"])
        assert len({len(batches) for batches in ranks}) == 1


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_resume_from_several_ranks_onto_one_gives_exactly_the_rest(numbers: hr.Dataset, shuffle: object) -> None:
    def three(loader: hr.Loader) -> tuple[list[int], dict[str, Any]]:
        batches = list(itertools.islice(loader.epoch(0), 3))
        return indices_of(batches), loader.state_dict()

    parts = on_ranks(numbers, Shape(5, 6), shuffle=shuffle, use=three)
    seen = [i for part, _ in parts for i in part]
    (rest,) = on_ranks(numbers, Shape(1, 11), state=parts[0][1], tail="keep", use=rest_of_epoch)
    assert sorted(seen + indices_of(rest)) == list(range(NUMBERS))


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_resumed_with_the_same_shape_the_bytes_are_those_of_the_straight_run(data: Data, shuffle: object) -> None:
    fields = {"image": crop(), "label": hr.scalar("cls")}
    with load(data.tar, 8, fields, shuffle=shuffle) as loader:
        straight = [digest([b]) for b in loader.epoch(0)] + [digest([b]) for b in loader.epoch(1)]
    for step, (state, _) in enumerate(states_at_every_step(data.tar, 8, fields, shuffle=shuffle)):
        with load(data.tar, 8, fields, shuffle=shuffle) as loader:
            loader.load_state_dict(state)
            rest = [digest([b]) for _, batches in loader.epochs(2) for b in batches]
        assert rest == straight[step:]


def test_resumed_on_other_ranks_each_sample_has_the_bytes_it_would_have_had(data: Data) -> None:
    fields = {"image": crop()}
    with load(data.tar, 8, fields) as loader:
        bytes_of = {int(i): p.tobytes() for b in loader.epoch(0) for i, p in zip(b.indices, b["image"])}
    state, seen = states_at_every_step(data.tar, 8, fields)[3]
    ranks = on_ranks(data.tar, Shape(3, 4), fields, state=state, tail="keep", use=rest_of_epoch)
    rest = {int(i): p.tobytes() for batches in ranks for b in batches for i, p in zip(b.indices, b["image"])}
    assert rest == {i: p for i, p in bytes_of.items() if i not in seen}


def test_folder_goes_on_where_a_folder_elsewhere_stopped(data: Data, tmp_path: Any) -> None:
    """Moving the data is no change."""
    import shutil

    state, seen = states_at_every_step(data.folder, 8)[2]
    shutil.copytree(data.folder, tmp_path / "moved")
    with load(tmp_path / "moved", 6) as loader:
        loader.load_state_dict(state)
        assert sorted(seen + indices_of(loader)) == list(range(COUNT))


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_a_chain_of_five_resumes_gives_every_sample_exactly_once(numbers: hr.Dataset, shuffle: object) -> None:
    rng = np.random.default_rng(1)
    state, seen = None, []
    for shape in (Shape(2, 3), Shape(1, 7), Shape(4, 2), Shape(3, 5), Shape(2, 1)):
        steps = int(rng.integers(1, 4))

        def some(loader: hr.Loader, steps: int = steps) -> tuple[list[int], dict[str, Any]]:
            return indices_of(itertools.islice(iter(loader), steps)), loader.state_dict()

        parts = on_ranks(numbers, shape, state=state, shuffle=shuffle, tail="keep", use=some)
        seen += [i for part, _ in parts for i in part]
        state = json.loads(json.dumps(parts[-1][1]))
    (rest,) = on_ranks(numbers, Shape(1, 16), state=state, tail="keep", use=rest_of_epoch)
    assert sorted(seen + indices_of(rest)) == list(range(NUMBERS))


def test_a_chain_of_resumes_crosses_epochs(numbers: hr.Dataset) -> None:
    """Stopped every 11 batches, three epochs are those of a run without a stop."""
    with load(numbers, 9, tail="drop") as loader:
        straight = [indices_of([b]) for _, batches in loader.epochs(3) for b in batches]
    state, got = None, []
    while len(got) < len(straight):
        with load(numbers, 9, tail="drop") as loader:
            if state:
                loader.load_state_dict(state)
            all_batches = (b for _, batches in loader.epochs(3) for b in batches)
            got += [indices_of([b]) for b in itertools.islice(all_batches, 11)]
            state = loader.state_dict()
    assert got == straight


def test_a_state_survives_json(numbers: hr.Dataset) -> None:
    for state, _ in states_at_every_step(numbers, 40, shuffle="pool"):
        assert json.loads(json.dumps(state)) == state


def test_a_state_is_small(numbers: hr.Dataset) -> None:
    for shuffle in SHUFFLES:
        for state, _ in states_at_every_step(numbers, 40, shuffle=shuffle, seed=2**64 - 1):
            assert len(json.dumps(state)) < 4096


def test_the_state_is_equal_on_all_ranks_at_equal_steps(numbers: hr.Dataset) -> None:
    for shuffle in SHUFFLES:
        ranks = on_ranks(
            numbers, Shape(4, 5), shuffle=shuffle, use=lambda x: [x.state_dict(), *(x.state_dict() for _ in x.epoch(0))]
        )
        assert all(states == ranks[0] for states in ranks)


def test_the_state_counts_what_was_received_not_what_was_prefetched(numbers: hr.Dataset) -> None:
    with load(numbers, 4) as loader:
        it = loader.epoch(0)
        for step in range(10):
            assert (loader.state_dict()["epoch"], loader.state_dict()["g"]) == (0, 4 * step)
            next(it)


def test_the_state_counts_all_ranks_together(numbers: hr.Dataset) -> None:
    def two(loader: hr.Loader) -> int:
        assert len(list(itertools.islice(loader.epoch(0), 2))) == 2
        return loader.state_dict()["g"]

    assert on_ranks(numbers, Shape(3, 4), use=two) == [24, 24, 24]


@pytest.mark.parametrize("tail", ["drop", "pad", "keep"])
def test_after_the_last_batch_the_state_is_the_start_of_the_next_epoch(numbers: hr.Dataset, tail: str) -> None:
    with load(numbers, 8, tail=tail) as loader:
        *_, last = loader.epoch(4)
        state = loader.state_dict()
        assert (state["epoch"], state["g"]) == (5, 0)
        assert last.state == state


def test_a_batch_knows_the_state_after_it(numbers: hr.Dataset) -> None:
    with load(numbers, 8) as loader:
        for batch in loader.epoch(0):
            assert batch.state == loader.state_dict()


def test_a_wrapper_that_fetches_one_ahead_resumes_from_the_batch_it_used(numbers: hr.Dataset) -> None:
    with load(numbers, 8) as loader:
        batches = list(itertools.islice(loader.epoch(0), 5))
    with load(numbers, 8) as loader:
        it = loader.epoch(0)
        used = [next(it) for _ in range(3)]
        next(it)  # fetched ahead, not used
        state = used[-1].state
    with load(numbers, 8) as loader:
        loader.load_state_dict(state)
        assert indices_of([next(iter(loader))]) == indices_of(batches[3:4])


def test_an_iterator_that_is_asked_for_and_never_used_loses_nothing(numbers: hr.Dataset) -> None:
    with load(numbers, 8) as loader:  # as Lightning does: one to see whether there is one, another to use
        iter(loader)
        first = indices_of(itertools.islice(iter(loader), 3))
        state = loader.state_dict()
    with load(numbers, 8) as loader:
        assert first == indices_of(itertools.islice(loader.epoch(0), 3))
        rest = indices_of(loader.epoch(0))[len(first) :]
    with load(numbers, 8) as loader:
        loader.load_state_dict(state)
        iter(loader)
        assert loader.state_dict() == state
        loader.set_epoch(0)
        assert indices_of(iter(loader)) == rest
        assert loader.state_dict()["epoch"] == 1


def test_a_batchs_state_can_be_asked_after_the_loader_was_closed(numbers: hr.Dataset) -> None:
    with load(numbers, 8) as loader:
        batch = next(iter(loader))
        state = loader.state_dict()
    assert batch.state == state


def test_a_fresh_state_is_the_start(numbers: hr.Dataset) -> None:
    with load(numbers, 8) as a, load(numbers, 8) as b:
        b.load_state_dict(a.state_dict())
        assert digest(a.epoch(0)) == digest(b.epoch(0))


def test_a_loaded_state_is_given_back_before_the_first_batch(numbers: hr.Dataset) -> None:
    state, _ = states_at_every_step(numbers, 8)[4]
    with load(numbers, 3) as loader:
        loader.load_state_dict(state)
        assert loader.state_dict() == state


def test_another_epoch_than_the_states_raises_and_names_the_remedy(numbers: hr.Dataset) -> None:
    state, _ = states_at_every_step(numbers, 8)[4]
    with load(numbers, 8) as loader:
        loader.load_state_dict(state)
        with pytest.raises(hr.UsageError, match=r"stands in epoch 0, not 3: go on with loader.epoch\(0\)"):
            loader.epoch(3)
        with pytest.raises(hr.UsageError, match=r"stands in epoch 0, not 1"):
            loader.set_epoch(1)
        assert len(indices_of(loader.epoch(0))) == NUMBERS - 32


def test_after_the_rest_of_the_loaded_epoch_any_epoch_may_be_asked(numbers: hr.Dataset) -> None:
    state, _ = states_at_every_step(numbers, 8)[4]
    with load(numbers, 8) as loader:
        loader.load_state_dict(state)
        list(loader)
        assert len(indices_of(loader.epoch(7))) == NUMBERS


def test_epochs_goes_on_where_the_state_stands(numbers: hr.Dataset) -> None:
    with load(numbers, 8) as loader:
        list(loader.epoch(0))
        list(itertools.islice(loader.epoch(1), 5))
        state = loader.state_dict()
    with load(numbers, 8) as loader:
        loader.load_state_dict(state)
        got = [(epoch, len(indices_of(batches))) for epoch, batches in loader.epochs(4)]
    assert got == [(1, NUMBERS - 40), (2, NUMBERS), (3, NUMBERS)]


def test_epochs_up_to_where_the_state_stands_is_empty(numbers: hr.Dataset) -> None:
    with load(numbers, 8) as loader:
        list(loader.epoch(0))
        state = loader.state_dict()
    with load(numbers, 8) as loader:
        loader.load_state_dict(state)
        assert list(loader.epochs(1)) == []


def test_the_rest_of_an_epoch_knows_its_length(numbers: hr.Dataset) -> None:
    state, _ = states_at_every_step(numbers, 8)[4]
    with load(numbers, 8) as loader:
        loader.load_state_dict(state)
        assert len(loader.epoch(0)) == len(loader) - 4


def test_a_rest_smaller_than_a_batch_is_dropped_and_the_next_epoch_begins(numbers: hr.Dataset) -> None:
    state, seen = states_at_every_step(numbers, 8)[-2]
    assert NUMBERS - len(seen) == 3
    with load(numbers, 8, tail="drop") as loader:
        loader.load_state_dict(state)
        assert [epoch for epoch, _ in loader.epochs(3)] == [1, 2]


def test_a_loaded_state_overrides_the_arguments(numbers: hr.Dataset) -> None:
    with load(numbers, 8, seed=6, shuffle="pool") as loader:
        straight = [indices_of([b]) for b in loader.epoch(0)]
    state, _ = states_at_every_step(numbers, 8, seed=6, shuffle="pool")[2]
    with load(numbers, 8, seed=1, shuffle="global") as loader:
        loader.load_state_dict(state)
        assert [indices_of([b]) for b in loader] == straight[2:]


def test_a_loaded_seed_overrides_the_augmentations_too(data: Data) -> None:
    with load(data.tar, 8, {"image": crop()}, seed=6) as loader:
        straight = [digest([b]) for b in loader.epoch(0)]
    state, _ = states_at_every_step(data.tar, 8, {"image": crop()}, seed=6)[2]
    with load(data.tar, 8, {"image": crop()}, seed=1) as loader:
        loader.load_state_dict(state)
        assert [digest([b]) for b in loader] == straight[2:]


def test_what_a_state_overrides_is_said(numbers: hr.Dataset, say_again: None, caplog: pytest.LogCaptureFixture) -> None:
    state, _ = states_at_every_step(numbers, 8, seed=6, shuffle="pool")[2]
    with load(numbers, 8, seed=1, shuffle="global") as loader:
        loader.load_state_dict(state)
    said = caplog.text
    assert "seed is 6 in the state, 1 in the arguments" in said
    assert 'shuffle is "pool" in the state, "global" in the arguments' in said


def test_a_state_that_agrees_is_loaded_in_silence(numbers: hr.Dataset, say_again: None, caplog: pytest.LogCaptureFixture) -> None:
    state, _ = states_at_every_step(numbers, 8)[2]
    with load(numbers, 5, rank=0, world_size=2) as loader:
        loader.load_state_dict(state)
    assert caplog.text == ""


def test_the_state_of_another_data_set_is_refused_with_both_fingerprints(numbers: hr.Dataset, data: Data) -> None:
    state, _ = states_at_every_step(data.tar, 8)[2]
    with load(numbers, 8) as loader, pytest.raises(hr.UsageError) as error:
        loader.load_state_dict(state)
    assert numbers.fingerprint in str(error.value) and state["fingerprint"] in str(error.value)


def test_the_state_of_a_view_is_refused_by_the_whole(numbers: hr.Dataset) -> None:
    state, _ = states_at_every_step(numbers[:100], 8)[2]
    with load(numbers, 8) as loader, pytest.raises(hr.UsageError, match="other data"):
        loader.load_state_dict(state)


def test_a_refused_state_leaves_the_loader_as_it_was(numbers: hr.Dataset) -> None:
    with load(numbers, 8) as loader:
        straight = [indices_of([b]) for b in loader.epoch(0)]
        it = loader.epoch(0)
        got = [indices_of([next(it)]) for _ in range(3)]
        with pytest.raises(hr.UsageError):
            loader.load_state_dict({**loader.state_dict(), "fingerprint": "0" * 32})
        assert got + [indices_of([b]) for b in it] == straight


GARBAGE = [
    None,
    [],
    "state",
    {},
    {"headrace": 1},
    {"headrace": 2},
    {"headrace": None},
    {"epoch": 0, "g": 0},
]


@pytest.mark.parametrize("state", GARBAGE, ids=repr)
def test_what_is_no_state_is_refused(numbers: hr.Dataset, state: Any) -> None:
    with load(numbers, 8) as loader, pytest.raises(hr.UsageError):
        loader.load_state_dict(state)


@pytest.mark.parametrize(
    "name", ["plan_version", "fingerprint", "seed", "mode", "lanes", "pools", "reassign_every", "epoch", "g"]
)
def test_a_state_without_one_of_its_entries_is_refused_and_the_entry_named(numbers: hr.Dataset, name: str) -> None:
    with load(numbers, 8) as loader:
        state = loader.state_dict()
        del state[name]
        with pytest.raises(hr.UsageError, match=f"'{name}'"):
            loader.load_state_dict(state)


WRONG = [
    ("g", NUMBERS + 1), ("g", -1), ("g", "0"), ("g", 0.5), ("g", 2**64), ("epoch", -1), ("epoch", None), ("epoch", 2**64),
    ("seed", -1), ("seed", "6"), ("mode", 9), ("mode", 300), ("mode", "global"),
    ("lanes", 0), ("lanes", 3), ("lanes", 2**31), ("lanes", 2**40),
    ("pools", []), ("pools", [0]), ("pools", 5), ("pools", [1, 2]), ("pools", ["a"]), ("reassign_every", 0), ("plan_version", 99),
    ("fingerprint", 7), ("mixture", {}), ("mixture", []), ("mixture", {"offsets": [0], "schedule": [7]}),
    ("mixture", {"offsets": [0], "schedule": [[0]]}), ("mixture", {"offsets": [0], "schedule": [["a", [1]]]}),
    ("mixture", {"offsets": [0], "schedule": []}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG, ids=[f"{n}={v!r}" for n, v in WRONG])
def test_a_damaged_state_is_refused(numbers: hr.Dataset, name: str, value: Any) -> None:
    with load(numbers, 8, shuffle="pool") as loader:
        state = {**loader.state_dict(), name: value}
        if name == "mixture":
            state["epoch_draws"] = 10
        with pytest.raises((hr.UsageError, hr.Unsupported)):
            loader.load_state_dict(state)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    where=st.sampled_from(
        ["plan_version", "seed", "mode", "lanes", "pools", "reassign_every", "epoch", "g", "mixture", "epoch_draws"]
    ),
    value=json_values,
)
def test_a_state_of_any_json_is_loaded_or_refused(numbers: hr.Dataset, where: str, value: Any) -> None:
    with load(numbers, 8, shuffle="pool") as loader:
        try:
            loader.load_state_dict({**loader.state_dict(), where: value})
        except hr.Error:
            return
        next(iter(loader))


def test_states_of_an_order_on_disk_are_understood(numbers: hr.Dataset) -> None:
    """What version 1 wrote must load for ever: the names of the entries are part of the contract."""
    with load(numbers, 8, shuffle="pool") as loader:
        assert sorted(loader.state_dict()) == sorted(
            ["headrace", "plan_version", "fingerprint", "seed", "mode", "lanes", "pools", "reassign_every", "epoch", "g"]
        )


def test_two_epochs_in_a_row_from_a_state_are_those_of_the_straight_run(data: Data) -> None:
    fields = {"image": crop()}
    with load(data.tar, 8, fields) as loader:
        straight = [digest(loader.epoch(e)) for e in range(3)]
    with load(data.tar, 8, fields) as loader:
        list(loader.epoch(0))
        state = loader.state_dict()
    with load(data.tar, 8, fields) as loader:
        loader.load_state_dict(state)
        assert [digest(loader), digest(loader)] == straight[1:]


def test_loading_in_the_middle_of_an_epoch_ends_it(numbers: hr.Dataset) -> None:
    state, _ = states_at_every_step(numbers, 8)[4]
    with load(numbers, 8) as loader:
        it = loader.epoch(0)
        next(it)
        loader.load_state_dict(state)
        with pytest.raises(hr.UsageError, match="ended"):
            next(it)
        assert len(indices_of(loader)) == NUMBERS - 32


def test_the_pad_of_a_resumed_epoch_marks_the_rest_exactly_once(numbers: hr.Dataset) -> None:
    state, seen = states_at_every_step(numbers, 8)[5]
    ranks = on_ranks(numbers, Shape(3, 10), state=state, tail="pad", use=rest_of_epoch)
    rest = [int(i) for batches in ranks for b in batches for i in b.indices[b.valid]]
    assert sorted(seen + rest) == list(range(NUMBERS))
