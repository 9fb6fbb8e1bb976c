# SPDX-License-Identifier: Apache-2.0
"""Schemes that only fsspec knows: the same samples as from local files, clear words where it does not know them either."""

from __future__ import annotations

import logging
import pathlib
from collections.abc import Iterator
from typing import Any

import headrace as hr
import pytest
from headrace import messages
from support import write_tar

fsspec = pytest.importorskip("fsspec")
FIELDS = {"label": hr.scalar("cls"), "data": hr.bytes("bin")}


@pytest.fixture
def data(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "d"
    folder.mkdir()
    for shard in range(2):
        members = [
            (f"{n:03d}.{e}", v)
            for n in range(shard * 20, shard * 20 + 20)
            for e, v in (("cls", b"%d" % n), ("bin", bytes([n]) * 999))
        ]
        write_tar(folder / f"{shard}.tar", members)
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/d", recursive=True)
    yield folder
    memory.rm("/d", recursive=True)


def batches(source: Any) -> list[Any]:
    loader = hr.Loader(source, 8, FIELDS, shuffle=True, seed=3, output="numpy", tail="keep")
    return [(b["label"].tolist(), [bytes(x) for x in b["data"]]) for b in loader.epoch(0)]


@pytest.mark.parametrize("name", ["memory://d/{0,1}.tar", "memory://d/*.tar", "memory://d"])
def test_the_same_batches_as_from_local_files(data: pathlib.Path, name: str) -> None:
    assert batches(name) == batches(str(data))
    assert bytes(hr.open(name, FIELDS)[30]["data"]) == bytes([30]) * 999


def test_class_folders_arrays_and_an_index(data: pathlib.Path, tmp_path: pathlib.Path) -> None:
    import numpy as np

    memory = fsspec.filesystem("memory")
    for name in ("cat", "dog"):
        memory.pipe(f"/d/classes/{name}/1.txt", name.encode())
    np.save(tmp_path / "x.npy", np.arange(12.0).reshape(4, 3))
    memory.put(str(tmp_path / "x.npy"), "/d/x.npy")
    classes = hr.open("memory://d/classes")
    assert classes.classes == ["cat", "dog"]
    assert len(classes) == 2
    row = hr.open("memory://d/x.npy")[2]
    assert (
        [v.tolist() for v in row.values()] == [v.tolist() for v in hr.open(tmp_path / "x.npy")[2].values()] == [[6.0, 7.0, 8.0]]
    )
    hr.build_index("memory://d/*.tar", str(tmp_path / "index"))
    assert len(hr.open("memory://d/*.tar", index=str(tmp_path / "index"))) == 40


def test_it_is_said_once(data: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    messages._told.clear()
    caplog.set_level(logging.INFO)
    for _ in range(2):
        hr.open("memory://d/0.tar")
    assert caplog.text.count("read through fsspec") == 1


def test_what_is_missing_is_named(data: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"memory://d/2\.tar"):
        hr.open("memory://d/2.tar")
    with pytest.raises(
        hr.Unsupported, match=r"'nosuch://x': headrace does not read nosuch:// itself .*fsspec knows no nosuch://"
    ):
        hr.open("nosuch://x")
    with pytest.raises(hr.Unsupported, match="writes plain paths and s3://"):
        hr.pack(str(data), "memory://out")


def test_a_file_that_changes_is_never_mixed(data: pathlib.Path) -> None:
    opened = hr.open("memory://d/0.tar", FIELDS)
    assert opened[0]["label"] == 0
    memory = fsspec.filesystem("memory")
    content = memory.cat_file("/d/0.tar")
    memory.rm("/d/0.tar")
    memory.pipe("/d/0.tar", content[:512] + b"X" * (len(content) - 512))
    with pytest.raises(hr.Error, match="changed"):
        opened[1]


def test_a_url_that_names_a_server_is_read_from_that_server(data: pathlib.Path) -> None:
    class PerHost(fsspec.AbstractFileSystem):  # type: ignore[misc]
        """As ftp, sftp and hdfs are: made for a host, which paths do not name."""

        def __init__(self, host: str) -> None:
            super().__init__()
            self.tar = (data / f"{host}.tar").read_bytes()

        @staticmethod
        def _get_kwargs_from_urls(url: str) -> dict[str, str]:
            return {"host": url.split("/")[2]}

        def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
            if not path.endswith("/a.tar"):
                raise FileNotFoundError(path)
            return {"name": path, "size": len(self.tar), "type": "file", "mtime": 1.0}

        def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
            return self.tar[start:end]

    fsspec.register_implementation("perhost", PerHost, clobber=True)
    assert [hr.open(f"perhost://{n}/a.tar", FIELDS)[0]["label"] for n in (0, 1)] == [0, 20]
