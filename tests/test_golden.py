# SPDX-License-Identifier: Apache-2.0
"""tools/golden.py: what it compares, what it finds, and that every script is on its list."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
from types import ModuleType

import pytest
from support import write_tar

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def golden() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_tool", ROOT / "tools/golden.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["golden_tool"] = module
    spec.loader.exec_module(module)
    return module


def test_every_script_and_every_golden_folder_is_on_the_list(golden: ModuleType) -> None:
    scripts = {p.stem.removeprefix("make_golden_") for p in (ROOT / "tests").glob("make_golden_*.py")}
    assert {g.script for g in golden.ALL} == scripts
    assert {p.name for p in (ROOT / "tests/golden").iterdir()} <= {g.format for g in golden.ALL}
    for g in golden.ALL:
        assert re.fullmatch(r"[\w-]+==[\w.]+", g.pinned()) or not g.environment


def test_the_peers_of_this_environment_write_and_read(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, str(ROOT / "tools/golden.py"), "--only", "tar", "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^tar +ok +\d+ files, none committed +8 readings agree", done.stdout, re.M), done.stdout
    assert (tmp_path / "tar/new/webdataset.tar").exists()


def test_an_unknown_name_is_refused_with_the_known_ones(golden: ModuleType) -> None:
    with pytest.raises(SystemExit, match=r"no golden files of mdx; there are .*mds"):
        golden.chosen("mdx")


def test_equal_bytes_then_equal_values_then_a_difference(golden: ModuleType, tmp_path: pathlib.Path) -> None:
    committed = tmp_path / "committed"
    committed.mkdir()
    members = [("a.txt", b"one"), ("a.cls", b"1"), ("b.txt", b"two"), ("b.cls", b"2")]
    path = write_tar(committed / "x.tar", members)
    (committed / "README.md").write_text("not compared")
    new = tmp_path / "new"
    shutil.copytree(committed, new)
    assert golden.compare(new, committed) == "1 files equal"

    changed = bytearray((new / "x.tar").read_bytes() + bytes(10240))  # as another writer pads
    (new / "x.tar").write_bytes(changed)
    assert golden.compare(new, committed) == "0 files equal, 1 in their values"
    assert sorted(p.name for p in committed.iterdir()) == ["README.md", "x.tar"], "no index is left there"

    write_tar(new / "x.tar", [*members[:3], ("b.cls", b"3")])
    with pytest.raises(golden.Failed, match=r"x\.tar has other values than committed"):
        golden.compare(new, committed)
    (new / "x.tar").rename(new / "y.tar")
    with pytest.raises(golden.Failed, match=r"other files than committed: x\.tar, y\.tar"):
        golden.compare(new, committed)
    assert path.exists()


def test_a_script_says_what_it_can(tmp_path: pathlib.Path) -> None:
    script = str(ROOT / "tests/make_golden_tars.py")
    for arguments in ([], ["reed", str(tmp_path)], ["write"]):
        done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, timeout=50)
        assert done.returncode == 1 and "peer | write FOLDER | check FOLDER" in done.stderr
    done = subprocess.run([sys.executable, script, "check", str(tmp_path)], capture_output=True, text=True, timeout=50)
    assert done.returncode == 1 and "nothing to check" in done.stderr
