# SPDX-License-Identifier: Apache-2.0
"""``a + b``: one data set after the other; a blend within a blend; ``ds.rename``."""

from __future__ import annotations

import io
import pathlib
import pickle
from collections import Counter
from typing import Any

import headrace as hr
import numpy as np
import pytest
from PIL import Image
from support import NUMBER, NUMBERS, Data, Shape, indices_of, on_ranks, one_epoch, write_tar


def encoded(i: int, kind: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.full((12, 16, 3), i, np.uint8)).save(out, kind)
    return out.getvalue()


def folder_of(root: pathlib.Path, classes: dict[str, int], kind: str, first: int = 0) -> pathlib.Path:
    for name, count in classes.items():
        (root / name).mkdir(parents=True)
        for i in range(count):
            (root / name / f"{first + i:03d}.{kind}").write_bytes(encoded(first + i, "JPEG" if kind == "jpg" else "PNG"))
    return root


def test_samples_come_one_after_the_other(numbers: hr.Dataset) -> None:
    both = numbers[:50] + numbers[100:130]
    assert len(both) == 80
    assert both["cls"].tolist() == [*range(50), *range(100, 130)]
    assert both[60] == numbers[110] and both.key(79) == numbers.key(129)
    assert len(numbers + numbers) == 2 * NUMBERS


def test_sums_of_many_stay_flat_and_can_be_pickled(numbers: hr.Dataset) -> None:
    parts = [numbers[i : i + 10] for i in range(0, 200, 10)]
    total = sum(parts[1:], parts[0])
    assert len(total._urls.parts) == 20
    assert total["cls"].tolist() == list(range(200))
    again = pickle.loads(pickle.dumps(total))
    assert again.fingerprint == total.fingerprint and again[57] == total[57]


def test_fields_are_those_of_both_and_a_sample_lacks_the_others(tmp_path: pathlib.Path) -> None:
    a = hr.open(write_tar(tmp_path / "a.tar", [("0.txt", b"zero"), ("0.cls", b"7")]))
    b = hr.open(write_tar(tmp_path / "b.tar", [("1.txt", b"one"), ("1.json", b"{}")]))
    both = a + b
    assert [name for name, _ in both.schema] == ["txt", "cls", "json"]
    assert both[0] == {"txt": "zero", "cls": 7} and both[1] == {"txt": "one", "json": "{}"}


def test_pictures_of_two_kinds_are_one_field_by_its_name(tmp_path: pathlib.Path) -> None:
    a = hr.open(folder_of(tmp_path / "a", {"x": 3}, "jpg"))
    b = hr.open(folder_of(tmp_path / "b", {"x": 2}, "png"))
    fields = {"image": hr.image("image").resize((12, 16)).layout("NHWC"), "label": hr.scalar("cls")}
    batch = next(iter(hr.Loader(a + b, 5, fields, shuffle=False, output="numpy")))
    assert [int(v) for v in batch["image"][:, 0, 0, 0]] == [0, 1, 2, 0, 1]


def test_data_sets_with_other_stored_names_give_equal_outputs(tmp_path: pathlib.Path) -> None:
    a = hr.open(write_tar(tmp_path / "a.tar", [("0.cls", b"1"), ("0.txt", b"a")]), {"n": hr.scalar("cls"), "t": hr.text("txt")})
    b = hr.open(
        write_tar(tmp_path / "b.tar", [("1.index", b"2"), ("1.cap", b"b")]), {"n": hr.scalar("index"), "t": hr.text("cap")}
    )
    if [kind for _, kind in b.schema] == [kind for _, kind in a.schema]:
        both = a + b
        assert [both[i] for i in range(2)] == [{"n": 1, "t": "a"}, {"n": 2, "t": "b"}]
    with pytest.raises(hr.UsageError, match="one gives n, t, the other n"):
        a + hr.open(tmp_path / "a.tar", {"n": hr.scalar("cls")})
    with pytest.raises(hr.UsageError, match="one was opened with fields"):
        a + hr.open(tmp_path / "a.tar")


def test_classes_that_are_equal_are_kept_and_others_refused_with_both_lists(tmp_path: pathlib.Path) -> None:
    a = hr.open(folder_of(tmp_path / "a", {"cat": 2, "dog": 2}, "jpg"))
    b = hr.open(folder_of(tmp_path / "b", {"cat": 1, "dog": 3}, "jpg", 10))
    c = hr.open(folder_of(tmp_path / "c", {"bird": 1, "cat": 3}, "jpg", 20))
    assert (a + b).classes == ["cat", "dog"] and (a + b)["cls"].tolist() == [0, 0, 1, 1, 0, 1, 1, 1]
    with pytest.raises(hr.UsageError, match=r"\[cat, dog\] and \[bird, cat\]"):
        a + c
    both = a + c.rename({"c_cls": "cls"})
    assert (both[0]["cls"], both[4]["c_cls"]) == (0, 0) and "cls" not in both[4]


def test_kinds_that_differ_are_refused_with_a_remedy(tmp_path: pathlib.Path, data: Data) -> None:
    with pytest.raises(hr.UsageError, match=r"field 'cls' is .* ds\.rename"):
        hr.open(data.folder) + hr.open(data.tar)
    with pytest.raises(hr.UsageError, match="not to int"):
        hr.open(data.folder) + 3


def test_loaders_views_and_packs_over_it(numbers: hr.Dataset, tmp_path: pathlib.Path) -> None:
    both = numbers[:50] + numbers[100:130]
    for shape in (Shape(1, 8), Shape(3, 4)):
        ranks = on_ranks(both, shape, shuffle="pool", tail="keep", seed=3, threads=1, use=one_epoch(0))
        assert sorted(i for batches in ranks for i in indices_of(batches)) == list(range(80))
        for batches in ranks:
            for b in batches:
                assert b["n"].tolist() == [i if i < 50 else i + 50 for i in b.indices]
    assert both.where("cls >= 100")["cls"].tolist() == list(range(100, 130))
    hr.pack(both, tmp_path / "out", keep_order=True)
    assert hr.open(tmp_path / "out")["cls"].tolist() == both["cls"].tolist()
    with hr.Loader(both, 8, NUMBER, seed=1, output="numpy") as loader:
        it = loader.epoch(0)
        next(it)
        state, rest = loader.state_dict(), [b.indices.tolist() for b in it]
    with hr.Loader(both, 8, NUMBER, seed=1, output="numpy") as loader:
        loader.load_state_dict(state)
        assert [b.indices.tolist() for b in loader.epoch(0)] == rest


def test_arrays_of_two_files_follow_each_other(tmp_path: pathlib.Path) -> None:
    a = np.arange(60, dtype=np.float32).reshape(10, 6)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", -a)
    both = hr.open(tmp_path / "a.npy", {"x": hr.array("data")}) + hr.open(tmp_path / "b.npy", {"x": hr.array("data")})
    with hr.Loader(both, 5, shuffle="global", output="numpy") as loader:
        for b in loader:
            assert all(np.array_equal(x, a[i] if i < 10 else -a[i - 10]) for i, x in zip(b.indices, b["x"]))


def test_names_can_be_changed(data: Data) -> None:
    ds = hr.open(data.tar, {"label": hr.scalar("cls")}).rename({"target": "cls", "caption": "txt"})
    assert [n for n, _ in ds.schema] == ["jpg", "target", "json", "caption"]
    assert ds[3] == {"label": int(data.samples[3].label)} and ds.where("target == 1")[0] == {"label": 1}
    assert pickle.loads(pickle.dumps(ds))[3] == ds[3]
    for names, words in [({"a": "none"}, "no field 'none'"), ({"jpg": "target"}, "already"), ("x", "a dict")]:
        with pytest.raises(hr.UsageError, match=words):
            ds.rename(names)


def test_weights_of_a_blend_within_a_blend_multiply(numbers: hr.Dataset) -> None:
    inner = hr.blend({"x": (numbers[:50], 3), "y": (numbers[50:90], 1)})
    outer = hr.blend({"in": (inner, 0.5), "z": (numbers[90:], 0.5)}, epoch_samples=640)
    with hr.Loader(outer, 64, NUMBER, seed=2, output="numpy") as loader:
        batches: list[Any] = list(loader.epoch(0))
        counts = Counter(int(s) for b in batches for s in b.sources)
        assert all(b["n"].tolist() == [(0, 50, 90)[s] + i for s, i in zip(b.sources, b.indices)] for b in batches)
        loader.set_weights({"in.x": 1, "in.y": 0, "z": 0}, at_step=12)
    assert [counts[k] for k in range(3)] == [240, 80, 320]


def test_views_over_a_blend_are_views_of_its_sources(numbers: hr.Dataset) -> None:
    mixed = hr.blend({"a": (numbers[:100], 0.5), "b": (numbers[100:], 0.5)})
    few = mixed.where("cls < 150")
    with hr.Loader(few, 10, NUMBER, output="numpy", shuffle=False) as loader:
        assert max(int(n) for b in loader for n in b["n"]) == 149
    parts = mixed.split(train=0.8, val=0.2)
    assert set(parts) == {"train", "val"} and all(isinstance(p, hr.Blend) for p in parts.values())
    for call in (lambda: mixed.repeat(2), lambda: mixed.balance("cls"), lambda: mixed[3], lambda: mixed + numbers):
        with pytest.raises(hr.UsageError, match="blend"):
            call()
