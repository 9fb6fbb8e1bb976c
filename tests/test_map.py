# SPDX-License-Identifier: Apache-2.0
"""Functions in Python, on a field and on a batch: what they may return, and what happens when they fail."""

from __future__ import annotations

import gc
import threading
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch
from support import COUNT, Data, crop, digest


def load(source: Any, fields: dict[str, hr.Field], batch: int = 7, **options: Any) -> list[hr.Batch]:
    with hr.Loader(source, batch, fields, **{"shuffle": False, "output": "numpy", **options}) as loader:
        return list(loader.epoch(0))


def all_of(batches: list[hr.Batch], name: str = "x") -> list[Any]:
    return [v for b in batches for v in b[name]]


# -- on a field --------------------------------------------------------------------------------------


def test_a_function_gets_a_picture_as_an_array_and_returns_one(data: Data) -> None:
    batches = load(data.tar, {"x": hr.image("jpg").resize((8, 8)).map(lambda a: 255 - a), "y": hr.image("jpg").resize((8, 8))})
    assert batches[0]["x"].dtype == np.uint8
    assert all(np.array_equal(255 - b["x"], b["y"]) for b in batches)


def test_a_function_may_change_shape_and_type(data: Data) -> None:
    batches = load(data.tar, {"x": hr.image("jpg").resize((8, 8)).map(lambda a: a.mean(axis=(1, 2)).astype(np.float32))})
    assert batches[0]["x"].shape == (7, 3) and batches[0]["x"].dtype == np.float32


def test_a_function_gets_a_number_and_returns_one(data: Data) -> None:
    seen: set[type] = set()

    def half(v: int) -> float:
        seen.add(type(v))
        return v / 2

    batches = load(data.tar, {"x": hr.scalar("cls").map(half)})
    assert seen == {int} and batches[0]["x"].dtype == np.float64
    assert all_of(batches) == [s.label / 2 for s in data.samples]


def test_a_function_makes_a_number_of_a_text(data: Data) -> None:
    assert all_of(load(data.tar, {"x": hr.text("txt").map(len)})) == [len(s.text) for s in data.samples]


def test_a_function_makes_a_text_of_a_text(data: Data) -> None:
    assert all_of(load(data.tar, {"x": hr.text("txt").map(str.upper)})) == [s.text.upper() for s in data.samples]


def test_a_function_makes_bytes_of_bytes(data: Data) -> None:
    assert all_of(load(data.tar, {"x": hr.bytes("jpg").map(lambda b: b[:10])})) == [s.jpeg[:10] for s in data.samples]


def test_a_function_gets_json_parsed(data: Data) -> None:
    assert all_of(load(data.tar, {"x": hr.json("json").map(lambda j: j["size"][0])})) == [s.size[0] for s in data.samples]


def test_a_function_gets_the_key_as_text(data: Data) -> None:
    assert all_of(load(data.tar, {"x": hr.key().map(lambda k: k.split("/")[0])})) == [s.key.split("/")[0] for s in data.samples]
    assert all_of(load(data.tar, {"x": hr.key().map(len)})) == [len(s.key) for s in data.samples]


def test_functions_are_called_one_after_the_other(data: Data) -> None:
    field = hr.scalar("cls").map(lambda v: v + 1).map(lambda v: v * 10)
    assert all_of(load(data.tar, {"x": field})) == [(s.label + 1) * 10 for s in data.samples]


def test_a_field_is_left_as_it_is_by_what_is_chained_to_it(data: Data) -> None:
    base = hr.scalar("cls")
    base.map(lambda v: v + 1)
    assert all_of(load(data.tar, {"x": base})) == [s.label for s in data.samples]


def test_a_function_may_return_a_list_or_a_tensor(data: Data) -> None:
    assert load(data.tar, {"x": hr.scalar("cls").map(lambda v: [v, v, v])})[0]["x"].shape == (7, 3)
    got = load(data.tar, {"x": hr.scalar("cls").map(lambda v: torch.full((2, 2), v, dtype=torch.float32))})[0]["x"]
    assert got.shape == (7, 2, 2) and got.dtype == np.float32


def test_a_function_may_return_a_bool(data: Data) -> None:
    got = all_of(load(data.tar, {"x": hr.scalar("cls").map(lambda v: v > 1)}))
    assert [bool(v) for v in got] == [s.label > 1 for s in data.samples]


def test_arrays_of_any_shape_may_be_listed_padded_and_ragged(data: Data) -> None:
    def steps(v: int) -> np.ndarray:
        return np.arange(v + 1, dtype=np.int32)

    want = [list(range(s.label + 1)) for s in data.samples]
    assert [v.tolist() for v in all_of(load(data.tar, {"x": hr.scalar("cls").map(steps).list()}))] == want
    values, sizes = load(data.tar, {"x": hr.scalar("cls").map(steps).padded()}, batch=COUNT)[0]["x"]
    assert [v[:n].tolist() for v, n in zip(values, sizes)] == want
    values, begins, _ = load(data.tar, {"x": hr.scalar("cls").map(steps).ragged()}, batch=COUNT)[0]["x"]
    assert [values[a:b].tolist() for a, b in zip(begins, begins[1:])] == want


def test_a_function_sees_the_random_steps_before_it(data: Data) -> None:
    batches = load(data.tar, {"x": crop(8).map(lambda a: a), "y": crop(8)}, seed=3)
    with hr.Loader(data.tar, 7, {"x": crop(8)}, shuffle=False, output="numpy", seed=3) as loader:
        assert all(np.array_equal(a["x"], b["x"]) for a, b in zip(batches, loader.epoch(0)))


def test_the_result_is_the_same_for_any_threads(data: Data) -> None:
    fields = {"x": crop(8).map(lambda a: a.astype(np.float32).cumsum(axis=2)), "n": hr.text("txt").map(len)}
    assert len({digest(load(data.tar, fields, shuffle=True, threads=t)) for t in (1, 2, 7)}) == 1


def test_a_function_runs_on_other_threads_than_the_consumers(data: Data) -> None:
    seen: set[int] = set()
    load(data.tar, {"x": hr.scalar("cls").map(lambda v: (seen.add(threading.get_ident()), v)[1])}, threads=2)
    assert len(seen - {threading.get_ident()}) >= 1


def test_map_works_for_samples_by_number_too(data: Data) -> None:
    ds = hr.open(data.tar, {"x": hr.text("txt").map(len), "y": hr.image("jpg").resize((4, 4)).map(lambda a: a[0])})
    assert ds[3]["x"] == len(data.samples[3].text) and ds[3]["y"].shape == (4, 4)


# -- on a field: mistakes ----------------------------------------------------------------------------


def test_an_exception_on_the_first_sample_comes_at_construction_and_names_the_field(data: Data) -> None:
    with pytest.raises(hr.UsageError, match=r"field 'x'.*ZeroDivisionError"):
        hr.Loader(data.tar, 4, {"x": hr.scalar("cls").map(lambda v: 1 // v)})


def test_an_exception_later_reaches_the_consumer_with_its_text_field_and_sample(data: Data) -> None:
    def picky(v: int) -> int:
        if v == 3:
            raise ValueError("three is bad luck")
        return v

    with pytest.raises(hr.UsageError, match=r"sample 31, key 'class3/img0000'.*field 'x'.*ValueError: three is bad luck"):
        load(data.tar, {"x": hr.scalar("cls").map(picky)})


def test_an_exception_of_a_function_is_no_bad_sample(data: Data) -> None:
    with pytest.raises(hr.UsageError, match="division"):
        load(data.tar, {"x": hr.scalar("cls").map(lambda v: 1 // (3 - v))}, bad_samples="replace")


def test_another_shape_is_an_error_that_names_the_field_and_both_shapes(data: Data) -> None:
    with pytest.raises(hr.Error, match=r"field 'x'.*f64\[1\].*\[2\]"):
        load(data.tar, {"x": hr.scalar("cls").map(lambda v: np.zeros(v + 1))})


def test_another_shape_is_no_bad_sample(data: Data) -> None:
    with pytest.raises(hr.Error, match="field 'x'"):
        load(data.tar, {"x": hr.scalar("cls").map(lambda v: np.zeros(v + 1))}, bad_samples="replace")


def test_a_float_where_an_int_was_promised_is_an_error(data: Data) -> None:
    with pytest.raises(hr.Error, match="field 'x'"):
        load(data.tar, {"x": hr.scalar("cls").map(lambda v: 0 if v == 0 else v + 0.5)})


def test_an_int_where_a_float_was_promised_is_a_float(data: Data) -> None:
    assert all_of(load(data.tar, {"x": hr.scalar("cls").map(lambda v: 0.5 if v == 0 else v)}))[-1] == 4.0


def test_an_exception_about_a_key_names_the_field(data: Data) -> None:
    with pytest.raises(hr.UsageError, match=r"field 'x'.*ZeroDivisionError"):
        load(data.tar, {"x": hr.key().map(lambda k: 1 // (not k.startswith("class3")))})


@pytest.mark.parametrize("later", [None, 7, b"bytes", {"a": 1}], ids=repr)
def test_something_else_than_the_text_promised_is_an_error(data: Data, later: Any) -> None:
    with pytest.raises(hr.Error, match="field 'x'"):
        load(data.tar, {"x": hr.scalar("cls").map(lambda v: "text" if v < 2 else later)})


@pytest.mark.parametrize(
    "result", [None, {}, {1: 2}, lambda: 0, np.zeros(2, complex)], ids=["None", "empty", "number", "function", "complex"]
)
def test_what_no_batch_can_hold_is_refused_at_construction(data: Data, result: Any) -> None:
    with pytest.raises(hr.UsageError, match="field 'x'"):
        hr.Loader(data.tar, 4, {"x": hr.scalar("cls").map(lambda v: result)})


def test_steps_after_a_function_are_refused(data: Data) -> None:
    with pytest.raises(hr.UsageError, match="map must come last"):
        hr.image("jpg").map(lambda a: a).resize(8)


def test_what_cannot_be_called_is_refused(data: Data) -> None:
    with pytest.raises(hr.UsageError, match="field 'x'"):
        hr.Loader(data.tar, 4, {"x": hr.scalar("cls").map(7)})  # type: ignore[arg-type]


def test_after_a_failed_epoch_the_loader_goes_on(data: Data) -> None:
    bad = {3}
    with hr.Loader(
        data.tar, 7, {"x": hr.scalar("cls").map(lambda v: 1 // (v not in bad))}, shuffle=False, output="numpy"
    ) as loader:
        for _ in range(2):
            with pytest.raises(hr.UsageError):
                list(loader.epoch(0))
        bad.clear()
        assert len(list(loader.epoch(0))) == 8


# -- on a batch --------------------------------------------------------------------------------------


def test_a_function_on_a_batch_may_change_it_in_place(data: Data) -> None:
    with hr.Loader(data.tar, 7, {"x": hr.scalar("cls")}, shuffle=False, output="numpy") as loader:
        batch = next(iter(loader.map(lambda b: b.update(y=b["x"] + 1))))
    assert np.array_equal(batch["y"], batch["x"] + 1)


def test_a_function_on_a_batch_may_return_another_dict(data: Data) -> None:
    with hr.Loader(data.tar, 7, {"x": hr.scalar("cls")}, shuffle=False, output="numpy") as loader:
        mapped = loader.map(lambda b: {"double": 2 * b["x"]}).map(lambda b: {"more": b["double"] + 1})
        batch = next(iter(mapped))
        assert list(batch) == ["more"]
        assert batch.indices.tolist() == list(range(7)) and batch.valid.all() and batch.state["g"] == 7


def test_an_exception_of_a_function_on_a_batch_passes_as_it_is(data: Data) -> None:
    def broken(b: hr.Batch) -> None:
        raise LookupError("no such thing")

    with hr.Loader(data.tar, 7, {"x": hr.scalar("cls")}, output="numpy") as loader:
        with pytest.raises(LookupError, match="no such thing"):
            next(iter(loader.map(broken)))
        assert loader.state_dict()["g"] == 0


def test_what_a_function_on_a_batch_returns_must_be_a_dict(data: Data) -> None:
    with hr.Loader(data.tar, 7, {"x": hr.scalar("cls")}, output="numpy") as loader, pytest.raises(hr.UsageError, match="map"):
        next(iter(loader.map(lambda b: 7)))


def test_a_loader_is_not_changed_by_map(data: Data) -> None:
    with hr.Loader(data.tar, 7, {"x": hr.scalar("cls")}, output="numpy") as loader:
        mapped = loader.map(lambda b: {"y": b["x"]})
        assert list(next(iter(loader))) == ["x"] and list(next(iter(mapped))) == ["y"]
        assert mapped.state_dict() == loader.state_dict()


def test_a_mapped_loader_lives_without_the_one_it_came_from(data: Data) -> None:
    loader = hr.Loader(data.tar, 7, {"x": hr.scalar("cls")}, output="numpy").map(lambda b: {"y": b["x"]})
    gc.collect()
    assert all(list(b) == ["y"] for b in loader)
    loader.close()


def test_closing_one_closes_both(data: Data) -> None:
    loader = hr.Loader(data.tar, 7, {"x": hr.scalar("cls")}, output="numpy")
    mapped = loader.map(lambda b: None)
    mapped.close()
    for closed in (loader, mapped):
        with pytest.raises(hr.UsageError, match="closed"):
            closed.state_dict()


# -- what it costs -----------------------------------------------------------------------------------


def test_stats_say_what_functions_cost(data: Data) -> None:
    with hr.Loader(data.tar, 7, {"x": hr.scalar("cls").map(abs), "y": hr.scalar("cls")}, tail="keep", output="numpy") as loader:
        loader = loader.map(lambda b: None)
        list(loader.epoch(0))
        costs = loader.stats()["map"]
    assert set(costs) == {"x", "(batch)"}
    assert costs["x"]["calls"] == COUNT and costs["x"]["busy_s"] > 0 and costs["x"]["wait_gil_s"] >= 0
    assert costs["(batch)"]["calls"] == 8


def test_without_functions_there_is_no_cost(data: Data) -> None:
    with hr.Loader(data.tar, 7, {"y": hr.scalar("cls")}, output="numpy") as loader:
        list(loader.epoch(0))
        assert loader.stats()["map"] == {}
