# SPDX-License-Identifier: Apache-2.0
"""HDF5 beyond plain arrays: values of variable length, texts, records, odd layouts. Every value as h5py gives it."""

from __future__ import annotations

import io
import pickle
import threading

import headrace as hr
import numpy as np
import pytest

h5py = pytest.importorskip("h5py")

FILES = {
    "plain": {},
    "user block": {"userblock_size": 1024},
    "latest": {"libver": "latest"},
    "pages": {"fs_strategy": "page", "fs_page_size": 4096},
}
LAYOUTS = {
    "contiguous": {},
    "chunked": {"chunks": (7,)},
    "gzip": {"chunks": (16,), "compression": "gzip", "shuffle": True},
    "lzf": {"chunks": (5,), "compression": "lzf"},
    "grows": {"chunks": (8,), "maxshape": (None,)},
}


def same(got, want):
    got, want = np.asarray(got), np.asarray(want)
    if want.dtype.kind == "b":
        want = want.view("u1")
    if want.ndim > 0:  # one number comes as Python's
        assert got.dtype == want.dtype.newbyteorder("=")
    assert np.array_equal(got, want)


def text_of(value):
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def lengths(n, seed=0, most=300):
    """Empty ones, tiny ones and some that fill a collection alone."""
    rng = np.random.default_rng(seed)
    out = rng.integers(0, most, n)
    out[rng.integers(0, n, n // 4)] = 0
    out[n // 2] = 9000
    return out


def write_values(dataset, dtype, n, seed=0):
    """Returns what was written."""
    rng = np.random.default_rng(seed)
    out = [np.empty(0, dtype)] * n
    for i, length in enumerate(lengths(n, seed)):
        if i % 5 != 3:  # and some are never written
            out[i] = dataset[i] = rng.integers(0, 100, length).astype(dtype)
    return out


def check_values(url, name, want):
    ds = hr.open(url, {"x": hr.array(name)})
    assert len(ds) == len(want)
    for i in range(len(ds)):
        same(ds[i]["x"], want[i])


# -- values of variable length ------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("file", FILES)
def test_values_of_variable_length(tmp_path, file, layout):
    url = tmp_path / "a.h5"
    dtypes = ["u1", "i1", "<u2", ">i2", "<f2", ">i4", "<f4", ">f8", "<i8", ">u8"]
    with h5py.File(url, "w", **FILES[file]) as f:
        make = lambda k, dtype: f.create_dataset(f"v{k}", (60,), h5py.vlen_dtype(np.dtype(dtype)), **LAYOUTS[layout])  # noqa: E731
        want = [write_values(make(k, dtype), dtype, 60, k) for k, dtype in enumerate(dtypes)]
    with h5py.File(url, "r") as f:
        for k, dtype in enumerate(dtypes):
            check_values(url, f"v{k}", want[k])
            if dtype[0] != ">":  # h5py 3.16 takes big-endian values for little-endian ones
                check_values(url, f"v{k}", f[f"v{k}"])
    ds = hr.open(url)
    for i in (0, 3, 30, 59):  # all at once; bytes as such
        sample = ds[i]
        assert sample["v0"] == want[0][i].tobytes()
        for k in range(1, len(dtypes)):
            same(sample[f"v{k}"], want[k][i])


def test_one_huge_value_among_many_tiny_ones(tmp_path):
    url = tmp_path / "a.h5"
    huge = np.arange(30 << 20, dtype="u4").view("u1")[: 30 << 20]
    with h5py.File(url, "w") as f:
        d = f.create_dataset("v", (3000,), h5py.vlen_dtype("u1"))
        for i in range(3000):
            d[i] = np.full(i % 9, i % 251, "u1")
        d[1234] = huge
    ds = hr.open(url)
    assert ds[1234]["v"] == huge.tobytes()
    for i in range(0, 3000, 7):
        assert ds[i]["v"] == bytes([i % 251]) * (i % 9)


def test_rewritten_and_resized(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        d = f.create_dataset("v", (40,), h5py.vlen_dtype("i4"), chunks=(8,), maxshape=(None,))
        write_values(d, "i4", 40)
        f.create_dataset("t", data=[f"text {i}" for i in range(40)], dtype=h5py.string_dtype())
    rng = np.random.default_rng(1)
    for turn in range(4):  # objects are freed, moved and written elsewhere
        with h5py.File(url, "r+") as f:
            for i in rng.integers(0, 40, 25):
                f["v"][i] = np.full(rng.integers(0, 400), turn, "i4")
                f["t"][i] = "x" * int(rng.integers(0, 90))
            f["v"].resize((40 + 13 * turn,))
        with h5py.File(url, "r") as f:
            check_values(url, "v", f["v"])
            texts = [text_of(t) for t in f["t"][()]]
        ds = hr.open(url, {"t": hr.text("t")})
        assert [s["t"] for s in ds] == texts
    with h5py.File(url, "r+") as f:
        f["v"].resize((9,))
    with h5py.File(url, "r") as f:
        check_values(url, "v", f["v"])


def test_several_values_a_sample(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        v = f.create_dataset("v", (20, 3), h5py.vlen_dtype("u1"), chunks=(4, 2), compression="gzip")
        t = f.create_dataset("t", (20, 2), h5py.string_dtype())
        for i in range(20):
            for k in range(3):
                v[i, k] = np.full((i * k) % 11, i, "u1")
            t[i] = [f"a{i}", f"b{i}"]
    ds = hr.open(url)
    for i in range(20):
        assert ds[i]["v"] == [bytes([i]) * ((i * k) % 11) for k in range(3)]
        assert ds[i]["t"] == [f"a{i}", f"b{i}"]
    with hr.Loader(url, 4, {"v": hr.bytes("v", many=True), "k": hr.key()}, seed=1, output="numpy") as loader:
        for batch in loader:
            for values, key in zip(batch["v"], batch["k"]):
                assert [bytes(v) for v in values] == [bytes([int(key)]) * ((int(key) * k) % 11) for k in range(3)]


def test_numbers_of_variable_length_in_batches(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        d = f.create_dataset("ids", (12,), h5py.vlen_dtype("<i4"))
        for i in range(12):
            d[i] = np.arange(i) + 100 * i
    whole = np.concatenate([np.arange(i, dtype="i4") + 100 * i for i in range(12)])
    options = {"shuffle": False, "output": "numpy"}
    with hr.Loader(url, 12, {"t": hr.tokens("ids").padded()}, **options) as loader:
        values, sizes = next(iter(loader))["t"]
        assert np.array_equal(np.ravel(sizes), np.arange(12))
        for i in range(12):
            same(values[i, :i], np.arange(i, dtype="i4") + 100 * i)
    with hr.Loader(url, 12, {"t": hr.array("ids").ragged()}, **options) as loader:
        same(next(iter(loader))["t"][0], whole)
    with hr.Loader(url, 12, {"t": hr.bytes("ids")}, **options) as loader:
        assert b"".join(bytes(b) for b in next(iter(loader))["t"]) == whole.tobytes()


def test_files_follow_each_other(tmp_path):
    for k in range(3):
        with h5py.File(tmp_path / f"part-{k}.h5", "w") as f:
            d = f.create_dataset("v", (5 + k,), h5py.vlen_dtype("u1"))
            for i in range(5 + k):
                d[i] = np.full(i, 10 * k + i, "u1")
            f["y"] = np.arange(5 + k) + 10 * k
    ds = hr.open(tmp_path / "part-{0..2}.h5")
    assert len(ds) == 18
    for s in ds:
        assert s["v"] == bytes([s["y"]]) * (s["y"] % 10)


# -- texts --------------------------------------------------------------------------------------


def test_texts_of_variable_length(tmp_path):
    url = tmp_path / "a.h5"
    texts = ["", "plain", "grüße", "日本語" * 50, "x" * 10000, '{"a": 1}']
    with h5py.File(url, "w") as f:
        f.create_dataset("utf", data=texts, dtype=h5py.string_dtype())
        f.create_dataset(
            "ascii", data=[t.encode() for t in texts], dtype=h5py.string_dtype("ascii"), chunks=(2,), compression="gzip"
        )
        f.create_dataset("unit", data="metres", dtype=h5py.string_dtype())
        f.create_dataset("y", data=np.arange(len(texts)))
    for s, want in zip(hr.open(url), texts, strict=True):
        assert s["utf"] == s["ascii"] == want
    assert hr.open(url, {"j": hr.json("utf")})[5]["j"] == {"a": 1}
    assert hr.open(url, {"y": hr.scalar("y"), "u": hr.text("unit")})[3] == {"y": 3, "u": "metres"}


def test_texts_never_written_and_with_a_fill_value_are_refused(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        f["y"] = np.arange(6)
        f.create_dataset("t", (6,), h5py.string_dtype(), chunks=(2,), fillvalue="none")
        f.create_dataset("s", (6,), "S4", chunks=(2,), fillvalue=b"none")
    for name in ("t", "s"):
        with pytest.raises(hr.Unsupported, match=f"'{name}' cannot be read: .*fill value"):
            hr.open(url, {"x": hr.text(name)})
    with h5py.File(url, "r+") as f:
        f["t"][...], f["s"][...] = "all", b"all"
    assert hr.open(url)[5] == {"y": 5, "t": "all", "s": "all"}


def fixed_texts(f, name, padding, texts, size):
    tid = h5py.h5t.C_S1.copy()
    tid.set_size(size)
    tid.set_strpad(padding)
    space = h5py.h5s.create_simple((len(texts),))
    h5py.h5d.create(f.id, name.encode(), tid, space)
    f[name][...] = np.array(texts, f"S{size}")


def test_texts_of_fixed_length(tmp_path):
    url = tmp_path / "a.h5"
    texts = [b"", b"a", b"two words", b"twelve bytes", b" lead"]
    with h5py.File(url, "w") as f:
        f["plain"] = np.array(texts, "S12")
        f.create_dataset("gzip", data=np.array(texts, "S12"), chunks=(2,), compression="gzip")
        f.create_dataset("utf", data=np.array([("ä" * i).encode() for i in range(5)], h5py.string_dtype("utf-8", 9)))
        t = h5py.h5t
        for name, padding in (("term", t.STR_NULLTERM), ("nul", t.STR_NULLPAD), ("blank", t.STR_SPACEPAD)):
            fixed_texts(f, name, padding, texts, 13)
        f["unit"] = np.bytes_(b"m")
    with h5py.File(url, "r") as f:
        ds = hr.open(url)
        for i in range(5):
            for name in ("plain", "gzip", "utf", "term", "nul"):
                assert ds[i][name] == text_of(f[name][i]), name
            assert ds[i]["blank"] == texts[i].decode()
    assert hr.open(url, {"p": hr.bytes("plain"), "u": hr.text("unit")})[2] == {"p": b"two words", "u": "m"}


# -- records ------------------------------------------------------------------------------------

RECORD = np.dtype(
    [
        ("a", "i4"),
        ("b", ">f8", (3,)),
        ("name", "S5"),
        ("words", h5py.string_dtype()),
        ("in", [("x", ">u2"), ("v", h5py.vlen_dtype("f4")), ("half", "f2")]),
        ("ok", "?"),
        ("z", "i8", (2, 2)),
    ]
)


@pytest.mark.parametrize("layout", ["contiguous", "gzip"])
@pytest.mark.parametrize("file", FILES)
def test_records_are_columns(tmp_path, file, layout):
    url = tmp_path / "a.h5"
    rng = np.random.default_rng(0)
    with h5py.File(url, "w", **FILES[file]) as f:
        d = f.create_dataset("t", (40,), RECORD, **LAYOUTS[layout])
        for i in range(40):
            inner = (i * 7, np.arange(i, dtype="f4"), i / 2)
            d[i] = (i, rng.random(3), b"n%d" % i, f"word {i}", inner, i % 3 == 0, rng.integers(0, 99, (2, 2)))
    with h5py.File(url, "r") as f:
        want = f["t"][()]
        ds = hr.open(url)
        assert {n for n, _ in ds.schema} == {"t.a", "t.b", "t.name", "t.words", "t.in.x", "t.in.v", "t.in.half", "t.ok", "t.z"}
        for s, row in zip(ds, want, strict=True):
            for name in ("a", "b", "ok", "z"):
                same(s[f"t.{name}"], row[name])
            for name in ("x", "v", "half"):
                same(s[f"t.in.{name}"], row["in"][name])
            assert s["t.name"] == text_of(row["name"])
            assert s["t.words"] == text_of(row["words"])
    with hr.Loader(url, 8, {"a": hr.array("t.a"), "b": hr.array("t.b", window=3)}, seed=2, output="numpy") as loader:
        for batch in loader:
            for a, b in zip(batch["a"], batch["b"]):
                same(b, want["b"][a : a + 3].astype("f8"))


def test_records_never_written_hold_the_fill_value(tmp_path):
    url = tmp_path / "a.h5"
    dtype = np.dtype([("a", "i4"), ("b", "f4")])
    with h5py.File(url, "w") as f:
        d = f.create_dataset("t", (20,), dtype, chunks=(4,), fillvalue=np.array((7, 1.5), dtype))
        d[5:7] = (1, 2)
        want = d[()]
    for s, row in zip(hr.open(url), want, strict=True):
        assert (s["t.a"], s["t.b"]) == (row["a"], row["b"])


def test_enums_and_bools_are_their_numbers(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        f["e"] = np.array([3, 1, 3], h5py.enum_dtype({"one": 1, "three": 3}, basetype=">i2"))
        f["b"] = np.array([True, False, True])
    assert [(int(s["e"]), int(s["b"])) for s in hr.open(url)] == [(3, 1), (1, 0), (3, 1)]


# -- layouts ------------------------------------------------------------------------------------


def compact(f, name, data):
    """A data set that lies within its header."""
    data = np.asarray(data)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    tid = h5py.h5t.py_create(data.dtype, logical=True)
    h5py.h5d.create(f.id, name.encode(), tid, h5py.h5s.create_simple(data.shape), plist)
    f[name][...] = data


def test_compact_layout(tmp_path):
    url = tmp_path / "a.h5"
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 99, (12, 4, 3)).astype(">i4")
    records = np.zeros(12, [("a", "i4"), ("b", "f8", (2,))])
    records["a"], records["b"] = np.arange(12), rng.random((12, 2))
    values = np.empty(12, h5py.vlen_dtype(np.dtype(">i2")))
    for i in range(12):
        values[i] = np.arange(i, dtype=">i2")
    with h5py.File(url, "w") as f:
        compact(f, "n", numbers)
        compact(f, "r", records)
        compact(f, "s", np.array([b"%d" % i for i in range(12)], "S4"))
        compact(f, "v", values)
        compact(f, "t", np.array([f"t{i}" for i in range(12)], h5py.string_dtype()))
        assert f["n"].id.get_offset() is None
    ds = hr.open(url)
    for i, s in enumerate(ds):
        same(s["n"], numbers[i])
        same(s["r.a"], records["a"][i])
        same(s["r.b"], records["b"][i])
        same(s["v"], np.arange(i, dtype="i2"))
        assert (s["s"], s["t"]) == (str(i), f"t{i}")
    same(hr.open(url, {"x": hr.array("n", window=3, patch=(4, 3))})[2]["x"], numbers[2:5])


def test_scalars_are_the_same_in_every_sample(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w", userblock_size=512) as f:
        f["x"] = np.arange(6.0)
        f["scale"] = np.float32(2.5)
        f.create_dataset("unset", (), "i4", fillvalue=9)
    ds = hr.open(url, {"x": hr.scalar("x"), "scale": hr.array("scale"), "unset": hr.scalar("unset")})
    assert [(s["x"], float(s["scale"]), s["unset"]) for s in ds] == [(i, 2.5, 9) for i in range(6)]


def test_groups_are_splits(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        for k, name in enumerate(("train", "val")):
            v = f.create_dataset(f"{name}/images", (4 + k,), h5py.vlen_dtype("u1"))
            for i in range(4 + k):
                v[i] = np.full(i + 1, k, "u1")
            f[f"{name}/labels"] = np.arange(4 + k)
    with pytest.raises(hr.UsageError, match=r"has the splits 'train', 'val': write .*#train"):
        hr.open(url)
    assert hr.open(f"{url}#val")[4] == {"images": b"\1" * 5, "labels": 4}
    assert len(hr.open(f"{url}#train")) == 4
    assert hr.open(f"{url}#train/images")[1] == {"images": b"\0\0"}


# -- loading ------------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path):
    """The ImageNet course's file: JPEGs of variable length and labels."""
    image = pytest.importorskip("PIL.Image")
    url = tmp_path / "train.h5"
    with h5py.File(url, "w") as f:
        d = f.create_dataset("images", (50,), h5py.vlen_dtype(np.uint8))
        for i in range(50):
            out = io.BytesIO()
            image.new("RGB", (20 + i, 30), (5 * i, 100, 50)).save(out, "JPEG", quality=95)
            d[i] = np.frombuffer(out.getvalue(), np.uint8)
        f["labels"] = np.arange(50, dtype="i4")
    return url


def batches(loader, epoch=0):
    return [{k: np.array(v) for k, v in b.items()} for b in loader.epoch(epoch)]


FIELDS = {"x": hr.image("images").resize((16, 16)), "y": hr.scalar("labels")}


def test_pictures_of_variable_length(course):
    with hr.Loader(course, 8, FIELDS, seed=1, tail="keep", output="numpy") as loader:
        got = batches(loader)
    ys = np.concatenate([b["y"] for b in got])
    assert sorted(ys) == list(range(50))
    assert list(ys) != sorted(ys)
    for b in got:
        assert np.abs(b["x"][:, 0].mean((1, 2)) - 5.0 * b["y"]).max() < 3
    with h5py.File(course) as f:
        raw = [v.tobytes() for v in f["images"][()]]
    with hr.Loader(course, 8, {"b": hr.bytes("images"), "y": hr.scalar("labels")}, seed=1, output="numpy") as loader:
        for batch in loader:
            for b, y in zip(batch["b"], batch["y"]):
                assert bytes(b) == raw[y]


def test_ranks_share_and_resume_gives_the_rest(course):
    seen = []
    for rank in range(3):
        with hr.Loader(course, 2, FIELDS, seed=5, rank=rank, world_size=3, output="numpy") as loader:
            seen.append(np.concatenate([b["y"] for b in batches(loader)]))
    assert len({len(s) for s in seen}) == 1
    assert len(set(np.concatenate(seen))) == 48
    with hr.Loader(course, 4, FIELDS, seed=5, output="numpy") as straight:
        whole = batches(straight)
    with hr.Loader(course, 4, FIELDS, seed=5, output="numpy") as first:
        it = first.epoch(0)
        head = [{k: np.array(v) for k, v in next(it).items()} for _ in range(5)]
        state = first.state_dict()
    with hr.Loader(course, 4, FIELDS, seed=5, output="numpy") as second:
        second.load_state_dict(state)
        rest = batches(second)
    for a, b in zip(head + rest, whole, strict=True):
        assert all(np.array_equal(a[k], b[k]) for k in a)


def test_many_threads_read_one_data_set(course):
    ds = hr.open(course)
    want = [s["images"] for s in ds]
    wrong = []

    def look(seed):
        for i in np.random.default_rng(seed).integers(0, 50, 200):
            if ds[int(i)]["images"] != want[i]:
                wrong.append(i)

    threads = [threading.Thread(target=look, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_views_pickles_and_packing(course, tmp_path):
    ds = hr.open(course)
    view = pickle.loads(pickle.dumps(ds[10:20]))
    assert [s["labels"] for s in view] == list(range(10, 20))
    hr.pack(ds, tmp_path / "out", to="tar")
    packed = hr.open(tmp_path / "out")
    assert {s["images"] for s in packed} == {s["images"] for s in ds}


def test_pictures_as_numbers(tmp_path):
    url = tmp_path / "cifar.h5"
    data = np.random.default_rng(0).integers(0, 255, (6, 8, 8, 3)).astype("u1")
    with h5py.File(url, "w") as f:
        f["x"] = data
    with hr.Loader(url, 6, {"x": hr.image("x")}, shuffle=False, output="numpy") as loader:
        same(next(iter(loader))["x"], data.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("field", "error", "words"),
    [
        (hr.array("images", window=2), hr.Unsupported, "window and horizon are for numbers"),
        (hr.array("images", sel={"axis0": [1]}), hr.UsageError, "samples run along"),
        (hr.image("labels"), hr.UsageError, "hr.array"),
        (hr.text("labels"), hr.UsageError, "hr.array"),
        (hr.array(["images", "labels"]), hr.UsageError, "alike"),
    ],
    ids=["window", "sel", "image", "text", "stacked"],
)
def test_what_does_not_fit_is_said(course, field, error, words):
    with pytest.raises(error, match=words):
        hr.open(course, {"y": hr.scalar("labels"), "x": field})
