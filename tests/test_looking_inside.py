# SPDX-License-Identifier: Apache-2.0
"""Views by what lies inside of samples: JSON members, sizes of pictures, outputs, functions; kept beside the index."""

from __future__ import annotations

import io
import json
import os
import pathlib
from collections import Counter
from typing import Any

import headrace as hr
import numpy as np
import pytest
from PIL import Image
from support import write_tar

COUNT = 60


def size_of(i: int) -> tuple[int, int]:
    return 16 + i, 70 - i


def picture(i: int, kind: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.full((size_of(i)[1], size_of(i)[0], 3), i, np.uint8)).save(out, kind)
    return out.getvalue()


def record(i: int) -> dict[str, Any]:
    out: dict[str, Any] = {"label": i % 5, "meta": {"score": i / 8, "by": ["ann", "bob"][i % 2]}, "ok": i % 3 == 0, "tags": [i]}
    if i % 4 == 0:
        del out["meta"]
    return out


@pytest.fixture
def tar(tmp_path: pathlib.Path) -> pathlib.Path:
    members = []
    for i in range(COUNT):
        kind = "jpg" if i % 2 else "png"
        members += [
            (f"{i:03d}.{kind}", picture(i, "JPEG" if i % 2 else "PNG")),
            (f"{i:03d}.json", json.dumps(record(i)).encode()),
        ]
    return write_tar(tmp_path / "t.tar", members)


def chosen(ds: hr.Dataset) -> list[int]:
    return [int(ds.key(i)) for i in range(len(ds))]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("json.label < 2", lambda i, r: r["label"] < 2),
        ("json.label in [1, 4] and not json.ok == 1", lambda i, r: r["label"] in (1, 4) and not r["ok"]),
        ("json.meta.score >= 2.5", lambda i, r: "meta" in r and r["meta"]["score"] >= 2.5),
        ("json.meta.by == 'bob'", lambda i, r: "meta" in r and r["meta"]["by"] == "bob"),
        ("image.width >= 40", lambda i, r: size_of(i)[0] >= 40),
        (
            "jpg.height < 30 or png.width == 20",
            lambda i, r: (i % 2 and size_of(i)[1] < 30) or (not i % 2 and size_of(i)[0] == 20),
        ),
        ("30 <= image.width < 50 and json.label != 3 and key > '020'", lambda i, r: 30 <= 16 + i < 50 and i % 5 != 3 and i > 20),
    ],
)
def test_conditions_look_into_json_and_headers(tar: pathlib.Path, text: str, rule: Any) -> None:
    assert chosen(hr.open(tar).where(text)) == [i for i in range(COUNT) if rule(i, record(i))]


def test_views_of_views_and_columns_agree(tar: pathlib.Path) -> None:
    ds = hr.open(tar)
    view = ds[::-2].where("json.label < 3")
    want = [i for i in range(COUNT - 1, -1, -2) if i % 5 < 3]
    assert chosen(view) == want
    assert view["json.label"].tolist() == [i % 5 for i in want]
    assert view["image.width"].tolist() == [16 + i for i in want]
    assert ds["json.meta.by"][1] == "bob" and ds["json.meta.by"][0] is None
    named = view.rename({"about": "json"})
    assert named["about.label"].tolist() == [i % 5 for i in want]


def test_what_was_looked_at_is_kept_and_costs_no_read_the_next_time(tar: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace import _core

    first = chosen(hr.open(tar).where("json.label < 2 and image.width > 30"))
    kept = sorted(p.name for p in tar.parent.glob("*.column.hridx"))
    assert len(kept) == 2 and all(name.startswith("t.tar.") for name in kept)
    assert [p.name for p in tar.parent.glob("*.tar")] == ["t.tar"]

    def never(*_: Any) -> None:
        raise AssertionError("it was read again")

    with monkeypatch.context() as patch:
        patch.setattr(_core, "read_members", never)
        assert chosen(hr.open(tar).where("json.label < 2 and image.width > 30")) == first
    # Another time of the file, and it is looked at again.
    os.utime(tar, ns=(1, 1))
    with monkeypatch.context() as patch:
        patch.setattr(_core, "read_members", never)
        with pytest.raises(AssertionError, match="read again"):
            hr.open(tar).where("json.label < 2")
    assert chosen(hr.open(tar).where("json.label < 2")) == [i for i in range(COUNT) if i % 5 < 2]


def test_plain_files_that_change_in_place_are_looked_at_again(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(4):
        (folder / f"{i}.png").write_bytes(picture(i, "PNG"))
    assert len(hr.open(folder).where("image.width == 18")) == 1
    (folder / "0.png").write_bytes(picture(2, "PNG"))
    assert len(hr.open(folder).where("image.width == 18")) == 2


def test_a_column_that_cannot_lie_beside_the_data_is_kept_elsewhere(
    tar: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir(mode=0o700)
    ds = hr.open(tar)
    from headrace import _core

    values = _core.read_members(ds._source, ["json"], "label")
    name = next(iter(tar.parent.glob("*.column.hridx")), None)
    assert name is None
    (tar.parent / "held").mkdir()
    assert _core.keep_column(ds._source, "x", values)
    assert _core.kept_column(ds._source, "x").cells() == [i % 5 for i in range(COUNT)]
    assert _core.kept_column(ds._source, "y") is None


def test_outputs_are_names_too(tar: pathlib.Path) -> None:
    ds = hr.open(tar, {"small": hr.image("image").resize((4, 4)), "about": hr.json("json")})
    assert chosen(ds.where("json.label == 1")) == [i for i in range(COUNT) if i % 5 == 1]
    picked = ds.where(lambda s: s["about"]["label"] == 1 and s["small"].shape == (3, 4, 4), fields=["about", "small"])
    assert chosen(picked) == [i for i in range(COUNT) if i % 5 == 1]
    with pytest.raises(hr.UsageError, match="give it a function"):
        ds.where("small < 2")


def test_a_function_gets_members_and_is_called_once_where_its_answers_are_kept(tar: pathlib.Path) -> None:
    calls: list[Any] = []

    def odd(sample: dict[str, Any]) -> bool:
        calls.append(sample)
        return bool(sample["json.label"] % 2)

    want = [i for i in range(COUNT) if i % 5 in (1, 3)]
    assert chosen(hr.open(tar).where(odd, fields=["json.label"], keep="odd-1")) == want
    assert chosen(hr.open(tar)[10:].where(odd, fields=["json.label"], keep="odd-1")) == [i for i in want if i >= 10]
    assert len(calls) == COUNT
    assert chosen(hr.open(tar).where(odd, fields=["json.label"])) == want
    assert len(calls) == 2 * COUNT


def test_balance_repeat_split_and_weights_by_members(tar: pathlib.Path) -> None:
    ds = hr.open(tar)[:52].where("json.label != 4 or key < '030'")
    labels = np.asarray(ds["json.label"])
    balanced = np.bincount(ds.balance("json.label")["json.label"])
    assert balanced.max() - balanced.min() <= balanced.max() // 2
    assert len(ds.repeat({4: 3}, "json.label")) == len(ds) + 2 * int((labels == 4).sum())
    weighted = hr.weighted(ds, {2: 0.0}, "json.label")
    with hr.Loader(weighted, 8, {"key": hr.key()}, output="numpy", tail="keep") as loader:
        assert not {labels[i] for b in loader for i in b.indices} & {2}
    by_column = hr.weighted(ds, "json.label")
    with hr.Loader(by_column, 8, {"key": hr.key()}, output="numpy", tail="keep") as loader:
        assert 0 not in Counter(int(labels[i]) for b in loader for i in b.indices)


@pytest.mark.parametrize("by", ["key", "order"])
def test_a_stratified_split_has_each_class_in_its_share(tar: pathlib.Path, by: str) -> None:
    ds = hr.open(tar)
    parts = ds.split(train=0.75, val=0.25, stratify="json.label", by=by, seed=3)
    found = {name: chosen(part) for name, part in parts.items()}
    assert sorted(found["train"] + found["val"]) == list(range(COUNT))
    assert Counter(i % 5 for i in found["train"]) == dict.fromkeys(range(5), 9)
    assert all(sorted(p) == p for p in found.values())
    again = ds.split(train=0.75, val=0.25, stratify="json.label", by=by, seed=3)
    assert chosen(again["val"]) == found["val"]
    if by == "key":
        assert chosen(ds.split(train=0.75, val=0.25, stratify="json.label", seed=4)["val"]) != found["val"]
    third = ds.split(a=0.5, b=0.25, stratify="json.label", by=by)
    assert [len(p) for p in third.values()] == [30, 15]


def test_what_cannot_be_looked_at_is_refused(tar: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ds = hr.open(tar)
    for text, words in [
        ("json.tags == 1", "is a list"),
        ("json.meta == 1", "is an object"),
        ("json.nosuch == 1", "no sample has 'json.nosuch'"),
        ("image.depth == 1", "image.depth"),
    ]:
        with pytest.raises(hr.Error, match=words):
            ds.where(text)
    mixed = hr.open(write_tar(tmp_path / "m.tar", [("0.json", b'{"a": 1}'), ("1.json", b'{"a": "x"}')]))
    with pytest.raises(hr.Error, match="a number in sample 0 and a text in sample 1"):
        mixed.where("json.a == 1")
    bad = hr.open(write_tar(tmp_path / "b.tar", [("0.json", b"{"), ("1.json", b"{}")]))
    with pytest.raises(hr.DataError, match=r"b\.tar"):
        bad.where("json.a == 1")


def test_labels_of_a_join_are_columns(tar: pathlib.Path) -> None:
    ds = hr.open(tar)
    both = hr.join(a=ds, b=ds.rename({"more": "json"}))
    assert [int(both.key(i)) for i in range(len(both.where("more.label == 2")))] == list(range(12))
    assert len(both.where("a.image.width > 40")) == sum(16 + i > 40 for i in range(COUNT))
