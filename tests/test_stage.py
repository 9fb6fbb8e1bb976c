# SPDX-License-Identifier: Apache-2.0
"""``headrace stage``, ``hr.stage`` and ``Loader(stage=)``: copies that are the same data set."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import headrace as hr
import pytest
import servers
import support


def tree(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_copy_is_the_same_data_set_with_the_same_states(data: support.Data, tmp_path: pathlib.Path) -> None:
    plain = hr.open(data.tar)  # its indexes go along
    report = hr.stage(data.tar, tmp_path / "copy", verify=True)
    copy = hr.open(tmp_path / "copy")
    assert copy.fingerprint == plain.fingerprint and copy._source.shards_built == 0
    assert report["copied_bytes"] == report["bytes"] and report["files"] == 8
    options = {"batch_size": 8, "output": "numpy", "fields": {"cls": hr.scalar("cls")}}
    far, near = hr.Loader(data.tar, **options), hr.Loader(copy, **options)
    batches = iter(far.epoch(0))
    begun = [next(batches), next(batches)]
    near.load_state_dict(far.state_dict())
    whole = support.indices_of(hr.Loader(data.tar, **options).epoch(0))
    assert support.indices_of([*begun, *near.epoch(0)]) == whole


def test_the_same_call_again_copies_nothing_and_a_changed_file_anew(tmp_path: pathlib.Path) -> None:
    (tmp_path / "from").mkdir()
    for n in range(3):
        support.write_tar(tmp_path / "from" / f"{n}.tar", [(f"{n}.txt", b"x" * 1000)])
    first = hr.stage(tmp_path / "from", tmp_path / "to")
    assert hr.stage(tmp_path / "from", tmp_path / "to")["copied_bytes"] == 0
    support.write_tar(tmp_path / "from" / "1.tar", [("1.txt", b"y" * 5000)])
    again = hr.stage(tmp_path / "from", tmp_path / "to")
    assert 0 < again["copied_bytes"] < first["bytes"]
    assert tree(tmp_path / "from") == tree(tmp_path / "to")


def test_a_copy_has_no_file_that_the_data_no_longer_have(tmp_path: pathlib.Path) -> None:
    (tmp_path / "from").mkdir()
    for n in range(3):
        support.write_tar(tmp_path / "from" / f"{n}.tar", [(f"{n}.txt", b"x")])
    hr.stage(tmp_path / "from", tmp_path / "to")
    (tmp_path / "from" / "1.tar").unlink()
    with pytest.raises(hr.UsageError, match=r"to/1\.tar: was copied before and is no part of this data set"):
        hr.stage(tmp_path / "from", tmp_path / "to")
    (tmp_path / "to" / "1.tar").unlink()
    hr.stage(tmp_path / "from", tmp_path / "to")
    assert hr.open(tmp_path / "to").fingerprint == hr.open(tmp_path / "from").fingerprint


def test_folders_go_with_all_that_is_in_them(data: support.Data, tmp_path: pathlib.Path) -> None:
    hr.stage(data.folder, tmp_path / "to")
    assert tree(data.folder) == tree(tmp_path / "to")
    assert hr.open(tmp_path / "to").fingerprint == hr.open(data.folder).fingerprint


def test_what_is_killed_goes_on_and_is_no_data_set_before(tmp_path: pathlib.Path) -> None:
    (tmp_path / "from").mkdir()
    for n in range(40):
        support.write_tar(tmp_path / "from" / f"{n:02}.tar", [(f"{n}.bin", os.urandom(200_000))])
    code = """
import os, signal, sys, headrace as hr
def tell(done, total):
    if done > total // 2:
        os.kill(os.getpid(), signal.SIGKILL)
hr.stage(sys.argv[1], sys.argv[2], streams=2, progress=tell)
"""
    args = [sys.executable, "-c", code, str(tmp_path / "from"), str(tmp_path / "to")]
    assert subprocess.run(args, timeout=60).returncode == -signal.SIGKILL
    with pytest.raises(hr.Error):
        hr.open(tmp_path / "to")
    done = hr.stage(tmp_path / "from", tmp_path / "to", verify=True)
    assert 0 < done["copied_bytes"] < done["bytes"]
    assert tree(tmp_path / "from") == tree(tmp_path / "to")


def test_it_does_not_fit_says_both_numbers(tmp_path: pathlib.Path) -> None:
    (tmp_path / "from").mkdir()
    big = support.write_tar(tmp_path / "from" / "a.tar", [("a.txt", b"x")])
    os.truncate(big, 8 << 40)  # a file of holes
    with pytest.raises(hr.Error, match=r"[\d.]+ GiB are to be copied and [\d.]+ GiB are free"):
        hr.stage(tmp_path / "from", tmp_path / "to")


def test_other_files_are_refused_and_removing_takes_the_copy_alone(data: support.Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    with pytest.raises(hr.UsageError, match="holds other files"):
        hr.stage(data.tar, tmp_path / "mine")
    with pytest.raises(hr.Error, match="nothing was staged there"):
        hr.remove_stage(tmp_path / "mine")
    with pytest.raises(hr.UsageError, match="folder of this machine"):
        hr.stage(data.tar, "s3://bucket/x")
    hr.stage(data.tar, tmp_path / "copy")
    (tmp_path / "copy" / "notes.txt").write_text("mine")
    assert hr.remove_stage(tmp_path / "copy") > 0
    assert tree(tmp_path / "copy") == {"notes.txt": b"mine"}
    hr.stage(data.tar, tmp_path / "other")
    hr.remove_stage(tmp_path / "other")
    assert not (tmp_path / "other").exists() and not (tmp_path / "other.hrstage").exists()


def test_a_damaged_copy_is_found(data: support.Data, tmp_path: pathlib.Path) -> None:
    hr.stage(data.tar, tmp_path / "to")
    path = next(iter((tmp_path / "to").glob("*.tar")))
    with open(path, "r+b") as file:
        file.seek(600)
        file.write(b"damage")
    with pytest.raises(hr.Error, match="not what was written"):
        hr.stage(data.tar, tmp_path / "to", verify=True)
    hr.stage(data.tar, tmp_path / "to", verify=True)
    assert hr.open(tmp_path / "to").fingerprint == hr.open(data.tar).fingerprint


def test_the_command_copies_and_removes(data: support.Data, tmp_path: pathlib.Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "headrace", "stage", *words], capture_output=True, text=True, timeout=60)

    done = run(data.tar, str(tmp_path / "to"), "--verify")
    assert done.returncode == 0 and "verified" in done.stdout and "/s" in done.stdout, done.stderr
    done = run("--remove", str(tmp_path / "to"))
    assert done.returncode == 0 and "removed" in done.stdout and not (tmp_path / "to").exists()
    assert run(data.tar).returncode == 2


def test_a_loader_reads_from_the_copy_as_it_comes_and_cleans_up(data: support.Data, tmp_path: pathlib.Path) -> None:
    options = {"batch_size": 8, "output": "numpy", "seed": 2, "fields": {"image": support.crop(), "cls": hr.scalar("cls")}}
    plain = [support.digest(hr.Loader(data.tar, **options).epoch(n)) for n in range(2)]
    loader = hr.Loader(data.tar, **options, stage=tmp_path / "stage")
    assert support.digest(loader.epoch(0)) == plain[0]  # whether the copy is there or not
    for source in loader._staged:
        source.wait_until_staged()
    before = loader.stats()["stage"]["source_reads"]
    assert support.digest(loader.epoch(1)) == plain[1]
    found = loader.stats()["stage"]
    assert found["source_reads"] == before and found["staged_reads"] > 0 and found["bytes_there"] == found["bytes"]
    assert list((tmp_path / "stage").iterdir())
    loader.close()
    del loader, source
    assert list((tmp_path / "stage").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(data: support.Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(hr.Error):
        hr.Loader(data.tar, 8, output="numpy", stage=tmp_path / "file" / "x")
    with pytest.raises(hr.UsageError, match="stage is a folder"):
        hr.Loader(data.tar, 8, output="numpy", stage=3)


def test_a_share_is_what_the_ranks_of_this_node_read(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d").mkdir()
    for shard in range(32):
        support.write_tar(
            tmp_path / f"d/{shard:02d}.tar", [(f"{shard:02d}{n:03d}.bin", bytes([shard]) * 20_000) for n in range(16)]
        )
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    fields = {"x": hr.bytes("bin")}
    options = {"batch_size": 4, "seed": 1, "shuffle": "pool", "reassign_every": 3, "output": "numpy"}
    plain = [hr.Loader(tmp_path / "d", fields=fields, rank=rank, world_size=4, **options) for rank in range(4)]  # type: ignore[arg-type]
    read = [{x[0] for epoch in range(3) for batch in one.epoch(epoch) for x in batch["x"]} for one in plain]
    for rank in (0, 2):
        to = tmp_path / f"to{rank}"
        loader = hr.Loader(tmp_path / "d", fields=fields, rank=rank, world_size=4, stage=to, stage_share=True, **options)  # type: ignore[arg-type]
        until = time.monotonic() + 30
        while loader.stats()["stage"]["bytes_there"] < loader.stats()["stage"]["bytes"] and time.monotonic() < until:
            time.sleep(0.01)
        staged = {int(p.name[:2]) for p in to.rglob("*.tar")}
        assert staged == read[rank] | read[rank + 1]
        assert len(staged) == 16
        got = {x[0] for batch in loader.epoch(0) for x in batch["x"]}
        before = loader.stats()["stage"]["source_reads"]  # of the file that came last, perhaps
        got |= {x[0] for batch in loader.epoch(1) for x in batch["x"]}
        assert loader.stats()["stage"]["source_reads"] == before <= 1  # the last epoch begins to read what the next one needs
        assert got | {x[0] for batch in loader.epoch(2) for x in batch["x"]} == read[rank]
        loader.close()
    with pytest.raises(hr.UsageError, match="stage_share"):
        hr.Loader(tmp_path / "d", 4, stage_share=True)


def test_indexes_that_opening_left_go_with_the_copy(data: support.Data, tmp_path: pathlib.Path) -> None:
    for index in pathlib.Path(data.tar).parent.glob("*.hridx"):
        index.unlink()
    hr.stage(data.tar, tmp_path / "to")
    hr.open(tmp_path / "to")
    assert list((tmp_path / "to").glob("*.hridx"))
    hr.remove_stage(tmp_path / "to")
    assert not (tmp_path / "to").exists()


def shards_of_16(folder: pathlib.Path, shards: int = 32) -> pathlib.Path:
    folder.mkdir()
    for shard in range(shards):
        support.write_tar(folder / f"{shard:02d}.tar", [(f"{shard:02d}{n:03d}.bin", bytes([shard]) * 20_000) for n in range(16)])
    return folder


SHARE = {"batch_size": 4, "seed": 1, "shuffle": "pool", "reassign_every": 3, "rank": 2, "world_size": 4}


def test_a_share_copied_ahead_is_what_the_loader_finds_and_it_stays(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = shards_of_16(tmp_path / "d")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    report = hr.stage(source, tmp_path / "to", share=SHARE, verify=True)
    assert report["files"] == 16 and report["copied_bytes"] == report["bytes"]
    assert hr.stage(source, tmp_path / "to", share=SHARE)["copied_bytes"] == 0
    copies = sorted((tmp_path / "to").rglob("*.tar"))
    loader = hr.Loader(source, fields={"x": hr.bytes("bin")}, output="numpy", stage=tmp_path / "to", stage_share=True, **SHARE)  # type: ignore[arg-type]
    # Not the third epoch: behind it the fourth is read ahead, which is no longer of this share.
    assert len([x for epoch in range(2) for batch in loader.epoch(epoch) for x in batch["x"]]) == 2 * 128
    found = loader.stats()["stage"]
    # One at most of the source: the first sample of all is looked at when a Loader is made.
    assert found["source_reads"] <= 1 < found["staged_reads"] and found["bytes_there"] == found["bytes"] == report["bytes"]
    with pytest.raises(hr.Error, match="a job is reading this copy"):
        hr.remove_stage(tmp_path / "to")
    loader.close()
    del loader
    assert sorted((tmp_path / "to").rglob("*.tar")) == copies  # whoever copied it ahead keeps it
    assert hr.remove_stage(tmp_path / "to") >= report["bytes"]
    assert not (tmp_path / "to").exists()


def test_the_command_copies_a_share_and_says_what_it_needs(tmp_path: pathlib.Path) -> None:
    source = shards_of_16(tmp_path / "d")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "headrace", "stage", str(source), str(tmp_path / "to"), "--share", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    refused = run()
    assert refused.returncode == 2 and "--batch-size" in refused.stderr
    order = ("--batch-size", "4", "--seed", "1", "--shuffle", "pool", "--reassign-every", "3")
    done = run(*order, "--rank", "2", "--world-size", "4", "--local-ranks", "2")
    assert done.returncode == 0 and "16 files" in done.stdout, done.stderr
    assert run(*order, "--shuffle", "some").returncode == 2
    with pytest.raises(hr.UsageError, match="settles no order"):
        hr.stage(source, tmp_path / "to", share={"fields": {}})


def test_all_ranks_of_a_node_may_stage_their_share_at_once(tmp_path: pathlib.Path) -> None:
    source = shards_of_16(tmp_path / "d", 8)
    code = f"""
import sys, headrace as hr
share = {{**{SHARE!r}, "rank": int(sys.argv[3]), "local_ranks": 4}}
print(hr.stage(sys.argv[1], sys.argv[2], share=share)["copied_bytes"])
"""
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(source), str(tmp_path / "to"), str(n)], stdout=subprocess.PIPE, text=True
        )
        for n in range(4)
    ]
    copied = [int(one.communicate(timeout=120)[0]) for one in ranks]
    assert sum(copied) == max(copied) > 0  # one copied, the others waited


def test_a_source_that_fails_ends_the_copy_with_its_reason(tmp_path: pathlib.Path) -> None:
    """A server that is gone is no other process that copies: waiting for it would never end."""
    source = shards_of_16(tmp_path / "d", 2)
    with servers.odd_server(source) as odd:
        urls = [odd.url(f"{n:02d}.tar") for n in range(2)]
        storage = hr.storage(retries=0, backoff=0.01)
        hr.build_index(urls, tmp_path / "index", storage=storage)

        def fails(handler: Any, number: int) -> bool:
            if handler.command == "GET":
                handler.body(500, b"")
            return bool(handler.command == "GET")

        odd.answer = fails
        loader = hr.Loader(
            urls, 4, {"x": hr.bytes("bin")}, output="numpy", storage=storage, index=tmp_path / "index", stage=tmp_path / "to"
        )
        for one in loader._staged:
            with pytest.raises(hr.StorageError, match="500"):
                one.wait_until_staged()
        loader.close()


def test_a_server_is_asked_once_about_each_file_and_sends_it_as_a_whole(tmp_path: pathlib.Path) -> None:
    (tmp_path / "www/d").mkdir(parents=True)
    for n in range(3):
        support.write_tar(tmp_path / "www/d" / f"{n}.tar", [(f"{n}-{k}.bin", os.urandom(300_000)) for k in range(12)])
    with servers.odd_server(tmp_path / "www") as odd:
        hr.stage(odd.url("d/{0..2}.tar"), tmp_path / "to", verify=True, storage=hr.storage(connections=1))
        asked = sorted(request.strip() for request in odd.requests if ".tar" in request and ".hridx" not in request)
    assert tree(tmp_path / "www/d") == tree(tmp_path / "to")
    assert asked == sorted(f"{method} /d/{n}.tar" for method in ("GET", "HEAD") for n in range(3))


def test_what_an_older_version_copied_is_copied_again(tmp_path: pathlib.Path) -> None:
    """Its checksums are others."""
    (tmp_path / "from").mkdir()
    support.write_tar(tmp_path / "from" / "a.tar", [("a.txt", b"x" * 1000)])
    report = hr.stage(tmp_path / "from", tmp_path / "to")
    journal = tmp_path / "to.hrstage"
    journal.write_text(journal.read_text().replace("copied ", "done "))
    assert hr.stage(tmp_path / "from", tmp_path / "to", verify=True)["copied_bytes"] == report["bytes"]
    assert hr.stage(tmp_path / "from", tmp_path / "to", verify=True)["copied_bytes"] == 0
