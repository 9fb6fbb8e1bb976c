# SPDX-License-Identifier: Apache-2.0
"""``hr.join``: samples of several data sets side by side, whatever they lie in."""

from __future__ import annotations

import csv
import io
import json
import pathlib
import pickle
from typing import Any

import h5py
import headrace as hr
import numpy as np
import pytest
from PIL import Image
from support import Shape, digest, indices_of, on_ranks, one_epoch, write_tar

COUNT = 23
RAW = {"images.png": hr.bytes("images.png"), "masks.png": hr.bytes("masks.png")}


def picture(i: int, size: tuple[int, int] = (40, 30)) -> np.ndarray[Any, Any]:
    """Every pixel says where it is, so that a crop shows where it came from."""
    y, x = np.mgrid[0 : size[1], 0 : size[0]]
    return np.stack([x * 3, y * 3, np.full_like(x, i * 7 % 251)], -1).astype(np.uint8)


def mask(i: int, size: tuple[int, int] = (40, 30)) -> np.ndarray[Any, Any]:
    y, x = np.mgrid[0 : size[1], 0 : size[0]]
    return ((x * 3 + y * 5 + i) % 7).astype(np.uint8)


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """images/ and masks/, as segmentation sets lie; labels.csv and caption tars beside them."""
    root = tmp_path_factory.mktemp("pairs")
    (root / "images").mkdir()
    (root / "masks").mkdir()
    for i in range(COUNT):
        (root / "images" / f"s{i:03d}.png").write_bytes(png(picture(i)))
        (root / "masks" / f"s{i:03d}.png").write_bytes(png(mask(i)))
    with (root / "labels.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["filename", "label"])
        writer.writerows((f"s{i:03d}.png", i % 4) for i in reversed(range(COUNT)))
    members = [(f"s{i:03d}.txt", f"caption {i}".encode()) for i in reversed(range(COUNT))]
    write_tar(root / "captions-0.tar", members[:10])
    write_tar(root / "captions-1.tar", members[10:])
    return root


@pytest.fixture(scope="module")
def joined(pairs: pathlib.Path) -> hr.Dataset:
    return hr.join(images=pairs / "images", masks=pairs / "masks")


def test_names_that_parts_share_get_their_part_in_front_and_others_stay(pairs: pathlib.Path, joined: hr.Dataset) -> None:
    assert [name for name, _ in joined.schema] == ["images.png", "masks.png"]
    captions = hr.join(pairs / "images", pairs / "captions-*.tar")
    assert [name for name, _ in captions.schema] == ["png", "txt"]
    assert len(joined) == len(captions) == COUNT


def test_parts_without_a_name_are_called_after_their_folders(pairs: pathlib.Path) -> None:
    assert [n for n, _ in hr.join(hr.open(pairs / "images"), hr.open(pairs / "masks")).schema] == ["images.png", "masks.png"]


def test_a_sample_is_what_its_parts_are(pairs: pathlib.Path, joined: hr.Dataset) -> None:
    for i in (0, 7, COUNT - 1):
        assert joined[i]["images.png"] == (pairs / "images" / f"s{i:03d}.png").read_bytes()
        assert joined[i]["masks.png"] == (pairs / "masks" / f"s{i:03d}.png").read_bytes()
        assert joined.key(i) == f"s{i:03d}"


def test_keys_are_matched_whatever_the_order(pairs: pathlib.Path) -> None:
    ds = hr.join(images=pairs / "images", captions=pairs / "captions-*.tar")  # the tars are in reverse
    assert [ds[i]["txt"] for i in range(COUNT)] == [f"caption {i}" for i in range(COUNT)]


def test_a_column_of_a_table_finds_its_files(pairs: pathlib.Path) -> None:
    ds = hr.join(images=pairs / "images", labels=hr.open(pairs / "labels.csv", table=True), on={"labels": "filename"})
    assert ds["label"].tolist() == [i % 4 for i in range(COUNT)]
    assert ds[5]["filename"] == "s005.png"


def test_a_function_of_the_key_matches_what_has_other_names(tmp_path: pathlib.Path) -> None:
    for folder, suffix in (("images", ""), ("masks", "_mask")):
        (tmp_path / folder).mkdir()
        for i in range(6):
            (tmp_path / folder / f"{i}{suffix}.png").write_bytes(png(mask(i)))
    parts = {"images": tmp_path / "images", "masks": tmp_path / "masks"}
    ds = hr.join(**parts, on=lambda key: key.removesuffix("_mask"))
    assert [ds[i]["masks.png"] for i in range(6)] == [png(mask(i)) for i in range(6)]
    by_part = hr.join(**parts, on={"masks": lambda key: key.split("_")[0]})
    assert by_part.fingerprint == ds.fingerprint


def test_lmdb_pairs_are_two_views_of_one_data_set(tmp_path: pathlib.Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(tmp_path / "ocr"), map_size=1 << 24) as db, db.begin(write=True) as put:
        for i in range(1, 9):
            put.put(b"image-%09d" % i, png(picture(i)))
            put.put(b"label-%09d" % i, f"word {i}".encode())
    ds = hr.open(tmp_path / "ocr")
    if len(ds) == 8:  # recognised
        return
    name = ds.schema[0][0]
    parts = {n: ds.where(lambda s, n=n: s["key"].startswith(f"{n}-"), fields=["key"]) for n in ("image", "label")}
    both = hr.join(**parts, on=lambda key: key.split("-")[1])
    assert [bytes(both[i][f"label.{name}"]) for i in range(8)] == [f"word {i}".encode() for i in range(1, 9)]


@pytest.mark.parametrize("on", [None, "position", "key"])
def test_what_does_not_match_is_refused_with_examples_and_a_remedy(pairs: pathlib.Path, on: Any) -> None:
    images, masks = hr.open(pairs / "images"), hr.open(pairs / "masks")
    with pytest.raises(hr.UsageError, match="join") as e:
        hr.join(images=images[2:], masks=masks[:-1], on=on)
    if on == "position":
        assert "21 in 'images', 22 in 'masks'" in str(e.value) and "on='key'" in str(e.value)
    else:
        assert "s022" in str(e.value) and "s000" in str(e.value) and "unmatched='drop'" in str(e.value)
    dropped = hr.join(images=images[2:], masks=masks[:-1], on="key", unmatched="drop")
    assert len(dropped) == COUNT - 3 and dropped[0]["masks.png"] == png(mask(2))


def test_no_key_in_common_and_equally_long_is_by_position(tmp_path: pathlib.Path, pairs: pathlib.Path) -> None:
    np.save(tmp_path / "latents.npy", np.arange(COUNT * 4, dtype=np.float32).reshape(COUNT, 4))
    ds = hr.join(images=pairs / "images", latents=tmp_path / "latents.npy")
    name = next(n for n, _ in ds.schema if n != "png")
    assert ds[3][name].tolist() == [12.0, 13.0, 14.0, 15.0]


def test_a_key_that_is_there_twice_is_refused(pairs: pathlib.Path) -> None:
    masks = hr.open(pairs / "masks")
    with pytest.raises(hr.UsageError, match="more than once"):
        hr.join(images=pairs / "images", masks=masks[[0, 0, 1]], on="key")


def test_the_picture_of_a_part_has_a_name_whatever_its_extension(pairs: pathlib.Path, joined: hr.Dataset) -> None:
    fields = {"image": hr.image("images.image").list(), "mask": hr.mask("masks.image").list()}
    batch = next(iter(hr.Loader(joined, 4, fields, shuffle=False, output="numpy")))
    assert np.array_equal(batch["mask"][1].squeeze(), mask(1))
    with pytest.raises(hr.UsageError, match=r"images\.image, masks\.image"):
        hr.Loader(joined, 4, {"image": hr.image("image")})
    single = hr.join(images=pairs / "images", captions=pairs / "captions-*.tar")
    assert single["images.png"][0] == single["png"][0] == png(picture(0))


def test_picture_and_mask_are_cropped_alike(joined: hr.Dataset) -> None:
    """hr.joint over a join: each pixel of the crop says where it lay, and the mask must say the same."""
    fields = hr.joint(
        image=hr.image("images.png").random_crop(16).random_flip().layout("NHWC"),
        mask=hr.mask("masks.png").random_crop(16).random_flip(),
    )
    with hr.Loader(joined, 5, {**fields, "key": hr.key()}, seed=3, output="numpy", tail="keep") as loader:
        seen = 0
        for epoch in range(2):
            for b in loader.epoch(epoch):
                for image, m, key in zip(b["image"], b["mask"], b["key"]):
                    x, y, i = image[..., 0] // 3, image[..., 1] // 3, int(key[1:])
                    assert np.array_equal(np.squeeze(m), (x.astype(int) * 3 + y.astype(int) * 5 + i) % 7)
                    seen += 1
    assert seen == 2 * COUNT


def test_two_hdf5_files_as_pcam_lies(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 255, (50, 12, 12, 3), np.uint8), rng.integers(0, 2, (50, 1, 1, 1), np.uint8)
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f.create_dataset("x", data=x, chunks=(4, 12, 12, 3), compression="gzip")
    with h5py.File(tmp_path / "y.h5", "w") as f:
        f.create_dataset("y", data=y, chunks=(7, 1, 1, 1), compression="gzip", shuffle=True)
    ds = hr.join(hr.open(tmp_path / "x.h5"), hr.open(tmp_path / "y.h5"))
    for i in (0, 17, 49):
        assert np.array_equal(ds[i]["x"], x[i]) and np.array_equal(ds[i]["y"], y[i])
    with hr.Loader(ds, 8, seed=2, output="numpy", tail="keep") as loader:
        got = {int(n): (a, b) for batch in loader for n, a, b in zip(batch.indices, batch["x"], batch["y"])}
    assert len(got) == 50 and all(np.array_equal(got[i][0], x[i]) and np.array_equal(got[i][1], y[i]) for i in got)


def test_windows_of_two_files_are_joined_as_they_were_opened(tmp_path: pathlib.Path) -> None:
    a = np.arange(200, dtype=np.float32).reshape(20, 10)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", -a)
    opened = {n: hr.open(tmp_path / f"{n}.npy", {"w": hr.array("data", window=3)}) for n in "ab"}
    ds = hr.join(**opened)
    assert len(ds) == 18 and set(ds[0]) == {"a.w", "b.w"}
    assert np.array_equal(ds[4]["a.w"], a[4:7]) and np.array_equal(ds[4]["b.w"], -a[4:7])


def test_fields_of_the_parts_are_kept(pairs: pathlib.Path) -> None:
    images = hr.open(pairs / "images", {"image": hr.image("png").resize((8, 8)).layout("NHWC")})
    ds = hr.join(images=images, captions=pairs / "captions-*.tar")
    assert set(ds[2]) == {"image", "txt"} and ds[2]["image"].shape == (8, 8, 3) and ds[2]["txt"] == "caption 2"
    batch = next(iter(hr.Loader(ds, 3, shuffle=False, output="numpy")))
    assert batch["image"].shape == (3, 8, 8, 3) and batch["txt"] == [f"caption {i}" for i in range(3)]
    with_view = ds[5:9]
    assert with_view[0]["txt"] == "caption 5"


def test_views_over_joins_and_joins_over_views(pairs: pathlib.Path, joined: hr.Dataset) -> None:
    view = joined[[4, 1, 9]]
    assert [view.key(i) for i in range(3)] == ["s004", "s001", "s009"]
    assert view[1]["masks.png"] == png(mask(1))
    images, masks = hr.open(pairs / "images"), hr.open(pairs / "masks")
    even = hr.join(images=images[::2], masks=masks[::2])
    assert len(even) == 12 and even[3]["masks.png"] == png(mask(6))
    again = hr.join(pair=even, captions=pairs / "captions-*.tar", on="key", unmatched="drop")
    assert len(again) == 12 and again[3]["txt"] == "caption 6" and again[3]["masks.png"] == png(mask(6))
    assert len(joined.where("key < 's010'")) == 10
    assert sum(len(p) for p in joined.split(a=0.5, b=0.5).values()) == COUNT


def test_three_parts_of_which_one_is_a_join_lie_in_three_stores(pairs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    held = hr.open(pairs / "masks", in_memory=True)
    inner = hr.join(images=pairs / "images", masks=held)
    ds = hr.join(inner=inner, labels=hr.open(pairs / "labels.csv", table=True), on={"labels": "filename"})
    with hr.Loader(ds, 4, seed=1, output="numpy", tail="keep") as loader:
        for b in loader:
            for n, image, m, label in zip(b.indices, b["images.png"], b["masks.png"], b["label"]):
                assert (image, m, label) == (png(picture(int(n))), png(mask(int(n))), n % 4)


def test_the_fingerprint_is_that_of_the_parts(pairs: pathlib.Path, joined: hr.Dataset) -> None:
    same = hr.join(a=pairs / "images", b=pairs / "masks")
    assert same.fingerprint == joined.fingerprint
    other = hr.join(a=pairs / "images", b=hr.open(pairs / "masks")[::-1], on="position")
    assert len({same.fingerprint, other.fingerprint, hr.open(pairs / "images").fingerprint}) == 3


@pytest.mark.parametrize("shuffle", [False, "global", "pool"])
def test_ranks_see_every_sample_once_with_its_mask(joined: hr.Dataset, shuffle: Any) -> None:
    for shape in (Shape(1, 4), Shape(3, 2)):
        ranks = on_ranks(joined, shape, RAW, shuffle=shuffle, tail="keep", seed=3, threads=1, use=one_epoch(0))
        assert sorted(i for batches in ranks for i in indices_of(batches)) == list(range(COUNT))
        for batches in ranks:
            for b in batches:
                assert b["masks.png"] == [png(mask(int(i))) for i in b.indices]


def test_a_state_goes_on_and_is_of_this_join_alone(pairs: pathlib.Path, joined: hr.Dataset) -> None:
    with hr.Loader(joined, 4, seed=5, output="numpy", tail="keep") as loader:
        it = loader.epoch(0)
        next(it), next(it)
        state = loader.state_dict()
        rest = [digest([b]) for b in it]
    with hr.Loader(joined, 4, seed=5, output="numpy", tail="keep") as loader:
        loader.load_state_dict(state)
        assert [digest([b]) for b in loader.epoch(0)] == rest
    with hr.Loader(hr.open(pairs / "images"), 4, output="numpy") as other, pytest.raises(hr.UsageError, match="other data"):
        other.load_state_dict(state)


def test_a_blend_over_joins(pairs: pathlib.Path, joined: hr.Dataset) -> None:
    fields = {"image": hr.image("images.png").list(), "mask": hr.mask("masks.png").list()}
    parts = {"a": (joined[:10], 0.5), "b": (joined[10:], 0.5)}
    with hr.Loader(hr.blend(parts), 4, fields, seed=1, output="numpy", tail="keep") as loader:
        for b in loader:
            for source, n, m in zip(b.sources, b.indices, b["mask"]):
                assert np.array_equal(np.squeeze(m), mask(int(n) + 10 * int(source)))


def test_pack_writes_a_join_that_opens_as_one_data_set(joined: hr.Dataset, tmp_path: pathlib.Path) -> None:
    hr.pack(joined, tmp_path / "packed", keep_order=True)
    packed = hr.open(tmp_path / "packed")
    assert [n for n, _ in packed.schema] == ["images.png", "masks.png"]
    assert all(packed[i] == joined[i] for i in range(COUNT))


def test_a_join_can_be_pickled(joined: hr.Dataset) -> None:
    again = pickle.loads(pickle.dumps(joined[3:7]))
    assert len(again) == 4 and again[0] == joined[3] and again.fingerprint == joined[3:7].fingerprint


def test_a_bad_sample_names_its_own_file(pairs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "masks").mkdir()
    for i in range(COUNT):
        (tmp_path / "masks" / f"s{i:03d}.png").write_bytes(png(mask(i))[: 60 if i == 4 else None])
    ds = hr.join(images=pairs / "images", masks=tmp_path / "masks")
    fields = {"image": hr.image("images.png").list(), "mask": hr.mask("masks.png").list()}
    with pytest.raises(hr.DataError) as e, hr.Loader(ds, 4, fields, output="numpy") as loader:
        list(loader)
    assert str(tmp_path / "masks" / "s004.png") in str(e.value) and "\x1f" not in str(e.value)
    with hr.Loader(ds, 4, fields, output="numpy", bad_samples="replace") as loader:
        list(loader)
        assert [q["file"] for q in loader.quarantine] == [str(tmp_path / "masks" / "s004.png")]


def test_what_makes_no_join_is_refused(pairs: pathlib.Path) -> None:
    images = hr.open(pairs / "images")
    for call, words in [
        (lambda: hr.join(images), "at least two"),
        (lambda: hr.join(a=images, b=images, on=3), "on is"),
        (lambda: hr.join(a=images, b=images, on={"c": "key"}), "the parts are a, b"),
        (lambda: hr.join(a=images, b=images, on="none"), "has no column 'none'"),
        (lambda: hr.join(a=images, b=images, unmatched="keep"), "unmatched"),
    ]:
        with pytest.raises(hr.UsageError, match=words):
            call()


def test_several_columns_of_files_in_one_list_are_fields(tmp_path: pathlib.Path) -> None:
    rows = []
    for name in ("left", "right", "notes"):
        (tmp_path / name).mkdir()
    for i in range(5):
        for name in ("left", "right"):
            (tmp_path / name / f"{i}.png").write_bytes(png(picture(i if name == "left" else i + 100)))
        (tmp_path / "notes" / f"{i}.txt").write_text(f"note {i}")
        rows.append(
            {"left": f"left/{i}.png", "right": f"right/{i}.png", "note": "" if i == 3 else f"notes/{i}.txt", "label": i % 2}
        )
    with (tmp_path / "rows.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("rows.csv", "rows.jsonl"):
        ds = hr.open(tmp_path / name)
        assert [n for n, _ in ds.schema] == ["left", "right", "note", "label"]
        assert ds[2]["right"] == png(picture(102)) and ds[2]["note"] == "note 2" and "note" not in ds[3]
        assert ds["label"].tolist() == [0, 1, 0, 1, 0] and ds.key(2) == "left/2"
    table = hr.open(tmp_path / "rows.csv", table=True)
    assert table[2]["right"] == "right/2.png"
