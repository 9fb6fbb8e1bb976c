# SPDX-License-Identifier: Apache-2.0
"""hr.open: samples by number, views, pickling, DataLoader."""

from __future__ import annotations

import io
import multiprocessing
import pathlib
import pickle
import shutil
import subprocess
import sys
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch
from PIL import Image
from support import COUNT, NUMBERS, Data, indices_of, members_of, write_tar

FIELDS = {"image": hr.image("jpg").resize((16, 16)), "label": hr.scalar("cls"), "key": hr.key()}


@pytest.mark.parametrize("where", ["folder", "tar", "pickle", "csv", "list", "jsonl"])
def test_a_data_set_has_its_length_and_samples_in_the_order_of_the_files(data: Data, where: str) -> None:
    ds = hr.open(data.everywhere[where])
    assert len(ds) == COUNT
    assert [ds.key(i) for i in range(COUNT)] == [s.key for s in data.samples]
    for i in (0, 20, COUNT - 1):
        assert ds[i]["jpg"] == data.samples[i].jpeg and ds[i]["cls"] == data.samples[i].label


@pytest.mark.parametrize("where", ["folder", "tar"])
def test_raw_values_come_as_they_lie(data: Data, where: str) -> None:
    sample = hr.open(data.everywhere[where])[3]
    assert type(sample["jpg"]) is bytes and type(sample["cls"]) is int
    if where == "tar":
        assert type(sample["txt"]) is str and sample["txt"] == data.samples[3].text


def test_the_schema_says_what_there_is(data: Data) -> None:
    assert hr.open(data.tar).schema == [("jpg", "jpeg"), ("cls", "int"), ("json", "json"), ("txt", "text")]
    assert dict(hr.open(data.folder).schema) == {"jpg": "jpeg", "cls": "int"}
    assert dict(hr.open(data.jsonl).schema) == {"jpg": "jpeg", "cls": "int", "caption": "text", "size": "json"}


def test_the_repr_of_a_field_is_what_was_written() -> None:
    fields = [
        hr.image("jpg"),
        hr.scalar("cls"),
        hr.tokens("ids"),
        hr.text("txt", many=True),
        hr.key(),
        hr.bytes("raw"),
        hr.json("json"),
    ]
    assert [repr(f) for f in fields] == [
        *("hr.image('jpg')", "hr.scalar('cls')", "hr.tokens('ids')", "hr.text('txt', many=True)"),
        *("hr.key()", "hr.bytes('raw')", "hr.json('json')"),
    ]


def test_the_repr_tells_what_it_is(data: Data) -> None:
    assert (
        repr(hr.open(data.tar)) == "<headrace data set: 53 samples, tar, fields jpg (jpeg), cls (int), json (json), txt (text)>"
    )


def test_negative_numbers_count_from_the_end(data: Data) -> None:
    ds = hr.open(data.tar)
    assert ds[-1] == ds[COUNT - 1] and ds[-COUNT] == ds[0]


@pytest.mark.parametrize("i", [COUNT, -COUNT - 1, 10**15])
def test_out_of_range_is_an_index_error(data: Data, i: int) -> None:
    ds = hr.open(data.tar)
    with pytest.raises(IndexError):
        ds[i]
    with pytest.raises(IndexError):
        ds[[0, i]]


def test_a_for_loop_ends(data: Data) -> None:
    assert sum(1 for _ in hr.open(data.tar)) == COUNT


def test_fields_make_arrays_scalars_and_text(data: Data) -> None:
    sample = hr.open(data.tar, FIELDS)[4]
    assert sample["image"].shape == (3, 16, 16) and sample["image"].dtype == np.uint8
    assert type(sample["label"]) is int and type(sample["key"]) is str


def test_an_nhwc_picture_is_hwc(data: Data) -> None:
    sample = hr.open(data.tar, {"image": hr.image("jpg").layout("NHWC")})[4]
    want = np.asarray(Image.open(io.BytesIO(data.samples[4].jpeg)))
    assert np.array_equal(sample["image"], want)


def test_a_sample_equals_the_loaders_in_epoch_0_of_seed_0(data: Data) -> None:
    fields = {"image": hr.image("jpg").random_resized_crop(16).random_flip()}
    ds = hr.open(data.tar, fields)
    with hr.Loader(ds, 9, shuffle=False, output="numpy") as loader:
        got = np.concatenate([b["image"] for b in loader.epoch(0)])
    assert all(np.array_equal(ds[i]["image"], got[i]) for i in range(COUNT))


# -- views -------------------------------------------------------------------------------------------


def keys(ds: hr.Dataset) -> list[str]:
    return [ds.key(i) for i in range(len(ds))]


@pytest.mark.parametrize(
    "cut",
    [
        slice(2, 8),
        slice(None),
        slice(None, None, 3),
        slice(None, None, -1),
        slice(-5, None),
        slice(40, 10, -7),
        slice(50, 99),
        slice(5, 5),
    ],
)
def test_a_slice_is_a_view(data: Data, cut: slice) -> None:
    ds = hr.open(data.tar)
    assert keys(ds[cut]) == keys(ds)[cut]


def test_a_list_is_a_view_in_its_order_and_may_repeat(data: Data) -> None:
    ds = hr.open(data.tar)
    assert keys(ds[[3, 1, 4, 1, -1]]) == [keys(ds)[i] for i in (3, 1, 4, 1, -1)]


@pytest.mark.parametrize("make", [np.array, torch.tensor, lambda v: np.array(v, np.int32)], ids=["numpy", "torch", "int32"])
def test_an_array_of_numbers_is_a_view(data: Data, make: Any) -> None:
    ds = hr.open(data.tar)
    assert keys(ds[make([3, 1, 4])]) == [keys(ds)[i] for i in (3, 1, 4)]


def test_a_mask_is_a_view(data: Data) -> None:
    ds = hr.open(data.tar)
    assert keys(ds[np.arange(COUNT) % 5 == 0]) == keys(ds)[::5]


@pytest.mark.parametrize("scalar", [np.int64(7), np.uint8(7), torch.tensor(7)], ids=["int64", "uint8", "tensor"])
def test_an_integer_of_another_library_is_a_number(data: Data, scalar: Any) -> None:
    ds = hr.open(data.tar)
    assert ds[scalar] == ds[7]


@pytest.mark.parametrize(
    "i",
    [
        None,
        1.0,
        True,
        {},
        "12",
        "abc",
        [1.5],
        [True, False],
        ["1"],
    ],
    ids=repr,
)
def test_what_is_no_number_is_a_usage_error(data: Data, i: Any) -> None:
    with pytest.raises(hr.UsageError):
        hr.open(data.tar)[i]


def test_a_view_of_a_view_is_a_view(data: Data) -> None:
    ds = hr.open(data.tar)
    assert keys(ds[5:50][::3][[1, 0, -1]]) == [keys(ds)[5:50][::3][i] for i in (1, 0, -1)]


def test_a_view_keeps_its_fields(data: Data) -> None:
    view = hr.open(data.tar, FIELDS)[10:20]
    assert view[0]["key"] == data.samples[10].key and view[0]["image"].shape == (3, 16, 16)


def test_a_loader_of_a_view_gives_the_views_samples_exactly_once(data: Data) -> None:
    view = hr.open(data.tar)[::2]
    for shuffle in (False, "global", "pool"):
        with hr.Loader(view, 4, {"k": hr.key()}, tail="keep", shuffle=shuffle) as loader:
            batches = list(loader.epoch(0))
        assert sorted(indices_of(batches)) == list(range(len(view)))
        assert sorted(k for b in batches for k in b["k"]) == sorted(s.key for s in data.samples[::2])


def test_indices_are_the_numbers_of_the_view(data: Data) -> None:
    view = hr.open(data.tar)[30:10:-1]
    with hr.Loader(view, 4, {"k": hr.key()}, tail="keep") as loader:
        for b in loader:
            assert b["k"] == [view.key(int(i)) for i in b.indices]


def test_views_have_fingerprints_of_their_own(data: Data) -> None:
    ds = hr.open(data.tar)
    prints = {ds.fingerprint, ds[:5].fingerprint, ds[1:6].fingerprint, ds[::-1].fingerprint}
    assert len(prints) == 4
    assert ds[0:5].fingerprint == ds[[0, 1, 2, 3, 4]].fingerprint == hr.open(data.tar)[:5].fingerprint


def test_an_empty_view_has_no_samples(data: Data) -> None:
    view = hr.open(data.tar)[:0]
    assert len(view) == 0 and list(view) == []


# -- fingerprints, indexes ---------------------------------------------------------------------------


def test_moving_the_data_keeps_the_fingerprint(data: Data, tmp_path: pathlib.Path) -> None:
    shutil.copytree(data.folder, tmp_path / "a")
    assert hr.open(tmp_path / "a").fingerprint == hr.open(data.folder).fingerprint
    for shard in data.root.glob("train-*.tar"):
        shutil.copy(shard, tmp_path)
    assert hr.open(f"{tmp_path}/train-*.tar").fingerprint == hr.open(data.tar).fingerprint


def test_other_names_are_another_fingerprint(data: Data, tmp_path: pathlib.Path) -> None:
    shutil.copytree(data.folder, tmp_path / "a")
    (tmp_path / "a/class1/img0000.jpg").rename(tmp_path / "a/class1/other.jpg")
    assert hr.open(tmp_path / "a").fingerprint != hr.open(data.folder).fingerprint


def test_a_changed_folder_is_seen(data: Data, tmp_path: pathlib.Path) -> None:
    shutil.copytree(data.folder, tmp_path / "a")
    before = hr.open(tmp_path / "a")
    (tmp_path / "a/class1/new.jpg").write_bytes(data.samples[0].jpeg)
    (tmp_path / "a/class2/img0003.jpg").unlink()
    after = hr.open(tmp_path / "a")
    assert len(before) == len(after) == COUNT and "class1/new" in keys(after) and "class2/img0003" not in keys(after)


def test_a_changed_shard_is_seen(data: Data, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.tar"
    write_tar(path, [m for s in data.samples[:4] for m in members_of(s)])
    assert len(hr.open(path)) == 4
    write_tar(path, [m for s in data.samples[:7] for m in members_of(s)])
    assert len(hr.open(path)) == 7


def test_the_index_lies_in_one_file_beside_the_shard(data: Data) -> None:
    hr.open(data.tar)
    shard = data.root / "train-0000.tar"
    assert [p.name for p in sorted(data.root.glob("train-0000.tar*"))] == [shard.name, shard.name + ".hridx"]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
@pytest.mark.parametrize("how", ["flip", "cut"])
def test_a_damaged_sidecar_is_built_again(data: Data, tmp_path: pathlib.Path, how: str, share: float) -> None:
    shutil.copy(data.root / "train-0000.tar", tmp_path / "a.tar")
    want = keys(hr.open(tmp_path / "a.tar"))
    sidecar = tmp_path / "a.tar.hridx"
    value = bytearray(sidecar.read_bytes())
    at = int(share * len(value))
    value[at] ^= 0x40
    sidecar.write_bytes(value if how == "flip" else value[:at])
    assert keys(hr.open(tmp_path / "a.tar")) == want


@pytest.mark.parametrize("where", ["folder", "tar", "pickle"])
@pytest.mark.parametrize("as_path", [False, True])
def test_an_index_built_ahead_gives_the_same_data_set(data: Data, tmp_path: pathlib.Path, where: str, as_path: bool) -> None:
    source = data.everywhere[where]
    hr.build_index(source, tmp_path / "index")
    index: Any = tmp_path / "index" if as_path else str(tmp_path / "index")
    ds = hr.open(source, index=index)
    assert ds.fingerprint == hr.open(source).fingerprint
    assert keys(ds) == [s.key for s in data.samples] and ds[33]["jpg"] == data.samples[33].jpeg
    with hr.Loader(source, 5, {"k": hr.key()}, index=index, tail="keep") as loader:
        assert sorted(indices_of(loader)) == list(range(COUNT))


def test_an_index_of_other_data_is_refused(data: Data, numbers: hr.Dataset, tmp_path: pathlib.Path) -> None:
    hr.build_index(data.tar, str(tmp_path / "index"))
    with pytest.raises(hr.UsageError, match="another data set"):
        hr.open(data.folder.parent / "train-0001.tar", index=str(tmp_path / "index"))


def test_building_an_index_tells_its_progress(data: Data, tmp_path: pathlib.Path) -> None:
    for shard in data.root.glob("train-*.tar"):
        shutil.copy(shard, tmp_path)
    told: list[tuple[int, ...]] = []
    hr.build_index(f"{tmp_path}/train-*.tar", str(tmp_path / "index"), progress=lambda *n: told.append(n))
    assert told[-1] == (4, 4, COUNT)


def test_an_exception_in_progress_ends_the_building(data: Data, tmp_path: pathlib.Path) -> None:
    for shard in data.root.glob("train-*.tar"):
        shutil.copy(shard, tmp_path)

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hr.build_index(f"{tmp_path}/train-*.tar", str(tmp_path / "index"), progress=stop)


def test_where_no_index_can_lie_beside_the_data_it_is_kept_elsewhere_and_said(
    data: Data, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, say_again: None, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copy(data.root / "train-0000.tar", tmp_path / "a.tar")
    (tmp_path / "a.tar.hridx").mkdir()  # nothing can be written there, not even by root
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    assert len(hr.open(tmp_path / "a.tar")) == 20
    said = caplog.text
    caplog.clear()
    assert "cannot lie beside the data" in said and str(tmp_path / "cache") in said
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert len(hr.open(tmp_path / "a.tar")) == 20
    assert caplog.text == ""


def test_globs_and_lists_and_paths_name_the_same_data(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    want = hr.open(data.tar).fingerprint
    shards = sorted(data.root.glob("train-*.tar"))
    assert hr.open(str(data.root / "train-*.tar")).fingerprint == want
    assert hr.open(shards).fingerprint == want
    assert hr.open([str(s) for s in shards]).fingerprint == want
    assert hr.open(f"file://{data.root}/train-*.tar").fingerprint == want
    monkeypatch.chdir(data.root)
    assert hr.open("train-{0000..0003}.tar").fingerprint == want
    assert hr.open("./train-000?.tar").fingerprint == want


@pytest.mark.parametrize("where", ["folder", "train-0000.tar"])
def test_a_data_set_survives_a_change_of_folder(data: Data, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.chdir(data.root)
    ds = hr.open(where)
    copy = pickle.dumps(ds)
    with hr.Loader(where, 4, {"jpg": hr.bytes("jpg")}) as loader:
        monkeypatch.chdir("/")
        assert ds[3]["jpg"] == pickle.loads(copy)[3]["jpg"] == data.samples[3].jpeg
        assert len(next(iter(loader))["jpg"]) == 4


def test_shards_come_in_the_order_they_are_listed(data: Data) -> None:
    shards = sorted(data.root.glob("train-*.tar"))
    ds = hr.open([shards[3], shards[0]])
    assert ds.key(0) == data.samples[29].key and ds.key(24) == data.samples[0].key


def test_the_paths_of_a_list_are_relative_to_a_root(data: Data, tmp_path: pathlib.Path) -> None:
    shutil.copy(data.pickle, tmp_path / "elsewhere.pkl")
    assert len(hr.open(tmp_path / "elsewhere.pkl", root=str(data.folder))) == COUNT
    assert hr.open(tmp_path / "elsewhere.pkl", root=data.folder)[5]["jpg"] == data.samples[5].jpeg


# -- other processes ---------------------------------------------------------------------------------


def test_a_data_set_survives_pickling(data: Data) -> None:
    ds = hr.open(data.tar, FIELDS)[::-2][3:9]
    again = pickle.loads(pickle.dumps(ds))
    assert len(again) == len(ds) == 6 and again.fingerprint == ds.fingerprint
    assert all(np.array_equal(a["image"], b["image"]) and a["key"] == b["key"] for a, b in zip(ds, again))


def test_a_pickled_data_set_is_small(numbers: hr.Dataset) -> None:
    assert len(pickle.dumps(numbers[10:200])) < 1000


def double(v: int) -> int:
    return 2 * v


def test_a_data_set_with_a_function_survives_pickling(data: Data) -> None:
    ds = pickle.loads(pickle.dumps(hr.open(data.tar, {"twice": hr.scalar("cls").map(double)})))
    assert ds[-1]["twice"] == 2 * data.samples[-1].label


def labels(batches: Any) -> list[int]:
    return [int(v) for b in batches for v in b["label"]]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning", "ignore:os.fork:RuntimeWarning")
def test_a_data_set_works_under_torchs_dataloader(data: Data, workers: int) -> None:
    ds = hr.open(data.tar, {"image": hr.image("jpg").resize((16, 16)), "label": hr.scalar("cls")})
    context = multiprocessing.get_context("fork") if workers else None
    loader = torch.utils.data.DataLoader(ds, batch_size=8, num_workers=workers, multiprocessing_context=context)
    batches = list(loader)
    assert labels(batches) == [s.label for s in data.samples]
    assert batches[0]["image"].shape == (8, 3, 16, 16) and batches[0]["image"].dtype == torch.uint8


@pytest.mark.timeout(120)
def test_a_data_set_works_under_torchs_dataloader_with_spawned_workers(data: Data) -> None:
    ds = hr.open(data.tar, {"image": hr.image("jpg").resize((16, 16)), "label": hr.scalar("cls")})[:24]
    loader = torch.utils.data.DataLoader(ds, batch_size=8, num_workers=2, multiprocessing_context="spawn")
    assert labels(loader) == [s.label for s in data.samples[:24]]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning", "ignore:os.fork:RuntimeWarning")
def test_raw_samples_work_under_torchs_dataloader(data: Data, workers: int) -> None:
    ds = hr.open(data.folder)
    loader = torch.utils.data.DataLoader(
        ds, batch_size=4, num_workers=workers, collate_fn=list, multiprocessing_context="fork" if workers else None
    )
    got = [s for batch in loader for s in batch]
    assert [s["jpg"] for s in got] == [s.jpeg for s in data.samples]


def test_torchs_samplers_and_subsets_work(data: Data) -> None:
    ds = hr.open(data.tar, {"label": hr.scalar("cls")})
    subset = torch.utils.data.Subset(ds, range(10, 20))
    loader = torch.utils.data.DataLoader(subset, batch_size=5, sampler=torch.utils.data.RandomSampler(subset))
    assert sorted(labels(loader)) == sorted(s.label for s in data.samples[10:20])


def test_many_threads_may_read_one_data_set(data: Data) -> None:
    from concurrent.futures import ThreadPoolExecutor

    ds = hr.open(data.tar)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: ds[i]["jpg"], list(range(COUNT)) * 3))
    assert got == [s.jpeg for s in data.samples] * 3


def test_formats_tell_what_this_build_reads() -> None:
    names = {f["name"]: f for f in hr.formats()}
    assert names["tar"]["write"] and {"tar", "files"} <= set(names)


def test_doctor_finds_this_installation_usable() -> None:
    found = {what: fine for what, fine, _ in hr.doctor()}
    assert found["numpy"] and found["compute"] and found["memory"]


def test_numbers_has_its_shards(numbers: hr.Dataset) -> None:
    """The data set that the tests of orders stand on: uneven shards, one of them empty."""
    sizes = [samples for _, _, samples in numbers._source.shards]
    assert sum(sizes) == NUMBERS and 0 in sizes and len(sizes) == 23 and max(sizes) > 2 * min(s for s in sizes if s)


def test_records_are_opened_without_what_reads_arrays_of_xarray(tmp_path: pathlib.Path) -> None:
    """It takes longer to import than a shard takes to open."""
    write_tar(tmp_path / "a.tar", [("0.txt", b"x")])
    code = "import sys, headrace as hr; hr.open(sys.argv[1]); assert 'headrace.arrays.xarray' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.tar")], check=True, timeout=60)
