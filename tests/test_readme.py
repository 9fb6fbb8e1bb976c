# SPDX-License-Identifier: Apache-2.0
"""Every block of Python in the documents runs, in a folder with train-0000.tar to train-0007.tar."""

from __future__ import annotations

import pathlib
import re
import shutil

import pytest
from support import COUNT, Data, members_of, run_python, write_tar

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = [p for p in (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))) if p.exists()]


def blocks() -> list[object]:
    out = []
    for path in DOCUMENTS:
        text = path.read_text()
        for match in re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M):
            line = text[: match.start()].count("\n") + 2
            out.append(pytest.param(path, line, match[1], id=f"{path.name}:{line}"))
    return out


@pytest.fixture(scope="session")
def readme_folder(tmp_path_factory: pytest.TempPathFactory, data: Data) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("readme")
    for shard in range(8):
        samples = [data.samples[(shard * 20 + i) % COUNT] for i in range(20)]
        members = [
            (f"{shard}{i:02d}.{name.rsplit('.', 1)[-1]}", value) for i, s in enumerate(samples) for name, value in members_of(s)
        ]
        write_tar(folder / f"train-{shard:04d}.tar", members)
    shutil.copytree(data.folder, folder / "train", ignore=shutil.ignore_patterns("index.*"))
    return folder


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("path", "line", "code"), blocks() or [pytest.param(None, 0, "", marks=pytest.mark.skip("no Python in the documents yet"))]
)
def test_every_block_of_python_in_the_documents_runs(
    readme_folder: pathlib.Path, path: pathlib.Path, line: int, code: str
) -> None:
    run = run_python("\n" * (line - 1) + code, timeout=100, cwd=readme_folder)
    assert run.returncode == 0, f"{path}:{line}\n{run.stdout}{run.stderr}"
