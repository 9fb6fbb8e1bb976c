# SPDX-License-Identifier: Apache-2.0
"""Damaged HDF5 files: an error that says where, or the values that h5py gives; never a crash, a hang or much memory.

h5py reads the metadata (superblock, object headers, tables of chunks), and what it does of damage there is its own matter:
a process that ends within it is noted and no failure of ours. The chunks and the global heap are read by the engine.
"""

from __future__ import annotations

import json
import random
import re
import struct
import subprocess
import sys

import headrace as hr
import numpy as np
import pytest

h5py = pytest.importorskip("h5py")

# Reads each damaged file twice, by headrace and by h5py, and tells on stdout how far it is.
READER = r"""
import json, os, resource, sys
import h5py, numpy as np
import headrace as hr
from headrace import _core
from headrace.arrays import open as arrays_open
limit = 3 << 30
if "asan" not in os.environ.get("LD_PRELOAD", ""):  # that takes 20 TB of address space, and has a limit of its own
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
path, whole = sys.argv[1], open(sys.argv[2], "rb").read()
real = _core.open_arrays

def say(**what):
    print(json.dumps(what), flush=True)

def stage(name):
    say(stage=name)

def opened(d):
    stage("engine")
    return real(d)

_core.open_arrays = opened

def ours():
    stage("h5py")
    ds = hr.open(path)
    out = []
    for i in range(len(ds)):
        sample = ds[i]
        out.append({k: v if isinstance(v, (bytes, str)) else np.asarray(v).tobytes() for k, v in sample.items()})
    return out

def theirs(names):
    stage("compare")
    with h5py.File(path, "r") as f:
        n = min(len(f[name]) for name in names)
        one = lambda v: v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else np.asarray(v).tobytes()
        return [{name: one(f[name][i]) for name in names} for i in range(n)]

for number, (kind, at, bit) in json.load(sys.stdin):
    data = bytearray(whole)
    if kind == "cut":
        del data[at:]
    else:
        data[at] ^= 1 << bit
    with open(path, "wb") as f:
        f.write(data)
    say(number=number)
    try:
        got = ours()
    except hr.Error as e:
        say(error=str(e), data=isinstance(e, hr.DataError))
        continue
    except MemoryError:
        say(memory=True)
        continue
    names = sorted(set(got[0])) if got else []
    try:
        want = theirs(names) if names else []
    except Exception as e:
        say(read=True, h5py=str(e))
        continue
    say(read=True, same=got == want)
"""


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """The file that is damaged, and where its parts lie."""
    path = tmp_path_factory.mktemp("damage") / "whole.h5"
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as f:
        v = f.create_dataset("v", (24,), h5py.vlen_dtype("u1"))
        g = f.create_dataset("g", (24,), h5py.vlen_dtype("<i4"), chunks=(8,), compression="gzip")
        t = f.create_dataset("t", (24,), h5py.string_dtype())
        for i in range(24):
            v[i] = rng.integers(0, 256, 700 if i == 11 else i % 9).astype("u1")
            g[i] = np.arange(i)
            t[i] = "x" * i
        f.create_dataset("n", data=rng.integers(0, 99, (24, 6)), chunks=(6, 6), compression="gzip", fletcher32=True)
        places = [f[name].id.get_offset() for name in ("v", "t")]
        chunks = [f[name].id.get_chunk_info(i) for name in ("g", "n") for i in range(f[name].id.get_num_chunks())]
    data = path.read_bytes()
    heads = [m.start() for m in re.finditer(b"GCOL", data)]
    spots = [range(p, p + 24 * 16) for p in places] + [range(c.byte_offset, c.byte_offset + c.size) for c in chunks]
    spots += [range(h, h + 64) for h in heads]
    return path, data, spots, heads


def run(path, work, jobs):
    """What became of each damaged file: {number: outcome}."""
    outcomes = {}
    left = list(enumerate(jobs))
    while left:
        process = subprocess.run([sys.executable, "-c", READER, str(work), str(path)], input=json.dumps(left),
                                 capture_output=True, text=True, timeout=300)  # fmt: skip
        number, stage = None, ""
        for line in process.stdout.splitlines():
            said = json.loads(line)
            if "number" in said:
                number, stage = said["number"], ""
            elif "stage" in said:
                stage = said["stage"]
            else:
                outcomes[number] = said
        if process.returncode == 0:
            break
        assert number is not None, process.stderr
        assert stage in ("h5py", "compare"), f"{jobs[number]} ended the process in the engine: {process.stderr[-2000:]}"
        outcomes.setdefault(number, {"ended": stage})
        left = [job for job in left if job[0] > number]
    return outcomes


def check(jobs, outcomes):
    assert len(outcomes) == len(jobs)
    for number, outcome in outcomes.items():
        assert "memory" not in outcome, jobs[number]
        assert outcome.get("same", True), jobs[number]


def test_flipped_bits(damaged, tmp_path):
    path, data, spots, _ = damaged
    rng = random.Random(3)
    jobs = [("flip", rng.randrange(len(data)), rng.randrange(8)) for _ in range(250)]
    jobs += [("flip", rng.choice(rng.choice(spots)), rng.randrange(8)) for _ in range(350)]
    outcomes = run(path, tmp_path / "a.h5", jobs)
    check(jobs, outcomes)
    errors = [o["error"] for o in outcomes.values() if o.get("data")]
    assert len(errors) > 100
    assert any("global heap" in e and "offset" in e for e in errors)
    assert any("checksum" in e or "zlib" in e or "deflate" in e for e in errors)
    assert sum("read" in o for o in outcomes.values()) > 50


def test_cut_files(damaged, tmp_path):
    path, data, _, _ = damaged
    rng = random.Random(4)
    jobs = [("cut", at, 0) for at in sorted(rng.sample(range(len(data)), 150))]
    check(jobs, run(path, tmp_path / "a.h5", jobs))


def write(path, data, *changes):
    data = bytearray(data)
    for at, new in changes:
        data[at : at + len(new)] = new
    path.write_bytes(data)


def test_a_damaged_value_is_a_bad_sample_and_the_others_are_read(damaged, tmp_path):
    path, data, spots, heads = damaged
    url = tmp_path / "a.h5"
    good = [s["v"] for s in hr.open(path)]
    # The one value that is long lies in some collection; its object's number in the reference is wrong.
    at = spots[0][0] + 11 * 16
    write(url, data, (at + 12, struct.pack("<I", 4000)))
    ds = hr.open(url, {"v": hr.bytes("v")})
    for i in range(24):
        if i != 11:
            assert ds[i]["v"] == good[i]
    with pytest.raises(hr.DataError, match=r"'v', value 11: global heap: .* no object 4000") as e:
        ds[11]
    assert e.value.file == str(url)
    assert e.value.offset in heads
    with hr.Loader(url, 6, {"v": hr.bytes("v")}, bad_samples="replace", seed=0, output="numpy") as loader:
        assert sum(len(b["v"]) for b in loader) == 24
        assert [q["sample"] for q in loader.quarantine] == [11]


@pytest.mark.parametrize("size", [0, 8, 16, 1 << 40, (1 << 64) - 1])
def test_collections_of_odd_sizes(damaged, tmp_path, size):
    _, data, _, heads = damaged
    url = tmp_path / "a.h5"
    write(url, data, *((h + 8, struct.pack("<Q", size)) for h in heads))
    ds = hr.open(url, {"v": hr.bytes("v")})
    with pytest.raises(hr.DataError, match="global heap"):
        ds[11]


def test_more_values_than_the_file_could_hold(tmp_path):
    url = tmp_path / "a.h5"
    with h5py.File(url, "w") as f:
        f.create_dataset("v", (1 << 33,), h5py.vlen_dtype("u1"), chunks=(1 << 20,), maxshape=(None,))
    with pytest.raises(hr.DataError, match=f"says {1 << 33} values of variable length"):
        hr.open(url)


@pytest.mark.unsanitized  # bounds the address space, of which AddressSanitizer takes 20 TB
def test_a_chunk_that_is_said_to_have_4_gib_takes_no_memory(tmp_path):
    """Its size is a number of the file: the engine's threads ask whether so much is there before they make room."""
    path = tmp_path / "z.h5"
    with h5py.File(path, "w", libver="earliest") as f:
        f.create_dataset("z", data=np.random.default_rng(0).random((40, 60)), chunks=(1, 60), compression="gzip")
        chunks = [f["z"].id.get_chunk_info(i) for i in range(40)]
    data = bytearray(path.read_bytes())
    for chunk in chunks[:20]:
        at = data.find(struct.pack("<IIQQQ", chunk.size, 0, *chunk.chunk_offset, 0))
        data[at : at + 4] = struct.pack("<I", 0xFFFFFFF0)
    path.write_bytes(data)
    code = """
import resource, sys
import headrace as hr
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
fields = {"z": hr.array("z")}
options = dict(batch_size=4, output="numpy", shuffle=False, threads=2, memory_budget="64MiB")
try:
    next(iter(hr.Loader(sys.argv[1], fields=fields, **options)))
except hr.DataError as e:
    print(e)
good = [b["z"].shape for b in hr.Loader(sys.argv[1], fields=fields, bad_samples="replace", **options)]
assert good == [(4, 60)] * 10, good
"""
    ended = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "the file ends here, 42949" in ended.stdout and f"offset {len(data)}" in ended.stdout, ended.stdout
    assert "byte" not in ended.stdout.partition("bytes too early")[2]  # of the value: it is where the file ends


def test_damaged_metadata_are_errors_that_name_the_file(tmp_path):
    """h5py says so by exceptions of many kinds; whoever opens a data set catches hr.Error."""
    path = tmp_path / "whole.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=np.arange(400.0).reshape(40, 10), chunks=(8, 10), compression="gzip")
        f["y"] = np.arange(40)
        f.create_dataset("v", (40,), h5py.vlen_dtype("u1"))[3] = np.arange(5, dtype="u1")
    code = """
import random, sys
import headrace as hr
whole, rng, said = open(sys.argv[1], "rb").read(), random.Random(1), 0
for _ in range(300):
    data = bytearray(whole)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    open(sys.argv[2], "wb").write(data)
    try:
        hr.open(sys.argv[2])
    except hr.Error as e:
        said += 1
        assert sys.argv[2] in str(e), e
print(said)
"""
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "damaged.h5")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if ended.returncode < 0:
        pytest.skip("HDF5 itself ended the process")
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert int(ended.stdout) > 3
