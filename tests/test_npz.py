# SPDX-License-Identifier: Apache-2.0
"""npz: what NumPy and zipfile wrote we read; what we write NumPy reads."""

from __future__ import annotations

import io
import pathlib
import struct
import zipfile
from typing import Any

import headrace as hr
import numpy as np
import pytest
from support import COUNT, Data

RNG = np.random.default_rng(3)
IMAGES = RNG.integers(0, 256, (50, 4, 6), dtype=np.uint8)
LABELS = RNG.integers(-5, 5, 50)
WEIGHTS = RNG.normal(size=50).astype(np.float32)
NAMES = np.array([f"näme {i}" for i in range(50)])


def as_array(value: Any) -> np.ndarray:
    """A field of kind npy, as bytes or as an array, whichever this build gives."""
    return np.load(io.BytesIO(value)) if isinstance(value, bytes) else np.asarray(value)


def raw(path: Any, *fields: str) -> hr.Dataset:
    return hr.open(path, {f: hr.bytes(f) for f in fields})


def check_rows(path: Any) -> None:
    ds = raw(path, "x")
    assert len(ds) == 50
    assert [ds[i]["x"] for i in range(50)] == [im.tobytes() for im in IMAGES]
    ds = hr.open(path, {"y": hr.scalar("y"), "w": hr.scalar("w"), "n": hr.text("n")})
    assert [s["y"] for s in ds] == LABELS.tolist()
    assert [s["w"] for s in ds] == WEIGHTS.tolist()
    assert [s["n"] for s in ds] == NAMES.tolist()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_one_length_are_rows(tmp_path: pathlib.Path, save: Any) -> None:
    save(tmp_path / "d.npz", x=IMAGES, y=LABELS, w=WEIGHTS, n=NAMES)
    check_rows(tmp_path / "d.npz")
    assert hr.open(tmp_path / "d.npz").key(7) == "d/00000007"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_that_no_field_holds_are_left_out_by_name(tmp_path: pathlib.Path, save: Any) -> None:
    several = np.array([[1], [1, 2], [3]] + [[0]] * 47, dtype=object)
    save(tmp_path / "d.npz", x=IMAGES, y=LABELS, o=several, c=IMAGES.astype(np.complex64))
    ds = hr.open(tmp_path / "d.npz")
    assert len(ds) == 50 and [n for n, _ in ds.schema] == ["x", "y"]
    assert np.array_equal(ds[7]["x"], IMAGES[7]) and ds["y"].tolist() == LABELS.tolist()
    (notice,) = [n for n in ds.notices if "left out" in n]
    assert "'o' (" in notice and "object array" in notice and "'c' (an array of '<c8')" in notice


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_single_values_beside_rows_are_said(tmp_path: pathlib.Path, save: Any) -> None:
    save(tmp_path / "d.npz", x=IMAGES, y=LABELS, name="näme", seed=7)
    ds = hr.open(tmp_path / "d.npz")
    assert len(ds) == 1 and ds[0]["name"] == "näme" and ds[0]["seed"] == 7 and np.array_equal(ds[0]["x"], IMAGES)
    if save is np.savez:  # what is deflated and large is not opened for a notice
        assert any("is a single value; write '#rows'" in n for n in ds.notices)
    ds = hr.open(str(tmp_path / "d.npz") + "#rows")
    assert len(ds) == 50 and np.array_equal(ds[3]["x"], IMAGES[3]) and [n for n, _ in ds.schema] == ["x", "y"]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_any_byte_order_and_fortran_order_are_the_same_rows(tmp_path: pathlib.Path, save: Any) -> None:
    wide = IMAGES.astype(np.int32) * 1000
    save(
        tmp_path / "d.npz",
        a=wide.astype(">i4"),
        b=np.asfortranarray(wide),
        c=np.asfortranarray(wide.astype(">i4")),
        d=LABELS.astype(">i2"),
    )
    ds = hr.open(tmp_path / "d.npz", {**{f: hr.bytes(f) for f in "abc"}, "d": hr.scalar("d")})
    for i in range(50):
        assert all(ds[i][f] == wide[i].tobytes() for f in "abc") and ds[i]["d"] == LABELS[i]


@pytest.mark.parametrize("how", ["zip64", "stream", "plain"])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip_archives_of_every_sort_are_read(tmp_path: pathlib.Path, how: str, method: int) -> None:
    class Stream(io.RawIOBase):
        """Cannot seek: zipfile then writes sizes and checksums behind the data."""

        def __init__(self, out: Any) -> None:
            self.out = out

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            return self.out.write(data)

    path = tmp_path / "d.npz"
    with path.open("wb") as out, zipfile.ZipFile(Stream(out) if how == "stream" else out, "w", method) as archive:
        archive.comment = b"made by a test"
        for name, array in {"x": IMAGES, "y": LABELS, "w": WEIGHTS, "n": NAMES}.items():
            with archive.open(name + ".npy", "w", force_zip64=how == "zip64") as member:
                np.lib.format.write_array(member, array)
    check_rows(path)


def test_more_than_65535_members_and_a_zip64_directory(tmp_path: pathlib.Path) -> None:
    one = io.BytesIO()
    np.save(one, np.int16(7))
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as archive:
        for i in range(66000):
            archive.writestr(f"{i}/v.npy", one.getvalue())
    ds = hr.open(tmp_path / "d.npz", {"v": hr.scalar("v")})
    assert len(ds) == 66000 and ds[65999]["v"] == 7 and ds.key(65999) == "65999"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_file_is_one_sample_where_lengths_differ_or_the_user_says_so(tmp_path: pathlib.Path, save: Any) -> None:
    save(tmp_path / "one.npz", image=IMAGES[0], box=np.float32([1, 2, 3, 4]), label=3, weight=np.float32(0.5), ok=True)
    (sample,) = hr.open(tmp_path / "one.npz")
    assert np.array_equal(as_array(sample["image"]), IMAGES[0])
    assert (sample["label"], sample["weight"], sample["ok"]) == (3, 0.5, 1)
    save(tmp_path / "square.npz", a=np.eye(4), b=np.ones((4, 4)))
    assert len(raw(tmp_path / "square.npz", "a")) == 4
    (sample,) = raw(f"{tmp_path}/square.npz#whole", "a")
    assert np.array_equal(as_array(sample["a"]), np.eye(4))
    save(tmp_path / "two.npz", image=IMAGES[0], box=np.float32([1, 2, 3]), label=3)
    with pytest.raises(hr.Error, match=r"'#rows' wants arrays of one length: '.*' has \d rows, '.*' has \d"):
        hr.open(f"{tmp_path}/two.npz#rows")
    with pytest.raises(hr.Error, match="#rows, #whole and #samples"):
        hr.open(f"{tmp_path}/one.npz#lines")


def test_a_folder_is_one_sample_a_file_in_one_shard(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "d"
    for i in range(300):
        path = root / f"part{i % 3}" / f"case{i:03d}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        (np.savez_compressed if i % 2 else np.savez)(path, image=IMAGES[i % 50, : 1 + i % 4], label=i)
    ds = hr.open(root, {"image": hr.bytes("image"), "label": hr.scalar("label")})
    order = sorted(range(300), key=lambda i: (i % 3, i))
    assert [s["label"] for s in ds] == order
    assert all(np.array_equal(as_array(ds[k]["image"]), IMAGES[i % 50, : 1 + i % 4]) for k, i in enumerate(order))
    assert ds.key(0) == "part0/case000"
    with hr.Loader(root, 16, {"label": hr.scalar("label")}, shuffle=True, tail="keep", output="numpy") as loader:
        assert sorted(int(v) for b in loader.epoch(0) for v in b["label"]) == list(range(300))
    np.savez(root / "part0" / "new.npz", image=IMAGES[0], label=1000)
    assert len(hr.open(root)) == 301


def test_a_folder_read_by_rows(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "d"
    root.mkdir()
    (root / "README.md").write_text("about")
    for i in range(5):
        np.savez(root / f"{i}.npz", x=IMAGES[10 * i : 10 * i + 10], y=LABELS[10 * i : 10 * i + 10])
    assert len(raw(root, "x")) == 5
    ds = hr.open(f"{root}#rows", {"x": hr.bytes("x"), "y": hr.scalar("y")})
    assert [s["x"] for s in ds] == [im.tobytes() for im in IMAGES] and [s["y"] for s in ds] == LABELS.tolist()
    assert ds.key(49) == "4/00000009"
    ds = hr.open(root / "*.npz", {"y": hr.scalar("y")})
    assert [s["y"] for s in ds] == LABELS.tolist()


def test_a_number_in_some_files_and_an_array_in_others_is_an_array(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "d"
    root.mkdir()
    values = [np.int64(1), np.arange(3), np.int32(5), np.float32(2)]
    for i, v in enumerate(values):
        np.savez(root / f"{i}.npz", v=v)
    ds = raw(root, "v")
    for i, v in enumerate(values):
        got = as_array(ds[i]["v"])
        assert np.array_equal(got, v) and got.dtype == v.dtype


def test_what_is_packed_numpy_reads(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.tar, tmp_path / "out", to="npz", shards=2, keep_order=True)
    got: dict[str, Any] = {}
    for path in sorted((tmp_path / "out").glob("*.npz")):
        with np.load(path) as archive:
            got.update({name: archive[name] for name in archive.files})
            assert zipfile.ZipFile(path).testzip() is None
    assert len(got) == 4 * COUNT
    for s in data.samples:
        assert got[f"{s.key}/jpg"] == s.jpeg
        assert got[f"{s.key}/txt"].decode() == s.text
        assert got[f"{s.key}/cls"].dtype == np.int64 and got[f"{s.key}/cls"] == s.label


def test_packed_and_packed_back_it_gives_the_same_samples(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.tar, tmp_path / "tar", shards=2, keep_order=True)
    hr.pack(data.tar, tmp_path / "npz", to="npz", shards=2, keep_order=True)
    hr.pack(tmp_path / "npz", tmp_path / "back", shards=2, keep_order=True)
    a, b = hr.open(tmp_path / "tar"), hr.open(tmp_path / "back")
    assert [(a.key(i), a[i]) for i in range(COUNT)] == [(b.key(i), b[i]) for i in range(COUNT)]


def test_arrays_keep_type_and_shape_when_packed(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "d.npz", x=IMAGES, y=LABELS.astype(np.int8), w=WEIGHTS, n=NAMES)
    hr.pack(tmp_path / "d.npz", tmp_path / "out", to="npz", shards=1, keep_order=True)
    with np.load(tmp_path / "out/shard-000000.npz") as archive:
        for i in (0, 49):
            key = f"d/{i:08d}"
            assert np.array_equal(archive[f"{key}/x"], IMAGES[i]) and archive[f"{key}/x"].dtype == np.uint8
            assert archive[f"{key}/y"] == LABELS[i] and archive[f"{key}/y"].dtype == np.int8
            assert archive[f"{key}/w"] == WEIGHTS[i] and archive[f"{key}/w"].dtype == np.float32
            assert archive[f"{key}/n"].decode() == NAMES[i]
    ds = hr.open(tmp_path / "out", {"n": hr.text("n"), "x": hr.bytes("x")})
    assert [s["n"] for s in ds] == NAMES.tolist() and np.array_equal(as_array(ds[3]["x"]), IMAGES[3])


class Touch:
    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit('executed')",))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_object_arrays_are_refused_and_nothing_is_executed(tmp_path: pathlib.Path, save: Any) -> None:
    save(tmp_path / "d.npz", x=np.array([Touch(), 1], dtype=object))
    with pytest.raises(hr.Error, match=r"object array.*nothing was executed"):
        hr.open(tmp_path / "d.npz")
    save(tmp_path / "s.npz", x=np.zeros(3, dtype=[("a", "i4"), ("b", "f4")]))
    with pytest.raises(hr.Error, match="structured"):
        hr.open(tmp_path / "s.npz")


def test_damage_names_file_and_place(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "d.npz"
    np.savez_compressed(path, x=np.zeros((40, 3000), np.int32) + np.arange(3000, dtype=np.int32), y=np.arange(40))
    whole = path.read_bytes()
    for n in (0, 21, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n])
        with pytest.raises(hr.DataError, match=r"d\.npz"):
            hr.open(path, {"x": hr.bytes("x")})
    path.write_bytes(whole)
    ds = raw(path, "x")
    assert ds[39]["x"] == np.arange(3000, dtype=np.int32).tobytes()
    for at in (whole.index(b"x.npy") + 40, whole.index(b"x.npy") + 400):
        changed = bytearray(whole)
        changed[at] ^= 1
        path.write_bytes(changed)
        with pytest.raises(hr.DataError, match=r"d\.npz"):
            raw(path, "x")[0]


def test_other_methods_and_encryption_are_refused_by_name(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "d.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive, archive.open("x.npy", "w") as member:
        np.lib.format.write_array(member, LABELS)
    with pytest.raises(hr.Error, match="bzip2"):
        hr.open(path)
    np.savez(path, x=LABELS)
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\1\2")
    data[at + 8 : at + 10] = struct.pack("<H", 1)
    path.write_bytes(data)
    with pytest.raises(hr.Error, match="encrypted"):
        hr.open(path)


def test_plain_files_beside_arrays_stay_plain_files(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "d"
    root.mkdir()
    for i in range(3):
        np.savez(root / f"a{i}.npz", x=LABELS)
        (root / f"a{i}.txt").write_text("text")
    assert len(hr.open(root)) == 3 and hr.open(root, {"t": hr.text("txt")})[1]["t"] == "text"


def test_a_flipped_bit_of_a_deflated_file_is_an_error_or_changes_nothing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "d.npz"
    np.savez_compressed(path, x=np.arange(12, dtype=np.int16).reshape(3, 4), y=np.arange(3))
    whole = path.read_bytes()
    want = [np.arange(12, dtype=np.int16).reshape(3, 4)[i].tobytes() for i in range(3)]
    refused = 0
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        fresh = tmp_path / f"{at}.npz"  # a name of its own: no index from before
        fresh.write_bytes(changed)
        try:
            ds = hr.open(fresh, {"x": hr.bytes("x"), "y": hr.scalar("y")})
            assert [s["x"] for s in ds] == want and [s["y"] for s in ds] == [0, 1, 2]
        except hr.Error:
            refused += 1
    assert refused > len(whole) // 2
