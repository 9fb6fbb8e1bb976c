# SPDX-License-Identifier: Apache-2.0
"""HDF5 that the engine cannot read: h5py reads it, slowly, and it is said."""

from __future__ import annotations

import pickle
import re

import headrace as hr
import numpy as np
import pytest
from test_hdf5 import same

h5py = pytest.importorskip("h5py")


def odd_integers(f):
    tid = h5py.h5t.STD_I16LE.copy()
    tid.set_precision(12)
    tid.set_offset(3)
    h5py.h5d.create(f.id, b"x", tid, h5py.h5s.create_simple((20, 6)))
    f["x"][...] = np.arange(120).reshape(20, 6)


def brain_floats(f):
    tid = h5py.h5t.IEEE_F32LE.copy()
    tid.set_fields(15, 7, 8, 0, 7)
    tid.set_size(2)
    tid.set_ebias(127)
    h5py.h5d.create(f.id, b"x", tid, h5py.h5s.create_simple((20, 6)))
    f["x"][...] = np.arange(120, dtype="f4").reshape(20, 6)


def virtual(f):
    f["a"], f["b"] = np.arange(60).reshape(10, 6), np.arange(60, 120).reshape(10, 6)
    layout = h5py.VirtualLayout((20, 6), "i8")
    layout[:10], layout[10:] = h5py.VirtualSource(f["a"]), h5py.VirtualSource(f["b"])
    f.create_virtual_dataset("x", layout)


def bitshuffle(f):
    plugin = pytest.importorskip("hdf5plugin")
    f.create_dataset("x", data=np.arange(120).reshape(20, 6), chunks=(4, 6), **plugin.Bitshuffle())


def external(f):
    f.create_dataset("x", data=np.arange(120.0).reshape(20, 6), external=[(f"{f.filename}.raw", 0, 960)])


ODD = {
    "filter 6 .scale-offset.": lambda f: f.create_dataset("x", data=np.arange(120).reshape(20, 6), chunks=(4, 6), scaleoffset=0),
    "12 bits of 16": odd_integers,
    "16 bits of 16": brain_floats,
    "virtual": virtual,
    "external": external,
    "bitshuffle": bitshuffle,
}


@pytest.mark.parametrize("reason", ODD)
def test_what_the_engine_cannot_read_h5py_reads_and_it_is_said(tmp_path, caplog, reason):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        ODD[reason](f)
        f["y"] = np.arange(20)
    with h5py.File(url, "r") as f:
        want = f["x"][()]
    assert np.array_equal(want, np.arange(120).reshape(20, 6))
    ds = hr.open(url, {"x": hr.array("x", window=2, patch=3), "y": hr.scalar("y")})
    for s in ds:
        t, place = divmod(int(s["x"][0, 0]), 6)
        same(s["x"], want[t : t + 2, place : place + 3])
        assert s["y"] == t
    (notice,) = ds.notices
    assert notice in caplog.text
    assert re.search(f"a.h5#x is read through h5py.*slow.*{reason}", notice)
    with hr.Loader(url, 3, {"x": hr.array("x"), "y": hr.scalar("y")}, seed=1, tail="keep", output="numpy") as loader:
        got = [(y, x) for b in loader for y, x in zip(b["y"], np.array(b["x"]))]
    assert sorted(y for y, _ in got) == list(range(20))
    for y, x in got:
        same(x, want[y])
    same(pickle.loads(pickle.dumps(ds))[3]["x"].shape, (2, 3))
    assert hr.open(url, {"y": hr.scalar("y")}).notices == []


def test_values_and_records_through_h5py(tmp_path):
    url = tmp_path / "a.h5"
    record = np.dtype([("a", "i4"), ("in", [("b", ">f8", (3,)), ("s", "S4")])])
    with h5py.File(tmp_path / "part.h5", "w") as f:
        v = f.create_dataset("v", (9,), h5py.vlen_dtype("u1"))
        n = f.create_dataset("n", (9, 2), h5py.vlen_dtype("<i4"))
        t = f.create_dataset("t", (9,), h5py.string_dtype())
        r = f.create_dataset("r", (9,), record)
        for i in range(9):
            v[i], t[i], r[i] = np.full(i, i, "u1"), f"text {i}", (i, (np.full(3, i / 2), b"%d" % i))
            n[i, 0], n[i, 1] = np.arange(i), np.arange(2 * i)
        names = {name: (f[name].shape, f[name].dtype) for name in f}
    with h5py.File(url, "w") as f:
        for name, (shape, dtype) in names.items():
            layout = h5py.VirtualLayout(shape, dtype)
            layout[...] = h5py.VirtualSource(tmp_path / "part.h5", name, shape, dtype)
            f.create_virtual_dataset(name, layout)
    ds = hr.open(url)
    for i, s in enumerate(ds):
        assert (s["v"], s["t"], s["r.a"], s["r.in.s"]) == (bytes([i]) * i, f"text {i}", i, str(i))
        same(s["r.in.b"], np.full(3, i / 2))
        same(s["n"][0], np.arange(i, dtype="i4"))
        same(s["n"][1], np.arange(2 * i, dtype="i4"))
    assert len(ds.notices) == 6
    with hr.Loader(url, 3, {"v": hr.bytes("v"), "a": hr.array("r.a")}, seed=1, output="numpy") as loader:
        for batch in loader:
            for v, a in zip(batch["v"], batch["a"]):
                assert bytes(v) == bytes([a]) * a


def test_inspect_shows_what_is_slow(tmp_path, capsys):
    from headrace.inspection import look, page

    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        ODD["12 bits of 16"](f)
    facts = look([str(url)], root=None, index=None, number=0, samples=3)
    assert any("read through h5py" in n for n in facts["notices"])
    page(facts)
    assert "read through h5py" in " ".join(capsys.readouterr().out.split())


def test_a_filter_that_nobody_knows(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        f["x"] = np.arange(8)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4,))
        plist.set_filter(40000, h5py.h5z.FLAG_OPTIONAL, (1,))
        h5py.h5d.create(f.id, b"odd", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((8,)), plist)
    with pytest.raises(hr.Unsupported, match=r"'odd' cannot be read: .*filter 40000.*hdf5plugin"):
        hr.open(url, {"x": hr.array("odd")})
    assert hr.open(url, {"x": hr.scalar("x")})[2] == {"x": 2}
