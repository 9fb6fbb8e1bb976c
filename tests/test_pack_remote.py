# SPDX-License-Identifier: Apache-2.0
"""``hr.pack`` to an object store: what is written opens as a local pack does, killed or not, and appears last."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator

import headrace as hr
import pytest
import servers
from support import write_tar

COUNT = 60


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.S3]:
    with servers.versitygw(tmp_path_factory.mktemp("s3"), uploads=True) as server:
        yield server


@pytest.fixture(autouse=True)
def alone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def source(tmp_path: pathlib.Path) -> str:
    members = [
        (f"{n:03d}.{ext}", data) for n in range(COUNT) for ext, data in (("cls", str(n).encode()), ("bin", os.urandom(2000)))
    ]
    write_tar(tmp_path / "source.tar", members)
    return str(tmp_path / "source.tar")


def write_url(url: str, data: bytes, storage: hr.Storage) -> None:
    from headrace import _core
    from headrace.storage import using

    with using(storage, url):
        _core.write_file(url, data)


def files(folder: pathlib.Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.endswith(".hridx")}


# mds and lmdb go back in their files; parquet is written by a library of Python.
@pytest.mark.parametrize("to", ["tar", "tfrecord", "arrow", "mds", "recordio", "parquet", "lmdb"])
def test_what_is_packed_to_s3_is_what_a_local_pack_is(s3: servers.S3, source: str, tmp_path: pathlib.Path, to: str) -> None:
    options = {"to": to, "shards": 3, "seed": 5}
    if to == "recordio":
        options |= {"fields": ["cls", "bin"], "rename": {"label": "cls", "data": "bin"}}
    here = hr.pack(source, tmp_path / "local", **options)  # type: ignore[arg-type]
    there = hr.pack(source, f"s3://bucket/{to}", storage=s3.storage(), **options)  # type: ignore[arg-type]
    assert here == there
    assert files(tmp_path / "local") == files(s3.folder / to)
    again = hr.pack(source, f"s3://bucket/{to}", storage=s3.storage(), **options)  # type: ignore[arg-type]
    assert again["was_complete"]
    data = hr.open(f"s3://bucket/{to}", storage=s3.storage())
    assert data.fingerprint == hr.open(tmp_path / "local").fingerprint
    indexes = [p for p in (s3.folder / to).iterdir() if p.name.endswith(".hridx")]
    assert len(indexes) == 3
    assert data[7] is not None


def test_large_shards_go_in_parts(s3: servers.S3, tmp_path: pathlib.Path) -> None:
    write_tar(tmp_path / "large.tar", [(f"{n:03d}.bin", bytes([n]) * 3_000_000) for n in range(13)])
    result = hr.pack(tmp_path / "large.tar", "s3://bucket/large", shards=1, shuffle=False, storage=s3.storage())
    assert result["bytes"] > 4 * 8 * 2**20
    data = hr.open("s3://bucket/large", {"x": hr.bytes("bin")}, storage=s3.storage())
    assert [bytes(data[n]["x"]) for n in (0, 12)] == [bytes([n]) * 3_000_000 for n in (0, 12)]
    hr.pack(tmp_path / "large.tar", tmp_path / "local", shards=1, shuffle=False)
    assert files(tmp_path / "local") == files(s3.folder / "large")


def test_classes_and_parts_go_along(s3: servers.S3, tmp_path: pathlib.Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "classes" / name).mkdir(parents=True)
        for n in range(10):
            (tmp_path / "classes" / name / f"{n}.txt").write_text(f"{name} {n}")
    hr.pack(tmp_path / "classes", "s3://bucket/split", split={"train": 0.7, "val": 0.3}, storage=s3.storage())
    train, val = (hr.open(f"s3://bucket/split/{part}", storage=s3.storage()) for part in ("train", "val"))
    assert len(train) + len(val) == 20
    assert train.classes == val.classes == ["cat", "dog"]


def test_other_things_in_the_folder_and_other_stores_are_refused(s3: servers.S3, source: str) -> None:
    (s3.folder / "taken").mkdir()
    (s3.folder / "taken/notes.txt").write_text("mine")
    with pytest.raises(hr.UsageError, match=r"not empty: 'notes.txt'"):
        hr.pack(source, "s3://bucket/taken", storage=s3.storage())
    with pytest.raises(hr.Error, match="writes plain paths and s3://"):
        hr.pack(source, "https://example.org/x")
    with pytest.raises(hr.Error, match="no bucket"):
        hr.pack(source, "s3://nowhere/x", storage=s3.storage())


KILLED = f"""
import sys, headrace as hr
source, endpoint = sys.argv[1:]
storage = hr.storage(endpoint=endpoint, region="us-east-1", access_key={servers.KEY!r}, secret_key={servers.SECRET!r})
hr.pack(source, "s3://bucket/killed", shards=30, seed=3, threads=1, storage=storage)
"""


def test_what_is_killed_goes_on_and_is_no_data_set_before(s3: servers.S3, source: str, tmp_path: pathlib.Path) -> None:
    with servers.toxiproxy(s3.port) as proxy, proxy.toxic("latency", latency=20):
        process = subprocess.Popen([sys.executable, "-c", KILLED, source, f"http://127.0.0.1:{proxy.port}"])
        journal = s3.folder / "killed/headrace.unfinished"
        until = time.monotonic() + 60
        while time.monotonic() < until and not (journal.exists() and journal.read_text().count('"samples": 2') >= 3):
            time.sleep(0.005)
        process.kill()
        process.wait()
    assert journal.exists()
    with pytest.raises(hr.Error, match="not finished"):
        hr.open("s3://bucket/killed", storage=s3.storage())
    result = hr.pack(source, "s3://bucket/killed", shards=30, seed=3, storage=s3.storage())
    assert 3 <= result["shards_kept"] < 30
    assert not journal.exists()
    hr.pack(source, tmp_path / "local", shards=30, seed=3)
    assert files(tmp_path / "local") == files(s3.folder / "killed")
    assert json.loads((s3.folder / "killed/headrace.json").read_text())["samples"] == COUNT


def test_the_command_packs_to_s3(s3: servers.S3, source: str) -> None:
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": s3.endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": servers.KEY,
        "AWS_SECRET_ACCESS_KEY": servers.SECRET,
    }
    command = [sys.executable, "-m", "headrace", "pack", source, "s3://bucket/command", "--shards", "2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "s3://bucket/command" in done.stdout
    assert len(hr.open("s3://bucket/command", storage=s3.storage())) == COUNT


def test_an_index_goes_to_the_bucket_and_is_of_one_version_of_the_data(s3: servers.S3, tmp_path: pathlib.Path) -> None:
    def put(sizes: list[int]) -> list[int]:
        tar = write_tar(tmp_path / "a.tar", [(f"{n}.bin", b"x" * size) for n, size in enumerate(sizes)])
        write_url("s3://bucket/one/a.tar", tar.read_bytes(), s3.storage())
        return sizes

    sizes = put([100, 2000])
    hr.build_index("s3://bucket/one/a.tar", "s3://bucket/one/index", storage=s3.storage())
    data = hr.open("s3://bucket/one/a.tar", index="s3://bucket/one/index", storage=s3.storage())
    assert [len(data[n]["bin"]) for n in (0, 1)] == sizes
    put([2000, 100])  # as long as before
    data = hr.open("s3://bucket/one/a.tar", index="s3://bucket/one/index", storage=s3.storage())
    with pytest.raises(hr.DataError, match=r"a\.tar.* has changed since it was indexed .*index the data set again"):
        data[0]
    with pytest.raises(hr.Unsupported, match="writes plain paths and s3://, not https://"):
        hr.build_index("s3://bucket/one/a.tar", "https://host/index", storage=s3.storage())
