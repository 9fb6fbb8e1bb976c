# SPDX-License-Identifier: Apache-2.0
"""Several values of one field in a sample: lists, and one tensor with offsets."""

from __future__ import annotations

import io
import json
import pathlib
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import photos
from layouts import example, feature, write_tfrecord
from PIL import Image

COUNTS = (2, 0, 1, 3, 1, 0, 4, 2, 1)


def pictures(sample: int) -> list[bytes]:
    return [photos.make_photo(10 * sample + v, (40 + 3 * v, 30 + sample)) for v in range(COUNTS[sample])]


def texts(sample: int) -> list[str]:
    return [f"text {v} of {sample}, Zürich" for v in range(COUNTS[sample])]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Documents with any number of pictures, texts, JSON values and embeddings."""
    records = []
    for i, count in enumerate(COUNTS):
        features: dict[str, list[Any]] = {
            "image": pictures(i),
            "txt": [t.encode() for t in texts(i)],
            "json": [json.dumps({"v": v}).encode() for v in range(count)],
            "emb": [np.full(4, 10 * i + v, "<f4").tobytes() for v in range(count)],
            "label": [i],
        }
        records.append(example({name: feature(values) for name, values in features.items() if values}))
    return str(write_tfrecord(tmp_path_factory.mktemp("many") / "a.tfrecord", records))


def one_batch(url: str, fields: Any, **options: Any) -> hr.Batch:
    with hr.Loader(url, len(COUNTS), fields, **{"shuffle": False, "output": "numpy", **options}) as loader:
        (batch,) = loader.epoch(0)
    return batch


def test_without_fields_each_sample_has_lists(url: str) -> None:
    ds = hr.open(url)
    for i, sample in enumerate(ds):
        assert sample["image"] == pictures(i)
        assert sample["txt"] == texts(i)
        assert sample["label"] == i
    batch = one_batch(url, None)
    assert batch["image"] == [pictures(i) for i in range(len(COUNTS))]
    assert batch["label"].tolist() == list(range(len(COUNTS)))


def test_every_kind_of_field_gives_lists(url: str) -> None:
    fields = {
        "b": hr.bytes("image", many=True),
        "t": hr.text("txt", many=True),
        "j": hr.json("json", many=True),
        "a": hr.array("emb", dtype="f32", shape=4, many=True),
        "i": hr.image("image", many=True),
        "label": hr.scalar("label"),
    }
    ds, batch = hr.open(url, fields), one_batch(url, fields)
    for i, count in enumerate(COUNTS):
        for sample in (ds[i], {name: batch[name][i] for name in fields}):
            assert sample["b"] == pictures(i) and sample["t"] == texts(i) and sample["label"] == i
            assert sample["j"] == [{"v": v} for v in range(count)]
            assert [a.tolist() for a in sample["a"]] == [[10 * i + v] * 4 for v in range(count)]
            for got, jpeg in zip(sample["i"], pictures(i), strict=True):
                np.testing.assert_array_equal(got, np.asarray(Image.open(io.BytesIO(jpeg))).transpose(2, 0, 1))


def test_ragged_is_one_tensor_and_where_each_sample_begins(url: str) -> None:
    small = hr.image("image", many=True).resize((8, 9))
    fields = {"x": small.ragged(), "l": small, "a": hr.array("emb", dtype="f32", shape=4, many=True).ragged()}
    batch = one_batch(url, fields)
    values, offsets = batch["x"]
    assert values.shape == (sum(COUNTS), 3, 8, 9) and values.dtype == np.uint8
    assert offsets.dtype == np.int64 and np.diff(offsets).tolist() == list(COUNTS)
    np.testing.assert_array_equal(values, np.stack([v for sample in batch["l"] for v in sample]))
    assert batch["a"][0][:, 0].tolist() == [10 * i + v for i, n in enumerate(COUNTS) for v in range(n)]
    torch = pytest.importorskip("torch")
    batch = one_batch(url, {"x": small.ragged()}, output="torch")
    assert torch.equal(batch["x"][0], torch.from_numpy(values)) and batch["x"][1].dtype == torch.int64


def test_a_batch_without_any_value(tmp_path: pathlib.Path) -> None:
    records = [example({"label": feature([i]), **({"b": feature([b"x", b"y"])} if i == 5 else {})}) for i in range(6)]
    url = str(write_tfrecord(tmp_path / "a.tfrecord", records))
    field = hr.array("b", dtype="u8", shape=1, many=True)
    with hr.Loader(url, 3, {"l": field, "r": field.ragged()}, shuffle=False, output="numpy") as loader:
        first, last = loader.epoch(0)
    assert first["l"] == [[], [], []] and first["r"][0].shape == (0, 1) and first["r"][1].tolist() == [0, 0, 0, 0]
    assert last["r"][1].tolist() == [0, 0, 0, 2]


def test_random_steps_draw_for_each_value(tmp_path: pathlib.Path) -> None:
    jpeg = photos.make_photo(1, (64, 64))
    url = str(write_tfrecord(tmp_path / "a.tfrecord", [example({"image": feature([jpeg] * 8)})] * 2))
    fields = {"x": hr.image("image", many=True).random_resized_crop(16).random_flip().ragged()}
    runs = []
    for threads in (1, 3):
        with hr.Loader(url, 2, fields, shuffle=False, output="numpy", threads=threads) as loader:
            runs.append(next(loader.epoch(0))["x"][0])
    np.testing.assert_array_equal(*runs)
    assert len({v.tobytes() for v in runs[0]}) == 16


def test_without_many_the_error_names_it(url: str) -> None:
    with pytest.raises(hr.UsageError, match=r"2 values of field .txt. .*many=True"):
        hr.open(url, {"t": hr.text("txt")})[0]
    with pytest.raises(hr.UsageError, match="many=True"):
        one_batch(url, {"t": hr.text("txt")})
    with pytest.raises(hr.DataError, match="no field 'txt'"):
        hr.open(url, {"t": hr.text("txt")})[1]


def test_what_does_not_go_with_many_is_said_before_data_moves(url: str) -> None:
    image = hr.image("image", many=True)
    for fields, text in [
        ({"x": image.ragged()}, "one shape"),
        ({"x": image.resize((8, 8)).padded()}, "not .padded"),
        (hr.joint(a=image, b=hr.mask("image")), "hr.joint"),
    ]:
        with pytest.raises(hr.UsageError, match=text):
            one_batch(url, fields)
    with pytest.raises(hr.UsageError, match="True or False"):
        hr.text("txt", many=3)  # type: ignore[arg-type]


def test_map_works_on_each_value(url: str) -> None:
    fields = {
        "n": hr.text("txt", many=True).map(len),
        "m": hr.array("emb", dtype="f32", shape=4, many=True).map(lambda a: a.sum()).ragged(),
        "j": hr.json("json", many=True).map(lambda d: d["v"]).ragged(),
    }
    batch = one_batch(url, fields)
    assert [[int(n) for n in sample] for sample in batch["n"]] == [[len(t) for t in texts(i)] for i in range(len(COUNTS))]
    assert batch["m"][0].tolist() == [4 * (10 * i + v) for i, n in enumerate(COUNTS) for v in range(n)]
    assert batch["j"][0].tolist() == [v for n in COUNTS for v in range(n)]


def test_one_bad_value_replaces_the_sample_once(tmp_path: pathlib.Path) -> None:
    good = photos.make_photo(1, (32, 32))
    samples = [[good, good], [good, b"bad", b"bad too"], [good], [good, good, good]]
    url = str(write_tfrecord(tmp_path / "a.tfrecord", [example({"image": feature(s)}) for s in samples]))
    fields = {"x": hr.image("image", many=True).resize((8, 8)).ragged()}
    with pytest.raises(hr.DataError, match="sample 1"):
        list(hr.Loader(url, 4, fields, shuffle=False, output="numpy").epoch(0))
    with hr.Loader(url, 4, fields, shuffle=False, output="numpy", bad_samples="replace") as loader:
        (batch,) = loader.epoch(0)
        assert [q["sample"] for q in loader.quarantine] == [1]
    counts = [len(samples[i]) for i in batch.indices]
    assert np.diff(batch["x"][1]).tolist() == counts and 1 not in batch.indices


def test_npy_values_as_they_lie(tmp_path: pathlib.Path) -> None:
    def npy(a: Any) -> bytes:
        out = io.BytesIO()
        np.save(out, a)
        return out.getvalue()

    samples = [[npy(np.arange(n)) for n in range(k)] for k in (2, 0, 3)]
    records = [example({"label": feature([i]), **({"a.npy": feature(s)} if s else {})}) for i, s in enumerate(samples)]
    url = str(write_tfrecord(tmp_path / "a.tfrecord", records))
    ds = hr.open(url)
    assert [[a.tolist() for a in s["a.npy"]] for s in ds] == [[list(range(n)) for n in range(k)] for k in (2, 0, 3)]
    with hr.Loader(url, 3, {"x": hr.array("a.npy", many=True)}, shuffle=False, output="numpy") as loader:
        (batch,) = loader.epoch(0)
    assert [len(s) for s in batch["x"]] == [2, 0, 3]
