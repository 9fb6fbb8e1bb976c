# SPDX-License-Identifier: Apache-2.0
"""Volumes: files that are a sample each, crops of them, flips, labels; tables of starts; arrays in memory."""

from __future__ import annotations

import glob
import os
import pickle
import zipfile

import headrace as hr
import numpy as np
import pytest

h5py = pytest.importorskip("h5py")

SHAPES = [(20, 24, 28), (17, 30, 26), (25, 21, 33), (16, 40, 24), (19, 22, 29), (30, 16, 16)]
PATCH = (8, 12, 10)


def volume(n):
    """Each value its own number, and a label: two balls of different classes in a corner; none in the last one."""
    shape = SHAPES[n]
    x = (np.arange(np.prod(shape), dtype="f4") + n * 100_000).reshape(shape)
    y = np.zeros(shape, "u1")
    if n + 1 < len(SHAPES):
        y[2:4, 3:5, 1 : 3 + n] = 1
        y[shape[0] - 2, shape[1] - 1, shape[2] - 3 :] = 2
    return x, y


def write_npz(folder, compressed=False):
    for n in range(len(SHAPES)):
        x, y = volume(n)
        (np.savez_compressed if compressed else np.savez)(folder / f"case_{n}.npz", x=x, y=y)
    return str(folder / "case_*.npz")


def write_npy(folder, order="C"):
    for n in range(len(SHAPES)):
        for name, data in zip("xy", volume(n)):
            np.save(folder / f"case_{n}_{name}.npy", np.asarray(data, order=order))
    return str(folder / "case_*.npy")


def write_hdf5(folder):
    for n in range(len(SHAPES)):
        with h5py.File(folder / f"case_{n}.h5", "w") as f:
            for name, data in zip("xy", volume(n)):
                f.create_dataset(name, data=data, chunks=(8, 8, 8), compression="gzip", shuffle=True)
    return str(folder / "case_*.h5")


def write_groups(folder):
    with h5py.File(folder / "all.h5", "w") as f:
        for n in range(len(SHAPES)):
            for name, data in zip("xy", volume(n)):
                f.create_dataset(f"case_{n}/{name}", data=data, chunks=(8, 8, 8) if n % 2 else None)
    return str(folder / "all.h5")


WRITERS = {
    "npz": write_npz,
    "npz deflated": lambda folder: write_npz(folder, True),
    "npy": write_npy,
    "npy fortran": lambda folder: write_npy(folder, "F"),
    "hdf5": write_hdf5,
    "groups": write_groups,
}


@pytest.fixture(params=WRITERS)
def volumes(request, tmp_path):
    return WRITERS[request.param](tmp_path), "group" if request.param == "groups" else "file"


@pytest.fixture
def npz(tmp_path):
    return write_npz(tmp_path)


def fields(along="file", **options):
    return {"x": hr.array("x", along=along, patch=PATCH, **options), "y": hr.array("y", along=along, patch=PATCH), "k": hr.key()}


def epoch(url, fields, seed=1, number=0, **options):
    """All samples by key."""
    out = {}
    with hr.Loader(url, 2, fields, seed=seed, tail="keep", output="numpy", **options) as loader:
        for b in loader.epoch(number):
            for i, key in enumerate(b["k"]):
                out[key] = {k: np.array(b[k][i]) for k in b if k != "k"}
    return out


def where(x):
    """(volume, corner) of a crop, by its first value."""
    n, at = divmod(int(x.flat[0]), 100_000)
    return n, np.array(np.unravel_index(at, SHAPES[n]))


def check_crop(sample):
    n, corner = where(sample["x"])
    box = tuple(slice(c, c + p) for c, p in zip(corner, PATCH))
    x, y = volume(n)
    assert np.array_equal(sample["x"], x[box])
    assert np.array_equal(sample["y"], y[box])
    assert sample["y"].dtype == np.uint8
    return n, tuple(int(c) for c in corner)


def test_each_file_is_a_sample_and_crops_are_alike_for_all_fields(volumes):
    url, along = volumes
    got = epoch(url, fields(along))
    assert sorted(got) == [f"case_{n}" for n in range(len(SHAPES))]
    for key, sample in got.items():
        assert check_crop(sample)[0] == int(key[-1])
    again = epoch(url, fields(along))
    assert all(np.array_equal(got[k]["x"], again[k]["x"]) for k in got)
    other = [check_crop(s)[1] for s in epoch(url, fields(along), number=1).values()]
    assert other != [check_crop(s)[1] for s in got.values()]


def test_all_of_a_file_where_shapes_are_one(tmp_path):
    for n in range(3):
        np.savez(tmp_path / f"{n}.npz", x=np.full((4, 5), n, "i2"))
    ds = hr.open(str(tmp_path / "*.npz"), {"x": hr.array("x", along="file")})
    assert [int(ds[i]["x"][3, 4]) for i in range(3)] == [0, 1, 2]
    assert ds[1]["x"].shape == (4, 5)
    assert [ds.key(i) for i in range(3)] == ["0", "1", "2"]
    assert pickle.loads(pickle.dumps(ds))[2]["x"].sum() == 40


def test_channels_stay_and_tiles_cover(tmp_path):
    data = np.arange(2 * 6 * 7 * 8, dtype="i4").reshape(2, 6, 7, 8)
    for n in range(2):
        np.save(tmp_path / f"v{n}.npy", data + n * 10000)
    ds = hr.open(str(tmp_path / "v*.npy"), {"x": hr.array("data", along="file", patch=(3, 4, 4), tiled=True)})
    assert len(ds) == 2 * 2 * 2 * 2
    seen = np.concatenate([ds[i]["x"].ravel() for i in range(len(ds))])
    assert ds[0]["x"].shape == (2, 3, 4, 4)
    assert set(seen.tolist()) == {*data.ravel().tolist(), *(data.ravel() + 10000).tolist()}
    assert ds.key(9) == "v1/1"


def test_only_what_is_touched_is_read(tmp_path):
    np.save(tmp_path / "v.npy", np.zeros((128, 128, 128), "f4"))
    np.savez(tmp_path / "v.npz", x=np.zeros((128, 128, 128), "f4"))
    with h5py.File(tmp_path / "v.h5", "w") as f:
        f.create_dataset(
            "x", data=np.random.default_rng(0).random((128, 128, 128), "f4"), chunks=(32, 32, 32), compression="gzip"
        )
    for name, field in (("v.npy", "data"), ("v.npz", "x"), ("v.h5", "x")):
        with hr.Loader(
            str(tmp_path / name), 1, {"x": hr.array(field, along="file", patch=(16, 16, 16))}, output="numpy"
        ) as loader:
            next(iter(loader))
            read = loader.stats()["stages"]["read"]["bytes"]
            assert read < os.path.getsize(tmp_path / name) / (7 if name == "v.h5" else 50), name


def test_flips_fall_alike_on_all_fields(npz):
    plain = epoch(npz, fields())
    flipped = {k: f.random_flip((-3, -2, -1)) if k != "k" else f for k, f in fields().items()}
    flipped["x"] = flipped["x"].cast("f64")
    seen = set()
    for number in range(8):
        plain = epoch(npz, fields(), number=number)
        for key, sample in epoch(npz, flipped, number=number).items():
            for axes in [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]:
                if np.array_equal(np.flip(plain[key]["x"], axes), sample["x"]):
                    break
            else:
                pytest.fail("no flip of the plain crop")
            assert np.array_equal(np.flip(plain[key]["y"], axes), sample["y"])
            seen.add(axes)
    assert len(seen) == 8
    always = {k: f.random_flip(-1, p=1) if k != "k" else f for k, f in fields().items()}
    for key, sample in epoch(npz, always, number=7).items():
        assert np.array_equal(sample["x"], plain[key]["x"][..., ::-1])


def test_flips_are_of_any_arrays(tmp_path):
    data = np.arange(60, dtype="i2").reshape(5, 3, 4)
    np.save(tmp_path / "a.npy", data)
    ds = hr.open(tmp_path / "a.npy", {"x": hr.array("data").random_flip(-2, p=1).normalize(1, 2)})
    assert np.array_equal(ds[2]["x"], ((data[2, ::-1] - 1) / 2).astype("f4"))
    for bad, words in (((-3,), "no axis -3"), ((0,), "counted from the last"), ((-1, -1), "each once")):
        with pytest.raises(hr.UsageError, match=words):
            hr.open(tmp_path / "a.npy", {"x": hr.array("data").random_flip(bad)})
    with pytest.raises(hr.UsageError, match="p is from 0 to 1"):
        hr.open(tmp_path / "a.npy", {"x": hr.array("data").random_flip(-1, p=2)})


def test_a_share_of_the_crops_holds_the_label(volumes):
    url, along = volumes
    held, classes = 0, set()
    for number in range(6):
        got = epoch(url, fields(along, foreground="y", share=1.0), number=number)
        for key, sample in got.items():
            check_crop(sample)
            held += bool(sample["y"].any())
            classes |= set(np.unique(sample["y"]).tolist())
            if key == f"case_{len(SHAPES) - 1}":
                assert not sample["y"].any()  # it has none, and is cropped anywhere
    assert held == 6 * (len(SHAPES) - 1)
    assert classes == {0, 1, 2}


def test_the_share_is_about_what_is_asked(tmp_path):
    shape = (40, 40, 40)
    for n in range(40):
        y = np.zeros(shape, "i2")
        y[n % 40, 7, 11] = 5
        np.savez(tmp_path / f"c{n}.npz", x=np.zeros(shape, "u1"), y=y)
    url = str(tmp_path / "c*.npz")
    options = {"along": "file", "patch": (4, 4, 4)}
    held = []
    for share in (0.25, 0.75):
        wanted = {"x": hr.array("x", foreground="y", share=share, **options), "y": hr.array("y", **options), "k": hr.key()}
        hits = [s["y"].any() for number in range(5) for s in epoch(url, wanted, number=number).values()]
        held.append(np.mean(hits))
    assert 0.15 < held[0] < 0.37
    assert 0.63 < held[1] < 0.87


def test_crops_that_hold_the_label_do_not_depend_on_how_it_lies(tmp_path):
    rng = np.random.default_rng(3)
    y = (rng.random((4, 24, 30, 28)) < 0.1).astype("u1") * rng.integers(1, 4, (4, 24, 30, 28)).astype("u1")
    x = np.arange(y.size, dtype="f4").reshape(y.shape)
    for n in range(4):
        np.savez(tmp_path / f"c{n}.npz", x=x[n], y=y[n])
        np.save(tmp_path / f"c{n}_x.npy", np.asfortranarray(x[n]))
        np.save(tmp_path / f"c{n}_y.npy", np.asfortranarray(y[n]))
        with h5py.File(tmp_path / f"c{n}.h5", "w") as f:
            f.create_dataset("x", data=x[n], chunks=(5, 7, 9), compression="gzip")
            f.create_dataset("y", data=y[n], chunks=(11, 4, 28))
    wanted = fields(foreground="y", share=0.7)
    for number in range(4):
        drawn = [epoch(str(tmp_path / f"c*.{suffix}"), wanted, number=number) for suffix in ("npz", "npy", "h5")]
        for key in drawn[0]:
            for other in drawn[1:]:
                assert np.array_equal(drawn[0][key]["x"], other[key]["x"])
                assert np.array_equal(drawn[0][key]["y"], other[key]["y"])


def test_resumed_and_changed_data(npz, tmp_path):
    wanted = fields(foreground="y", share=0.5)
    with hr.Loader(npz, 2, wanted, seed=5, output="numpy") as straight:
        whole = [np.array(b["x"]) for b in straight.epoch(0)]
    with hr.Loader(npz, 2, wanted, seed=5, output="numpy") as first:
        next(first.epoch(0))
        state = first.state_dict()
    with hr.Loader(npz, 2, wanted, seed=5, output="numpy") as second:
        second.load_state_dict(state)
        rest = [np.array(b["x"]) for b in second]
    assert all(np.array_equal(a, b) for a, b in zip(rest, whole[1:], strict=True))
    x, y = volume(1)
    np.savez(tmp_path / "case_1.npz", x=x, y=y, more=np.zeros(3))
    with hr.Loader(npz, 2, wanted, seed=5, output="numpy") as changed, pytest.raises(hr.UsageError):
        changed.load_state_dict(state)


def test_normalising_volumes(npz):
    ds = hr.open(npz, {"x": hr.array("x", along="file", patch=PATCH).normalize(1000.0, 50.0)})
    plain = hr.open(npz, {"x": hr.array("x", along="file", patch=PATCH)})
    assert np.array_equal(ds[2]["x"], (plain[2]["x"] - np.float32(1000)) / np.float32(50))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"patch": (18, 8, 8)}, r"case_1.*a patch of 18 does not fit into axis 0 of 'x', which has 17"),
        ({"patch": PATCH, "window": 2}, "a sample is a file"),
        ({"patch": PATCH, "tiled": True}, "files of one shape"),
        ({"patch": PATCH, "foreground": "z", "share": 0.5}, "no variable 'z'"),
        ({"patch": PATCH, "tiled": True, "foreground": "y", "share": 0.5}, "leave tiled= and starts= out"),
        ({"foreground": "y", "share": 0.5}, "needs patch|a patch"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_said(npz, options, words):
    with pytest.raises(hr.UsageError, match=words):
        hr.open(npz, {"x": hr.array("x", along="file", **options)})


def test_bad_calls(npz, tmp_path):
    for options, words in (
        ({"foreground": "y"}, "are given together"),
        ({"share": 0.5}, "are given together"),
        ({"foreground": "y", "share": 1.5}, "at most 1"),
        ({"foreground": 3, "share": 0.5}, "name of the label"),
        ({"starts": "abc"}, "list of positions"),
        ({"starts": []}, "list of positions"),
        ({"starts": [0.5]}, "list of positions"),
    ):
        with pytest.raises(hr.UsageError, match=words):
            hr.array("x", along="file", patch=PATCH, **options)
    x, y = volume(0)
    np.savez(tmp_path / "case_0.npz", x=x, y=y[:, 1:])
    with pytest.raises(hr.UsageError, match=r"case_0.*cut from \[20,24,28\] for 'x' and from \[20,23,28\] for 'y'"):
        hr.open(npz, fields())
    np.savez(tmp_path / "case_0.npz", x=x, y=y)
    np.savez(tmp_path / "case_1.npz", x=x[0], y=y)
    with pytest.raises(hr.UsageError, match="as many axes"):
        hr.open(npz, fields())
    np.savez(tmp_path / "case_3.npz", x=x)
    with pytest.raises(hr.UsageError, match="case_3 has no variable 'y'"):
        hr.open(npz, {"y": hr.array("y", along="file", patch=PATCH)})
    with pytest.raises(hr.UsageError, match="is for HDF5"):
        hr.open(npz, {"x": hr.array("x", along="group")})
    np.save(tmp_path / "a.npy", x)
    with pytest.raises(hr.UsageError, match="along="):
        hr.open(tmp_path / "a.npy", {"x": hr.array("data", patch=(4, 4), foreground="data", share=0.5)})


def test_damaged_npz(tmp_path):
    url = write_npz(tmp_path, True)
    path = tmp_path / "case_2.npz"
    data = path.read_bytes()
    for n in (0, 3, 100, len(data) // 2, len(data) - 30):
        path.write_bytes(data[:n])
        with pytest.raises(hr.DataError, match="case_2"):
            hr.open(url, fields())
    bad = bytearray(data)
    bad[200:260] = b"\xff" * 60
    path.write_bytes(bad)
    ds = None
    with pytest.raises(hr.DataError):  # when it is opened, or when it is read
        ds = hr.open(url, fields())
        ds[2]


# -- a table of starts --------------------------------------------------------------------------


@pytest.fixture
def field(tmp_path):
    data = np.arange(24 * 10 * 12, dtype="i4").reshape(24, 10, 12)
    np.save(tmp_path / "f.npy", data)
    return tmp_path / "f.npy", data


def test_samples_are_the_rows_of_a_table(field):
    url, data = field
    table = [7, 3, 20, 3]
    ds = hr.open(url, {"x": hr.array("data", window=4, starts=table)})
    assert len(ds) == 4
    for i, start in enumerate(table):
        assert np.array_equal(ds[i]["x"], data[start : start + 4])
        assert ds.key(i) == str(start)


@pytest.mark.parametrize("kind", [list, np.asarray, tuple])
def test_rows_may_name_the_corner_of_the_patch(field, kind):
    url, data = field
    rows = np.array([[7, 0, 0], [3, 6, 7], [20, 2, 5]])
    ds = hr.open(url, {"x": hr.array("data", window=4, patch=(4, 5), starts=kind(rows.tolist()))})
    for i, (t, a, b) in enumerate(rows):
        assert np.array_equal(ds[i]["x"], data[t : t + 4, a : a + 4, b : b + 5])
    with hr.Loader(url, 3, {"x": hr.array("data", patch=(4, 5), starts=rows)}, seed=1, output="numpy") as loader:
        for number in (0, 1):
            got = sorted(int(x.flat[0]) for b in loader.epoch(number) for x in b["x"])
            assert got == sorted(int(data[t, a, b]) for t, a, b in rows)
    wrapped = hr.open(url, {"x": hr.array("data", patch=(4, 5), periodic="axis2", starts=[[1, 6, 11]])})
    assert np.array_equal(wrapped[0]["x"], data[1, 6:10][:, [11, 0, 1, 2, 3]])


def test_rows_of_volumes(npz):
    rows = [[2, 1, 2, 3], [0, 12, 12, 18], [2, 0, 0, 0]]
    ds = hr.open(npz, {"x": hr.array("x", along="file", patch=PATCH, starts=rows)})
    for i, row in enumerate(rows):
        n, corner = where(ds[i]["x"])
        assert [n, *corner] == row


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"starts": [0, 21], "window": 4}, "row 1 of starts: there is no sample at 21 along 'axis0'; the last is at 20"),
        ({"starts": [-1]}, "row 0 of starts"),
        ({"starts": [[0, 1]]}, "no field has patch="),
        ({"starts": [[0, 1]], "patch": (4, 5)}, "1 numbers for a patch of 2 axes"),
        ({"starts": [[0, 1, 1], [3, 7, 1]], "patch": (4, 5)}, "row 1 of starts: a patch of 4 from 7 on .* which has 10"),
        ({"starts": [[0, 1, -1]], "patch": (4, 5)}, "row 0 of starts"),
        ({"starts": [0], "stride": 2}, "leave one of them out"),
        ({"starts": [[0, 1, 1]], "patch": (4, 5), "tiled": True}, "tiled"),
    ],
    ids=str,
)
def test_starts_outside_are_said(field, options, words):
    with pytest.raises(hr.UsageError, match=words):
        hr.open(field[0], {"x": hr.array("data", **options)})


# -- identity, memory ---------------------------------------------------------------------------


def test_the_fingerprint_knows_sizes_and_not_places(tmp_path):
    os.makedirs(tmp_path / "a")
    os.makedirs(tmp_path / "b")
    with h5py.File(tmp_path / "a/v.h5", "w") as f:
        f.create_dataset("v", data=np.arange(1000.0), chunks=(100,), compression="gzip")
    data = (tmp_path / "a/v.h5").read_bytes()
    (tmp_path / "b/v.h5").write_bytes(data)
    same = {hr.open(tmp_path / f"{d}/v.h5").fingerprint for d in "ab"}
    assert len(same) == 1
    (tmp_path / "b/v.h5").write_bytes(data + b"more")
    assert hr.open(tmp_path / "b/v.h5").fingerprint not in same
    with h5py.File(tmp_path / "b/v.h5", "w") as f:
        f.create_dataset("v", data=np.arange(1000.0) * 3, chunks=(100,), compression="gzip")
    assert hr.open(tmp_path / "b/v.h5").fingerprint not in same


@pytest.mark.parametrize("kind", ["npy", "h5"])
def test_arrays_in_memory(tmp_path, kind):
    """MNIST-sized: 28×28 bytes each."""
    images = np.random.default_rng(0).integers(0, 256, (2000, 28, 28)).astype("u1")
    if kind == "npy":
        np.save(tmp_path / "i.npy", images)
        name = "data"
    else:
        with h5py.File(tmp_path / "i.h5", "w") as f:
            f.create_dataset("x", data=images, chunks=(50, 28, 28), compression="gzip")
        name = "x"
    path = tmp_path / f"i.{kind}"
    ds = hr.open(path, {"x": hr.array(name)}, in_memory=True)
    held = glob.glob("/dev/shm/headrace-*")
    path.rename(tmp_path / "gone")  # it is not looked at again
    assert np.array_equal(ds[1234]["x"], images[1234])
    with hr.Loader(ds, 100, seed=1, output="numpy") as loader:
        got = np.concatenate([b["x"] for b in loader])
        order = np.concatenate([b.indices for b in loader.epoch(0)])
    assert np.array_equal(got[np.argsort(order)], images)
    assert held


# -- members of npz: order and checksums ----------------------------------------------------------


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "u1", "<i2"])
@pytest.mark.parametrize("shape", [(7, 9, 11), (2, 5, 6, 7), (40, 50), (30,)], ids=str)
def test_deflated_members_in_fortran_order_are_numpys(tmp_path, shape, dtype):
    for n in range(3):
        x = (np.arange(np.prod(shape)) + 17 * n).reshape(shape).astype(dtype)
        np.savez_compressed(tmp_path / f"case_{n}.npz", x=np.asfortranarray(x), c=x, y=np.asfortranarray(x[..., ::2]))
    url, cut = str(tmp_path / "case_*.npz"), (4,) * min(3, len(shape))
    whole = hr.open(url, {"x": hr.array("x", along="file"), "y": hr.array("y", along="file")})
    for n in range(3):
        with np.load(tmp_path / f"case_{n}.npz") as f:
            assert f["x"].flags.f_contiguous
            assert np.array_equal(whole[n]["x"], f["x"])
            assert np.array_equal(whole[n]["y"], f["y"])
    options = {"along": "file", "patch": cut}
    wanted = {"x": hr.array("x", **options), "c": hr.array("c", **options)}
    with hr.Loader(url, 3, wanted, seed=4, output="numpy") as loader:
        for number in range(4):
            for b in loader.epoch(number):
                assert np.array_equal(b["x"], b["c"])


def test_labels_are_found_in_fortran_order(tmp_path):
    for order in "CF":
        (tmp_path / order).mkdir()
        for n in range(len(SHAPES)):
            x, y = (np.asarray(a, order=order) for a in volume(n))
            np.savez_compressed(tmp_path / order / f"case_{n}.npz", x=x, y=y)
    wanted = fields(foreground="y", share=1)
    c, f = (epoch(str(tmp_path / order / "*.npz"), wanted, seed=3) for order in "CF")
    assert c.keys() == f.keys()
    for key in c:
        assert np.array_equal(c[key]["x"], f[key]["x"])
        assert np.array_equal(c[key]["y"], f[key]["y"])


def damage(path, member, part):
    """Changes one element of the member, whose CRC-32 stays as it is; gives the offset of its bytes in the file."""
    with zipfile.ZipFile(path) as z:
        info = z.getinfo(member)
        raw = bytearray(z.read(info))
        members = {i.filename: (z.read(i), i.compress_type) for i in z.infolist()}
    raw[int(len(raw) * part)] ^= 0x10
    right = info.CRC
    with zipfile.ZipFile(path, "w") as z:
        for name, (content, how) in members.items():
            z.writestr(name, bytes(raw) if name == member else content, how)
        info = z.getinfo(member)
        info.CRC = right  # of the directory, which is written last
        at = info.header_offset + 30 + len(member)
    return at


@pytest.mark.parametrize("how", ["stored", "deflated", "deflated fortran"])
def test_a_member_that_is_read_as_a_whole_has_the_checksum_of_the_zip(tmp_path, how):
    rng = np.random.default_rng(0)
    for n in range(3):
        x = rng.integers(0, 60, (40, 50, 60)).astype("i4")
        save = np.savez if how == "stored" else np.savez_compressed
        save(tmp_path / f"case_{n}.npz", x=np.asfortranarray(x) if "fortran" in how else x)
    at = damage(tmp_path / "case_1.npz", "x.npy", 0.9)
    ds = hr.open(str(tmp_path / "case_*.npz"), {"x": hr.array("x", along="file")})
    assert ds[0]["x"].shape == (40, 50, 60)
    with pytest.raises(hr.DataError, match=r"CRC-32 of member 'x\.npy' is wrong.*copy or write it again") as e:
        ds[1]
    assert e.value.file.endswith("case_1.npz")
    assert e.value.offset == at + (128 if how == "stored" else 0)  # where elements begin, or the member
    with hr.Loader(ds, 1, bad_samples="replace", shuffle=False, output="numpy") as loader:
        assert len(list(loader.epoch(0))) == 3
        assert [q["sample"] for q in loader.quarantine] == [1]
    patches = {"x": hr.array("x", along="file", patch=(4, 4, 4))}
    crop = hr.open(str(tmp_path / "case_*.npz"), patches)
    if how == "stored":  # a part is read, and nothing says what it should be
        assert crop[1]["x"].shape == (4, 4, 4)
    else:
        with pytest.raises(hr.DataError, match="CRC-32"):
            crop[1]
    with pytest.raises(hr.DataError, match="CRC-32"):
        wanted = {"x": hr.array("x", along="file", patch=(40, 50, 60), foreground="x", share=1)}
        hr.open(str(tmp_path / "case_*.npz"), wanted)[1]


def test_a_small_damaged_member_is_found_when_it_is_opened(tmp_path):
    np.savez(tmp_path / "case_0.npz", x=np.arange(100))
    damage(tmp_path / "case_0.npz", "x.npy", 0.9)
    with pytest.raises(hr.DataError, match=r"case_0\.npz, offset 0: member 'x\.npy' is damaged.*write the file again"):
        hr.open(str(tmp_path / "case_*.npz"), {"x": hr.array("x", along="file")})


def test_big_members_of_many_files_keep_their_own_checksums(tmp_path):
    """Deflated bytes of files that lie at the same offset."""
    for n in range(20):
        np.savez_compressed(tmp_path / f"case_{n:02}.npz", x=np.full((30, 30, 30), n, "f4"), y=np.full((30, 30, 30), -n, "f4"))
    with hr.Loader(str(tmp_path / "*.npz"), 4, fields(), seed=1, output="numpy") as loader:
        for b in loader.epoch(0):
            for x, y, key in zip(b["x"], b["y"], b["k"]):
                assert (x == int(key[-2:])).all()
                assert (y == -int(key[-2:])).all()
