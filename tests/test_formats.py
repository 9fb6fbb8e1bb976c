# SPDX-License-Identifier: Apache-2.0
"""Every format through the public surface: the same samples, orders, errors, whatever the file."""

from __future__ import annotations

import gzip
import itertools
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import headrace as hr
import numpy as np
import pytest
from format_cases import (
    CASES,
    COUNT,
    GOLDEN,
    MADE,
    PICTURES,
    SHUFFLES,
    Sample,
    as_image,
    as_tar,
    asked_for,
    make_samples,
    plain,
)
from support import Shape, indices_of, on_ranks, one_epoch, rest_of_epoch


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], pathlib.Path]:
    """Where the data lie in each format, made when first asked for; nobody changes them."""
    samples = make_samples()
    made: dict[str, pathlib.Path] = {}

    def place(name: str) -> pathlib.Path:
        if name not in made:
            made[name] = CASES[name].make(samples, tmp_path_factory.mktemp("data") / "here")
        return made[name]

    return place


@pytest.fixture(scope="module")
def truth(places: Any, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each sample is, from the tar."""
    ds = hr.open(as_tar(make_samples(), tmp_path_factory.mktemp("truth")), asked_for("tar"))
    return [{k: plain(v) for k, v in s.items()} for s in ds]


Places = Callable[[str], pathlib.Path]


def read(ds: hr.Dataset) -> list[dict[str, Any]]:
    return [{k: plain(v) for k, v in ds[i].items()} for i in range(len(ds))]


def data_files(place: pathlib.Path) -> list[pathlib.Path]:
    """Of the data, largest first."""
    found = [place] if place.is_file() else [p for p in place.rglob("*") if p.is_file()]
    ours = re.compile(r"\.hri|headrace|index\.json|\.idx$|\.lock$|\.part$")
    return sorted((p for p in found if not ours.search(p.name)), key=lambda p: (-p.stat().st_size, p))


# -- samples ------------------------------------------------------------------------------------------


def test_every_format_takes_part() -> None:
    assert {name.split()[0] for name in CASES} == {f["name"] for f in hr.formats() if f["holds"] == "records"}


@pytest.mark.parametrize("name", CASES)
def test_samples_are_those_of_the_tar(places: Places, truth: list[dict[str, Any]], name: str) -> None:
    ds = hr.open(places(name), asked_for(name))
    assert ds.format == name.split()[0]
    got = read(ds)
    assert [{k: plain(v) for k, v in s.items()} for s in ds] == got  # one after the other
    if not CASES[name].golden and name != "megatron":
        for one, want in zip(got, truth):
            for what, value in one.items():
                if what == "label":
                    assert int(np.frombuffer(value[2], value[0])[0]) == int(np.frombuffer(want[what][2], want[what][0])[0])
                else:
                    assert value == want[what], what
        assert len(got) == COUNT
    assert plain(ds[-1][next(iter(CASES[name].fields))]) == got[-1][next(iter(CASES[name].fields))]
    assert read(ds[3:9]) == got[3:9] and read(ds[::-2]) == got[::-2] and read(ds[[4, 1, 4]]) == [got[4], got[1], got[4]]
    assert read(pickle.loads(pickle.dumps(ds))) == got
    assert read(pickle.loads(pickle.dumps(ds[2:5]))) == got[2:5]
    keys = [ds.key(i) for i in range(len(ds))]
    assert len(set(keys)) == len(keys) and all(keys)
    with pytest.raises(IndexError):
        ds[len(ds)]


@pytest.mark.parametrize("name", CASES)
def test_samples_without_fields_have_the_same_values(places: Places, name: str) -> None:
    """hr.open(path)[i]: numbers, text and arrays as they are, pictures as bytes."""
    ds, asked = hr.open(places(name)), hr.open(places(name), asked_for(name))
    for i in (0, len(ds) - 1):
        for what, field in CASES[name].fields.items():
            got = ds[i][field]
            if what == "image":
                assert isinstance(got, (bytes, np.ndarray)), type(got)
            elif what == "label":
                assert isinstance(got, (int, float)) and got == asked[i][what]
            else:
                assert plain(got) == plain(asked[i][what]), what


# -- orders -------------------------------------------------------------------------------------------


def light(name: str) -> dict[str, hr.Field]:
    """What shows which sample it is, without decoding pictures."""
    fields = asked_for(name)
    return {k: v for k, v in fields.items() if k != "image"}


@pytest.mark.parametrize("name", CASES)
def test_epochs_are_whole_and_repeat_and_resume(places: Places, name: str) -> None:
    ds = hr.open(places(name))
    fields = light(name)
    want = read(hr.open(places(name), fields))
    everything = list(range(len(ds)))
    for shuffle in SHUFFLES:
        options = {"shuffle": shuffle, "seed": 4, "tail": "keep", "threads": 2}
        (one,) = on_ranks(ds, Shape(1, 4), fields, use=one_epoch(1), **options)
        (again,) = on_ranks(ds, Shape(1, 4), fields, use=one_epoch(1), **options)
        assert sorted(indices_of(one)) == everything
        assert indices_of(one) == indices_of(again)
        for batch in one:
            for row, i in enumerate(batch.indices[batch.valid]):
                assert {k: plain(batch[k][row]) for k in fields} == want[int(i)], (shuffle, i)
        three = on_ranks(ds, Shape(3, 2), fields, use=one_epoch(1), **options)
        assert sorted(i for batches in three for i in indices_of(batches)) == everything
        assert len({len(batches) for batches in three}) == 1
        equal = on_ranks(ds, Shape(3, 2), fields, use=one_epoch(1), **{**options, "tail": "drop"})
        assert {len(b.indices) for batches in equal for b in batches} == {2} and len({len(b) for b in equal}) == 1

        def two_steps(loader: hr.Loader) -> tuple[list[int], dict[str, Any]]:
            batches = list(itertools.islice(loader.epoch(0), 2))
            return indices_of(batches), loader.state_dict()

        ((seen, state),) = on_ranks(ds, Shape(1, 3), fields, use=two_steps, **options)
        rest = on_ranks(ds, Shape(2, 2), fields, state=state, use=rest_of_epoch, **options)
        assert sorted(seen + [i for batches in rest for i in indices_of(batches)]) == everything


@pytest.mark.parametrize("name", CASES)
def test_in_memory_and_with_an_index_made_ahead(places: Places, tmp_path: pathlib.Path, name: str) -> None:
    ds = hr.open(places(name), light(name))
    want = read(ds)
    held = hr.open(places(name), light(name), in_memory=True)
    assert read(held) == want and held.fingerprint == ds.fingerprint
    del held
    run_index(places(name), tmp_path / "index")
    indexed = hr.open(places(name), light(name), index=tmp_path / "index")
    assert read(indexed) == want and indexed.fingerprint == ds.fingerprint
    with hr.Loader(places(name), 4, light(name), index=tmp_path / "index", tail="keep", output="numpy") as loader:
        assert sorted(indices_of(loader.epoch(0))) == list(range(len(ds)))


def run_index(place: pathlib.Path, to: pathlib.Path) -> None:
    from headrace.cli import app
    from typer.testing import CliRunner

    done = CliRunner().invoke(app, ["index", str(place), "--to", str(to)])
    assert done.exit_code == 0, done.output


# -- processes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_workers_of_a_data_loader_read_it(places: Places, name: str) -> None:
    torch = pytest.importorskip("torch")
    ds = hr.open(places(name), light(name))
    want = read(ds)
    loader = torch.utils.data.DataLoader(ds, batch_size=5, num_workers=2, collate_fn=list, multiprocessing_context="fork")
    assert [{k: plain(v) for k, v in s.items()} for batch in loader for s in batch] == want


OPEN_ALL = """
import hashlib, sys
import headrace as hr
sys.stdin.readline()
for path in sys.argv[1:]:
    ds = hr.open(path)
    print(len(ds), ds.fingerprint, hashlib.sha256(repr([ds[i] for i in range(len(ds))]).encode()).hexdigest(), flush=True)
"""


def test_two_processes_open_at_the_same_time(places: Places, tmp_path: pathlib.Path) -> None:
    """Both find no index and make it."""
    copies = []
    for name in CASES:
        place = places(name)
        copy = tmp_path / name.replace(" ", "-") / place.name
        copy.parent.mkdir()
        hide = shutil.ignore_patterns("*.hri*", "headrace.index*")
        shutil.copytree(place, copy, ignore=hide) if place.is_dir() else shutil.copy(place, copy)
        copies.append(str(copy))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    children = [subprocess.Popen([sys.executable, "-c", OPEN_ALL, *copies], **pipes) for _ in range(2)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    said = [child.communicate(timeout=50) for child in children]
    assert [child.returncode for child in children] == [0, 0], said
    assert said[0][0] == said[1][0] and len(said[0][0].splitlines()) == len(CASES)


# -- files that change --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MADE)
def test_a_file_that_was_rewritten_in_place_is_indexed_again(tmp_path: pathlib.Path, name: str) -> None:
    case = CASES[name]
    place = case.make(make_samples(), tmp_path / "a")
    before = read(hr.open(place, light(name)))
    other = case.make(make_samples(first=100), tmp_path / "b")
    for path in data_files(other) + list(other.rglob("*.idx")):
        target = place if place.is_file() else place / path.relative_to(other)
        target.write_bytes(path.read_bytes())
    for path in other.rglob("*"):  # what describes the shards
        if path.name in ("index.json", "headrace.json"):
            (place / path.name).write_bytes(path.read_bytes())
    want = read(hr.open(other, light(name)))
    assert read(hr.open(place, light(name))) == want and want != before


@pytest.mark.parametrize("name", CASES)
def test_a_file_that_was_cut_after_it_was_opened_is_an_error_that_names_it(tmp_path: pathlib.Path, name: str) -> None:
    place = CASES[name].make(make_samples(), tmp_path / "a")
    ds = hr.open(place, asked_for(name))
    cut = data_files(place)[0]
    os.truncate(cut, cut.stat().st_size // 3)

    def every(ds: hr.Dataset) -> None:
        for i in range(len(ds)):
            ds[i]

    with pytest.raises((hr.DataError, hr.StorageError), match=re.escape(cut.name)):
        every(ds)
    with (
        pytest.raises((hr.DataError, hr.StorageError), match=re.escape(cut.name)),
        hr.Loader(ds, 4, output="numpy", tail="keep") as loader,
    ):
        list(loader.epoch(0))
    with pytest.raises((hr.DataError, hr.StorageError), match=re.escape(cut.name)):
        every(hr.open(place, asked_for(name)))


@pytest.mark.parametrize("name", PICTURES)
def test_a_bad_sample_is_replaced(tmp_path: pathlib.Path, name: str) -> None:
    samples = make_samples()
    samples[5] = Sample(5, samples[5].jpg[:200], samples[5].txt)
    place = CASES[name].make(samples, tmp_path / "a")
    fields = {"image": hr.image(CASES[name].fields["image"]).resize((8, 8)), "label": hr.scalar(CASES[name].fields["label"])}
    with pytest.raises(hr.DataError, match="sample 5"):
        hr.open(place, fields)[5]
    with hr.Loader(place, 4, fields, tail="keep", output="numpy", bad_samples="replace") as loader:
        labels = [int(v) for b in loader.epoch(0) for v in b["label"][b.valid]]
        assert [bad["sample"] for bad in loader.quarantine] == [5]
    assert 5 not in labels and len(labels) == COUNT and set(labels) == set(range(COUNT)) - {5}


# -- parts of a file or a folder ----------------------------------------------------------------------


def test_two_parts_of_one_file_are_two_shards(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "x.npz", cls=np.arange(5), emb=np.ones((5, 2), np.float32))
    rows, whole = f"{tmp_path}/x.npz#rows", f"{tmp_path}/x.npz#whole"
    assert (len(hr.open(rows)), len(hr.open(whole)), len(hr.open(rows))) == (5, 1, 5)  # an index each
    assert hr.open(rows).fingerprint != hr.open(whole).fingerprint
    image = as_image(make_samples(), tmp_path / "image")
    two = hr.open([f"{image}#003", f"{image}#011"])
    assert [bytes(s["txt"], "utf-8") for s in two] == [b"caption 3 Z\xc3\xbcrich", b"caption 11 Z\xc3\xbcrich"]
    assert len({hr.open(f"{image}#003").fingerprint, hr.open(f"{image}#011").fingerprint, two.fingerprint}) == 3
    with hr.Loader([f"{image}#003", f"{image}#011"], 1, {"t": hr.text("txt")}, output="numpy") as loader:
        assert sorted(t for b in loader.epoch(0) for t in b["t"]) == ["caption 11 Zürich", "caption 3 Zürich"]


@pytest.mark.parametrize("to", ["mds", "tar", "parquet"])
def test_a_part_of_a_folder_is_a_folder_in_it(tmp_path: pathlib.Path, to: str) -> None:
    for name, first in (("train", 0), ("val", 100)):
        hr.pack(as_tar(make_samples(first), tmp_path / f"source-{name}"), tmp_path / "set" / name, to=to, keep_order=True)
    assert read(hr.open(f"{tmp_path}/set#val")) == read(hr.open(tmp_path / "set/val"))
    assert hr.open(f"{tmp_path}/set#val").fingerprint == hr.open(tmp_path / "set/val").fingerprint
    both = hr.open([f"{tmp_path}/set#train", f"{tmp_path}/set#val"])
    assert [s["cls"] for s in both] == [*range(COUNT), *range(100, 100 + COUNT)]
    with pytest.raises(hr.Error, match=r"test|train"):
        hr.open(f"{tmp_path}/set#test")
    with pytest.raises(hr.Error):
        hr.open(f"{tmp_path}/set/train#../val")


# -- types --------------------------------------------------------------------------------------------

TYPES = {"i32": np.int32, "u8": np.uint8, "f32": np.float32, "i64": np.int64}
# What a format keeps of a number's type; the others keep all.
KEEPS = {"tar": set(), "lmdb": set(), "tfrecord": {"i64", "f32"}}
TYPED = ["tfrecord", "arrow", "npz", "parquet", "mds", "tar", "lmdb"]


@pytest.fixture(scope="module")
def numbers_of_types(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    import pyarrow as pa

    root = tmp_path_factory.mktemp("types")
    columns = {f"n_{n}": pa.array(np.arange(7, dtype=t)) for n, t in TYPES.items()}
    columns |= {
        f"a_{n}": pa.array([list(range(i, i + 3)) for i in range(7)], pa.list_(pa.from_numpy_dtype(t))) for n, t in TYPES.items()
    }
    table = pa.table(columns)
    with pa.OSFile(str(root / "x.arrow"), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return root / "x.arrow"


def types_of(path: Any) -> dict[str, str]:
    ds = hr.open(path)
    return {f["name"]: f["dtype"] or str(np.asarray(ds[0][f["name"]]).dtype) for f in ds._source.fields}


@pytest.mark.parametrize("to", TYPED)
def test_types_of_numbers_survive_where_the_format_has_them(
    numbers_of_types: pathlib.Path, tmp_path: pathlib.Path, to: str
) -> None:
    before = types_of(numbers_of_types)
    hr.pack(numbers_of_types, tmp_path / "b", to=to, keep_order=True)
    hr.pack(tmp_path / "b", tmp_path / "a", to="arrow", keep_order=True)
    after = types_of(tmp_path / "a")
    for n in KEEPS.get(to, set(TYPES)):
        assert after[f"n_{n}"] == before[f"n_{n}"] == n
    first, last = hr.open(numbers_of_types), hr.open(tmp_path / "a")
    for name in before:
        if name.startswith("n_") and name[2:] in KEEPS.get(to, set(TYPES)):
            assert [s[name] for s in first] == [s[name] for s in last]
        elif name.startswith("a_") and to in ("arrow", "parquet", "npz", "mds"):
            assert [plain(s[name]) for s in first] == [plain(s[name]) for s in last], name
    if to == "tfrecord":
        assert [plain(s[n]) for s in first for n in ("a_i64", "a_f32")] == [plain(s[n]) for s in last for n in ("a_i64", "a_f32")]


# -- packing ------------------------------------------------------------------------------------------


def verified(folder: pathlib.Path) -> Any:
    from headrace.verify import check_packs, verify

    found = verify([str(folder)])
    found.compare(check_packs([str(folder)], 1))
    return found


@pytest.mark.parametrize("name", [n for n in CASES if n in {f["name"] for f in hr.formats() if f["write"]}])
def test_verify_finds_a_damaged_byte(places: Places, tmp_path: pathlib.Path, name: str) -> None:
    folder = pathlib.Path(shutil.copytree(places(name), tmp_path / "copy"))
    assert verified(folder).good
    path = data_files(folder)[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)
    try:
        good = verified(folder).good
    except hr.Error as e:  # it cannot even be indexed any more
        good = path.name not in str(e)
    assert not good


GOLDENS = ["tfrecord", "mds", "litdata", "beton", "arrow", "megatron"]


@pytest.mark.parametrize("name", GOLDENS)
def test_what_others_wrote_packs_into_every_format_that_holds_it(tmp_path: pathlib.Path, name: str) -> None:
    """Refusals name the field and what to do; what is packed is good."""
    root = pathlib.Path(shutil.copytree(GOLDEN / name, tmp_path / "golden"))
    for path in root.rglob("*.beton.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    sources = [p for p in sorted(root.iterdir()) if p.is_dir() or p.suffix in (".tfrecord", ".beton", ".rec", ".arrow", ".idx")]
    packed_ones = 0
    for source in sources:
        try:
            ds = hr.open(source)
        except hr.Error:
            continue  # a file that is there to be refused
        for to in (f["name"] for f in hr.formats() if f["write"] and f["holds"] == "records"):
            drop: list[str] = []
            said, unnamed = "", False
            out = tmp_path / f"out-{source.name}-{to}"
            for _ in range(12):
                try:
                    hr.pack(ds, out, to=to, shards=1, keep_order=True, drop=drop)
                    break
                except hr.Error as e:
                    said = str(e)
                    fields = [n for n in re.findall(r"'([^']+)'", said) if n in dict(ds.schema) and n not in drop]
                    unnamed = not (fields or drop or "there is none" in said)
                    shutil.rmtree(out, ignore_errors=True)
                    if not fields or len(drop) + 1 == len(ds.schema):
                        break
                    drop.append(fields[-1])
            assert not unnamed, f"{source.name} to {to}: {said}"
            if not (out / "headrace.json").exists():
                continue
            packed_ones += 1
            assert verified(out).good, (source, to)
            assert len(hr.open(out)) == len(ds)
    assert packed_ones >= 5
