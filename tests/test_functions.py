# SPDX-License-Identifier: Apache-2.0
"""What a function given to map may ask for and return, whether on the engine's threads or in processes."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
import time
from typing import Any, NamedTuple

import headrace as hr
import numpy as np
import pytest
import torch
from support import COUNT, Data, crop


def load(source: Any, fields: Any, batch: int = 7, **options: Any) -> list[hr.Batch]:
    with hr.Loader(source, batch, fields, **{"shuffle": False, "tail": "keep", "output": "numpy", **options}) as loader:
        return list(loader.epoch(options.pop("epoch", 0)))


def all_of(batches: list[hr.Batch], name: str = "x") -> list[Any]:
    return [v for b in batches for v in b[name]]


def noise(value: Any, rng: np.random.Generator) -> Any:
    return rng.integers(0, 1 << 60)


@pytest.fixture(params=[0, 2], ids=["threads", "processes"])
def processes(request: pytest.FixtureRequest) -> int:
    return int(request.param)


# -- what it is given --------------------------------------------------------------------------------


def test_a_function_asks_by_the_names_of_its_parameters(data: Data, processes: int) -> None:
    def fn(v: int, key: str, index: int, epoch: int) -> str:
        return f"{v} {key} {index} {epoch}"

    got = load(data.tar, {"x": hr.scalar("cls").map(fn, processes=processes)})
    assert all_of(got) == [f"{s.label} {s.key} {i} 0" for i, s in enumerate(data.samples)]


def test_a_function_asks_by_the_context(data: Data, processes: int) -> None:
    def named(v: int, ctx: Any) -> str:
        return f"{ctx.key} {ctx.index} {ctx.epoch} {ctx.rng.random()}"

    def annotated(v: int, c: hr.Context) -> str:
        return named(v, c)

    a = load(data.tar, {"x": hr.scalar("cls").map(named, processes=processes)})
    b = load(data.tar, {"x": hr.scalar("cls").map(annotated, processes=processes)})
    assert all_of(a) == all_of(b) and all_of(a)[3].startswith(f"{data.samples[3].key} 3 0 0.")


def test_what_has_a_default_is_left_alone_and_a_builtin_gets_the_value(data: Data) -> None:
    def fn(v: int, key: str = "mine", rng: Any = None) -> str:
        return f"{key} {rng is not None}"

    assert set(all_of(load(data.tar, {"x": hr.scalar("cls").map(fn)}))) == {"mine True"}
    bound = functools.partial(noise, rng=np.random.default_rng(0))
    assert all_of(load(data.tar, {"x": hr.scalar("cls").map(bound)}, threads=1))[0] != 0
    assert all_of(load(data.tar, {"x": hr.json("json").map(lambda j: j["size"]).map(sorted)}))[0].tolist() == sorted(
        data.samples[0].size
    )


def test_the_generator_is_named_by_seed_epoch_sample_and_output(data: Data) -> None:
    def draw(seed: int = 1, epoch: int = 0, name: str = "x") -> dict[int, int]:
        with hr.Loader(data.tar, 7, {name: hr.scalar("cls").map(noise)}, seed=seed, tail="keep", output="numpy") as loader:
            return {int(i): int(v) for b in loader.epoch(epoch) for i, v in zip(b.indices, b[name])}

    first = draw()
    assert len(set(first.values())) == COUNT and first == draw()
    for other in (draw(seed=2), draw(epoch=1), draw(name="y")):
        assert set(other) == set(first) and not set(other.values()) & set(first.values())


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_augmentations_are_the_same_on_any_number_of_processes_ranks_and_after_a_resume(data: Data, n: int) -> None:
    fields = {"x": crop(8).map(lambda a, rng: a + rng.integers(0, 9, a.shape).astype(np.uint8), processes=n)}
    plain = {"x": crop(8).map(lambda a, rng: a + rng.integers(0, 9, a.shape).astype(np.uint8))}
    with hr.Loader(data.tar, 4, plain, seed=5, tail="keep", output="numpy") as loader:
        want = {int(i): v.tobytes() for b in loader.epoch(0) for i, v in zip(b.indices, b["x"])}
    got = {}
    for rank in range(2):
        with hr.Loader(data.tar, 2, fields, seed=5, tail="keep", output="numpy", rank=rank, world_size=2) as loader:
            batches = iter(loader.epoch(0))
            state: Any = None
            for _ in range(3):
                b = next(batches)
                state = b.state
                got.update({int(i): v.tobytes() for i, v in zip(b.indices, b["x"])})
            loader.load_state_dict(state)
            for b in loader.epoch(0):
                got.update({int(i): v.tobytes() for i, v in zip(b.indices, b["x"])})
    assert got == want


@pytest.mark.parametrize("together", ["one field", "two fields", "a group"])
def test_a_function_may_seed_a_generator_that_others_use(together: str) -> None:
    """On threads functions are called one at a time, though the GIL changes hands within a call."""

    def drawn(x: Any, rng: np.random.Generator) -> np.ndarray:
        torch.default_generator.manual_seed(int(rng.integers(1 << 40)))
        time.sleep(0.0005)  # as functions do that release the GIL
        return torch.rand(4).numpy()

    numbers = hr.scalar("x")
    fields = {
        "one field": {"x": numbers.map(drawn)},
        "two fields": {"x": numbers.map(drawn), "y": numbers.map(drawn)},
        "a group": hr.map({"x": numbers}, lambda x, rng: {"x": drawn(x, rng)}),
    }[together]
    source = hr.from_python({"x": np.arange(64)})
    runs = [[all_of(load(source, fields, threads=threads, seed=3), name) for name in fields] for threads in (1, 4, 4)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])


def test_functions_that_say_so_are_called_by_several_threads_at_a_time() -> None:
    barrier = threading.Barrier(2, timeout=60)

    def meets(x: Any) -> int:
        return barrier.wait()  # two calls must be under way for either to return

    fields = {"x": hr.scalar("x").map(meets, shape=(), dtype="i64", parallel=True)}
    assert sorted(all_of(load(hr.from_python({"x": np.arange(8)}), fields, threads=2, batch=1))) == [0] * 4 + [1] * 4


# -- several fields at once ------------------------------------------------------------------------------


def test_several_fields_go_through_one_function(data: Data, processes: int) -> None:
    def fn(image: np.ndarray, label: int, text: str, rng: np.random.Generator) -> dict[str, Any]:
        return {"image": image[:, ::-1], "both": np.float32(label + 0.5), "words": text.upper(), "r": rng.random()}

    inputs = {"image": hr.image("jpg").resize((8, 8)), "label": hr.scalar("cls"), "text": hr.text("txt")}
    fields = {**hr.map(inputs, fn, processes=processes), "plain": hr.image("jpg").resize((8, 8))}
    got = load(data.tar, fields)
    assert set(got[0]) == {"image", "both", "words", "r", "plain"}
    assert all(np.array_equal(b["image"][:, :, ::-1], b["plain"]) for b in got)
    assert all_of(got, "both") == [s.label + 0.5 for s in data.samples] and got[0]["both"].dtype == np.float32
    assert all_of(got, "words") == [s.text.upper() for s in data.samples]
    assert len(set(all_of(got, "r"))) == COUNT


def test_a_mapping_serves_as_fields_and_for_samples_by_number(data: Data, processes: int) -> None:
    fields = hr.map({"a": hr.scalar("cls"), "b": hr.key()}, lambda a, b: (a + 1, len(b)), processes=processes)
    assert set(fields) == {"a", "b"}
    ds = hr.open(data.tar, fields)
    assert ds[3] == {"a": data.samples[3].label + 1, "b": len(data.samples[3].key)}
    assert all_of(load(data.tar, fields), "b") == [len(s.key) for s in data.samples]


def test_fields_that_move_together_may_go_through_a_function(data: Data, processes: int) -> None:
    joint = hr.joint(image=crop(8), mask=hr.mask("jpg", mode="L").random_resized_crop(8))
    got = load(data.tar, hr.map(joint, lambda image, mask: {"both": np.concatenate([image, mask])}, processes=processes))
    want = load(data.tar, joint)
    assert all(np.array_equal(a["both"], np.concatenate([b["image"], b["mask"]], axis=1)) for a, b in zip(got, want))


def test_a_group_must_be_whole_and_functions_are_not_stacked(data: Data) -> None:
    fields = hr.map({"a": hr.scalar("cls"), "b": hr.key()}, lambda a, b: (a, b))
    with pytest.raises(hr.UsageError, match="'b' was taken out"):
        hr.open(data.tar, {"a": fields["a"]})
    with pytest.raises(hr.UsageError, match="has a function already"):
        hr.map({"a": hr.scalar("cls").map(abs)}, lambda a: a)
    with pytest.raises(hr.UsageError, match="two fields are named 'c'"):
        hr.open(data.tar, {**hr.map({"a": hr.scalar("cls")}, lambda a: {"c": a}), "c": hr.key()})
    with pytest.raises(hr.UsageError, match="returned int for 2 fields"):
        hr.open(data.tar, hr.map({"a": hr.scalar("cls"), "b": hr.key()}, lambda a, b: a))


def test_the_sources_of_a_blend_share_the_processes(data: Data, processes: int) -> None:
    def fn(a: int, key: str) -> dict[str, Any]:
        return {"n": a + 1, "long": len(key)}

    fields = hr.map({"a": hr.scalar("cls"), "key": hr.key()}, fn, processes=processes)
    parts = {"one": (hr.open(data.tar), 0.5), "two": (hr.open(data.tar), 0.5)}
    with hr.Loader(hr.blend(parts), 8, fields, output="numpy", seed=2) as loader:
        for batch in loader.epoch(0):
            assert [int(v) for v in batch["n"]] == [data.samples[i].label + 1 for i in batch.indices]
        if processes:
            assert len(loader._running.pool.core.pids()) == processes


# -- what it returns -------------------------------------------------------------------------------------


class Pair(NamedTuple):
    low: int
    high: int


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (lambda v: (v, v + 10), ["x_0", "x_1"]),
        (lambda v: {"low": v, "high": v + 10}, ["low", "high"]),
        (lambda v: Pair(v, v + 10), ["low", "high"]),
    ],
    ids=["tuple", "dict", "named"],
)
def test_several_results_are_several_fields(data: Data, processes: int, fn: Any, names: list[str]) -> None:
    got = load(data.tar, {"x": hr.scalar("cls").map(fn, processes=processes)})
    assert list(got[0]) == names
    assert all_of(got, names[0]) == [s.label for s in data.samples]
    assert all_of(got, names[1]) == [s.label + 10 for s in data.samples]


def test_any_object_goes_through_as_a_list(data: Data, processes: int) -> None:
    field = hr.scalar("cls").map(lambda v: [None, {"label": v}, 1j, "text"], processes=processes)
    got = load(data.tar, {"x": field})
    assert isinstance(got[0]["x"], list)
    assert all_of(got) == [[None, {"label": s.label}, 1j, "text"] for s in data.samples]
    assert hr.open(data.tar, {"x": field})[2]["x"] == [None, {"label": data.samples[2].label}, 1j, "text"]


def test_what_is_declared_is_not_learned(data: Data, processes: int) -> None:
    calls = []

    def fn(v: int) -> np.ndarray:
        calls.append(v)
        return np.full((2, 3), v, np.float32)

    with hr.Loader(
        data.tar, 7, {"x": hr.scalar("cls").map(fn, (2, 3), "f32", processes=processes)}, shuffle=False, output="numpy"
    ) as loader:
        assert not calls
        assert next(iter(loader))["x"].shape == (7, 2, 3)


def test_a_declared_shape_may_vary_and_is_held_to(data: Data, processes: int) -> None:
    field = hr.scalar("cls").map(lambda v: np.zeros((v, 4), np.float32), (None, 4), "f32", processes=processes)
    assert [v.shape for v in all_of(load(data.tar, {"x": field}))] == [(s.label, 4) for s in data.samples]
    values, sizes = load(data.tar, {"x": field.padded()}, batch=COUNT)[0]["x"]
    assert values.shape == (COUNT, 4, 4) and sizes[:, 0].tolist() == [s.label for s in data.samples]
    wrong = hr.scalar("cls").map(lambda v: np.zeros(v, np.float32), (3,), "f32", processes=processes)
    with pytest.raises(hr.UsageError, match=r"field 'x'.*\[3\]"):
        load(data.tar, {"x": wrong})
    with pytest.raises(hr.UsageError, match="given together"):
        hr.open(data.tar, {"x": hr.scalar("cls").map(abs, shape=(3,))})


# -- what it says is bad -------------------------------------------------------------------------------


def test_a_bad_sample_follows_the_policy(data: Data, processes: int) -> None:
    def fn(v: int, index: int) -> int:
        if index == 5:
            raise hr.BadSample("out of focus")
        return index

    fields = {"x": hr.scalar("cls").map(fn, processes=processes)}
    with pytest.raises(hr.DataError, match=r"sample 5.*field 'x'.*BadSample: out of focus") as error:
        load(data.tar, fields)
    assert error.value.sample == 5 and "out of focus" in str(error.value.__cause__)
    with hr.Loader(data.tar, 7, fields, shuffle=False, output="numpy", bad_samples="replace") as loader:
        got = [int(v) for b in loader.epoch(0) for v in b["x"]]
        assert [q["sample"] for q in loader.quarantine] == [5]
    assert len(got) == COUNT and 5 not in got


def test_another_exception_is_no_bad_sample_and_names_its_place(data: Data, processes: int) -> None:
    def fn(v: int) -> float:
        return 1 / (3 - v)

    with pytest.raises(hr.UsageError, match=r"field 'x'.*raised ZeroDivisionError: division by zero") as error:
        load(data.tar, {"x": hr.scalar("cls").map(fn, processes=processes)}, bad_samples="replace")
    cause: Any = error.value.__cause__
    if processes:
        assert "1 / (3 - v)" in str(cause) and "in fn" in str(cause)
    else:
        assert isinstance(cause, ZeroDivisionError)


def test_an_optional_field_stays_optional(data: Data, processes: int) -> None:
    fields = {"x": hr.text("nowhere", optional=True, default="abc").map(len, processes=processes)}
    batch = load(data.tar, fields)[0]
    assert batch["x"].tolist() == [3] * 7 and not batch["x_valid"].any()


class Wordless(Exception):
    """Cannot be pickled, and cannot be said."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(a)
        self.held = threading.Lock()

    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (lambda: Wordless(1, 2), r"raised Wordless: \(its __str__ raised ValueError\)"),
        (lambda: SystemExit(4), "raised SystemExit: 4"),
        (lambda: KeyboardInterrupt(), "raised KeyboardInterrupt"),
    ],
)
def test_whatever_a_function_raises_is_its_mistake_and_no_bad_sample(data: Data, processes: int, raised: Any, words: str) -> None:
    def fn(v: int, index: int) -> int:
        if index == 9:
            raise raised()
        return index

    fields = {"x": hr.scalar("cls").map(fn, processes=processes)}
    with (
        hr.Loader(data.tar, 7, fields, shuffle=False, output="numpy", bad_samples="replace") as loader,
        pytest.raises(hr.UsageError, match=words) as e,
    ):
        list(loader)
    assert e.value.sample == 9


@pytest.mark.parametrize("other", [None, "text", [1, 2], 2**70, {"a": 1}])
def test_a_result_of_another_kind_is_named_by_its_type(data: Data, processes: int, other: Any) -> None:
    fields = {"x": hr.scalar("cls").map(lambda v, index: other if index == 9 else index, processes=processes)}
    with (
        hr.Loader(data.tar, 7, fields, shuffle=False, output="numpy") as loader,
        pytest.raises(hr.UsageError, match=r"sample 9.*(for this one|promised i64)") as e,
    ):
        list(loader)
    if other is None:
        assert "gave int64 for the first sample and NoneType for this one" in str(e.value)


class Counts:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, v: int) -> int:
        self.calls += 1
        return self.calls


def test_an_object_that_counts_has_one_count_in_each_process(data: Data, processes: int) -> None:
    counts = Counts()
    with hr.Loader(data.tar, 7, {"x": hr.scalar("cls").map(counts, processes=processes)}, output="numpy", tail="keep") as loader:
        seen = [int(v) for b in loader.epoch(0) for v in b["x"]]
    if processes == 0:  # and one more for the sample that was looked at first
        assert sorted(seen) == list(range(2, COUNT + 2)) and counts.calls == COUNT + 1
    else:
        assert counts.calls <= 1 and max(seen) >= COUNT // 2  # this process looked at the first sample alone


# -- numbers that the type of the first sample cannot hold --------------------------------------------


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (np.int32(1), 1 << 40),
        (np.float32(1), 1e300),
        (np.int16(1), np.int32(-40000)),
        (np.float16(1), 1e6),
        (np.float32(1), (1 << 24) + 1),
        (1.5, (1 << 53) + 1),
    ],
)
def test_a_number_too_large_for_the_type_is_refused(processes: int, first: Any, later: Any) -> None:
    def fn(x: Any, index: int) -> Any:
        return later if index == 5 else first

    numbers = hr.from_python({"x": np.arange(9)})
    with pytest.raises(hr.UsageError, match=r"sample 5.*cannot hold"):
        load(numbers, {"x": hr.scalar("x").map(fn, processes=processes)})


def test_numbers_of_another_width_that_fit_are_taken(processes: int) -> None:
    def fn(x: Any, index: int) -> Any:
        return np.int64(-7) if index == 1 else np.float64(0.1) if index == 2 else np.int32(3)

    def only_whole(x: Any, index: int) -> Any:
        return np.int64(-7) if index == 1 else np.int32(3)

    def fractions(x: Any, index: int) -> Any:
        return 0.1 if index == 1 else np.inf if index == 2 else np.float32(3)

    numbers = hr.from_python({"x": np.arange(4)})
    with pytest.raises(hr.UsageError, match="int32 for the first sample and float64"):
        load(numbers, {"x": hr.scalar("x").map(fn, processes=processes)})
    assert all_of(load(numbers, {"x": hr.scalar("x").map(only_whole, processes=processes)})) == [3, -7, 3, 3]
    found = all_of(load(numbers, {"x": hr.scalar("x").map(fractions, processes=processes)}))
    assert found == [3, np.float32(0.1), np.inf, 3]


def test_a_function_gets_python_objects_as_they_are(processes: int) -> None:
    chats = [[{"a": i}, {"b": [i, "x"]}] for i in range(6)]

    def fn(chat: Any) -> int:
        return chat[0]["a"] * 10 + chat[1]["b"][0]

    for source in (hr.from_python({"c": chats}), hr.from_python([{"c": c} for c in chats])):
        for field in (hr.json("c"), hr.bytes("c")):
            assert all_of(load(source, {"x": field.map(fn, processes=processes)})) == [11 * i for i in range(6)]
        both = hr.map({"c": hr.json("c"), "d": hr.json("c")}, lambda c, d: {"x": c == d}, processes=processes)
        assert all_of(load(source, both)) == [1] * 6
        assert all_of(load(source, {"x": hr.json("c")})) == chats


def test_an_empty_array_is_of_any_type(processes: int) -> None:
    def fn(x: Any, index: int) -> Any:
        return np.asarray([] if index == 3 else [index])  # of an empty list NumPy makes float64

    numbers = hr.from_python({"x": np.arange(5)})
    for how in ({}, {"shape": (None,), "dtype": "i64"}):
        got = all_of(load(numbers, {"x": hr.scalar("x").map(fn, processes=processes, **how).list()}))
        assert [v.tolist() for v in got] == [[0], [1], [2], [], [4]] and got[3].dtype == np.int64


def test_what_was_declared_is_called_so(processes: int) -> None:
    numbers = hr.from_python({"x": np.arange(5)})
    with pytest.raises(hr.UsageError, match="gave float64, and int64 is declared"):
        load(numbers, {"x": hr.scalar("x").map(lambda x: 0.5, shape=(), dtype="i64", processes=processes)})
    with pytest.raises(hr.UsageError, match="gave 300 for this sample, which uint8, which is declared, cannot hold"):
        load(numbers, {"x": hr.scalar("x").map(lambda x: np.uint16(300), shape=(), dtype="u8", processes=processes)})
    both = hr.map({"x": hr.scalar("x")}, lambda x: {"a": x}, shape={"a": (), "b": ()}, dtype="i64", processes=processes)
    with pytest.raises(hr.UsageError, match="gave a, and a, b are declared"):
        load(numbers, both)


def test_masked_values_are_refused(processes: int) -> None:
    def fn(x: Any, index: int) -> Any:
        return np.ma.masked_array([1, 2], [index == 3, False])

    numbers = hr.from_python({"x": np.arange(5)})
    with pytest.raises(hr.UsageError, match=r"sample 3.*masked values"):
        load(numbers, {"x": hr.scalar("x").map(fn, processes=processes)})
    with pytest.raises(hr.UsageError, match=r"field 'x'.*masked values"):
        load(numbers, {"x": hr.scalar("x").map(lambda x: np.ma.masked_array([1], [True]), processes=processes)})


def test_a_tensor_with_a_gradient_is_taken_for_its_numbers(processes: int) -> None:
    numbers = hr.from_python({"x": np.arange(5)})
    weight = torch.ones(2, requires_grad=True)
    assert [v.tolist() for v in all_of(load(numbers, {"x": hr.scalar("x").map(lambda x: weight * x, processes=processes)}))] == [
        [i, i] for i in range(5)
    ]


def test_bfloat16_is_no_type_of_a_function() -> None:
    with pytest.raises(hr.UsageError, match="no such type"):
        load(hr.from_python({"x": np.arange(4)}), {"x": hr.scalar("x").map(float, shape=(), dtype="bf16")})


def test_what_a_function_raised_is_gone_at_the_end() -> None:
    """Its traceback holds the data set; the extension complains where that outlives it."""
    script = """
import headrace as hr
def fn(x): raise ValueError("no")
try:
    hr.from_python({"x": [1, 2]}, fields={"x": hr.scalar("x").map(fn, shape=(), dtype="i64")})[0]
except hr.UsageError as e:
    assert isinstance(e.__cause__, ValueError)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
