# SPDX-License-Identifier: Apache-2.0
"""The command line: what it prints, and its exit codes."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

import headrace as hr
import pytest
from support import COUNT, Data, write_tar

pytest.importorskip("headrace.cli")


def headrace(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "headrace", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=env,
        **options,
    )  # type: ignore[call-overload]


def test_inspect_tells_format_fields_counts_and_a_sample(data: Data) -> None:
    run = headrace("inspect", data.tar)
    assert run.returncode == 0, run.stderr
    for word in ("tar", str(COUNT), "jpg", "cls", "json", "txt", data.samples[0].key):
        assert word in run.stdout, word


def test_inspect_speaks_json(data: Data) -> None:
    facts = json.loads(headrace("inspect", data.folder, "--json").stdout)
    assert facts["format"] == "files" and facts["samples"] == COUNT


GOLDEN = pathlib.Path(__file__).parent / "golden"
SETS = ["arrow/datasets.arrow", "litdata/every", "mds/values", "mds/zstd", "megatron/modes.idx", "tfrecord/lists.tfrecord"]


@pytest.mark.parametrize("name", SETS)
def test_inspect_has_words_for_every_field_of_other_peoples_files(tmp_path: pathlib.Path, name: str) -> None:
    shutil.copytree(GOLDEN / name.split("/")[0], tmp_path / "copy")
    url = tmp_path / "copy" / name.split("/")[1]
    run = headrace("inspect", url)
    assert run.returncode == 0, run.stdout + run.stderr
    _, fields, sample = run.stdout.partition("  field ")
    for field, _ in hr.open(url).schema:
        assert f"  {field} " in fields + sample, field
    json.loads(headrace("inspect", url, "--json").stdout)


def test_inspect_counts_the_pictures_of_a_sample(tmp_path: pathlib.Path) -> None:
    shutil.copytree(GOLDEN / "mds/values", tmp_path / "copy")
    shown = {n: headrace("inspect", tmp_path / "copy", "--sample", n).stdout.partition("\nsample ")[2] for n in (0, 2)}
    assert "views   0 values, 0 B" in shown[0] and "shots   1 value, 686 B, 9 x 6 pixels" in shown[0]
    assert "views   2 values, " in shown[2] and "9 x 6 … 6 … 8 pixels" in shown[2]


def test_formats_lists_what_is_read_and_written() -> None:
    run = headrace("formats")
    assert run.returncode == 0 and "tar" in run.stdout and "files" in run.stdout


def test_doctor_is_content_with_this_installation() -> None:
    run = headrace("doctor")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "CPUs usable" in run.stdout


def test_index_builds_what_loader_uses(data: Data, tmp_path: pathlib.Path) -> None:
    run = headrace("index", data.tar, "--to", tmp_path / "index")
    assert run.returncode == 0 and "53 samples in 4 shards" in run.stdout, run.stdout + run.stderr
    assert len(hr.open(data.tar, index=tmp_path / "index")) == COUNT


def test_pack_packs_and_says_when_all_is_there(data: Data, tmp_path: pathlib.Path) -> None:
    run = headrace("pack", data.folder, tmp_path / "out", "--shards", 3)
    assert run.returncode == 0 and len(hr.open(tmp_path / "out")) == COUNT, run.stderr
    again = headrace("pack", data.folder, tmp_path / "out", "--shards", 3)
    assert again.returncode == 0 and "nothing to do" in again.stdout


def test_verify_is_content_with_good_data(data: Data) -> None:
    assert headrace("verify", data.tar).returncode == 0


def test_verify_names_what_is_bad(data: Data, tmp_path: pathlib.Path) -> None:
    members = [(f"{i}.jpg", s.jpeg[:500] if i == 7 else s.jpeg) for i, s in enumerate(data.samples[:12])]
    write_tar(tmp_path / "x.tar", members)
    run = headrace("verify", tmp_path / "x.tar")
    assert (run.returncode == 1 and "'7'" in run.stdout + run.stderr) or " 7" in run.stdout


@pytest.mark.parametrize("command", ["inspect", "verify", "index", "pack"])
def test_a_missing_path_is_one_line_and_exit_code_2(tmp_path: pathlib.Path, command: str) -> None:
    more = {"index": ["--to", tmp_path / "i"], "pack": [tmp_path / "out"]}.get(command, [])
    run = headrace(command, tmp_path / "missing.tar", *more)
    assert run.returncode == 2 and run.stdout == ""
    assert "missing.tar" in run.stderr and "Traceback" not in run.stderr and run.stderr.strip().count("\n") <= 1


def test_a_cut_shard_is_one_line_and_no_traceback(data: Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "x.tar").write_bytes((data.root / "train-0000.tar").read_bytes()[:9000])
    run = headrace("inspect", tmp_path / "x.tar")
    assert run.returncode == 2 and "x.tar" in run.stderr and "Traceback" not in run.stderr


def test_an_unknown_command_is_exit_code_2() -> None:
    assert headrace("inspekt").returncode == 2


def test_output_that_nobody_reads_is_no_error(data: Data) -> None:
    run = subprocess.run(
        f"{sys.executable} -m headrace inspect '{data.tar}' | head -1", shell=True, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0 and "Traceback" not in run.stderr
