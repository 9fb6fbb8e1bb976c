# SPDX-License-Identifier: Apache-2.0
"""Words of other loaders: taken where they mean one thing here, answered with ours where not."""

from __future__ import annotations

import inspect
import pathlib
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import habits
from support import COUNT, Data, digest, indices_of

FIELDS = {"label": hr.scalar("cls")}


def run(data: Data, **options: Any) -> str:
    with hr.Loader(data.tar, fields=FIELDS, seed=3, output="numpy", **options) as loader:
        return digest(loader.epoch(0))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"drop_last": True}, {"tail": "drop"}),
        ({"drop_last": False}, {"tail": "keep"}),
        ({"num_workers": 2}, {"threads": 2}),
        ({"num_workers": 0}, {}),
        ({"num_threads": 1}, {"threads": 1}),
        ({"drop_last": True, "tail": "drop"}, {"tail": "drop"}),
    ],
)
def test_what_means_one_thing_is_taken(data: Data, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    assert run(data, batch_size=8, **theirs) == run(data, batch_size=8, **ours)


def test_workers_are_threads() -> None:
    assert habits.translated({"num_workers": 3, "shuffle": False}) == {"threads": 3, "shuffle": False}
    assert habits.translated({"dataset": "x.tar", "shuffle_seed": 9}) == {"source": "x.tar", "seed": 9}


def test_a_call_as_one_writes_it_for_data_loader_works(data: Data) -> None:
    torch = pytest.importorskip("torch")
    loader = hr.Loader(
        dataset=data.tar, batch_size=8, fields=FIELDS, shuffle=True, num_workers=2, drop_last=False, pin_memory=False,
        persistent_workers=True, prefetch_factor=None, collate_fn=None, sampler=None, worker_init_fn=None, generator=None, timeout=0,
    )  # fmt: skip
    with loader:
        batches = list(loader)
        assert sorted(indices_of(batches)) == list(range(COUNT)) and isinstance(batches[0]["label"], torch.Tensor)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"pin_memory": True}, 'device="cuda"'),
        ({"collate_fn": len}, r"\.padded\(\).*as_="),
        ({"sampler": [1, 2]}, r"ds\[numbers\]"),
        ({"batch_sampler": [[1]]}, "batch_size"),
        ({"prefetch_factor": 4}, "memory_budget"),
        ({"worker_init_fn": len}, "seed="),
        ({"generator": object()}, "seed=42"),
        ({"timeout": 30}, "stats"),
        ({"multiprocessing_context": "spawn"}, "threads"),
        ({"in_order": False}, "order"),
        ({"transform": len}, "fields="),
        ({"buffer_size": 1000}, "window"),
        ({"drop_last": "yes"}, 'tail="drop"'),
        ({"num_workers": -1}, "threads=4"),
        ({"num_workers": True}, "threads=4"),
        ({"drop_last": True, "tail": "keep"}, "both are given"),
        ({"num_workers": 2, "threads": 4}, "both are given"),
    ],
)
def test_what_means_something_else_is_answered_with_our_word(data: Data, option: dict[str, Any], words: str) -> None:
    with pytest.raises(hr.UsageError, match=words):
        hr.Loader(data.tar, 8, FIELDS, **option)


def test_the_signature_stays_ours() -> None:
    names = inspect.signature(hr.Loader.__init__).parameters
    assert "threads" in names and "num_workers" not in names
    assert not any(p.kind is p.VAR_KEYWORD for p in names.values())
    with pytest.raises(TypeError, match="shufle"):
        hr.Loader("x.tar", 8, shufle=True)  # type: ignore[call-arg]


def test_a_generator_of_paths_is_a_source(data: Data) -> None:
    paths = sorted(data.root.glob("train-*.tar"))
    ds = hr.open(p for p in paths)
    assert len(ds) == COUNT and ds.fingerprint == hr.open(paths).fingerprint


def test_what_is_no_file_is_told_what_to_do(tmp_path: pathlib.Path) -> None:
    utils = pytest.importorskip("torch.utils.data")

    class Mine(utils.Dataset):  # type: ignore[misc,name-defined]
        def __len__(self) -> int:
            return 1

        def __getitem__(self, i: int) -> int:
            return i

    for source, words in [
        (Mine(), "Dataset of PyTorch's.*fields"),
        (utils.DataLoader(Mine()), "DataLoader is no source"),
        (np.zeros((3, 4)), "hr.from_python"),
        (["a.jpg", 7], "holds 7"),
        (7, "a path, a glob"),
    ]:
        for use in (hr.open, lambda s: hr.Loader(s, 8)):
            with pytest.raises(hr.UsageError, match=words):
                use(source)


def test_earlier_words_mean_what_they_meant(data: Data) -> None:
    """One word, one meaning: a window is steps of an array, a view is a data set; their other meanings have words of their own."""
    old, new = (hr.open(data.tar, {"x": hr.image("jpg", **{word: 2}).random_resized_crop(8)}) for word in ("views", "variants"))
    assert old[3]["x"].shape == (2, 3, 8, 8) and np.array_equal(old[3]["x"], new[3]["x"])
    with pytest.raises(hr.UsageError, match="views is headrace's variants, and both are given"):
        hr.image("jpg", views=2, variants=3)  # type: ignore[call-arg]
    assert "views" not in inspect.signature(hr.image).parameters
    few = {"batch_size": 8, "shuffle": "pool"}
    assert run(data, **few, window="1MiB") == run(data, **few, shuffle_window="1MiB") == run(data, **few, shuffle_window=1 << 20)
    with pytest.raises(hr.UsageError, match="both are given"):
        run(data, **few, window="1MiB", shuffle_window="1MiB")


def test_torchvisions_flip_is_a_step_of_the_engine(data: Data) -> None:
    base = hr.image("jpg").resize((16, 16))
    one = hr.open(data.tar, {"x": base._step("random_horizontal_flip", p=0.4)})
    two = hr.open(data.tar, {"x": base.random_flip(0.4)})
    assert all(np.array_equal(one[i]["x"], two[i]["x"]) for i in range(20))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ToTensor", "batches are tensors already"),
        ("CenterCrop", r"say \.center_crop"),
        ("transform", "name the steps"),
        ("no", "'no'$"),
    ],
)
def test_names_of_torchvision_are_answered(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=words):
        getattr(hr.image("jpg"), name)
    assert not hasattr(hr.image("jpg"), name)


def test_what_a_notebook_shows_of_the_loader_are_its_options() -> None:
    shown = inspect.signature(hr.Loader).parameters
    assert list(shown)[:3] == ["source", "batch_size", "fields"] and {"shuffle", "seed", "tail", "device"} <= set(shown)
    assert not any(n.startswith("_") for n in shown)
