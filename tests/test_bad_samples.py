# SPDX-License-Identifier: Apache-2.0
"""Damaged samples: named, or replaced so that ranks stay equal and the order stays a function."""

from __future__ import annotations

import pathlib
from typing import Any

import headrace as hr
import pytest
from support import COUNT, Data, Shape, crop, digest, indices_of, on_ranks, one_epoch, write_tar

BAD = {4: "cut", 17: "header", 30: "noise", 52: "empty"}  # sample: how it is damaged


def damage(jpeg: bytes, how: str) -> bytes:
    if how == "cut":
        return jpeg[: len(jpeg) // 2]
    if how == "header":
        return b"not a picture" + jpeg[13:]
    if how == "empty":
        return b""
    middle = len(jpeg) // 2  # an end mark in the middle of the scan
    return jpeg[:middle] + b"\xff\xd9" + jpeg[middle + 2 :]


@pytest.fixture(scope="module")
def bad(data: Data, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("bad")
    values = [damage(s.jpeg, BAD[i]) if i in BAD else s.jpeg for i, s in enumerate(data.samples)]
    for s, value in zip(data.samples, values):
        path = root / "folder" / f"{s.key}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value)
    members = [[(f"{s.key}.jpg", v), (f"{s.key}.cls", str(s.label).encode())] for s, v in zip(data.samples, values)]
    write_tar(root / "a.tar", [m for two in members[:25] for m in two])
    write_tar(root / "b.tar", [m for two in members[25:] for m in two])
    return {"folder": str(root / "folder"), "tar": str(root / "*.tar"), "root": root}


FIELDS = {"image": crop(), "label": hr.scalar("cls")}


def failure(source: str, sample: int) -> hr.DataError:
    with pytest.raises(hr.DataError) as caught:
        hr.open(source, FIELDS)[sample]
    return caught.value


@pytest.mark.parametrize("sample", BAD)
def test_the_error_names_file_sample_and_key_in_a_folder(bad: dict[str, Any], data: Data, sample: int) -> None:
    error = failure(bad["folder"], sample)
    assert error.file == f"{bad['folder']}/{data.samples[sample].key}.jpg"
    assert (error.sample, error.key) == (sample, data.samples[sample].key)
    assert error.offset is not None and error.offset >= 0
    for part in (error.file, f"sample {sample}", error.key, f"offset {error.offset}", "field 'image'"):
        assert part in str(error)


@pytest.mark.parametrize("sample", BAD)
def test_the_error_names_shard_offset_sample_and_key_in_a_tar(bad: dict[str, Any], data: Data, sample: int) -> None:
    import tarfile

    error = failure(bad["tar"], sample)
    shard = bad["root"] / ("a.tar" if sample < 25 else "b.tar")
    assert error.file == str(shard) and error.sample == sample and error.key == data.samples[sample].key
    with tarfile.open(shard) as tar:
        member = tar.getmember(f"{error.key}.jpg")
    assert member.offset_data <= error.offset <= member.offset_data + member.size


@pytest.mark.parametrize("where", ["folder", "tar"])
def test_raise_names_the_same_sample_for_any_threads(bad: dict[str, Any], where: str) -> None:
    texts = set()
    for threads in (1, 2, 7):
        with (
            hr.Loader(bad[where], 8, FIELDS, seed=1, threads=threads, output="numpy") as loader,
            pytest.raises(hr.DataError) as caught,
        ):
            list(loader.epoch(0))
        texts.add(str(caught.value))
    assert len(texts) == 1


def test_batches_before_the_bad_one_are_delivered(bad: dict[str, Any]) -> None:
    with hr.Loader(bad["tar"], 4, FIELDS, shuffle=False, output="numpy") as loader:
        it = loader.epoch(0)
        assert indices_of([next(it)]) == [0, 1, 2, 3]
        with pytest.raises(hr.DataError) as caught:
            next(it)
        assert caught.value.sample == 4
        assert loader.state_dict()["g"] == 4


def test_after_an_error_the_epoch_is_over_and_another_may_begin(bad: dict[str, Any]) -> None:
    with hr.Loader(bad["tar"], 4, FIELDS, shuffle=False, output="numpy") as loader:
        it = loader.epoch(0)
        next(it)
        with pytest.raises(hr.DataError):
            next(it)
        with pytest.raises(StopIteration):
            next(it)
        assert indices_of([next(loader.epoch(0))]) == [0, 1, 2, 3]


@pytest.mark.parametrize("shuffle", [False, "global", "pool"])
@pytest.mark.parametrize("where", ["folder", "tar"])
def test_replaced_batches_are_byte_identical_for_any_threads(bad: dict[str, Any], where: str, shuffle: object) -> None:
    digests = set()
    for threads in (1, 2, 7):
        with hr.Loader(
            bad[where], 5, FIELDS, seed=2, shuffle=shuffle, tail="keep", threads=threads, bad_samples="replace", output="numpy"
        ) as loader:
            digests.add((digest(loader.epoch(0)), digest(loader.epoch(1))))
    assert len(digests) == 1


@pytest.mark.parametrize("shuffle", [False, "global", "pool"])
def test_every_good_sample_comes_and_no_bad_one(bad: dict[str, Any], shuffle: object) -> None:
    with hr.Loader(bad["tar"], 5, FIELDS, shuffle=shuffle, tail="keep", bad_samples="replace", output="numpy") as loader:
        got = indices_of(loader.epoch(0))
    assert len(got) == COUNT
    assert set(got) == set(range(COUNT)) - set(BAD)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_stay_equal_when_samples_are_replaced(bad: dict[str, Any], ranks: int) -> None:
    runs = on_ranks(bad["tar"], Shape(ranks, 4), FIELDS, seed=2, bad_samples="replace", use=one_epoch())
    assert len({len(batches) for batches in runs}) == 1
    assert all(len(b.indices) == 4 for batches in runs for b in batches)


def test_a_replacement_does_not_depend_on_the_ranks(bad: dict[str, Any]) -> None:
    (one,) = on_ranks(bad["tar"], Shape(1, 8), FIELDS, shuffle=False, tail="keep", bad_samples="replace", use=one_epoch())
    two = on_ranks(bad["tar"], Shape(2, 4), FIELDS, shuffle=False, tail="keep", bad_samples="replace", use=one_epoch())
    assert [i for step in zip(*two) for i in indices_of(step)] == indices_of(one)


def test_the_quarantine_lists_each_bad_sample_with_file_offset_key_and_cause(bad: dict[str, Any], data: Data) -> None:
    with hr.Loader(bad["tar"], 5, FIELDS, seed=2, tail="keep", bad_samples="replace", output="numpy") as loader:
        list(loader.epoch(0))
        found = {q["sample"]: q for q in loader.quarantine}
        assert loader.stats()["bad_samples"] == loader.quarantine
    assert set(found) == set(BAD)
    for sample, q in found.items():
        assert q["key"] == data.samples[sample].key and q["file"].endswith("a.tar" if sample < 25 else "b.tar")
        assert q["offset"] > 0 and "field 'image'" in q["cause"]


@pytest.mark.parametrize("seed", range(6))
def test_the_quarantine_lists_each_bad_sample_once(bad: dict[str, Any], seed: int) -> None:
    with hr.Loader(
        bad["tar"], 5, FIELDS, seed=seed, shuffle="pool", tail="keep", bad_samples="replace", output="numpy"
    ) as loader:
        list(loader.epoch(0))
        assert sorted(q["sample"] for q in loader.quarantine) == sorted(BAD)


def test_nothing_is_quarantined_where_nothing_is_bad(data: Data) -> None:
    with hr.Loader(data.tar, 5, FIELDS, bad_samples="replace", output="numpy") as loader:
        list(loader.epoch(0))
        assert loader.quarantine == []


@pytest.mark.parametrize("seed", range(6))
def test_a_budget_as_large_as_the_damage_suffices(bad: dict[str, Any], seed: int) -> None:
    with hr.Loader(bad["tar"], 5, FIELDS, seed=seed, tail="keep", bad_samples=len(BAD), output="numpy") as loader:
        assert len(indices_of(loader.epoch(0))) == COUNT


@pytest.mark.parametrize("how", ["epochs", "epoch", "iter"])
def test_the_budget_is_of_an_epoch(bad: dict[str, Any], how: str) -> None:
    with hr.Loader(bad["tar"], 5, FIELDS, seed=2, tail="keep", bad_samples=len(BAD), output="numpy") as loader:
        if how == "epochs":
            counts = [len(indices_of(batches)) for _, batches in loader.epochs(4)]
        elif how == "epoch":
            counts = [len(indices_of(loader.epoch(e))) for e in range(4)]
        else:
            counts = [len(indices_of(loader)) for _ in range(4)]
    assert counts == [COUNT] * 4


def test_more_than_the_budget_is_an_error_that_names_it_and_the_last(bad: dict[str, Any]) -> None:
    for budget in (0, 1, 3):
        with (
            hr.Loader(bad["tar"], 5, FIELDS, seed=2, tail="keep", bad_samples=budget, output="numpy") as loader,
            pytest.raises(hr.DataError, match=rf"more than {budget} bad samples.*the last: .*\.tar, offset"),
        ):
            list(loader.epoch(0))


def test_where_all_is_bad_there_is_an_error_not_a_hang(data: Data, tmp_path: pathlib.Path) -> None:
    write_tar(tmp_path / "x.tar", [(f"{i}.jpg", data.samples[i].jpeg[:300]) for i in range(10)])
    with (
        hr.Loader(tmp_path / "x.tar", 2, {"image": crop()}, bad_samples="replace", output="numpy") as loader,
        pytest.raises(hr.DataError, match="no good sample is left"),
    ):
        list(loader.epoch(0))


@pytest.mark.parametrize("policy", ["raise", "replace"])
def test_a_missing_file_is_a_storage_error_and_never_replaced(data: Data, tmp_path: pathlib.Path, policy: str) -> None:
    import shutil

    shutil.copytree(data.folder, tmp_path / "f")
    ds = hr.open(tmp_path / "f")
    (tmp_path / "f/class2/img0003.jpg").unlink()
    with (
        hr.Loader(ds, 5, FIELDS, tail="keep", bad_samples=policy, output="numpy") as loader,
        pytest.raises(hr.StorageError, match=r"class2/img0003\.jpg"),
    ):
        list(loader.epoch(0))


@pytest.mark.parametrize("policy", ["raise", "replace"])
def test_a_shard_that_shrank_while_it_was_read_is_an_error(data: Data, tmp_path: pathlib.Path, policy: str) -> None:
    import os
    import shutil

    shutil.copy(data.root / "train-0000.tar", tmp_path / "x.tar")
    ds = hr.open(tmp_path / "x.tar")
    os.truncate(tmp_path / "x.tar", 5000)
    with (
        hr.Loader(ds, 5, FIELDS, tail="keep", bad_samples=policy, output="numpy") as loader,
        pytest.raises(hr.Error, match=r"x\.tar"),
    ):
        list(loader.epoch(0))


def test_a_sample_without_a_field_is_bad_data(data: Data, tmp_path: pathlib.Path) -> None:
    members = [(f"{i}.jpg", s.jpeg) for i, s in enumerate(data.samples[:6])]
    write_tar(tmp_path / "x.tar", [m for i, m in enumerate(members) for m in ([m, (f"{i}.cls", b"1")] if i != 2 else [m])])
    with (
        hr.Loader(tmp_path / "x.tar", 2, FIELDS, shuffle=False, output="numpy") as loader,
        pytest.raises(hr.DataError, match=r"sample 2, key '2'.*no field 'cls'"),
    ):
        list(loader.epoch(0))
    with hr.Loader(tmp_path / "x.tar", 2, FIELDS, shuffle=False, bad_samples="replace", output="numpy") as loader:
        assert set(indices_of(loader)) == {0, 1, 3, 4, 5}


def test_a_bad_first_sample_is_replaced_under_map_too(data: Data, tmp_path: pathlib.Path) -> None:
    write_tar(tmp_path / "x.tar", [(f"{i}.jpg", s.jpeg[: 300 if i == 0 else None]) for i, s in enumerate(data.samples[:6])])
    field = hr.image("jpg").resize((8, 8)).map(lambda a: a.mean())
    with hr.Loader(tmp_path / "x.tar", 2, {"x": field}, bad_samples="replace", output="numpy") as loader:
        assert set(indices_of(loader)) == {1, 2, 3, 4, 5}


def test_a_label_that_is_no_number_is_bad_data(data: Data, tmp_path: pathlib.Path) -> None:
    write_tar(tmp_path / "x.tar", [(f"{i}.cls", b"cat" if i == 3 else b" 7\n") for i in range(6)])
    ds = hr.open(tmp_path / "x.tar", {"label": hr.scalar("cls")})
    assert ds[0]["label"] == 7
    with pytest.raises(hr.DataError, match=r"sample 3, key '3'.*field 'label'.*'cat' is not an integer"):
        ds[3]


def test_text_that_is_no_utf8_is_bad_data(data: Data, tmp_path: pathlib.Path) -> None:
    write_tar(tmp_path / "x.tar", [(f"{i}.txt", b"caf\xe9" if i == 3 else b"tea") for i in range(6)])
    with pytest.raises(hr.DataError, match=r"sample 3.*field 't'.*UTF-8"):
        hr.open(tmp_path / "x.tar", {"t": hr.text("txt")})[3]
    with hr.Loader(tmp_path / "x.tar", 2, {"t": hr.text("txt")}, bad_samples="replace") as loader:
        assert all(t == "tea" for b in loader for t in b["t"])


@pytest.mark.parametrize("through", ["open", "loader"])
def test_json_that_does_not_parse_is_bad_data(data: Data, tmp_path: pathlib.Path, through: str) -> None:
    write_tar(tmp_path / "x.tar", [(f"{i}.json", b'{"a": ' if i == 3 else b"{}") for i in range(6)])
    with pytest.raises(hr.DataError, match=r"sample 3, key '3'.*field 'j'"):
        if through == "open":
            hr.open(tmp_path / "x.tar", {"j": hr.json("json")})[3]
        else:
            list(hr.Loader(tmp_path / "x.tar", 2, {"j": hr.json("json")}, shuffle=False))
    with hr.Loader(tmp_path / "x.tar", 2, {"j": hr.json("json")}, bad_samples="replace") as loader:
        assert all(j == {} for b in loader for j in b["j"])
