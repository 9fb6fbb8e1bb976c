# SPDX-License-Identifier: Apache-2.0
"""Every block of Python in the documents runs, in a folder with train-0000.tar to train-0007.tar and class folders in train/,
and with data/demo as ./dev demo leaves it.

What is other people's code is fenced as `py` and not run.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

import headrace as hr
import pytest
from headrace.demo import data as demo_data
from support import COUNT, Ahead, Data, members_of, run_python, write_tar

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "migrate").glob("*.md"))]
DOCUMENTS = [p for p in (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *PAGES) if p.exists()]


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
    demo = folder / "data/demo"
    for i, name in enumerate(demo_data.names(160)):
        (demo / name).parent.mkdir(parents=True, exist_ok=True)
        (demo / name).write_bytes(data.samples[i % COUNT].jpeg)
    hr.pack(demo / "train", demo / "shards", to="tar", shards=demo_data.SHARDS, keep_order=True)
    return folder


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, readme_folder: pathlib.Path) -> Ahead:
    def run(path: pathlib.Path, line: int, code: str) -> subprocess.CompletedProcess[str]:
        return run_python("\n" * (line - 1) + code, timeout=100, cwd=readme_folder)

    return Ahead(request, run)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("path", "line", "code"), blocks())
def test_every_block_of_python_in_the_documents_runs(
    request: pytest.FixtureRequest, path: pathlib.Path, line: int, code: str, runs: Ahead
) -> None:
    run = runs.result(request)
    assert run.returncode == 0, f"{path}:{line}\n{run.stdout}{run.stderr}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_every_link_in_the_documents_leads_somewhere(path: pathlib.Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text())
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not missing
