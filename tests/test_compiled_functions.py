# SPDX-License-Identifier: Apache-2.0
"""Functions that numba compiled run on the engine's threads, without the GIL."""

from __future__ import annotations

import threading
import time
from typing import Any

import headrace as hr
import numpy as np
import pytest
from support import COUNT, Data, crop

numba = pytest.importorskip("numba", reason="numba is not installed: functions without the GIL are NOT tested; pip install numba")


def load(source: Any, fields: Any, batch: int = 7, **options: Any) -> list[hr.Batch]:
    with hr.Loader(source, batch, fields, **{"shuffle": False, "tail": "keep", "output": "numpy", **options}) as loader:
        return list(loader.epoch(0))


@numba.njit("void(uint8[:,:,::1], float32[:,:,::1])")
def half(value: Any, out: Any) -> None:
    for c in range(value.shape[0]):
        for y in range(value.shape[1]):
            for x in range(value.shape[2]):
                out[c, y, x] = value[c, y, x] * np.float32(0.5)


def test_it_gives_what_the_same_function_gives_in_python(data: Data) -> None:
    small = hr.image("jpg").resize((8, 8))
    got = load(data.tar, {"x": small.map(half, shape=(3, 8, 8)), "y": small}, threads=2)
    for batch in got:
        assert batch["x"].dtype == np.float32
        for value, out in zip(batch["y"], batch["x"]):
            want = np.empty((3, 8, 8), np.float32)
            half.py_func(value, want)
            assert np.array_equal(out, want)
    assert hr.open(data.tar, {"x": crop(8).map(half, shape=(3, 8, 8))})[3]["x"].shape == (3, 8, 8)


def test_a_number_in_and_a_number_out(data: Data) -> None:
    double = numba.njit("float64(int64)")(lambda v: v * 2.0)
    assert [v for b in load(data.tar, {"x": hr.scalar("cls").map(double)}) for v in b["x"]] == [
        s.label * 2.0 for s in data.samples
    ]


def test_a_seed_is_named_by_the_sample(data: Data) -> None:
    seed = numba.njit("void(uint8[:,:,::1], uint64[::1], uint64)")(_seed)
    fields = {"x": crop(8).map(seed, shape=(1,))}
    a, b = (np.concatenate([x["x"] for x in load(data.tar, fields, threads=t, seed=4)]) for t in (1, 3))
    assert np.array_equal(a, b) and len(np.unique(a)) == COUNT


def _seed(value: Any, out: Any, seed: Any) -> None:
    out[0] = seed


@pytest.mark.alone
def test_it_runs_without_the_gil(data: Data) -> None:
    @numba.njit("void(uint8[:,:,::1], int64[::1])")
    def spin(value: Any, out: Any) -> None:
        n = 0
        for i in range(40_000_000):
            n = (n * 31 + i) % 1_000_003
        out[0] = n

    gaps: list[float] = []
    done = threading.Event()

    def watch() -> None:
        last = time.perf_counter()
        while not done.is_set():
            time.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    thread = threading.Thread(target=watch)
    with hr.Loader(data.tar, 1, {"x": crop(8).map(spin, shape=(1,))}, shuffle=False, output="numpy", threads=1) as loader:
        next(iter(loader))
        thread.start()
        batches = iter(loader.epoch(1))
        for _ in range(3):
            next(batches)
        cost = loader.stats()["map"]["x"]
        done.set()
        thread.join()
    # Each call takes some 100 ms; a thread that needs the GIL ran all the while, but for when others had the processor.
    assert cost["busy_s"] / cost["calls"] > 0.02 and float(np.quantile(gaps, 0.25)) < 0.01


def test_what_does_not_fit_is_refused_when_the_loader_is_made(data: Data) -> None:
    with pytest.raises(hr.UsageError, match=r"field 'x'.*takes u8 of 3 axes, and the field gives f32"):
        hr.open(data.tar, {"x": crop(8).cast("f32").map(half, shape=(3, 8, 8))})
    with pytest.raises(hr.UsageError, match="shape="):
        hr.open(data.tar, {"x": crop(8).map(half)})
    with pytest.raises(hr.UsageError, match=r"dtype='f16', and numba's signature gives float32"):
        hr.open(data.tar, {"x": crop(8).map(half, shape=(3, 8, 8), dtype="f16")})
    assert hr.open(data.tar, {"x": crop(8).map(half, shape=(3, 8, 8), dtype=np.float32)})[0]["x"].dtype == np.float32
    for turned in ("void(uint8[::1,:,:], float32[:,:,::1])", "void(uint8[:,:,::1], float32[::1,:,:])"):
        with pytest.raises(hr.UsageError, match="columns first"):
            hr.open(data.tar, {"x": crop(8).map(numba.njit(turned)(lambda a, b: None), shape=(3, 8, 8))})
    with pytest.raises(hr.UsageError, match="numba's signature wants 3 axes"):
        hr.open(data.tar, {"x": crop(8).map(half, shape=(8, 8))})
    with pytest.raises(hr.UsageError, match="signature"):
        hr.open(data.tar, {"x": crop(8).map(numba.njit("void(uint8[:,:,::1], int64, int64)")(lambda a, b, c: None), shape=(1,))})


def test_an_exception_is_an_error(data: Data) -> None:
    @numba.njit("float64(int64)")
    def fails(v: int) -> float:
        if v == 2:
            raise ValueError("two")
        return 1.0

    with pytest.raises(hr.UsageError, match=r"sample 20.*raised an exception"):
        load(data.tar, {"x": hr.scalar("cls").map(fails)})


def test_one_without_a_signature_runs_as_any_function(data: Data) -> None:
    plain = numba.njit(lambda v: v + 1)
    assert load(data.tar, {"x": hr.scalar("cls").map(plain)})[0]["x"].tolist() == [s.label + 1 for s in data.samples[:7]]
