# SPDX-License-Identifier: Apache-2.0
"""Files that other tools wrote, read as those tools read them."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import pathlib
import pickle
import subprocess
import sys
import tarfile
from typing import Any

import headrace as hr
import pytest
import torchvision
import webdataset
from support import COUNT, Data, Sample, add_member, members_of, write_tar

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def read_by_webdataset(path: pathlib.Path | str) -> list[dict[str, Any]]:
    urls = [str(path)]
    return [
        {k: v for k, v in s.items() if k not in ("__url__", "__local_path__")}
        for s in webdataset.WebDataset(urls, shardshuffle=False, empty_check=False)
    ]


def read_by_headrace(path: pathlib.Path | str) -> list[dict[str, Any]]:
    ds = hr.open(path)
    out = []
    for i in range(len(ds)):
        sample: dict[str, Any] = {"__key__": ds.key(i)}
        for name, value in ds[i].items():
            sample[name] = value if isinstance(value, bytes) else str(value).encode()
        out.append(sample)
    return out


@pytest.mark.parametrize("format", FORMATS)
def test_tars_of_python_are_read_as_webdataset_reads_them(data: Data, tmp_path: pathlib.Path, format: str) -> None:
    path = write_tar(tmp_path / "x.tar", [m for s in data.samples for m in members_of(s)], FORMATS[format])
    assert read_by_headrace(path) == read_by_webdataset(path)


def test_tars_of_webdataset_are_read_as_webdataset_reads_them(data: Data, tmp_path: pathlib.Path) -> None:
    with webdataset.TarWriter(str(tmp_path / "x.tar")) as writer:
        for s in data.samples:
            writer.write(
                {"__key__": s.key, "jpg": s.jpeg, "cls": s.label, "json": {"k": s.key}, "txt": s.text, "seg.bin": b"\0" * s.label}
            )
    assert read_by_headrace(tmp_path / "x.tar") == read_by_webdataset(tmp_path / "x.tar")


def test_shards_of_webdataset_are_read_in_their_order(data: Data, tmp_path: pathlib.Path) -> None:
    with webdataset.ShardWriter(str(tmp_path / "w-%06d.tar"), maxcount=10, verbose=0) as writer:
        for s in data.samples:
            writer.write({"__key__": s.key, "jpg": s.jpeg, "cls": s.label})
    ds = hr.open(str(tmp_path / "w-{000000..000005}.tar"), {"label": hr.scalar("cls"), "jpg": hr.bytes("jpg"), "key": hr.key()})
    assert len(ds) == COUNT
    assert [(s["key"], s["label"], s["jpg"]) for s in ds] == [(s.key, s.label, s.jpeg) for s in data.samples]


@pytest.mark.parametrize("format", ["gnu", "pax"])
@pytest.mark.parametrize("length", [99, 100, 101, 155, 156, 255, 256, 300, 1000])
def test_long_names_are_read_as_python_reads_them(tmp_path: pathlib.Path, format: str, length: int) -> None:
    name = ("d" * 50 + "/") * ((length - 20) // 51) + "n"
    name += "x" * (length - len(name) - 4)
    path = write_tar(tmp_path / "x.tar", [(f"{name}.jpg", b"1"), (f"{name}.cls", b"2")], FORMATS[format])
    ds = hr.open(path)
    assert ds.key(0) == name and ds[0] == {"jpg": b"1", "cls": 2}


@pytest.mark.parametrize("format", FORMATS)
def test_names_that_are_not_ascii_are_read(tmp_path: pathlib.Path, format: str) -> None:
    path = write_tar(tmp_path / "x.tar", [("Zürich/日本 🎉.cls", b"1"), ("a b\tc.cls", b"2")], FORMATS[format])
    assert [hr.open(path).key(i) for i in range(2)] == ["Zürich/日本 🎉", "a b\tc"]


def test_members_that_are_no_files_are_passed_over(tmp_path: pathlib.Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for kind, name in ((tarfile.DIRTYPE, "a"), (tarfile.SYMTYPE, "a/l.cls"), (tarfile.FIFOTYPE, "a/f.cls")):
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = "elsewhere" if kind == tarfile.SYMTYPE else ""
            tar.addfile(info)
        add_member(tar, "a/1.cls", b"1")
        add_member(tar, "README", b"no extension")
        add_member(tar, "a/2.cls", b"2")
    assert [hr.open(tmp_path / "x.tar").key(i) for i in range(2)] == ["a/1", "a/2"]


def test_gnu_tar_writes_what_we_read(data: Data, tmp_path: pathlib.Path) -> None:
    subprocess.run(["tar", "cf", str(tmp_path / "x.tar"), "-C", str(data.folder), "--sort=name", "class0", "class2"], check=True)
    ds = hr.open(tmp_path / "x.tar")
    want = [s for s in data.samples if s.label in (0, 2)]
    assert [ds.key(i) for i in range(len(ds))] == [s.key for s in want]
    assert [s["jpg"] for s in ds] == [s.jpeg for s in want]


def test_golden_tars_are_read_as_python_reads_them(tmp_path: pathlib.Path, repository: pathlib.Path) -> None:
    script = repository / "tests/make_golden_tars.py"
    if not script.exists():
        pytest.skip("no tests/make_golden_tars.py")
    subprocess.run([sys.executable, str(script), "write", str(tmp_path)], check=True, capture_output=True)
    for path in sorted(tmp_path.glob("*.tar")):
        if path.name.startswith("huge"):
            continue  # read by src/format/golden_test.cc
        got = {}
        for field, _ in hr.open(path).schema:
            ds = hr.open(path, {field: hr.bytes(field)})
            for i in range(len(ds)):
                with contextlib.suppress(hr.DataError):  # a sample without this field
                    got[f"{ds.key(i)}.{field}"] = ds[i][field]
        with tarfile.open(path) as tar:
            for member in tar:
                base = member.name.rsplit("/", 1)[-1]
                key, _, extension = base.partition(".")
                if not member.isreg() or not key or not extension:
                    continue
                name = member.name[: len(member.name) - len(base)] + f"{key}.{extension.lower()}"
                want = tar.extractfile(member).read()  # type: ignore[union-attr]
                assert got.pop(name) == want, (path.name, name)
        assert not got, path.name


# -- class folders and lists -------------------------------------------------------------------------


def test_class_folders_are_numbered_as_torchvision_numbers_them(data: Data, tmp_path: pathlib.Path) -> None:
    for name in ("zebra", "Ant", "10", "9", "_x"):
        (tmp_path / name).mkdir()
        for i in (2, 10, 1):
            (tmp_path / name / f"p{i}.jpg").write_bytes(data.samples[i].jpeg)
    theirs = torchvision.datasets.ImageFolder(str(tmp_path))
    ours = hr.open(tmp_path)
    assert [(f"{tmp_path}/{ours.key(i)}.jpg", ours[i]["cls"]) for i in range(len(ours))] == theirs.samples


def test_folders_of_different_classes_are_never_numbered_apart(data: Data, tmp_path: pathlib.Path) -> None:
    """Refused, or numbered as one: never two meanings of one number."""
    for part, names in (("one", ("cat", "dog")), ("two", ("dog", "emu"))):
        for name in names:
            (tmp_path / part / name).mkdir(parents=True)
            (tmp_path / part / name / "p.jpg").write_bytes(data.samples[0].jpeg)
    try:
        ds = hr.open([tmp_path / "one", tmp_path / "two"])
    except hr.UsageError:
        return
    meanings = {(ds.key(i).split("/")[-2], ds[i]["cls"]) for i in range(len(ds))}
    assert len(meanings) == len({name for name, _ in meanings}) == len({number for _, number in meanings}) == 3


def test_folders_of_the_same_classes_may_be_joined(data: Data, tmp_path: pathlib.Path) -> None:
    for part in ("one", "two"):
        for name in ("cat", "dog"):
            (tmp_path / part / name).mkdir(parents=True)
            (tmp_path / part / name / f"{part}.jpg").write_bytes(data.samples[0].jpeg)
    assert [s["cls"] for s in hr.open([tmp_path / "one", tmp_path / "two"])] == [0, 1, 0, 1]


def test_extensions_of_folders_are_lower_case(data: Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "c").mkdir()
    for i, extension in enumerate(("JPEG", "jpeg", "jpg", "JPG")):
        (tmp_path / "c" / f"p{i}.{extension}").write_bytes(data.samples[i].jpeg)
    ds = hr.open(tmp_path)
    assert [s["jpg"] for s in ds] == [s.jpeg for s in data.samples[:4]]


def test_a_flat_folder_has_no_labels(data: Data, tmp_path: pathlib.Path) -> None:
    for i in range(3):
        (tmp_path / f"p{i}.jpg").write_bytes(data.samples[i].jpeg)
        (tmp_path / f"p{i}.txt").write_text(f"caption {i}")
    ds = hr.open(tmp_path)
    assert list(ds) == [{"jpg": data.samples[i].jpeg, "txt": f"caption {i}"} for i in range(3)]


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_every_protocol_are_read(data: Data, tmp_path: pathlib.Path, protocol: int) -> None:
    labels = {str(data.folder / f"{s.key}.jpg"): s.label for s in data.samples}
    (tmp_path / "index.pkl").write_bytes(pickle.dumps(labels, protocol))
    ds = hr.open(tmp_path / "index.pkl")
    assert [s["cls"] for s in ds] == list(labels.values()) and ds[9]["jpg"] == data.samples[9].jpeg


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickles_may_hold_pairs_paths_texts_and_floats(data: Data, tmp_path: pathlib.Path, protocol: int) -> None:
    paths = [f"{s.key}.jpg" for s in data.samples[:4]]

    def open_of(value: Any) -> list[dict[str, Any]]:
        (tmp_path / "i.pkl").write_bytes(pickle.dumps(value, protocol))
        return [{k: v for k, v in s.items() if k != "jpg"} for s in hr.open(tmp_path / "i.pkl", root=str(data.folder))]

    assert open_of([(p, i) for i, p in enumerate(paths)]) == [{"cls": i} for i in range(4)]
    assert open_of(paths) == [{}] * 4
    assert open_of(dict.fromkeys(paths, "cat")) == [{"cls": "cat"}] * 4
    assert open_of(dict.fromkeys(paths, 0.25)) == [{"cls": 0.25}] * 4
    assert open_of({p: {"cls": i, "weight": 0.5} for i, p in enumerate(paths)}) == [{"cls": i, "weight": 0.5} for i in range(4)]
    assert open_of(dict.fromkeys(paths, -(2**40))) == [{"cls": -(2**40)}] * 4
    assert open_of(dict.fromkeys(paths, True)) == [{"cls": 1}] * 4


def test_pickles_written_by_numpy_users_are_refused_by_name_not_executed(data: Data, tmp_path: pathlib.Path) -> None:
    import numpy as np

    (tmp_path / "i.pkl").write_bytes(pickle.dumps({f"{s.key}.jpg": np.int64(s.label) for s in data.samples}))
    with pytest.raises(hr.DataError, match=r"numpy.*nothing was executed"):
        hr.open(tmp_path / "i.pkl", root=str(data.folder))


def rows(samples: list[Sample]) -> list[list[Any]]:
    return [[f"{s.key}.jpg", s.label, s.label / 4, s.text, f'quote " comma , {s.key}'] for s in samples]


@pytest.mark.parametrize(("suffix", "dialect"), [("csv", "excel"), ("tsv", "excel-tab"), ("csv", "unix")])
def test_csv_of_python_is_read_as_python_reads_it(data: Data, tmp_path: pathlib.Path, suffix: str, dialect: str) -> None:
    path = tmp_path / f"i.{suffix}"
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, dialect=dialect)
        writer.writerow(["path", "cls", "share", "caption", "odd"])
        writer.writerows(rows(data.samples))
    ds = hr.open(path, root=str(data.folder))
    assert dict(ds.schema) == {"jpg": "jpeg", "cls": "int", "share": "float", "caption": "text", "odd": "text"}
    for s, row in zip(ds, rows(data.samples)):
        assert [s["cls"], s["share"], s["caption"], s["odd"]] == row[1:]


def test_a_csv_without_a_header_is_not_one_sample_short(data: Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "i.csv").write_text("".join(f"{s.key}.jpg,{s.label}\n" for s in data.samples))
    ds = hr.open(tmp_path / "i.csv", root=data.folder)
    assert [(s["jpg"], s["cls"]) for s in ds] == [(s.jpeg, s.label) for s in data.samples]


@pytest.mark.parametrize("name", ["path", "file", "filename", "image"])
def test_a_csv_names_its_paths_in_any_column(data: Data, tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "i.csv").write_text(
        f"id,{name},cls\n" + "".join(f"{i},{s.key}.jpg,{s.label}\n" for i, s in enumerate(data.samples))
    )
    ds = hr.open(tmp_path / "i.csv", root=data.folder)
    assert [(s["id"], s["cls"]) for s in ds] == [(i, s.label) for i, s in enumerate(data.samples)]


def test_csv_with_line_breaks_in_cells_is_read(data: Data, tmp_path: pathlib.Path) -> None:
    with (tmp_path / "i.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerows([["path", "t"], ["a.jpg", "one\ntwo"], ["b.jpg", "three\r\nfour"], ["c.jpg", ""]])
    for i in "abc":
        (tmp_path / f"{i}.jpg").write_bytes(data.samples[0].jpeg)
    ds = hr.open(tmp_path / "i.csv")
    assert [s.get("t") for s in ds] == ["one\ntwo", "three\r\nfour", None]


def test_json_lines_of_python_are_read_as_python_reads_them(data: Data, tmp_path: pathlib.Path) -> None:
    values: list[dict[str, Any]] = [
        {"t": s.text + '\\ "\n\t\x01 é 𝄞', "n": s.label, "f": s.label + 0.25, "b": s.label > 1, "j": {"a": [1, "x]}", None]}}
        for s in data.samples
    ]
    with (tmp_path / "i.jsonl").open("w") as out:
        for i, (s, v) in enumerate(zip(data.samples, values)):
            out.write(json.dumps({"path": f"{s.key}.jpg", **v}, ensure_ascii=i % 2 == 0) + "\n")
    for s, v in zip(hr.open(tmp_path / "i.jsonl", root=str(data.folder)), values):
        assert (s["t"], s["n"], s["f"], s["b"]) == (v["t"], v["n"], v["f"], int(v["b"]))
        assert json.loads(s["j"]) == v["j"]


def test_a_text_list_may_have_labels_or_none(data: Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(f"{s.key}.jpg" for s in data.samples) + "\n")
    (tmp_path / "b.txt").write_text("\r\n".join(f"{s.key}.jpg\t{s.label}" for s in data.samples))
    assert [set(s) for s in hr.open(tmp_path / "a.txt", root=str(data.folder))] == [{"jpg"}] * COUNT
    assert [s["cls"] for s in hr.open(tmp_path / "b.txt", root=str(data.folder))] == [s.label for s in data.samples]


def test_paths_with_spaces_and_absolute_paths_are_read(data: Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "my picture.jpg").write_bytes(data.samples[0].jpeg)
    (tmp_path / "a.txt").write_text(f"my picture.jpg 7\n{data.folder}/{data.samples[1].key}.jpg 8\n")
    assert [(s["jpg"], s["cls"]) for s in hr.open(tmp_path / "a.txt")] == [(data.samples[0].jpeg, 7), (data.samples[1].jpeg, 8)]


def test_torchvision_imagefolder_and_headrace_see_the_same_pictures(data: Data) -> None:
    from PIL import Image

    theirs = torchvision.datasets.ImageFolder(str(data.folder), loader=lambda p: pathlib.Path(p).read_bytes())
    ours = hr.open(data.folder)
    assert [(s["jpg"], s["cls"]) for s in ours] == list(theirs)
    assert Image.open(io.BytesIO(ours[0]["jpg"])).size == data.samples[0].size
