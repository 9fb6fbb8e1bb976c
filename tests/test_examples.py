# SPDX-License-Identifier: Apache-2.0
"""Every example runs, as a user would run it, in a folder with shards in it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
from test_readme import readme_folder  # noqa: F401 - a fixture

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "example", [pytest.param(p, id=p.name) for p in EXAMPLES] or [pytest.param(None, marks=pytest.mark.skip("no examples yet"))]
)
def test_every_example_runs(example: pathlib.Path, readme_folder: pathlib.Path) -> None:  # noqa: F811
    run = subprocess.run(
        [sys.executable, str(example)],
        cwd=readme_folder,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        env={**os.environ, "HEADRACE_EXAMPLE_QUICK": "1"},
    )
    assert run.returncode == 0, run.stdout + run.stderr
