# SPDX-License-Identifier: Apache-2.0
"""What a Python user meets: tracebacks of their functions, types, texts of fields, one spelling on the command line."""

from __future__ import annotations

import copy
import pathlib
import pickle
import subprocess
import sys
import textwrap
import traceback
import warnings
from typing import Any

import headrace as hr
import numpy as np
import pytest
from support import SLOWDOWN, write_tar
from test_first_hour_files import dogs_and_cats, picture, put


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("python") / "x.tar"
    return write_tar(path, [m for i in range(40) for m in ((f"{i:03d}.txt", b"%d" % i), (f"{i:03d}.cls", b"%d" % i))])


# -- functions --------------------------------------------------------------------------------------


def fragile(value: int) -> float:
    return 1 / (value - 7)  # the line that a user looks for


def test_the_traceback_of_a_function_is_kept(tar: pathlib.Path) -> None:
    for run in (
        lambda: list(hr.Loader(tar, 8, {"x": hr.scalar("cls").map(fragile)}, output="numpy").epoch(0)),
        lambda: hr.open(tar, {"x": hr.scalar("cls").map(fragile)})[7],
    ):
        with pytest.raises(hr.UsageError, match="map\\(\\) raised ZeroDivisionError") as e:
            run()
        assert isinstance(e.value.__cause__, ZeroDivisionError)
        assert "the line that a user looks for" in "".join(traceback.format_exception(e.value))


def picky(value: int) -> int:
    if value % 20 == 3:
        raise hr.BadSample(f"no good: {value}")
    return value


def test_a_data_error_in_a_function_is_a_bad_sample(tar: pathlib.Path, capsys: Any) -> None:
    fields = {"x": hr.scalar("cls").map(picky)}
    loader = hr.Loader(tar, 8, fields, output="numpy", bad_samples="replace")
    seen = np.concatenate([b["x"] for b in loader.epoch(0)])
    assert len(seen) == 40 and not {3, 23} & set(seen.tolist())
    assert [q["sample"] for q in sorted(loader.quarantine, key=lambda q: q["sample"])] == [3, 23]
    with pytest.raises(hr.DataError, match="BadSample: no good: 3") as e:
        list(hr.Loader(tar, 8, fields, output="numpy", shuffle=False).epoch(0))
    assert isinstance(e.value.__cause__, hr.BadSample)
    assert issubclass(hr.BadSample, hr.DataError)


def test_results_that_are_no_array_are_refused_clearly(tar: pathlib.Path) -> None:
    import torch

    for result, words in (
        (np.zeros(2, complex), "map\\(\\) gave ndarray of complex128, which is no array"),
        (torch.zeros(2, dtype=torch.bfloat16), "bfloat16, which is no array.*\\.float\\(\\)"),
    ):
        with pytest.raises(hr.UsageError, match=words):
            hr.Loader(tar, 8, {"x": hr.scalar("cls").map(lambda v, r=result: r)})
    assert next(iter(hr.Loader(tar, 8, {"x": hr.scalar("cls").map(str)})))["x"][0].isdigit()


def test_a_function_may_make_texts_of_pictures(tmp_path: pathlib.Path) -> None:
    for i in range(4):
        put(tmp_path / f"{i}.jpg", picture(i))
    image = hr.image("jpg").resize((8, 8))
    batch = next(iter(hr.Loader(tmp_path, 4, {"x": image.map(lambda v, index: "a" * (index + 1))}, shuffle=False)))
    assert batch["x"] == ["a", "aa", "aaa", "aaaa"]


# -- types and texts --------------------------------------------------------------------------------

PROGRAM = """
    import headrace as hr
    from torch.utils.data import DataLoader, Dataset

    def train(folder: str) -> int:
        fields = {"image": hr.image("image").random_resized_crop(8).random_flip().normalize(hr.IMAGENET), "label": hr.scalar("cls")}
        ds = hr.open(folder, fields)
        torch_ds: Dataset[object] = ds
        parts = ds.split(train=0.9, val=0.1)
        loader = hr.Loader(parts["train"], 8, fields, shuffle="pool", tail="drop", output="torch", bad_samples="replace")
        seen = 0
        for epoch, batches in loader.epochs(2):
            steps: int = len(batches)
            for batch in batches:
                seen += int(batch["image"].shape[0]) + int(batch.valid.sum()) * 0 + steps * 0 + epoch * 0
        first = loader.epoch(2)
        print(len(first), len(loader), ds.classes[0], isinstance(ds, Dataset), len(DataLoader(torch_ds)))
        return seen

    if __name__ == "__main__":
        import sys

        print(train(sys.argv[1]))
"""


@pytest.mark.timeout(600 * SLOWDOWN)  # mypy looks through torch, once: what it found is kept
def test_a_users_program_type_checks_and_runs(tmp_path: pathlib.Path, repository: pathlib.Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        "mypy.ini",
        "program.py",
        "--cache-dir",
        str(repository / "build/mypy-of-users"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    wrong = program.read_text().replace('shuffle="pool"', 'shuffle="pol"').replace('tail="drop"', 'tail="dorp"')
    program.write_text(wrong)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "pol" in done.stdout and "dorp" in done.stdout
    program.write_text(textwrap.dedent(PROGRAM))
    root = dogs_and_cats(tmp_path / "data")
    done = subprocess.run([sys.executable, str(program), str(root)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith("cat True 40")


def test_a_data_set_is_one_of_pytorch_and_pickles(tar: pathlib.Path) -> None:
    from torch.utils.data import DataLoader, Dataset

    ds = hr.open(tar, {"x": hr.scalar("cls")})
    view = ds.where("cls < 10")
    for each in (ds, view, pickle.loads(pickle.dumps(view)), copy.deepcopy(ds)):
        assert isinstance(each, Dataset) and isinstance(each, hr.Dataset)
    assert [int(x) for b in DataLoader(view, batch_size=5, num_workers=2) for x in b["x"]] == list(range(10))


def test_the_mask_of_a_batch_goes_to_torch_without_a_warning(tar: pathlib.Path) -> None:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in hr.Loader(tar, 16, {"x": hr.scalar("cls")}, tail="pad").epoch(0):
            assert torch.from_numpy(batch.valid).dtype == torch.bool


def test_a_field_says_all_that_was_said_of_it() -> None:
    assert (
        repr(hr.image("jpg", mode="L").resize(8).map(len).list())
        == "hr.image('jpg', mode='L').resize(size=8, filter='bilinear').map(len).list()"
    )
    assert repr(hr.array("t2m", window=4, horizon=2)) == "hr.array('t2m', window=4, horizon=2)"
    assert repr(hr.array("x", dtype="f32", shape=(3,))) == "hr.array('x', dtype='f32', shape=(3,))" or "dtype='f32'" in repr(
        hr.array("x", dtype="f32")
    )
    assert repr(hr.image("jpg")) == "hr.image('jpg')" and repr(hr.key()) == "hr.key()"


# -- names survive a pack ---------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["tar", "lmdb", "arrow", "tfrecord", "npz", "parquet", "mds"])
def test_names_and_kinds_survive_a_pack(tmp_path: pathlib.Path, to: str) -> None:
    put(tmp_path / "t.csv", b"Label,Score,Text,plain\n3,0.5,Hi there ,1\n4,1.5,you,2\n")
    plain = hr.open(tmp_path / "t.csv")
    hr.pack(plain, tmp_path / "out", to=to, keep_order=True)
    packed = hr.open(tmp_path / "out")
    assert dict(packed.schema) == dict(plain.schema)
    assert [dict(s) for s in packed] == [dict(s) for s in plain]


@pytest.mark.parametrize("to", ["tar", "lmdb"])
def test_keys_with_dots_survive_a_pack(tmp_path: pathlib.Path, to: str) -> None:
    for name in ("cat.0.jpg", "cat.1.jpg", "cat-2.jpg", "a%2Eb.jpg", "v1.2/x.y.z.jpg"):
        put(tmp_path / "d" / name if "/" in name else tmp_path / "d" / "c" / name, picture(1))
    plain = hr.open(tmp_path / "d")
    hr.pack(plain, tmp_path / "out", to=to, keep_order=True)
    packed = hr.open(tmp_path / "out")
    assert sorted(packed["key"]) == sorted(plain["key"]) == ["c/a%2Eb", "c/cat-2", "c/cat.0", "c/cat.1", "v1.2/x.y.z"]
    assert {k: s["jpg"] for k, s in zip(packed["key"], packed)} == {k: s["jpg"] for k, s in zip(plain["key"], plain)}


@pytest.mark.parametrize("to", ["tar", "lmdb"])
def test_what_a_format_cannot_hold_is_found_before_anything_is_written(tmp_path: pathlib.Path, to: str) -> None:
    put(tmp_path / "t.csv", b"Label,label\n3,4\n")
    with pytest.raises(hr.Unsupported, match=r"without regard to capitals.*--drop"):
        hr.pack(tmp_path / "t.csv", tmp_path / "out", to=to)
    put(tmp_path / "u.csv", b"a/b,c\n3,4\n")
    with pytest.raises(hr.Unsupported, match="cannot hold a field named 'a/b'; pack with --drop a/b"):
        hr.pack(tmp_path / "u.csv", tmp_path / "out", to=to)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["tar", "lmdb"])
def test_a_key_twice_in_a_shard_is_found_before_anything_is_written(tmp_path: pathlib.Path, to: str) -> None:
    root = dogs_and_cats(tmp_path / "d")
    twice = hr.open(root).repeat(2)
    with pytest.raises(hr.Unsupported, match=r"samples 0 and 40 have the key 'cat/cat.0'.*a key once"):
        hr.pack(twice, tmp_path / "out", to=to, shards=1, keep_order=True)
    assert list((tmp_path / "out").glob("*")) == []
    result = hr.pack(twice, tmp_path / "out", to=to, shards=2, keep_order=True)  # a key in each
    assert result["samples"] == 80


# -- the command line -------------------------------------------------------------------------------


def headrace(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "headrace", *map(str, arguments)], capture_output=True, text=True)


def test_names_are_given_one_way_on_all_commands(tmp_path: pathlib.Path) -> None:
    import json

    np.savez(tmp_path / "x.npz", a=np.arange(6.0).reshape(3, 2), b=np.ones((3, 2)), c=np.zeros((3, 2)))
    import h5py

    with h5py.File(tmp_path / "x.h5", "w") as f:
        for name in "abc":
            f[name] = np.arange(6.0).reshape(3, 2)
    for spelling in (("--fields", "a,b"), ("--fields", "a", "--fields", "b")):
        done = headrace("stats", tmp_path / "x.h5", *spelling, "--json")
        assert done.returncode == 0, done.stderr
        assert list(json.loads(done.stdout)) == ["a", "b"]
        out = tmp_path / f"out{len(spelling)}"
        done = headrace("pack", tmp_path / "x.npz", out, *spelling)
        assert done.returncode == 0, done.stderr
        assert [n for n, _ in hr.open(out).schema] == ["a", "b"]
    done = headrace("stats", tmp_path / "x.h5", "--to", tmp_path / "s.json")
    assert done.returncode == 0 and list(json.loads((tmp_path / "s.json").read_text())) == ["a", "b", "c"]
