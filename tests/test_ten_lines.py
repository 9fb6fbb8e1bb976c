# SPDX-License-Identifier: Apache-2.0
"""The ten lines a user pastes, and what they promise: torch tensors, no copy, memory that stays."""

from __future__ import annotations

import gc
import importlib.util
import os
import pathlib
import time

import headrace as hr
import numpy as np
import pytest
import torch
from support import COUNT, Data, members_of, wait_until, write_tar

TEN_LINES = """
import headrace as hr
loader = hr.Loader("train-{0000..0007}.tar", batch_size=64, shuffle=True, seed=1,
                   fields={"image": hr.image("jpg").random_resized_crop(224).random_flip().normalize(hr.IMAGENET),
                           "label": hr.scalar("cls")})
for epoch in range(2):
    for batch in loader.epoch(epoch):
        x, y = batch["image"], batch["label"]        # torch tensors, no copy
"""


@pytest.fixture(scope="module")
def ten_lines_folder(tmp_path_factory: pytest.TempPathFactory, data: Data) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("ten")
    for shard in range(8):
        part = [data.samples[(shard * 20 + i) % COUNT] for i in range(20)]
        write_tar(
            folder / f"train-{shard:04d}.tar",
            [m for i, s in enumerate(part) for m in [(f"{i}.{n.split('.')[-1]}", v) for n, v in members_of(s)]],
        )
    return folder


def test_the_ten_lines_run_as_pasted(ten_lines_folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ten_lines_folder)
    names: dict[str, object] = {}
    exec(TEN_LINES, names)
    x, y = names["x"], names["y"]
    assert isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)
    assert x.shape == (64, 3, 224, 224) and x.dtype == torch.float32
    assert y.shape == (64,) and y.dtype == torch.int64
    assert int(y.min()) >= 0 and int(y.max()) <= 4
    assert -3 < float(x.min()) < float(x.max()) < 3
    names["loader"].close()  # type: ignore[attr-defined]


@pytest.fixture
def loader(data: Data) -> hr.Loader:
    with hr.Loader(data.tar, 8, {"image": hr.image("jpg").resize((32, 32)), "label": hr.scalar("cls")}) as loader:
        yield loader


def test_a_tensor_shares_its_memory_with_numpy(loader: hr.Loader) -> None:
    image = next(iter(loader))["image"]
    view = image.numpy()
    assert view.__array_interface__["data"][0] == image.data_ptr()
    view[0, 0, 0, 0] = 77
    assert int(image[0, 0, 0, 0]) == 77


def test_asking_a_batch_twice_gives_the_same_tensor(loader: hr.Loader) -> None:
    batch = next(iter(loader))
    assert batch["image"].data_ptr() == batch["image"].data_ptr()
    assert batch["image"] is batch["image"]


def test_tensors_are_aligned_and_contiguous(loader: hr.Loader) -> None:
    batch = next(iter(loader))
    assert batch["image"].is_contiguous()
    assert batch["image"].data_ptr() % 64 == 0


def test_a_batch_is_a_dict(loader: hr.Loader) -> None:
    batch = next(iter(loader))
    assert isinstance(batch, dict) and list(batch) == ["image", "label"]
    assert (lambda image, label: label)(**batch) is batch["label"]


def test_a_kept_batch_stays_as_it_was_while_the_loader_goes_on(loader: hr.Loader) -> None:
    kept = [(b["image"], b["image"].clone()) for b in loader.epoch(0)]
    for _ in range(3):
        for _ in loader.epoch(1):
            pass
    assert all(torch.equal(image, copy) for image, copy in kept)
    assert len({image.data_ptr() for image, _ in kept}) == len(kept)


def test_a_kept_batch_stays_valid_after_the_loader_is_closed(data: Data) -> None:
    loader = hr.Loader(data.tar, 8, {"image": hr.image("jpg").resize((32, 32))})
    batch = next(iter(loader))
    copy = batch["image"].clone()
    image = batch["image"]
    loader.close()
    del loader, batch
    gc.collect()
    assert torch.equal(image, copy)


def test_a_view_alone_keeps_its_memory(data: Data) -> None:
    loader = hr.Loader(data.tar, 8, {"image": hr.image("jpg").resize((32, 32))}, output="numpy")
    row = next(iter(loader))["image"][3]
    copy = row.copy()
    loader.close()
    del loader
    gc.collect()
    assert np.array_equal(row, copy)


def test_buffers_of_batches_let_go_are_used_again(data: Data) -> None:
    with hr.Loader(data.tar, 4, {"image": hr.image("jpg").resize((64, 64))}, threads=1) as loader:
        seen = [b["image"].data_ptr() for e in range(4) for b in loader.epoch(e)]
        ahead = loader.stats()["batches_ahead"]
    assert len(seen) == 4 * (COUNT // 4)
    assert len(set(seen)) <= ahead + 3


@pytest.mark.alone
def test_handing_over_a_ready_batch_is_cheap(data: Data) -> None:
    """The promise is 20 µs; the bound, and the quarter that must keep it, leave room for a machine that others use."""
    fields = {"image": hr.image("jpg").resize((32, 32)), "label": hr.scalar("cls")}
    times = []
    with hr.Loader(data.tar, 2, fields, memory_budget="64MiB") as loader:
        ahead = 2 * loader.stats()["batches_ahead"]
        for epoch in range(3):
            decoded = loader.stats()["stages"]["decode"]["items"]
            it = loader.epoch(epoch)
            wait_until(lambda enough=decoded + ahead: loader.stats()["stages"]["decode"]["items"] >= enough)
            for _ in range(ahead // 2):
                start = time.perf_counter()
                next(it)
                times.append(time.perf_counter() - start)
    assert sorted(times)[len(times) // 4] < 500e-6


#: Modules that neither ``import headrace`` nor ten lines over a tar of pictures need: they are imported when they are used.
UNUSED = (
    *("PIL", "click", "jax", "rich", "torch", "torchvision", "typer"),
    *("asyncio", "bz2", "concurrent.futures", "csv", "gzip", "hashlib", "ipaddress", "logging", "lzma", "multiprocessing"),
    *("pathlib", "shutil", "tempfile", "urllib.parse", "zipfile"),
    *("headrace.arrays.open", "headrace.arrays.xarray", "headrace.blend_lists", "headrace.caching", "headrace.cli"),
    *("headrace.detection", "headrace.joining", "headrace.lengths", "headrace.mapping", "headrace.mix", "headrace.packing"),
    *("headrace.sources", "headrace.tensors", "headrace.token_budget", "headrace.tokenizing", "headrace.tools"),
    *("headrace.tracing", "headrace.weighting"),
)
#: And these a Loader needs when it opens files, ``import headrace`` does not.
UNOPENED = ("dataclasses", "json", "headrace.arrays", "headrace.hub", "headrace.layouts", "headrace.plugins")

#: What numpy imports, in other versions other modules, is not headrace's.
IMPORTED = """
import numpy, sys
before = set(sys.modules)
import headrace as hr
{then}
print(sorted((set(sys.modules) - before) & set({unwanted!r})))
"""

#: numpy's arrays: PyTorch imports much of UNUSED by itself.
TEN_LINES_OF_ARRAYS = TEN_LINES.replace("seed=1,", 'seed=1, output="numpy",')


def test_importing_headrace_imports_only_what_it_needs() -> None:
    from support import run_python

    assert all(importlib.util.find_spec(m) for m in [*UNUSED, *UNOPENED] if m.startswith("headrace."))  # spelt right
    run = run_python(IMPORTED.format(then="", unwanted=[*UNUSED, *UNOPENED]))
    assert run.stdout.strip() == "[]", run.stderr


def test_the_ten_lines_import_only_what_they_need(ten_lines_folder: pathlib.Path) -> None:
    from support import run_python

    run = run_python(IMPORTED.format(then=TEN_LINES_OF_ARRAYS, unwanted=UNUSED), cwd=ten_lines_folder)
    assert run.stdout.strip() == "[]", run.stderr


@pytest.mark.alone
def test_importing_headrace_costs_less_than_importing_numpy(tmp_path: pathlib.Path) -> None:
    """16 ms, and numpy 40 ms, on an idle core. 10 of the 16 ms load ``headrace._core`` and the libraries that it is linked with.

    The best of nine, each with both imports. CPU time of the thread that imports: the threads that numpy's OpenBLAS has
    started spin for a while, and the process's CPU time would charge them to whoever comes next. With the compiled modules
    that an installation has, whatever the environment of the tests says of them."""
    from support import run_python

    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    code = "from time import thread_time as now; a = now(); import numpy; b = now(); import headrace; print(b - a, now() - b)"
    costs = [[float(x) for x in run_python(code, env=env).stdout.split()] for _ in range(10)][1:]  # the first one compiles
    numpys, ours = (min(cost) for cost in zip(*costs, strict=True))
    assert ours < numpys


def test_importing_headrace_starts_no_thread() -> None:
    from support import run_python

    run = run_python(
        "import headrace, os; print(len(os.listdir('/proc/self/task')))", env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    )
    assert run.stdout.strip() == "1", run.stderr


def test_a_program_ends_well_while_notices_are_waited_for() -> None:
    """Waits of a millisecond: one ends while Python does."""
    from support import run_python

    code = "import sys, headrace.storage; module = sys.modules['headrace.storage']; module._WAIT_MS = 1; module._listen()"
    ended = run_python(code)
    assert ended.returncode == 0, ended.stderr
