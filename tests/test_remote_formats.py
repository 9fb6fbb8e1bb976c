# SPDX-License-Identifier: Apache-2.0
"""Every format from versitygw (S3) and nginx (HTTP) as from local files: samples, orders, resume on other ranks."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import headrace as hr
import pytest
import servers
from format_cases import CASES, asked_for, make_samples, plain
from headrace.photos import write_class_folders

FORMATS = list(CASES)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("remote")


@pytest.fixture(scope="module")
def s3(root: pathlib.Path) -> Iterator[servers.S3]:
    with servers.versitygw(root / "s3") as server:
        yield server


@pytest.fixture(scope="module")
def web(root: pathlib.Path, s3: servers.S3) -> Iterator[servers.Web]:
    with servers.nginx(root / "web") as server:
        (server.folder / "data").symlink_to(s3.folder)
        yield server


@pytest.fixture(autouse=True)
def own_cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def places(s3: servers.S3) -> Any:
    made: dict[str, pathlib.Path] = {}

    def place(name: str) -> pathlib.Path:
        if name not in made:
            made[name] = CASES[name].make(make_samples(), s3.folder / name.replace(" ", "-"))
        return made[name]

    return place


def rows(loader: hr.Loader, epoch: int = 0) -> list[Any]:
    return [[[plain(v) for v in batch[name]] for name in batch] for batch in loader.epoch(epoch)]


@pytest.mark.parametrize("name", FORMATS)
def test_remote_batches_are_those_of_local_files(name: str, places: Any, s3: servers.S3, web: servers.Web) -> None:
    place = places(name)
    path = place.relative_to(s3.folder)
    fields = asked_for(name)
    for shuffle in (False, True):
        options: dict[str, Any] = {
            "batch_size": 4,
            "fields": fields,
            "shuffle": shuffle,
            "seed": 7,
            "output": "numpy",
            "threads": 2,
        }
        local = hr.Loader(os.fspath(place), **options)
        expected = rows(local)
        over_s3 = hr.Loader(f"s3://bucket/{path}", storage=s3.storage(), **options)
        assert rows(over_s3) == expected
        over_http = hr.Loader(web.url(f"data/{path}"), **options)
        assert rows(over_http) == expected


@pytest.mark.parametrize("name", ["tar", "parquet", "mds", "files"])
def test_resume_on_other_ranks_gives_exactly_the_rest(name: str, places: Any, s3: servers.S3) -> None:
    place = places(name)
    options: dict[str, Any] = {
        "fields": asked_for(name),
        "shuffle": True,
        "seed": 3,
        "global_batch_size": 4,
        "output": "numpy",
        "tail": "keep",
    }
    url = f"s3://bucket/{place.relative_to(s3.folder)}"
    first = hr.Loader(url, storage=s3.storage(), **options)
    batches = iter(first.epoch(0))
    for _ in range(2):
        next(batches)
    state = first.state_dict()
    one = hr.Loader(os.fspath(place), **options)
    one.load_state_dict(state)
    expected = [plain(v) for batch in one.epoch(0) for v in batch["label"]]
    got = []
    for rank in range(2):
        loader = hr.Loader(url, storage=s3.storage(), rank=rank, world_size=2, **options)
        loader.load_state_dict(state)
        got.append([[plain(v) for v in batch["label"]] for batch in loader.epoch(0)])
    merged = [v for pair in zip(*got) for part in pair for v in part]
    assert sorted(merged) == sorted(expected)


def test_globs_braces_and_lists_of_urls(places: Any, s3: servers.S3, web: servers.Web) -> None:
    shards = sorted(places("tar").glob("*.tar"))
    path = places("tar").relative_to(s3.folder)
    expected = [plain(s["cls"]) for s in hr.open([os.fspath(p) for p in shards])]
    names = [p.name for p in shards]
    braces = "{" + ",".join(names) + "}"
    for source in (f"s3://bucket/{path}/*.tar", f"s3://bucket/{path}/{braces}", [f"s3://bucket/{path}/{n}" for n in names]):
        assert [plain(s["cls"]) for s in hr.open(source, storage=s3.storage())] == expected
    for source in (web.url(f"data/{path}/*.tar"), web.url(f"data/{path}/{braces}")):
        assert [plain(s["cls"]) for s in hr.open(source)] == expected


def test_lists_and_globs_of_pictures(s3: servers.S3, web: servers.Web) -> None:
    folder = pathlib.Path(write_class_folders(s3.folder / "pictures", 12))
    files = sorted(folder.glob("*/*.jpg"), key=lambda p: p.name)  # in no order of folders
    local = hr.open([os.fspath(p) for p in files])
    names = [os.fspath(p.relative_to(s3.folder)) for p in files]
    for source in ([f"s3://bucket/{n}" for n in names], [web.url(f"data/{n}") for n in names]):
        far = hr.open(source, storage=s3.storage() if source[0].startswith("s3") else None)
        assert [(far.key(i), far[i]) for i in range(12)] == [(local.key(i), local[i]) for i in range(12)]
        assert far.fingerprint == local.fingerprint
    assert len(hr.open(web.url("data/pictures/class1/*.jpg"))) == 4 and len(hr.open(web.url(f"data/{names[0]}"))) == 1
    with pytest.raises(hr.StorageError, match=r"nope.jpg.*no such file"):
        hr.open([web.url(f"data/{names[0]}"), web.url("data/pictures/nope.jpg")])[1]
    for other, words in ((f"s3://bucket/{names[0]}", "of two: open each"), (web.url("data/x.tar"), "x.tar' is no picture")):
        with pytest.raises(hr.UsageError, match=words):
            hr.open([web.url(f"data/{names[0]}"), other, web.url(f"data/{names[1]}")])


def test_a_local_list_names_files_of_servers(s3: servers.S3, web: servers.Web, tmp_path: pathlib.Path) -> None:
    folder = pathlib.Path(write_class_folders(s3.folder / "listed", 12))
    files = sorted(folder.glob("*/*.jpg"))
    names = [os.fspath(p.relative_to(s3.folder)) for p in files]
    expected = [p.read_bytes() for p in files]
    options = {"batch_size": 5, "fields": {"x": hr.bytes("jpg")}, "shuffle": False, "tail": "keep", "output": "numpy"}
    urls = {
        "s3": [f"s3://bucket/{n}" for n in names],
        "web": [web.url(f"data/{n}") for n in names],
        "all": [[f"s3://bucket/{n}", web.url(f"data/{n}"), os.fspath(p)][i % 3] for i, (n, p) in enumerate(zip(names, files))],
    }
    for name, listed in urls.items():
        path = tmp_path / f"{name}.csv"
        path.write_text("path,n\n" + "".join(f"{url},{i}\n" for i, url in enumerate(listed)))
        if name == "web":  # in a table an https:// URL is a text
            path = tmp_path / "web.txt"
            path.write_text("\n".join(listed))
        for cache in (None, tmp_path / "cache"):
            loader = hr.Loader(path, storage=s3.storage(), cache=cache, **options)
            for epoch in range(2):
                assert [bytes(v) for batch in loader.epoch(epoch) for v in batch["x"]] == expected, (name, cache, epoch)


def test_a_data_set_reads_samples_by_number(places: Any, s3: servers.S3) -> None:
    url = f"s3://bucket/{places('tar').relative_to(s3.folder)}"
    remote, local = hr.open(url, storage=s3.storage()), hr.open(os.fspath(places("tar")))
    assert len(remote) == len(local) and remote.fingerprint == local.fingerprint
    for a, b in ((remote[5], local[5]), (remote[[3, 1]][0], local[3])):
        assert {k: plain(v) for k, v in a.items()} == {k: plain(v) for k, v in b.items()}
