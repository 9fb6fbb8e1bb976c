# SPDX-License-Identifier: Apache-2.0
"""Pictures as people keep them: a picture is a sample, whatever dots its name has and whatever lies beside it."""

from __future__ import annotations

import io
import pathlib
import shutil
import subprocess
from typing import Any

import headrace as hr
import numpy as np
import pytest
from PIL import Image
from support import write_tar


def picture(seed: int, kind: str = "JPEG", size: tuple[int, int] = (20, 14)) -> bytes:
    out = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), np.uint8)
    options = {"quality": 90} if kind == "JPEG" else {"lossless": True} if kind == "WEBP" else {}
    Image.fromarray(pixels).save(out, kind, **options)
    return out.getvalue()


def put(path: pathlib.Path, data: bytes = b"") -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def dogs_and_cats(root: pathlib.Path) -> pathlib.Path:
    for c, name in enumerate(("cat", "dog")):
        for i in range(20):
            put(root / name / f"{name}.{i}.jpg", picture(100 * c + i))
    return root


def keys(ds: hr.Dataset) -> list[str]:
    return [ds.key(i) for i in range(len(ds))]


# -- a picture is a sample --------------------------------------------------------------------------


def test_dogs_and_cats_are_forty_samples_as_torchvision_has_them(tmp_path: pathlib.Path) -> None:
    from torchvision.datasets import ImageFolder

    root = dogs_and_cats(tmp_path / "train_set")
    theirs = ImageFolder(str(root))
    ds = hr.open(root, {"image": hr.image("jpg").list(), "label": hr.scalar("cls")})
    assert len(ds) == len(theirs) == 40
    assert ds.classes == theirs.classes
    for i, (file, label) in enumerate(theirs.samples):
        assert ds.key(i) == str(pathlib.Path(file).relative_to(root).with_suffix(""))
        assert ds[i]["label"] == label
        assert np.array_equal(ds[i]["image"].transpose(1, 2, 0), np.asarray(Image.open(file)))


def test_files_with_the_stem_of_a_picture_are_its_fields(tmp_path: pathlib.Path) -> None:
    for i in range(3):
        put(tmp_path / f"shot.{i}.JPEG", picture(i))
        put(tmp_path / f"shot.{i}.json", b'{"n": %d}' % i)
        put(tmp_path / f"shot.{i}.nii.gz", b"volume %d" % i)
    ds = hr.open(tmp_path)
    assert keys(ds) == ["shot.0", "shot.1", "shot.2"]
    assert {n for n, _ in ds.schema} == {"jpg", "json", "nii.gz"}
    assert ds[2]["nii.gz"] == b"volume 2" and ds[1]["json"] == '{"n": 1}'


def test_two_pictures_of_one_stem_are_two_samples_whose_keys_keep_the_extension(tmp_path: pathlib.Path) -> None:
    put(tmp_path / "a.jpg", picture(1))
    put(tmp_path / "a.png", picture(2, "PNG"))
    put(tmp_path / "a.txt", b"both")
    put(tmp_path / "b.jpg", picture(3))
    ds = hr.open(tmp_path)
    assert keys(ds) == ["a.jpg", "a.png", "b"]
    assert [s.get("txt") for s in ds] == ["both", "both", None]
    again = hr.open(tmp_path)  # by the sidecar
    assert keys(again) == keys(ds) and again.fingerprint == ds.fingerprint
    parts = ds.split(one=0.5, other=0.5)
    assert sorted(keys(parts["one"]) + keys(parts["other"])) == sorted(keys(ds))


def test_without_pictures_files_group_by_their_stem(tmp_path: pathlib.Path) -> None:
    for i in range(2):
        np.save(tmp_path / f"x.{i}.npy", np.full(3, i))
        put(tmp_path / f"x.{i}.json", b"{}")
        put(tmp_path / f"x.{i}.bin", b"raw")
    ds = hr.open(tmp_path)
    assert keys(ds) == ["x.0", "x.1"] and set(ds[0]) == {"npy", "json", "bin"}


def test_lists_have_keys_up_to_the_last_dot(tmp_path: pathlib.Path) -> None:
    for name in ("cat.0.jpg", "cat.1.jpg", "dog.0.png", "dog.0.jpg"):
        put(tmp_path / name, picture(1, "PNG" if name.endswith("png") else "JPEG"))
    put(tmp_path / "l.txt", b"cat.1.jpg 1\ncat.0.jpg 0\ndog.0.png 2\ndog.0.jpg 3\n")
    ds = hr.open(tmp_path / "l.txt")
    assert keys(ds) == ["cat.1", "cat.0", "dog.0.png", "dog.0.jpg"]
    assert [s["cls"] for s in ds] == [1, 0, 2, 3]
    put(tmp_path / "cat.0.json", b"{}")
    put(tmp_path / "bare.txt", b"cat.0.jpg\ncat.0.json\ncat.1.jpg\n")
    ds = hr.open(tmp_path / "bare.txt")
    assert keys(ds) == ["cat.0", "cat.1"] and set(ds[0]) == {"jpg", "json"}


@pytest.mark.skipif(shutil.which("mksquashfs") is None, reason="mksquashfs is not installed")
def test_a_squashfs_image_is_the_folder(tmp_path: pathlib.Path) -> None:
    root = dogs_and_cats(tmp_path / "data")
    put(root / "cat" / "notes.txt", b"stray")
    put(root / "dog" / "dog.3.png", picture(7, "PNG"))
    subprocess.run(["mksquashfs", str(root), str(tmp_path / "d.sqfs"), "-quiet"], check=True, capture_output=True)
    ds, folder = hr.open(tmp_path / "d.sqfs"), hr.open(root)
    assert keys(ds) == keys(folder) and len(ds) == 41 and "dog/dog.3.png" in keys(ds)
    assert [dict(s) for s in ds] == [dict(s) for s in folder]


def test_tar_keeps_the_first_dot_of_webdataset(tmp_path: pathlib.Path) -> None:
    write_tar(tmp_path / "x.tar", [("cat.0.jpg", picture(1)), ("cat.1.jpg", picture(2))])
    ds = hr.open(tmp_path / "x.tar")
    assert len(ds) == 1 and set(ds[0]) == {"0.jpg", "1.jpg"}


def test_an_index_of_the_version_before_is_built_again(tmp_path: pathlib.Path) -> None:
    root = dogs_and_cats(tmp_path / "data")
    assert len(hr.open(root)) == 40
    sidecar = tmp_path / "data.hridx"
    old = bytearray(sidecar.read_bytes())
    assert old[8:12] == (3).to_bytes(4, "little")
    old[8:12] = (2).to_bytes(4, "little")
    sidecar.write_bytes(old)
    assert len(hr.open(root)) == 40
    assert sidecar.read_bytes()[8:12] == (3).to_bytes(4, "little")
    hr.build_index(root, str(tmp_path / "index"))
    parts = tmp_path / "index" / "headrace.parts"
    data = bytearray(parts.read_bytes())
    data[8:12] = (2).to_bytes(4, "little")
    parts.write_bytes(data)
    with pytest.raises(hr.Error, match="index the data set again"):
        hr.open(root, index=str(tmp_path / "index"))[0]


# -- strays -----------------------------------------------------------------------------------------


def test_strays_are_left_out_and_counted(tmp_path: pathlib.Path, capsys: Any) -> None:
    root = dogs_and_cats(tmp_path / "data")
    put(root / "cat" / "notes.txt", b"x")
    put(root / "dog" / "Thumbs.db", b"x")
    put(root / "dog" / "README", b"x")
    put(root / "__MACOSX" / "cat" / "._cat.0.jpg", b"x")
    ds = hr.open(root)
    assert len(ds) == 40 and ds.classes == ["cat", "dog"] and {n for n, _ in ds.schema} == {"jpg", "cls"}
    (notice,) = ds.notices
    assert "3 files are neither pictures nor named like one" in notice and "cat/notes.txt" in notice
    loader = hr.Loader(ds, 8, {"image": hr.image("jpg").resize((8, 8))}, output="numpy")
    assert sum(len(b["image"]) for b in loader.epoch(0)) == 40


def test_pictures_beside_a_folder_without_any_are_the_data_set(tmp_path: pathlib.Path) -> None:
    for i in range(4):
        put(tmp_path / "d" / f"{i}.png", picture(i, "PNG"))
    put(tmp_path / "d" / "logs" / "run.log", b"x")
    ds = hr.open(tmp_path / "d")
    assert len(ds) == 4 and any("'logs'" in n for n in ds.notices)


# -- one name for pictures of any extension ---------------------------------------------------------


def mixed(root: pathlib.Path, count: int = 60) -> pathlib.Path:
    kinds = [("jpg", "JPEG"), ("png", "PNG"), ("webp", "WEBP")]
    for i in range(count):
        extension, kind = kinds[i % 3]
        put(root / f"c{i % 2}" / f"{i:03d}.{extension}", picture(i, kind))
    return root


def test_image_is_a_picture_of_any_extension(tmp_path: pathlib.Path) -> None:
    root = mixed(tmp_path / "data")
    fields = {"image": hr.image("image").resize((14, 20)), "label": hr.scalar("cls")}
    loader = hr.Loader(root, 20, fields, shuffle=False, output="numpy")
    seen = np.concatenate([b["image"] for b in loader.epoch(0)])
    plain = hr.open(root)
    assert len(seen) == 60 and {n for n, _ in plain.schema} == {"jpg", "png", "webp", "cls"}
    for i in range(60):
        file = next(root.glob(f"{plain.key(i)}.*"))
        theirs = np.asarray(Image.open(file).convert("RGB").resize((20, 14), Image.Resampling.BILINEAR))
        assert np.abs(seen[i].transpose(1, 2, 0).astype(int) - theirs).max() <= 1
    ds = hr.open(root, fields)
    assert ds.fingerprint == plain.fingerprint and ds.schema == plain.schema
    assert set(plain[0]) == {"jpg", "cls"}


def test_columns_by_name(tmp_path: pathlib.Path) -> None:
    root = mixed(tmp_path / "data", 6)
    ds = hr.open(root)
    assert isinstance(ds["cls"], np.ndarray) and ds["cls"].tolist() == [0, 0, 0, 1, 1, 1]
    assert [bytes(b) for b in ds["image"]] == [next(iter(root.glob(f"{ds.key(i)}.*"))).read_bytes() for i in range(6)]
    assert len(ds["image"]) == 6 and ds["key"] == keys(ds)
    decoded = hr.open(root, {"x": hr.image("image").resize((4, 4))})
    assert decoded["x"][1].shape == (3, 4, 4) and isinstance(decoded["image"][0], bytes)
    with pytest.raises(hr.UsageError, match="no field 'nothing'"):
        ds["nothing"]
    even = ds.where(lambda s: len(s["image"]) > 0 and s["cls"] == 1, fields=["image", "cls"])
    assert len(even) == 3


def test_several_stored_names_as_webdataset_writes_them(tmp_path: pathlib.Path) -> None:
    members = [
        ("a.jpg", picture(1)),
        ("a.cls", b"1"),
        ("b.png", picture(2, "PNG")),
        ("b.cls", b"2"),
        ("c.webp", picture(3, "WEBP")),
    ]
    write_tar(tmp_path / "x.tar", members)
    ds = hr.open(tmp_path / "x.tar", {"image": hr.image("png;jpg;webp;gif").resize((8, 8))})
    assert [s["image"].shape for s in ds] == [(3, 8, 8)] * 3
    both = write_tar(tmp_path / "y.tar", [("a.jpg", picture(1)), ("a.png", picture(2, "PNG"))])
    jpg, png = (hr.open(both, {"i": hr.image(f).list()})[0]["i"] for f in ("jpg", "png"))
    assert np.array_equal(hr.open(both, {"i": hr.image("jpg;png").list()})[0]["i"], jpg)
    assert np.array_equal(hr.open(both, {"i": hr.image("png;jpg").list()})[0]["i"], png)
    with pytest.raises(hr.UsageError, match="no field 'gif' or 'bmp' in the data; it has jpg"):
        hr.open(tmp_path / "x.tar", {"image": hr.image("gif;bmp")})
    with pytest.raises(hr.UsageError, match="cannot stand for"):
        hr.open(tmp_path / "x.tar", {"image": hr.bytes("jpg;cls")})


def test_replaced_samples_are_reported(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    for i in range(300):
        put(tmp_path / "d" / f"{i:03d}.jpg", picture(i) if i % 20 else b"no picture")
    fields = {"image": hr.image("jpg").resize((8, 8))}
    loader = hr.Loader(tmp_path / "d", 50, fields, output="numpy", bad_samples="replace")
    batches = loader.epoch(0)
    for _ in range(3):
        next(batches)
    assert "were bad and replaced" in caplog.text  # long before the end
    for _ in batches:
        pass
    assert "15 of 300 samples of epoch 0 were bad and replaced (5.0%)" in caplog.text


def test_a_pack_of_mixed_extensions_writes_image(tmp_path: pathlib.Path) -> None:
    root = mixed(tmp_path / "data", 12)
    hr.pack(root, tmp_path / "packed", keep_order=True)
    packed, plain = hr.open(tmp_path / "packed"), hr.open(root)
    assert {n for n, _ in packed.schema} == {"image", "cls"}
    assert keys(packed) == keys(plain)
    for i in range(12):
        (value,) = (v for n, v in plain[i].items() if n != "cls")
        assert packed[i]["image"] == value
    batch = next(iter(hr.Loader(packed, 12, {"x": hr.image("image").resize((8, 8))}, output="numpy")))
    assert batch["x"].shape == (12, 3, 8, 8)


# -- lists and globs of pictures --------------------------------------------------------------------


def test_globs_lists_and_generators_of_pictures(tmp_path: pathlib.Path) -> None:
    for i in range(5):
        put(tmp_path / f"p.{i}.jpg", picture(i))
    put(tmp_path / "q.png", picture(9, "PNG"))
    names = sorted(str(p) for p in tmp_path.glob("*.jpg"))
    for source in (f"{tmp_path}/*.jpg", names, (p for p in names), tmp_path.glob("*.jpg"), [pathlib.Path(n) for n in names]):
        ds = hr.open(source)
        assert sorted(keys(ds)) == [f"p.{i}" for i in range(5)] and ds.schema == [("jpg", "jpeg")]
    backwards = hr.open([*reversed(names), str(tmp_path / "q.png")])
    assert keys(backwards) == ["p.4", "p.3", "p.2", "p.1", "p.0", "q"]
    assert backwards[0]["jpg"] == pathlib.Path(names[4]).read_bytes()
    one = hr.open(tmp_path / "q.png", {"image": hr.image("image").list()})
    assert len(one) == 1 and one[0]["image"].shape == (3, 14, 20)
    loader = hr.Loader(names, 5, {"image": hr.image("jpg").resize((8, 8))}, output="numpy", shuffle=False)
    assert next(iter(loader))["image"].shape == (5, 3, 8, 8)
    with pytest.raises(hr.StorageError, match="there is no"):
        hr.open([names[0], str(tmp_path / "gone.jpg")])
    with pytest.raises(hr.UsageError, match=r"'.*notes.txt' is no picture"):
        hr.open([names[0], str(put(tmp_path / "notes.txt")), names[1]])


def test_a_list_of_data_files_is_one_data_set(tmp_path: pathlib.Path) -> None:
    import pandas as pd

    tars = [str(write_tar(tmp_path / f"{n}.tar", [(f"{n}{i}.txt", b"x") for i in range(3)])) for n in "ba"]
    assert keys(hr.open(tars)) == ["b0", "b1", "b2", "a0", "a1", "a2"]
    for n in range(2):
        pd.DataFrame({"x": [n, n + 10]}).to_parquet(tmp_path / f"{n}.parquet")
        pd.DataFrame({"x": [n, n + 10]}).to_csv(tmp_path / f"{n}.csv", index=False)
    for kind in ("parquet", "csv"):
        assert hr.open([tmp_path / f"1.{kind}", tmp_path / f"0.{kind}"])["x"].tolist() == [1, 11, 0, 10]


def test_a_folder_of_two_arrays_says_how_to_have_their_rows(tmp_path: pathlib.Path) -> None:
    x, y = np.arange(24.0).reshape(4, 3, 2), np.arange(4)
    np.save(put(tmp_path / "d" / "X.npy"), x)
    np.save(put(tmp_path / "d" / "y.npy"), y)
    ds = hr.open(tmp_path / "d")
    assert len(ds) == 2
    (notice,) = ds.notices
    rows = eval(notice.partition("join the files: ")[2], {"hr": hr})  # what it says to type
    assert len(rows) == 4 and np.array_equal(rows[2]["X.data"], x[2]) and rows[2]["y.data"] == 2
    np.save(tmp_path / "d" / "y.npy", x)  # samples of one kind
    assert not hr.open(tmp_path / "d").notices


@pytest.mark.parametrize("name", ["train.tar", "train.zip", "train.csv", "train.parquet", "train"])
def test_a_web_page_is_no_data(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\r\n<!DOCTYPE HTML>\n<html><body>Please log in</body></html>\n")
    with pytest.raises(hr.DataError, match=rf"{name}: a web page \(HTML\) in the place of the data"):
        hr.open(tmp_path / name)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.jsonl", "x.tar", "x.h5", "x.npy", "x.npz", "x.pt", "x.safetensors"])
def test_a_pointer_of_git_lfs_is_no_data(tmp_path: pathlib.Path, name: str) -> None:
    path = put(tmp_path / "d" / name, POINTER)
    with pytest.raises(hr.DataError, match="git lfs pull"):
        hr.open(path)
    if name.endswith((".parquet", ".tar", ".jsonl")):  # found in a folder
        with pytest.raises(hr.DataError, match="git lfs pull"):
            hr.open(tmp_path / "d")


def test_a_picture_that_is_a_pointer_says_so(tmp_path: pathlib.Path) -> None:
    put(tmp_path / "d" / "a.jpg", POINTER)
    with pytest.raises(hr.DataError, match="git lfs pull"):
        hr.open(tmp_path / "d", {"x": hr.image("jpg")})[0]


def test_the_home_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path / "d" / "a.jpg", picture(1))
    assert keys(hr.open("~/d")) == ["a"] and len(hr.Loader("~/d", 1)) == 1


def test_a_spreadsheet_is_no_archive_of_samples(tmp_path: pathlib.Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as z:
        z.writestr("xl/workbook.xml", "<x/>")
    with pytest.raises(hr.UsageError, match="is a spreadsheet; save it as CSV"):
        hr.open(tmp_path / "a.xlsx")


def test_a_folder_whose_name_has_braces(tmp_path: pathlib.Path) -> None:
    put(tmp_path / "x{a,b}" / "a.jpg", picture(1))
    assert len(hr.open(tmp_path / "x{a,b}")) == 1
    for name in "ab":
        put(tmp_path / f"y{name}" / "1.jpg", picture(2))
    assert len(hr.open(str(tmp_path / "y{a,b}"))) == 2
