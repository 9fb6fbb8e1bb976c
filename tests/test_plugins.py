# SPDX-License-Identifier: Apache-2.0
"""``hr.register_format``, ``hr.register_codec``, and a package that brings them."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import _core
from headrace.plugins import registry


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_formats", {})
    monkeypatch.setattr(registry, "_codecs", {})


def write_rows(path: Path, count: int, first: int = 0) -> None:
    """u32 count; then for each: u32 label, 6 f32."""
    rows = b"".join(struct.pack("<I6f", i % 3, *range(i, i + 6)) for i in range(first, first + count))
    path.write_bytes(struct.pack("<I", count) + rows)


def rows(file: Any) -> Iterator[Any]:
    """Rows of six numbers."""
    (count,) = struct.unpack("<I", file.read(0, 4))
    for i in range(count):
        at = 4 + 28 * i
        label = struct.unpack("<I", file.read(at, 4))[0]
        yield f"{Path(file.path).stem}/{i}", {"x": hr.Extent(at + 4, 24), "label": label, "name": f"n{i}"}


def register_rows() -> None:
    hr.register_format("rows", rows, extensions=".rows", fields={"x": ("f32", (2, 3))})


def test_a_format_of_ones_own(tmp_path: Path) -> None:
    register_rows()
    write_rows(tmp_path / "a.rows", 7)
    write_rows(tmp_path / "b.rows", 5, first=7)
    for source in (tmp_path, tmp_path / "*.rows", str(tmp_path) + "/{a,b}.rows", [tmp_path / "a.rows", tmp_path / "b.rows"]):
        ds = hr.open(source)
        assert len(ds) == 12 and ds.format == "rows" and ds.key(8) == "b/1"
        assert ds[8]["x"].tolist() == [[8, 9, 10], [11, 12, 13]] and ds[8]["label"] == 2 and ds[8]["name"] == "n1"
    seen = {}
    for batch in hr.Loader(tmp_path, 5, tail="keep"):
        assert batch["x"].shape[1:] == (2, 3)
        seen.update(zip(batch.indices.tolist(), batch["x"][:, 0, 0].tolist()))
    assert seen == {i: float(i) for i in range(12)}
    assert ds.where("label == 1").fingerprint and len(ds.where("label == 1")) == 4
    assert "rows" in [f["name"] for f in hr.formats()]
    alone = hr.open(tmp_path / "b.rows")
    assert len(alone) == 5 and alone[0]["x"][0, 0] == 7


def test_a_format_of_ones_own_on_a_server(tmp_path: Path) -> None:
    register_rows()
    (tmp_path / "far" / "data").mkdir(parents=True)
    write_rows(tmp_path / "far" / "data" / "a.rows", 7)
    write_rows(tmp_path / "far" / "data" / "b.rows", 5, first=7)
    web = _core.testing_scheme("webrows", str(tmp_path / "far"), latency_ms=1)
    try:
        for source in ("webrows://data/a.rows", ["webrows://data/a.rows", "webrows://data/b.rows"], "webrows://data/{a,b}.rows"):
            ds = hr.open(source)
            assert ds.format == "rows" and ds[5]["x"][0, 0] == 5
            seen = [v for b in hr.Loader(ds, 4, tail="keep") for v in b["x"][:, 0, 0].tolist()]
            assert sorted(seen) == list(range(len(ds)))
    finally:
        web.close()


def test_extents_in_another_file_and_missing_values(tmp_path: Path) -> None:
    def samples(file: Any) -> Iterator[Any]:
        for row in json.loads(file.read(0, file.size)):
            yield row["key"], {"bin": hr.Extent(row["at"], row["n"], file="data.blob"), "y": row.get("y")}

    (tmp_path / "data.blob").write_bytes(b"aabbbcccc")
    (tmp_path / "list.mine").write_text(json.dumps([{"key": "p", "at": 2, "n": 3, "y": 1}, {"key": "q", "at": 5, "n": 4}]))
    hr.register_format("mine", samples, extensions="mine")
    ds = hr.open(tmp_path / "list.mine")
    assert ds[0] == {"bin": b"bbb", "y": 1} and ds[1] == {"bin": b"cccc"}


def test_what_a_format_may_not_say(tmp_path: Path) -> None:
    path = tmp_path / "x.odd"
    path.write_bytes(bytes(10))

    def opened(samples: Any) -> Any:
        hr.register_format("odd", samples, extensions=".odd")
        return hr.open(path)

    with pytest.raises(hr.DataError, match="lie at 4, 7 bytes long; the file has 10"):
        opened(lambda f: [("k", {"b": hr.Extent(4, 7)})])
    with pytest.raises(hr.DataError, match="finds no sample"):
        opened(lambda f: [])
    with pytest.raises(hr.UsageError, match=r"yields .key"):
        opened(lambda f: [{"b": 1}])
    with pytest.raises(hr.DataError, match=r"x.odd.*raised ZeroDivisionError") as e:
        opened(lambda f: [1 // 0])
    assert isinstance(e.value.__cause__, ZeroDivisionError)
    with pytest.raises(hr.DataError, match="bytes 8 to 12"):
        opened(lambda f: [("k", {"b": f.read(8, 4)})])
    with pytest.raises(hr.UsageError, match="Extent in some"):
        opened(lambda f: [("a", {"b": hr.Extent(0, 1)}), ("b", {"b": b"x"})])
    with pytest.raises(hr.UsageError, match="'tar' already"):
        hr.register_format("tar", rows, extensions=".x")
    with pytest.raises(hr.UsageError, match="extensions"):
        hr.register_format("t", rows, extensions=[])
    with pytest.raises(hr.UsageError, match="type and shape"):
        hr.register_format("t", rows, extensions="t", fields={"x": "f32"})
    register_rows()
    with pytest.raises(hr.StorageError, match=r"gone.rows"):
        hr.open(tmp_path / "gone.rows")


def decode_packed(data: bytes) -> np.ndarray[Any, Any]:
    h, w = struct.unpack("<HH", data[:4])
    return np.frombuffer(zlib.decompress(data[4:]), np.uint8).reshape(h, w, 3)


def encode_packed(array: np.ndarray[Any, Any]) -> bytes:
    return struct.pack("<HH", *array.shape[:2]) + zlib.compress(array.tobytes())


def test_a_codec_of_ones_own(tmp_path: Path) -> None:
    hr.register_codec("packed", decode_packed, extensions="pkd")
    for i in range(6):
        (tmp_path / f"{i}.pkd").write_bytes(encode_packed(np.full((8, 6, 3), i, np.uint8)))
        (tmp_path / f"{i}.cls").write_text(str(i))
    assert hr.open(tmp_path)[2]["pkd"] == (tmp_path / "2.pkd").read_bytes()
    fields: dict[str, Any] = {
        "x": hr.array("pkd").cast("f32"),
        "image": hr.image("pkd").resize((4, 4)),
        "raw": hr.bytes("pkd"),
        "y": hr.scalar("cls"),
    }
    for batch in hr.Loader(tmp_path, 3, fields, output="numpy"):
        assert batch["x"].shape == (3, 8, 6, 3) and batch["x"].dtype == np.float32
        assert np.array_equal(batch["x"][:, 0, 0, 0], batch["y"]) and batch["image"].shape[0] == 3
        assert [decode_packed(r).flat[0] for r in batch["raw"]] == batch["y"].tolist()
    ds = hr.open(tmp_path, fields)
    assert ds[3]["x"].shape == (8, 6, 3) and ds[::2][1]["x"][0, 0, 0] == 2


def test_a_codec_in_a_tar_with_values_that_are_missing_or_bad(tmp_path: Path) -> None:
    hr.register_codec("packed", decode_packed, extensions=("pkd",))
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(6):
        (folder / f"{i}.txt").write_text(f"t{i}")
        if i != 4:
            (folder / f"{i}.pkd").write_bytes(encode_packed(np.full((2, 2, 3), i, np.uint8))[: 9 if i == 2 else None])
    hr.pack(folder, tmp_path / "out", to="tar", keep_order=True)
    fields = {"x": hr.array("pkd", optional=True), "t": hr.text("txt")}
    with pytest.raises(hr.DataError, match="'packed' raised error: Error -5") as e:
        list(hr.Loader(tmp_path / "out", 6, fields, shuffle=False))
    assert e.value.sample == 2 and isinstance(e.value.__cause__, zlib.error)
    (batch,) = hr.Loader(tmp_path / "out", 6, fields, shuffle=False, bad_samples="replace")
    assert batch["x_valid"].tolist()[4] is False and batch["x"][3].flatten()[0] == 3
    hr.register_codec("wrong", lambda data: ["no array"], extensions="pkd")
    with pytest.raises(hr.DataError, match="gave a list"):
        hr.open(tmp_path / "out", {"x": hr.array("pkd")})[0]


PACKAGE = '''
import struct, zlib, os
import numpy as np
import headrace as hr

def samples(file):
    """Blocks with a length before each."""
    at, n = 0, 0
    while at < file.size:
        (length,) = struct.unpack("<I", file.read(at, 4))
        yield f"{n:04}", {"pkd": hr.Extent(at + 4, length), "n": n}
        at, n = at + 4 + length, n + 1

def decode(data):
    return np.frombuffer(zlib.decompress(data), np.int16)

def example(folder):
    path = os.path.join(folder, "a.blk")
    with open(path, "wb") as f:
        for i in range(5):
            value = zlib.compress(np.full(i + 1, i, np.int16).tobytes())
            f.write(struct.pack("<I", len(value)) + value)
    return [path]

def pairs():
    return [(zlib.compress(np.arange(n, dtype=np.int16).tobytes()), np.arange(n, dtype=np.int16)) for n in (1, 7)]

def register():
    hr.register_format("blocks", samples, extensions=".blk", example=example)
    hr.register_codec("packed", decode, extensions="pkd", example=pairs)
'''


def install(folder: Path, code: str) -> dict[str, str]:
    """A package with an entry point, as pip leaves it; the environment that finds it."""
    (folder / "blocksformat").mkdir(parents=True)
    (folder / "blocksformat" / "__init__.py").write_text(code)
    info = folder / "blocksformat-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: blocksformat\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[headrace.plugins]\nblocksformat = blocksformat:register\n")
    return {**os.environ, "PYTHONPATH": str(folder)}


def run(env: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], env={**env, "COLUMNS": "200"}, capture_output=True, text=True, timeout=100)


def test_a_package_brings_a_format_and_a_codec(tmp_path: Path) -> None:
    env = install(tmp_path / "site", PACKAGE)
    code = f"""
    import headrace as hr, blocksformat
    blocksformat.example({str(tmp_path)!r})
    ds = hr.open({str(tmp_path / "a.blk")!r}, {{"x": hr.array("pkd").list(), "n": hr.scalar("n")}})
    print(len(ds), ds[3]["x"].tolist(), ds[3]["n"])
    """
    done = run(env, "-c", textwrap.dedent(code))
    assert done.stdout.split("\n")[0] == "5 [3, 3, 3, 3] 3", done.stderr


def test_check_format(tmp_path: Path) -> None:
    env = install(tmp_path / "good", PACKAGE)
    done = run(env, "-m", "headrace", "check-format", "blocksformat")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "format blocks" in done.stdout and "cut short" in done.stdout and "codec packed" in done.stdout
    bad = PACKAGE.replace('f"{n:04}"', '"same"').replace(
        "np.frombuffer(zlib.decompress(data), np.int16)", "os.abort() if len(data) < 9 else np.arange(3)"
    )
    env = install(tmp_path / "bad", bad)
    done = run(env, "-m", "headrace", "check-format", "blocksformat")
    assert done.returncode == 1 and "two samples have the key" in done.stdout and "signal 6" in done.stdout, (
        done.stdout + done.stderr
    )
    done = run(env, "-m", "headrace", "check-format", "no_such_package")
    assert done.returncode == 2 and "no package" in done.stderr


def test_check_format_of_a_module_in_the_folder(tmp_path: Path) -> None:
    """As the command starts, whose path is not that of ``python -m``."""
    (tmp_path / "myown.py").write_text(PACKAGE)
    code = (
        "import sys; sys.path.remove(''); from headrace.cli import main; sys.argv = ['headrace', 'check-format', 'myown']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "format blocks" in done.stdout, done.stdout + done.stderr


def test_a_package_that_fails_is_named(tmp_path: Path) -> None:
    env = install(tmp_path / "site", "def register():\n    raise RuntimeError('no licence')\n")
    (tmp_path / "a.blk").write_bytes(b"x")
    done = run(env, "-c", f"import headrace as hr; hr.open({str(tmp_path / 'a.blk')!r})")
    assert "'blocksformat'" in done.stderr and "no licence" in done.stderr


def test_an_index_is_kept_where_the_function_has_a_version(tmp_path: Path) -> None:
    calls: list[str] = []

    def counted(file: Any) -> Iterator[Any]:
        calls.append(Path(file.path).name)
        yield from rows(file)

    def opened(version: str | None, shape: tuple[int, ...] = (2, 3)) -> tuple[hr.Dataset, list[str]]:
        calls.clear()
        hr.register_format("rows", counted, extensions=".rows", fields={"x": ("f32", shape)}, version=version)
        ds = hr.open(tmp_path)
        return ds, list(calls)

    write_rows(tmp_path / "a.rows", 7)
    write_rows(tmp_path / "b.rows", 5, first=7)
    assert opened(None)[1] == opened(None)[1] == ["a.rows", "b.rows"]
    assert not list(tmp_path.glob("*.hridx"))
    first, made = opened("1")
    assert made == ["a.rows", "b.rows"] and len(list(tmp_path.glob("a.rows#2-*.hridx"))) == 1
    again, made = opened("1")
    assert made == [] and again.fingerprint == first.fingerprint and again.format == "rows"
    assert [s["x"].tolist() for s in again] == [s["x"].tolist() for s in first] and again.key(8) == "b/1"
    assert again[8]["name"] == "n1" and again.where("label == 1").fingerprint == first.where("label == 1").fingerprint
    # Another version, other types, another set of files, a file that has changed: made anew.
    assert opened("2")[1] and opened("2")[1] == []
    assert opened("2", (6,))[1] and opened("2", (6,))[0][0]["x"].shape == (6,)
    calls.clear()
    assert len(hr.open(tmp_path / "a.rows")) == 7 and calls == ["a.rows"] and (tmp_path / "a.rows.hridx").exists()
    write_rows(tmp_path / "b.rows", 6, first=7)
    ds, made = opened("2", (6,))
    assert made == ["a.rows", "b.rows"] and len(ds) == 13
    # One that is damaged is made anew too.
    (kept,) = tmp_path.glob("a.rows#2-*.hridx")
    kept.write_bytes(kept.read_bytes()[:-9] + b"         ")
    assert opened("2", (6,))[1] == ["a.rows", "b.rows"] and opened("2", (6,))[1] == []


def test_a_kept_index_knows_the_files_beside(tmp_path: Path) -> None:
    (tmp_path / "a.data").write_bytes(bytes(range(30)))
    (tmp_path / "a.list").write_text("0 10\n10 20\n")
    calls: list[str] = []

    def parts(file: Any) -> Iterator[Any]:
        calls.append(file.path)
        for i, line in enumerate(file.read(0, file.size).decode().split("\n")[:-1]):
            offset, length = map(int, line.split())
            yield f"{i}", {"x": hr.Extent(offset, length, "a.data")}

    hr.register_format("parts", parts, extensions=".list", fields={"x": ("u8", (None,))}, version="1")
    assert hr.open(tmp_path / "a.list")[1]["x"].tolist() == list(range(10, 30))
    assert hr.open(tmp_path / "a.list")[1]["x"].tolist() == list(range(10, 30)) and len(calls) == 1
    (tmp_path / "a.data").write_bytes(bytes(range(50)))
    assert hr.open(tmp_path / "a.list")[0]["x"].tolist() == list(range(10)) and len(calls) == 2
    with pytest.raises(hr.UsageError, match="version is a text"):
        hr.register_format("parts", parts, extensions=".list", version=2)  # type: ignore[arg-type]
