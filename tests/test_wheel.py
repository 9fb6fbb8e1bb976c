# SPDX-License-Identifier: Apache-2.0
"""A wheel of the stable ABI, installed by name from a folder of wheels. ./dev wheel tries the one that brings its libraries along."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest
from support import COUNT, Data

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRIAL = """
import sys, headrace as hr
fields = {"x": hr.image("jpg").resize((8, 8)), "y": hr.scalar("cls"), "raw": hr.bytes("jpg")}
with hr.Loader(sys.argv[1], 8, fields, seed=1, tail="keep", output="numpy") as loader:
    print(sum(len(b["y"]) for b in loader), hr.__file__, hr._core.__file__)
"""


def test_the_module_keeps_to_what_the_stable_abi_has() -> None:
    """Macros of CPython that look into its objects would tie a wheel to one version; the short form of the test below."""
    inner = re.compile(r"\bPy(Tuple|List|Bytes|Unicode|Float|Long)_(GET|SET|AS)_[A-Z]+\b|\bPyBytesObject\b|->tp_")
    for path in (ROOT / "python/src").glob("*.cc"):
        assert not inner.findall(path.read_text()), path.name


@pytest.mark.slow  # test_the_module_keeps_to_what_the_stable_abi_has
@pytest.mark.timeout(1800)
@pytest.mark.unsanitized  # another module than the one under test
def test_pip_installs_headrace_from_a_folder_of_wheels(data: Data, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("nanobind_backend")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    options = ["-C", "cmake.define.HEADRACE_STABLE_ABI=ON", "-C", "wheel.py-api=cp310", "-C", f"build-dir={ROOT / 'build/abi3'}"]
    environment = {**os.environ, "CMAKE_GENERATOR": "Ninja"}
    build = [*pip, "wheel", "--no-build-isolation", "--no-deps", *options, "-w", str(tmp_path / "wheels"), str(ROOT)]
    subprocess.run(build, check=True, env=environment)
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert "-cp310-abi3-" in wheel.name
    assert "headrace/_core.abi3.so" in zipfile.ZipFile(wheel).namelist()
    target = tmp_path / "site"
    install = [*pip, "install", "--no-deps", "--no-index", "--find-links", str(wheel.parent), "--target", str(target), "headrace"]
    subprocess.run(install, check=True)
    run = [sys.executable, "-c", TRIAL, data.tar]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(target)})
    assert done.returncode == 0, done.stderr
    count, package, module = done.stdout.split()
    assert int(count) == COUNT and package.startswith(str(target)) and module.endswith("_core.abi3.so")
