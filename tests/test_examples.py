# SPDX-License-Identifier: Apache-2.0
"""Every example runs, as a user would run it, in a folder with shards in it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from support import Ahead
from test_readme import readme_folder  # noqa: F401 - a fixture

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py")) + sorted((ROOT / "examples" / "first_hour").glob("*.py"))


def run(example: pathlib.Path, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(example)]
    # Workers of the examples share the cores: one thread of arithmetic each.
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=150, check=False, env=env)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, readme_folder: pathlib.Path) -> Ahead:  # noqa: F811
    return Ahead(request, lambda example: run(example, readme_folder))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("example", [pytest.param(p, id=p.name) for p in EXAMPLES])
def test_every_example_runs_and_proves_what_it_says(request: pytest.FixtureRequest, example: pathlib.Path, runs: Ahead) -> None:
    done = runs.result(request)
    assert done.returncode == 0, done.stdout + done.stderr
    # What each ends with; an example whose framework is missing says that instead, and must fail here.
    assert "exactly" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(("example", "package"), [("train_lightning", "lightning"), ("train_jax", "jax")])
def test_a_missing_framework_is_said_in_one_line(example: str, package: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / f"{package}.py").write_text("raise ImportError")
    command = [sys.executable, str(ROOT / "examples" / f"{example}.py")]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1 and f"pip install {package}" in done.stdout
