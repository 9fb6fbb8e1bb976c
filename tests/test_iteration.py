# SPDX-License-Identifier: Apache-2.0
"""Epochs begin, end, are left early and begun again; loaders are closed, or forgotten."""

from __future__ import annotations

import gc
import itertools
import os
import pickle
import threading
import weakref
from typing import Any

import headrace as hr
import pytest
from headrace.verdict import verdict
from support import COUNT, NUMBER, NUMBERS, Data, crop, digest, indices_of, wait_until


@pytest.fixture
def loader(numbers: hr.Dataset) -> hr.Loader:
    with hr.Loader(numbers, 8, NUMBER, seed=2, output="numpy", threads=2) as loader:
        yield loader


def threads() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/task"))


# -- epochs ------------------------------------------------------------------------------------------


def test_iter_gives_one_epoch_after_the_other(loader: hr.Loader, numbers: hr.Dataset) -> None:
    by_number = [digest(loader.epoch(e)) for e in range(3)]
    with hr.Loader(numbers, 8, NUMBER, seed=2, output="numpy") as fresh:
        assert [digest(fresh) for _ in range(3)] == by_number


def test_set_epoch_says_which_epoch_iter_gives(loader: hr.Loader) -> None:
    want = digest(loader.epoch(5))
    loader.set_epoch(5)
    assert digest(loader) == want
    loader.set_epoch(5)
    assert digest(loader) == want
    assert digest(loader) == digest(loader.epoch(6))


def test_iter_goes_on_after_the_epoch_that_was_asked_for_by_number(loader: hr.Loader) -> None:
    want = digest(loader.epoch(4))
    list(loader.epoch(3))
    assert digest(loader) == want


def test_epochs_gives_pairs_up_to_the_total(loader: hr.Loader, numbers: hr.Dataset) -> None:
    want = [(e, digest(loader.epoch(e))) for e in range(3)]
    with hr.Loader(numbers, 8, NUMBER, seed=2, output="numpy") as fresh:
        assert [(e, digest(batches)) for e, batches in fresh.epochs(3)] == want


def test_epochs_may_be_extended(loader: hr.Loader) -> None:
    assert [e for e, batches in loader.epochs(2) for _ in [list(batches)]] == [0, 1]
    assert [e for e, batches in loader.epochs(4) for _ in [list(batches)]] == [2, 3]
    assert list(loader.epochs(4)) == []


def test_epochs_whose_batches_are_left_early_go_on_with_the_next(loader: hr.Loader) -> None:
    got = [(e, len(list(itertools.islice(batches, 2)))) for e, batches in loader.epochs(4)]
    assert got == [(0, 2), (1, 2), (2, 2), (3, 2)]


def test_epochs_whose_batches_are_never_taken_end(loader: hr.Loader) -> None:
    assert [e for e, _ in loader.epochs(3)] == [0, 1, 2]


def test_epochs_may_come_in_any_order(loader: hr.Loader) -> None:
    first = {e: digest(loader.epoch(e)) for e in (0, 1, 2, 7)}
    assert {e: digest(loader.epoch(e)) for e in (7, 1, 0, 2)} == first


def test_an_epoch_beyond_any_run_works(loader: hr.Loader) -> None:
    assert len(indices_of(loader.epoch(2**40))) == NUMBERS // 8 * 8


def test_an_epoch_knows_how_many_batches_are_left(loader: hr.Loader) -> None:
    it = loader.epoch(0)
    assert len(it) == len(loader) == NUMBERS // 8
    next(it)
    assert len(it) == len(loader) - 1


def test_a_finished_epoch_stays_finished(loader: hr.Loader) -> None:
    it = loader.epoch(0)
    list(it)
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(it)


def test_starting_an_epoch_ends_an_unfinished_one(loader: hr.Loader) -> None:
    old = loader.epoch(0)
    next(old)
    new = loader.epoch(1)
    with pytest.raises(hr.UsageError, match="ended"):
        next(old)
    assert len(indices_of(new)) == NUMBERS // 8 * 8


def test_an_epoch_left_early_begins_anew(loader: hr.Loader) -> None:
    want = digest(loader.epoch(0))
    for batch in loader.epoch(0):
        if 5 in batch.indices:
            break
    assert digest(loader.epoch(0)) == want


def test_an_epoch_may_be_left_early_many_times(loader: hr.Loader) -> None:
    want = indices_of(loader.epoch(0))
    for n in range(1, 20):
        assert indices_of(itertools.islice(loader.epoch(0), n)) == want[: 8 * n]


def test_an_epoch_started_and_never_taken_costs_nothing(loader: hr.Loader) -> None:
    for e in range(50):
        loader.epoch(e)
    assert len(indices_of(loader.epoch(0))) == NUMBERS // 8 * 8


def test_the_next_epoch_is_prepared_while_the_last_batches_are_taken(numbers: hr.Dataset) -> None:
    with hr.Loader(numbers, 8, NUMBER, output="numpy", threads=2) as loader:
        pairs = loader.epochs(2)
        _, batches = next(pairs)
        list(batches)
        done = NUMBERS // 8 * 8
        wait_until(lambda: loader.stats()["stages"]["decode"]["items"] > done)


def test_two_loaders_at_once_do_not_mix(data: Data, numbers: hr.Dataset) -> None:
    with (
        hr.Loader(data.tar, 4, {"image": crop()}, output="numpy") as a,
        hr.Loader(numbers, 4, NUMBER, output="numpy") as b,
        hr.Loader(data.tar, 4, {"image": crop()}, output="numpy") as c,
    ):
        together = [(digest([x]), digest([y]), digest([z])) for x, y, z in zip(a.epoch(0), b.epoch(0), c.epoch(0))]
    with hr.Loader(data.tar, 4, {"image": crop()}, output="numpy") as alone:
        want = [digest([x]) for x in alone.epoch(0)]
    assert [x for x, _, _ in together] == [z for _, _, z in together] == want


def test_a_loader_may_be_consumed_by_another_thread(loader: hr.Loader) -> None:
    want = digest(loader.epoch(0))
    got: list[str] = []
    worker = threading.Thread(target=lambda: got.append(digest(loader.epoch(0))))
    worker.start()
    worker.join()
    assert got == [want]


def test_a_consumer_that_stops_finds_everything_as_it_was(data: Data) -> None:
    """The loader fills what it may, waits, and goes on."""
    with hr.Loader(data.tar, 2, {"image": crop()}, tail="keep", output="numpy") as loader:
        want = digest(loader.epoch(0))
    with hr.Loader(data.tar, 2, {"image": crop()}, tail="keep", output="numpy") as loader:
        it = loader.epoch(0)
        first = next(it)
        ahead = 2 * loader.stats()["batches_ahead"]
        wait_until(lambda: loader.stats()["stages"]["decode"]["items"] >= min(ahead, COUNT))
        assert loader.stats()["stages"]["decode"]["items"] <= min(ahead + 4, COUNT)
        assert digest([first, *it]) == want


def test_a_budget_smaller_than_a_picture_goes_on(data: Data) -> None:
    with hr.Loader(data.tar, 8, {"image": crop()}, tail="keep", output="numpy") as loader:
        want = digest(loader.epoch(0))
    with hr.Loader(data.tar, 8, {"image": crop()}, tail="keep", output="numpy", memory_budget=1000) as loader:
        assert digest(loader.epoch(0)) == want


def test_a_pool_larger_than_the_budget_goes_on_and_says_so(data: Data, say_again: None, caplog: pytest.LogCaptureFixture) -> None:
    options = {"shuffle": "pool", "tail": "keep", "output": "numpy"}
    with hr.Loader(data.tar, 8, {"image": crop()}, **options) as loader:
        want = digest(loader.epoch(0))
    with hr.Loader(data.tar, 8, {"image": crop()}, memory_budget="64K", _read_runs=True, **options) as loader:
        assert digest(loader.epoch(0)) == want
    assert "instead of whole runs" in caplog.text


def test_reading_whole_runs_changes_no_byte(data: Data) -> None:
    options = {"shuffle": "pool", "tail": "keep", "output": "numpy"}
    with (
        hr.Loader(data.tar, 8, {"image": crop()}, **options) as a,
        hr.Loader(data.tar, 8, {"image": crop()}, _read_runs=True, **options) as b,
    ):
        assert digest(a.epoch(0)) == digest(b.epoch(0))


@pytest.mark.parametrize("budget", [1, "20K", "200K", "2M"])
@pytest.mark.parametrize("threads", [1, 3, 8])
def test_no_budget_and_no_number_of_threads_ends_in_a_deadlock(data: Data, threads: int, budget: object) -> None:
    fields = {"image": crop(), "all": hr.image("jpg").padded(), "raw": hr.bytes("jpg"), "label": hr.scalar("cls").map(abs)}
    for batch in (1, 7, COUNT):
        with hr.Loader(data.tar, batch, fields, memory_budget=budget, threads=threads, tail="keep", output="numpy") as loader:
            assert len(indices_of(loader.epoch(0))) == COUNT
            next(loader.epoch(1))


def test_another_thread_may_close_a_loader_that_is_waited_for(numbers: hr.Dataset) -> None:
    waiting, release = threading.Event(), threading.Event()
    calls = itertools.count()

    def blocks(v: int) -> int:
        if next(calls) > 0:
            waiting.set()
            release.wait()
        return v

    loader = hr.Loader(numbers, 8, {"n": hr.scalar("cls").map(blocks)}, output="numpy", threads=2)
    ended: list[BaseException | None] = []

    def consume() -> None:
        try:
            list(loader.epoch(0))
            ended.append(None)
        except BaseException as e:
            ended.append(e)

    consumer = threading.Thread(target=consume)
    consumer.start()
    waiting.wait()
    closer = threading.Thread(target=loader.close)
    closer.start()
    release.set()
    closer.join()
    consumer.join()
    assert ended[0] is None or isinstance(ended[0], hr.UsageError)


# -- the end -----------------------------------------------------------------------------------------


def test_with_closes_the_loader(numbers: hr.Dataset) -> None:
    before = threads()
    with hr.Loader(numbers, 8, NUMBER, output="numpy") as loader:
        next(iter(loader))
        assert threads() > before
    assert threads() == before


def test_an_exception_inside_with_passes_and_closes(numbers: hr.Dataset) -> None:
    before = threads()
    with pytest.raises(ZeroDivisionError), hr.Loader(numbers, 8, NUMBER, output="numpy") as loader:
        for _ in loader:
            raise ZeroDivisionError
    assert threads() == before


def test_a_loader_starts_no_thread_before_its_first_epoch(numbers: hr.Dataset) -> None:
    before = threads()
    with hr.Loader(numbers, 8, NUMBER, output="numpy"):
        assert threads() == before


def test_close_may_be_called_twice(loader: hr.Loader) -> None:
    next(iter(loader))
    loader.close()
    loader.close()


CLOSED = {
    "epoch": lambda x: x.epoch(0),
    "iter": lambda x: iter(x),
    "epochs": lambda x: list(x.epochs(2)),
    "len": lambda x: len(x),
    "state_dict": lambda x: x.state_dict(),
    "load_state_dict": lambda x: x.load_state_dict({}),
    "set_epoch": lambda x: x.set_epoch(1),
    "plan_id": lambda x: x.plan_id(),
    "stats": lambda x: x.stats(),
    "verdict": lambda x: x.verdict(),
    "quarantine": lambda x: x.quarantine,
    "set_weights": lambda x: x.set_weights({"": 1}, at_step=0),
}


@pytest.mark.parametrize("what", CLOSED)
def test_use_after_close_is_a_clear_error(loader: hr.Loader, what: str) -> None:
    loader.close()
    with pytest.raises(hr.UsageError, match="closed"):
        CLOSED[what](loader)


def test_the_rest_of_an_epoch_after_close_is_a_clear_error(loader: hr.Loader) -> None:
    it = loader.epoch(0)
    next(it)
    loader.close()
    with pytest.raises(hr.UsageError, match="closed"):
        next(it)


def test_a_forgotten_loader_ends_its_threads(numbers: hr.Dataset) -> None:
    before = threads()
    loader = hr.Loader(numbers, 8, NUMBER, output="numpy")
    next(iter(loader))
    gone = weakref.ref(loader)
    del loader
    gc.collect()
    assert gone() is None
    assert threads() == before


def test_a_kept_batch_does_not_keep_the_threads(numbers: hr.Dataset) -> None:
    before = threads()
    loader = hr.Loader(numbers, 8, NUMBER, output="numpy")
    batch = next(iter(loader))
    del loader
    assert threads() == before
    assert len(batch["n"]) == 8


def test_a_loader_in_a_cycle_is_collected(numbers: hr.Dataset) -> None:
    before = threads()
    loader = hr.Loader(numbers, 8, {"n": hr.scalar("cls").map(lambda v: v + 1)}, output="numpy")
    loader.itself = loader  # type: ignore[attr-defined]
    next(iter(loader))
    del loader
    assert threads() == before


def test_a_hundred_loaders_leave_nothing_behind(numbers: hr.Dataset) -> None:
    before, files = threads(), len(os.listdir("/proc/self/fd"))
    for _ in range(100):
        loader = hr.Loader(numbers, 8, NUMBER, output="numpy")
        next(iter(loader))
        loader.close()
    assert threads() == before
    assert len(os.listdir("/proc/self/fd")) <= files + 25


def test_threads_say_how_many_compute(numbers: hr.Dataset) -> None:
    for n in (1, 2, 7):
        with hr.Loader(numbers, 8, NUMBER, threads=n, output="numpy") as loader:
            assert loader.stats()["compute_threads"] == n


# -- insight -----------------------------------------------------------------------------------------


def test_stats_count_what_went_through(data: Data) -> None:
    with hr.Loader(data.tar, 7, {"image": crop()}, output="numpy") as loader:
        batches = list(loader.epoch(0))
        stats = loader.stats()
    stages = stats["stages"]
    assert set(stages) == {"plan", "resolve", "read", "decode", "pack", "deliver"}
    assert stages["deliver"]["items"] == 7 * len(batches)
    assert stages["decode"]["items"] == 7 * len(batches)
    assert stages["read"]["bytes"] > 0 and stages["decode"]["busy_s"] > 0
    assert stages["resolve"]["items"] >= 7 * len(batches)
    assert stats["consumer"]["batches"] == len(batches)
    assert set(stats["reads"]) == {"latency_median_ms", "latency_p99_ms", "under_way", "most_under_way", "ahead_bytes"}
    assert stats["reads"]["under_way"] == 0 and stats["reads"]["ahead_bytes"] > 0
    assert 0 < stats["memory_peak"] <= stats["memory_budget"]


def test_stats_know_how_long_reads_take_and_how_many_are_under_way(data: Data) -> None:
    with hr.Loader(data.tar, 7, {"image": hr.bytes("jpg")}, output="numpy") as loader:
        list(loader.epoch(0))
        reads = loader.stats()["reads"]
    assert 0 < reads["latency_median_ms"] <= reads["latency_p99_ms"] < 10_000
    assert reads["most_under_way"] >= 1


def test_a_verdict_is_a_sentence(data: Data) -> None:
    with hr.Loader(data.tar, 7, {"image": crop()}, output="numpy") as loader:
        assert "too few batches" in loader.verdict()
        list(loader.epoch(0))
        assert "the training step" in loader.verdict()


def counters(
    *,
    wait: float,
    step: float,
    busy: float,
    idle: float,
    map_s: float = 0.0,
    on: str = "image",
    latency_ms: float = 0.1,
    reads: int = 1000,
) -> dict[str, Any]:
    decode = {"items": 1000, "bytes": 10**8, "busy_s": busy, "wait_input_s": idle, "wait_room_s": 0.0}
    return {
        "consumer": {"batches": 100, "wait_s": wait, "step_s": step},
        "stages": {"decode": decode, "read": {"items": reads, "bytes": 10**8, "busy_s": 0.0}},
        "reads": {"latency_median_ms": latency_ms, "latency_p99_ms": 2 * latency_ms, "most_under_way": 9, "ahead_bytes": 1 << 25},
        "map": {on: {"calls": 1000, "busy_s": map_s, "wait_gil_s": 0.0}} if map_s else {},
        "compute_threads": 4,
        "io_threads": 4,
    }


@pytest.mark.parametrize(
    ("stats", "cause", "word"),
    [
        (counters(wait=0.01, step=10, busy=4, idle=36), "model", "the loader keeps up"),
        (counters(wait=5, step=5, busy=38, idle=2), "decoder", "the decoder: 4 compute threads were busy 95 %"),
        (counters(wait=5, step=5, busy=4, idle=36), "storage bandwidth", "10 MB/s"),
        (counters(wait=5, step=5, busy=4, idle=36, latency_ms=50), "storage latency", "50.00 ms in the median and 100.00 ms"),
        (counters(wait=5, step=5, busy=4, idle=36, latency_ms=50, reads=12), "storage bandwidth", "reads of 8333 kB"),
        (counters(wait=5, step=5, busy=36, idle=4, map_s=30), "python", "Python: map() on 'image'"),
        (counters(wait=5, step=5, busy=36, idle=4, map_s=4, on="(batch)"), "python", "loader.map() took 4.0 s of 5.0 s"),
    ],
)
def test_the_verdict_names_what_holds_the_loop_back(stats: dict[str, Any], cause: str, word: str) -> None:
    said = verdict(stats)
    assert isinstance(said, str) and word in said and said.cause == cause
    assert said.endswith(said.advice) and bool(said.advice) == (cause != "model")
    again = pickle.loads(pickle.dumps(said))
    assert again == said and again.numbers == said.numbers and again.cause == cause and again.advice == said.advice


def test_reads_under_way_follow_from_how_many_and_how_long_they_were() -> None:
    """100 reads a second of 50 ms each: 5 at a time, however short a thread was busy with them."""
    numbers = verdict(counters(wait=5, step=5, busy=4, idle=36, latency_ms=50)).numbers
    assert numbers["reads_under_way"] == pytest.approx(5) and numbers["read_bytes_per_s"] == pytest.approx(1e7)
    assert numbers["waited_share"] == 0.5 and numbers["read_latency_p99_ms"] == 100


@pytest.mark.parametrize("name", ["dataset", "sampler", "batch_sampler"])
def test_what_would_rebuild_a_loader_around_a_data_set_is_told_how_to_go_on(loader: hr.Loader, name: str) -> None:
    """accelerate's skip_first_batches and the like; getattr(…, None) and hasattr see nothing there."""
    assert getattr(loader, name, None) is None
    with pytest.raises(AttributeError, match=r"load_state_dict.*ignore_data_skip=True"):
        getattr(loader, name)
    with pytest.raises(AttributeError, match="'Loader' object has no attribute 'nonsense'"):
        loader.nonsense  # noqa: B018
