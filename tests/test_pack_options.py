# SPDX-License-Identifier: Apache-2.0
"""What hr.pack can change on the way: fields, pictures, parts; what it says before and after; what verify finds."""

from __future__ import annotations

import io
import json
import os
import pathlib
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import photos
from PIL import Image
from support import COUNT, Data, write_tar
from test_cli import headrace

SIZES = [(64, 48), (200, 100), (101, 301), (128, 128), (129, 3)]


def encoded(size: tuple[int, int], kind: str, mode: str = "RGB", **options: Any) -> bytes:
    picture = Image.open(io.BytesIO(photos.make_photo(sum(size), size))).convert(mode)
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def pixels(data: bytes, mode: str | None = None) -> np.ndarray[Any, Any]:
    picture = Image.open(io.BytesIO(data))
    return np.asarray(picture.convert(mode) if mode else picture)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """JPEG, PNG with alpha and gray WebP of several sizes, and a mask."""
    members = []
    for i, size in enumerate(SIZES):
        members += [
            (f"{i}.jpg", encoded(size, "JPEG", "L" if i == 1 else "RGB", quality=95)),
            (f"{i}.png", encoded(size, "PNG", "RGBA" if i % 2 else "RGB")),
            (f"{i}.webp", encoded(size, "WEBP", quality=80)),
            (f"{i}.seg.png", encoded(size, "PNG", "L")),
            (f"{i}.cls", b"%d" % i),
        ]
    return write_tar(tmp_path_factory.mktemp("pictures") / "p.tar", members)


def samples(folder: Any) -> list[dict[str, Any]]:
    return list(hr.open(folder))


def fitted(size: tuple[int, int], side: int) -> tuple[int, int]:
    longer = max(size)
    if longer <= side:
        return size
    return tuple(max(1, (n * side + longer // 2) // longer) for n in size)  # type: ignore[return-value]


# -- pictures ------------------------------------------------------------------------------------------


def test_large_pictures_are_made_smaller_and_small_ones_stay(pictures: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hr.pack(pictures, tmp_path / "out", shards=1, keep_order=True, max_side=128)
    kinds = {"jpg": "JPEG", "png": "PNG", "webp": "WEBP", "seg.png": "PNG"}
    for size, before, after in zip(SIZES, samples(pictures), samples(tmp_path / "out")):
        for name, kind in kinds.items():
            if max(size) <= 128:
                assert after[name] == before[name]
                continue
            was, is_now = Image.open(io.BytesIO(before[name])), Image.open(io.BytesIO(after[name]))
            assert is_now.format == kind and is_now.size == fitted(size, 128) and is_now.mode == was.mode
            wanted = np.asarray(was.resize(is_now.size, Image.Resampling.BICUBIC), np.int64)
            error = np.abs(wanted - np.asarray(is_now, np.int64))
            assert error.max() <= (0 if kind == "PNG" else 80) and error.mean() < (1 if kind == "PNG" else 6)


def test_quality_alone_encodes_every_jpeg_and_nothing_else(pictures: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hr.pack(pictures, tmp_path / "out", shards=1, keep_order=True, quality=40)
    for before, after in zip(samples(pictures), samples(tmp_path / "out")):
        assert len(after["jpg"]) < len(before["jpg"]) and after["jpg"] != before["jpg"]
        assert pixels(after["jpg"]).shape == pixels(before["jpg"]).shape
        assert all(after[name] == before[name] for name in ("png", "webp", "seg.png"))


def test_raw_pictures_are_the_pixels(pictures: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hr.pack(pictures, tmp_path / "out", shards=1, keep_order=True, raw=True, fields=["jpg", "seg.png", "cls"])
    ds = hr.open(tmp_path / "out")
    assert dict(ds.schema) == {"npy": "npy", "seg.npy": "npy", "cls": "int"}
    for before, after in zip(samples(pictures), ds):
        for old, new in (("jpg", "npy"), ("seg.png", "seg.npy")):
            value = after[new]
            array = np.load(io.BytesIO(value)) if isinstance(value, bytes) else np.asarray(value)
            wanted = pixels(before[old])
            assert array.dtype == np.uint8 and array.ndim == 3
            np.testing.assert_array_equal(array, wanted.reshape(*wanted.shape[:2], -1))


def test_raw_pictures_made_smaller_are_pillows(pictures: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hr.pack(
        pictures,
        tmp_path / "out",
        shards=1,
        keep_order=True,
        raw=True,
        max_side=50,
        fields=["jpg"],
        rename={"picture.npy": "jpg"},
    )
    for size, before, after in zip(SIZES, samples(pictures), samples(tmp_path / "out")):
        value = after["picture.npy"]
        array = np.load(io.BytesIO(value)) if isinstance(value, bytes) else np.asarray(value)
        wanted = np.asarray(Image.open(io.BytesIO(before["jpg"])).resize(fitted(size, 50), Image.Resampling.BICUBIC))
        np.testing.assert_array_equal(array, wanted.reshape(*wanted.shape[:2], -1))


def test_only_the_named_pictures_are_recoded(pictures: pathlib.Path, tmp_path: pathlib.Path) -> None:
    hr.pack(pictures, tmp_path / "out", shards=1, keep_order=True, max_side=50, recode=["jpg"])
    for before, after in zip(samples(pictures), samples(tmp_path / "out")):
        assert after["seg.png"] == before["seg.png"] and after["jpg"] != before["jpg"]


def test_the_orientation_is_in_the_pixels_afterwards(tmp_path: pathlib.Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = Image.open(io.BytesIO(photos.make_photo(3, (96, 48))))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=95, exif=exif)
    write_tar(tmp_path / "x.tar", [("a.jpg", out.getvalue())])
    hr.pack(tmp_path / "x.tar", tmp_path / "out", shards=1, max_side=48)
    assert Image.open(io.BytesIO(samples(tmp_path / "out")[0]["jpg"])).size == (24, 48)


def test_a_picture_that_cannot_be_decoded_is_named(data: Data, tmp_path: pathlib.Path) -> None:
    members = [(f"k{i}.jpg", s.jpeg[:200] if i == 33 else s.jpeg) for i, s in enumerate(data.samples)]
    write_tar(tmp_path / "x.tar", members)
    with pytest.raises(hr.DataError, match=r"x\.tar, offset \d+.*'k33'.*field 'jpg'"):
        hr.pack(tmp_path / "x.tar", tmp_path / "out", shards=2, max_side=32)
    assert not (tmp_path / "out/headrace.json").exists()


def test_recoding_is_part_of_the_plan(data: Data, tmp_path: pathlib.Path) -> None:
    options: dict[str, Any] = {"shards": 2, "max_side": 100}
    hr.pack(data.folder, tmp_path / "out", **options)
    assert hr.pack(data.folder, tmp_path / "out", **options)["was_complete"]
    for other in ({"max_side": 101}, {"quality": 90}, {"max_side": None}, {"rename": {"x": "cls"}}, {"drop": ["cls"]}):
        with pytest.raises(hr.UsageError, match="another pack"):
            hr.pack(data.folder, tmp_path / "out", **{**options, **other})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_side": 0}, "max_side"),
        ({"quality": 101}, "quality"),
        ({"raw": True, "quality": 50}, "one of the two"),
        ({"max_side": 9, "fields": ["cls"]}, "pictures"),
        ({"recode": ["jpg"]}, "max_side"),
        ({"recode": ["cls"], "max_side": 9}, "no picture"),
        ({"drop": ["clss"]}, "did you mean 'cls'"),
        ({"fields": ["jpgs"]}, "did you mean 'jpg'"),
        ({"rename": {"x": "clas"}}, "did you mean 'cls'"),
        ({"rename": {"cls": "jpg"}}, "two fields"),
        ({"rename": ["x"]}, "dict"),
        ({"drop": "cls"}, "list of names"),
        ({"drop": ["jpg", "cls"]}, "nothing is left"),
        ({"split": {"a": 0.5, "b": 0.7}}, "more than 1"),
        ({"split": {"a/b": 1}}, "named like a folder"),
        ({"split": [1]}, "split is a dict"),
        ({"split": {"a": 1 - 1e-7, "b": 1e-7}}, "no sample"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    data: Data, tmp_path: pathlib.Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(hr.UsageError, match=words):
        hr.pack(data.folder, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


# -- fields and parts ----------------------------------------------------------------------------------


def test_fields_are_chosen_dropped_and_renamed(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.tar, tmp_path / "out", shards=2, keep_order=True, drop=["json"], rename={"caption": "txt", "cls2": "cls"})
    ds = hr.open(tmp_path / "out")
    assert dict(ds.schema) == {"jpg": "jpeg", "cls2": "int", "caption": "text"}
    assert [(s["jpg"], s["cls2"], s["caption"]) for s in ds] == [(s.jpeg, s.label, s.text) for s in data.samples]


def test_a_field_that_the_format_cannot_hold_is_named(data: Data, tmp_path: pathlib.Path) -> None:
    with pytest.raises(hr.Unsupported, match="--drop txt"):
        hr.pack(data.tar, tmp_path / "out", to="recordio", drop=["json"])
    assert not (tmp_path / "out").exists()
    hr.pack(data.tar, tmp_path / "out", to="recordio", drop=["json", "txt"])


def test_a_split_is_a_pack_for_each_part(data: Data, tmp_path: pathlib.Path) -> None:
    split = {"train": 0.7, "val": 0.2}
    result = hr.pack(data.folder, tmp_path / "out", shards=2, split=split)
    parts = {name: hr.open(tmp_path / "out" / name) for name in split}
    keys = {name: {ds.key(i) for i in range(len(ds))} for name, ds in parts.items()}
    views = hr.open(data.folder).split(**split)
    assert keys == {name: {v.key(i) for i in range(len(v))} for name, v in views.items()}
    assert result["samples"] + result["left_out"] == COUNT and result["left_out"] > 0
    assert result["parts"]["val"]["samples"] == len(parts["val"])
    assert hr.pack(data.folder, tmp_path / "out", shards=2, split=split)["was_complete"]


def test_a_split_that_was_stopped_goes_on(data: Data, tmp_path: pathlib.Path) -> None:
    def stop(done: int, total: int, *_: int) -> None:
        if done > total * 0.8:
            raise InterruptedError

    split = {"a": 0.6, "b": 0.4}
    with pytest.raises(InterruptedError):
        hr.pack(data.folder, tmp_path / "out", shards=4, threads=1, split=split, progress=stop)
    assert (tmp_path / "out/a/headrace.json").exists() and not (tmp_path / "out/b/headrace.json").exists()
    assert hr.pack(data.folder, tmp_path / "out", shards=4, split=split)["shards_kept"] >= 4
    assert sum(len(hr.open(tmp_path / "out" / n)) for n in split) == COUNT


def test_a_split_leaves_other_files_alone(data: Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(hr.UsageError, match=r"thesis\.tex"):
        hr.pack(data.folder, tmp_path, split={"a": 1})


@pytest.mark.parametrize("memory", ["1K", "100K", "10M"])
def test_the_bytes_do_not_depend_on_the_memory(data: Data, tmp_path: pathlib.Path, memory: str) -> None:
    hr.pack(data.tar, tmp_path / "a", shards=3)
    hr.pack(data.tar, tmp_path / "b", shards=3, memory=memory)
    for path in (tmp_path / "a").glob("*.tar"):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_too_small_a_disk_is_said_before_any_work(tmp_path: pathlib.Path) -> None:
    with (tmp_path / "large.bin").open("wb") as out:
        out.truncate(8 << 20)
    (tmp_path / "list.csv").write_text("path\nlarge.bin\n")
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    many = hr.open(tmp_path / "list.csv").repeat(max(2, free // (8 << 20) * 5 // 4))
    with pytest.raises(hr.Error, match=r"out.*MB are to be written, and \d+ MB are free"):
        hr.pack(many, tmp_path / "out", shards=1, to="arrow")
    assert not list((tmp_path / "out").glob("shard*"))


# -- verify, and the command line -----------------------------------------------------------------------


def test_verify_finds_a_changed_byte_that_no_decoder_notices(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.tar, tmp_path / "out", shards=2, keep_order=True)
    assert headrace("verify", tmp_path / "out").returncode == 0
    shard = tmp_path / "out/shard-000001.tar"
    content = bytearray(shard.read_bytes())
    at = content.index(b"caption of")
    content[at] ^= 0x20
    stat = shard.stat()
    shard.write_bytes(content)
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    run = headrace("verify", tmp_path / "out")
    assert run.returncode == 1 and "shard-000001.tar" in run.stdout and "crc32c" in run.stdout


def test_verify_finds_a_changed_companion(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.folder, tmp_path / "out", to="recordio", shards=2)
    index = tmp_path / "out/shard-000000.idx"
    index.write_bytes(index.read_bytes() + b"99\t0\n")
    found = json.loads(headrace("verify", tmp_path / "out", "--json").stdout)
    assert any("shard-000000.idx" in p for p in found["problems"])


def test_verify_parses_arrays(tmp_path: pathlib.Path) -> None:
    good = io.BytesIO()
    np.save(good, np.arange(6).reshape(2, 3))
    write_tar(tmp_path / "good.tar", [("a.npy", good.getvalue()), ("b.npy", good.getvalue())])
    write_tar(tmp_path / "bad.tar", [("a.npy", good.getvalue()), ("b.npy", good.getvalue()[:-5])])
    found = json.loads(headrace("verify", tmp_path / "good.tar", "--json").stdout)
    assert found["arrays"] == 2 and found["bad_samples"] == 0
    run = headrace("verify", tmp_path / "bad.tar", "--json")
    found = json.loads(run.stdout)
    assert run.returncode == 1 and [b["key"] for b in found["bad"]] == ["b"]


def test_the_command_takes_the_same_options(data: Data, tmp_path: pathlib.Path) -> None:
    run = headrace(
        "pack", data.tar, tmp_path / "out", "--split", "train=0.8,val=0.1", "--drop", "json", "--rename", "caption=txt",
        "--max-side", 100, "--quality", 80, "--shards", 2, "--memory", "1M",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for word in ("samples/s", "MB/s", "left out", "train", "val", "hr.open"):
        assert word in run.stdout, word
    ds = hr.open(tmp_path / "out/train")
    assert dict(ds.schema) == {"jpg": "jpeg", "cls": "int", "caption": "text"}
    assert max(max(hr.image_size(s["jpg"])) for s in ds) <= 100


@pytest.mark.parametrize(
    "options", [("--rename", "a"), ("--split", "a=x"), ("--split", "a"), ("--drop", "nothing"), ("--rename", "x=y")], ids=str
)
def test_bad_options_are_one_line(data: Data, tmp_path: pathlib.Path, options: tuple[str, ...]) -> None:
    run = headrace("pack", data.tar, tmp_path / "out", *options)
    assert run.returncode == 2 and "Traceback" not in run.stderr and len(run.stderr.strip().splitlines()) == 1


def test_help_has_examples() -> None:
    for command in ("pack", "verify", "inspect"):
        run = headrace(command, "--help")
        assert run.returncode == 0 and f"headrace {command}" in run.stdout and "Example" in run.stdout


def test_inspect_shows_types(data: Data) -> None:
    facts = json.loads(headrace("inspect", data.tar, "--json").stdout)
    about = {f["name"]: f for f in facts["fields"]}
    assert about["jpg"]["kind"] == "jpeg" and about["jpg"]["many"] is False and about["jpg"]["shape"] is None


@pytest.mark.parametrize("shuffle", [False, "global"])
def test_a_pack_in_order_is_loaded_in_the_order_of_its_source(data: Data, tmp_path: pathlib.Path, shuffle: object) -> None:
    hr.pack(data.folder, tmp_path / "p", shuffle=False, shards=3)
    orders = []
    for source in (data.folder, tmp_path / "p"):
        with hr.Loader(source, 7, {"key": hr.key(), "n": hr.scalar("cls")}, shuffle=shuffle, seed=3, output="numpy") as loader:
            orders.append([(k, int(n)) for b in loader.epoch(1) for k, n in zip(b["key"], b["n"])])
    assert orders[0] == orders[1]
    with pytest.raises(hr.UsageError, match="shuffle"):
        hr.pack(data.folder, tmp_path / "q", shuffle=True, keep_order=True)


@pytest.mark.parametrize("to", ["tar", "mds", "parquet", "tfrecord"])
def test_names_of_classes_are_kept(data: Data, tmp_path: pathlib.Path, to: str) -> None:
    classes = hr.open(data.folder).classes
    assert len(classes) == 5
    for _ in range(2):  # the second time all is there
        hr.pack(data.folder, tmp_path / "p", to=to)
    assert hr.open(tmp_path / "p").classes == hr.open(tmp_path / "p")[3:9].classes == classes
    hr.pack(hr.open(tmp_path / "p"), tmp_path / "q", to=to, split={"train": 0.6, "val": 0.4})
    assert hr.open(tmp_path / "q" / "train").classes == classes
    assert headrace("verify", tmp_path / "p").returncode == 0
