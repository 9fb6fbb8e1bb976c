# SPDX-License-Identifier: Apache-2.0
"""Ranks that were told different things are refused, and a Loader that was made too early says so."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap

import pytest
from support import write_tar

SCRIPT = """
import sys
import torch.distributed as dist
import headrace as hr

rank, tar, rendezvous, what = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
if what == "early":
    loader = hr.Loader(tar, 4, {"t": hr.text("txt")})
dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2)
try:
    if what == "batch":
        hr.Loader(tar, 4 if rank == 0 else 8, {"t": hr.text("txt")})
    elif what == "tail":
        hr.Loader(tar, 4, {"t": hr.text("txt")}, tail="drop" if rank == 0 else "keep")
    elif what == "seed":
        hr.Loader(tar, 4, {"t": hr.text("txt")}, seed=rank)
    elif what == "early":
        next(iter(loader))
    else:  # train and validation over one data set, in one order
        for tail in ("drop", "keep"):
            print(sum(len(b["t"]) for b in hr.Loader(tar, 5, {"t": hr.text("txt")}, tail=tail)))
    print("fine")
except hr.UsageError as e:
    print("refused:", e)
dist.barrier()
"""


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("ranks") / "x.tar"
    return write_tar(path, [(f"{i:03d}.txt", b"%d" % i) for i in range(42)])


def both(tar: pathlib.Path, tmp_path: pathlib.Path, what: str) -> list[str]:
    script = tmp_path / "rank.py"
    script.write_text(textwrap.dedent(SCRIPT))
    commands = [[sys.executable, str(script), str(r), str(tar), str(tmp_path / "meet"), what] for r in range(2)]
    runs = [subprocess.Popen(c, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for c in commands]
    out = [run.communicate(timeout=300) for run in runs]
    assert all(run.returncode == 0 for run in runs), out
    return [o for o, _ in out]


@pytest.mark.parametrize(
    ("what", "values"), [("batch", ("batch_size=4", "batch_size=8")), ("tail", ("tail='drop'", "tail='keep'"))]
)
def test_the_later_rank_is_refused_with_both_values(
    tar: pathlib.Path, tmp_path: pathlib.Path, what: str, values: tuple[str, str]
) -> None:
    said = both(tar, tmp_path, what)
    (refused,) = (s for s in said if "refused" in s)
    assert all(v in refused for v in values) and sum("fine" in s for s in said) == 1


def test_another_seed_is_refused_and_equal_ones_are_not(tar: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert sum("another order" in s for s in both(tar, tmp_path, "seed")) == 1
    (tmp_path / "meet").unlink(missing_ok=True)
    assert [s.split() for s in both(tar, tmp_path, "equal")] == [["20", "21", "fine"]] * 2


def test_a_loader_made_before_the_process_group_says_so(tar: pathlib.Path, tmp_path: pathlib.Path) -> None:
    zero, one = both(tar, tmp_path, "early")
    assert "made as rank 0 of 1, before torch.distributed.init_process_group" in zero and "rank 0 of 2" in zero
    assert "rank 1 of 2" in one and "make the Loader after it" in one
