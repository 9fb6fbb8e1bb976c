# SPDX-License-Identifier: Apache-2.0
"""Model-parallel ranks: those of one group get the same batches, those of different groups different ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest

PROGRAM = """
import json, os, sys
import headrace as hr
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

rank, world, rendezvous, data, shape, names, part = sys.argv[1:]
rank, world, shape, names = int(rank), int(world), json.loads(shape), json.loads(names)
dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
given = mesh[part] if part else mesh
with hr.Loader(data, 2, {"t": hr.tokens(seq_len=8, stored="u16")}, mesh=given, seed=5, output="numpy") as loader:
    rows = [b["t"][:, 0].tolist() for b in loader.epoch(0)]
    print(json.dumps([loader.ranks.rank, loader.ranks.world, mesh.get_coordinate(), rows, loader.state_dict()]))
dist.barrier()
dist.destroy_process_group()
"""


def run(tmp_path: Path, shape: list[int], names: list[str] | None, part: str = "") -> list[Any]:
    np.arange(8 * 64 + 1, dtype=np.uint16).tofile(tmp_path / "a.bin")
    world = int(np.prod(shape))
    place = tmp_path / f"rendezvous-{len(list(tmp_path.iterdir()))}"
    children = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                PROGRAM,
                str(r),
                str(world),
                str(place),
                str(tmp_path / "a.bin"),
                json.dumps(shape),
                json.dumps(names),
                part,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for r in range(world)
    ]
    told = [child.communicate(timeout=500) for child in children]
    for child, (_, errors) in zip(children, told):
        assert child.returncode == 0, errors
    return [json.loads(out.splitlines()[-1]) for out, _ in told]


MESHES = [
    ([1, 2], ["dp", "tp"], ""),
    pytest.param([2, 2], ["dp", "tp"], "", marks=pytest.mark.slow),  # the first, and all_data_parallel_dimensions_count
    pytest.param([2, 2], ["pp", "mine"], "mine", marks=pytest.mark.slow),  # likewise
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("shape", "names", "part"), MESHES)
def test_ranks_of_one_group_get_the_same_batches(tmp_path: Path, shape: list[int], names: list[str], part: str) -> None:
    found = run(tmp_path, shape, names, part)
    axis = 1 if part else 0
    groups: dict[int, list[Any]] = {}
    for rank, world, coordinate, rows, state in found:
        assert world == shape[axis] and rank == coordinate[axis]
        groups.setdefault(rank, []).append((rows, state))
    assert len(groups) == shape[axis] and all(len(g) == 2 and g[0] == g[1] for g in groups.values())
    seen = sorted(n for g in groups.values() for batch in g[0][0] for n in batch)
    assert seen == [8 * i for i in range(64)]  # every row once, over the groups


class Mesh:
    """A DeviceMesh as this process sees it: what is asked of one."""

    def __init__(self, coordinate: list[int] | None, shape: list[int], names: list[str] | None) -> None:
        self._at, self._shape, self.mesh_dim_names, self.ndim = coordinate, shape, names, len(shape)

    def get_coordinate(self) -> list[int] | None:
        return self._at

    def get_local_rank(self, n: int = 0) -> int:
        assert self._at is not None
        return self._at[n]

    def size(self, n: int | None = None) -> int:
        return int(np.prod(self._shape)) if n is None else self._shape[n]


def test_all_data_parallel_dimensions_count() -> None:
    from headrace.ranks import of_mesh

    names = ["pp", "dp_replicate", "dp_shard", "tp"]
    assert of_mesh(Mesh([1, 1, 2, 3], [2, 2, 3, 4], names)) == (1 * 3 + 2, 6)
    assert of_mesh(Mesh([3], [8], None)) == (3, 8)
    assert of_mesh(Mesh([3], [8], ["anything"])) == (3, 8)
    assert of_mesh(Mesh([3], [8], ["tp"])) == (0, 1)


def test_meshes_that_do_not_tell_are_refused(tmp_path: Path) -> None:
    np.arange(100, dtype=np.uint16).tofile(tmp_path / "a.bin")
    fields = {"t": hr.tokens(seq_len=8, stored="u16")}
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (Mesh([0, 0], [2, 2], None), {}, "have no names"),
        (Mesh([0, 0], [2, 2], ["dp", "blue"]), {}, "has 'blue' data of its own"),
        (Mesh(None, [2], ["dp"]), {}, "not in it"),
        (3, {}, "DeviceMesh, not int"),
        (Mesh([0], [2], ["dp"]), {"rank": 0, "world_size": 2}, "give one of them"),
    ]
    for mesh, options, words in cases:
        with pytest.raises(hr.UsageError, match=words):
            hr.Loader(str(tmp_path / "a.bin"), 2, fields, mesh=mesh, **options)
