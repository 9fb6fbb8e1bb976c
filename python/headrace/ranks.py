# SPDX-License-Identifier: Apache-2.0
"""Who am I among how many: found out once, from whoever knows best."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .checks import whole
from .errors import UsageError


class Ranks(NamedTuple):
    """Of data-parallel groups: ranks of one group (tensor- and pipeline-parallel ones) have the same number."""

    rank: int
    world: int
    source: str  # who said so
    local: int = 1  # ranks on this node
    job: tuple[int, int] | None = None  # of the whole job, as torch.distributed says, where that differs

    def __repr__(self) -> str:
        return f"Ranks(rank={self.rank}, world={self.world}, source={self.source!r}, local={self.local})"


def _torch_distributed(_: Mapping[str, str]) -> tuple[int, int] | None:
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None) if torch else None
    if dist is not None and dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return None


def _jax(_: Mapping[str, str]) -> tuple[int, int] | None:
    # Only where jax.distributed was started: asking would start the back end otherwise.
    state = sys.modules.get("jax._src.distributed")
    if state is None or getattr(getattr(state, "global_state", None), "client", None) is None:
        return None
    import jax

    return jax.process_index(), jax.process_count()


def _number(env: Mapping[str, str], name: str, low: int, high: int = 1 << 31) -> int:
    try:
        number = int(env[name])
    except ValueError:
        number = -1
    if not low <= number <= high:
        raise UsageError(f"the variable {name} is {env[name]!r}; a whole number from {low} to {high} is wanted")
    return number


def _variables(rank: str, world: str) -> Callable[[Mapping[str, str]], tuple[int, int] | None]:
    def look(env: Mapping[str, str]) -> tuple[int, int] | None:
        if rank not in env and world not in env:
            return None
        for name, other in ((rank, world), (world, rank)):
            if name not in env:
                raise UsageError(f"{other} is set and {name} is not: set both, or say Loader(rank=..., world_size=...)")
        ranks = _number(env, world, 1)
        return _number(env, rank, 0, ranks - 1), ranks

    return look


def _slurm(env: Mapping[str, str]) -> tuple[int, int] | None:
    # Only inside a step: a batch script that runs plain python is one rank, not rank 0 of 8.
    if "SLURM_STEP_ID" in env and "SLURM_STEP_NUM_TASKS" in env and "SLURM_PROCID" in env:
        ranks = _number(env, "SLURM_STEP_NUM_TASKS", 1)
        return _number(env, "SLURM_PROCID", 0, ranks - 1), ranks
    return None


_SOURCES: list[tuple[str, Callable[[Mapping[str, str]], tuple[int, int] | None]]] = [
    ("torch.distributed", _torch_distributed),
    ("RANK and WORLD_SIZE", _variables("RANK", "WORLD_SIZE")),
    ("jax.process_index", _jax),
    ("Open MPI", _variables("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")),
    ("MVAPICH", _variables("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE")),
    ("PMI", _variables("PMI_RANK", "PMI_SIZE")),
    ("PALS", _variables("PALS_RANKID", "PALS_SIZE")),
    ("the Slurm step", _slurm),
]

# An inner launcher starts its own processes inside the tasks of an outer one (torchrun inside an MPI
# or Slurm task, mpirun's daemons inside a Slurm step): what the outer one says is then about the
# launcher, not about us.
_TORCHRUN = "TORCHELASTIC_RUN_ID"
_MPI = ("Open MPI", "MVAPICH", "PMI", "PALS")
_SLURM = "the Slurm step"
_VARIABLES = "RANK and WORLD_SIZE"


def local_ranks(env: Mapping[str, str]) -> int:
    """How many ranks share this node, as far as the launcher says."""
    for name in ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_SIZE"):
        if name in env:
            return _number(env, name, 1)
    if "SLURM_STEP_TASKS_PER_NODE" in env:
        return max(1, int(env["SLURM_STEP_TASKS_PER_NODE"].split(",")[0].split("(")[0]))
    return 1


#: What the dimensions of a mesh are called that have data of their own.
_DATA = ("dp", "data", "data_parallel", "dp_replicate", "dp_shard", "replicate", "shard", "fsdp", "hsdp", "ddp", "batch")
#: And those whose ranks share them.
_SHARED = ("tp", "tensor", "model", "mp", "pp", "pipeline", "pipe", "stage", "cp", "context", "sp", "sequence", "ep", "expert")


def of_mesh(mesh: Any) -> tuple[int, int]:
    """(data-parallel rank, size) of this process in a torch DeviceMesh: over all its data-parallel dimensions, the outer ones first."""
    names = getattr(mesh, "mesh_dim_names", None)
    if not hasattr(mesh, "get_local_rank") or not hasattr(mesh, "ndim"):
        raise UsageError(f"mesh is a torch DeviceMesh, not {type(mesh).__name__}")
    if mesh.get_coordinate() is None:
        raise UsageError("mesh: this process is not in it; give the mesh that it is in")
    if names is None:
        if mesh.ndim != 1:
            raise UsageError(
                "mesh: its dimensions have no names: init_device_mesh(..., mesh_dim_names=('dp', 'tp')), or a mesh of one dimension"
            )
        return mesh.get_local_rank(), mesh.size()
    data = [n for n, name in enumerate(names) if name.lower() in _DATA]
    unknown = [name for name in names if name.lower() not in (*_DATA, *_SHARED)]
    if mesh.ndim > 1 and unknown:
        raise UsageError(f"mesh: has '{unknown[0]}' data of its own, or not? Say mesh=mesh['dp'], the dimensions that have")
    if mesh.ndim == 1 and not (names and names[0].lower() in _SHARED):
        data = [0]
    rank, size = 0, 1
    for n in data:
        rank = rank * mesh.size(n) + mesh.get_local_rank(n)
        size *= mesh.size(n)
    return rank, size


def find(rank: int | None = None, world_size: int | None = None, env: Mapping[str, str] | None = None, mesh: Any = None) -> Ranks:
    """This process's rank. Arguments end the search, then a mesh; sources that disagree are an error."""
    env = os.environ if env is None else env
    local = local_ranks(env)
    if mesh is not None:
        if rank is not None or world_size is not None:
            raise UsageError("mesh says the data-parallel rank and size; rank= and world_size= do too: give one of them")
        data_rank, size = of_mesh(mesh)
        return Ranks(data_rank, size, "the mesh", local, _torch_distributed({}))
    if (rank is None) != (world_size is None):
        raise UsageError("rank and world_size go together: give both or neither")
    if rank is not None and world_size is not None:
        world_size = whole(world_size, "world_size", 1, 1 << 31)
        rank = whole(rank, "rank", 0, world_size - 1)
        return Ranks(rank, world_size, "the arguments", local)
    found: list[tuple[str, tuple[int, int]]] = []
    for name, look in _SOURCES:
        if _TORCHRUN in env and name in (*_MPI, _SLURM):
            continue
        if name == _SLURM and any(inner in _MPI for inner, _ in found):
            continue
        if name == _VARIABLES and found and not ("RANK" in env and "WORLD_SIZE" in env):
            continue  # Lightning sets WORLD_SIZE alone, and torch.distributed has said the rest
        answer = look(env)
        if answer is not None:
            found.append((name, answer))
    if not found:
        return Ranks(0, 1, "nobody", 1)
    if len({answer for _, answer in found}) > 1:
        said = "; ".join(f"{name}: rank {r} of {w}" for name, (r, w) in found)
        raise UsageError(f"the ranks are told differently ({said}); say Loader(rank=..., world_size=...)")
    name, (r, w) = found[0]
    return Ranks(r, w, name, local)


_named: dict[str, int] = {}  # how many plans of a name this process has compared


def compare_plans(name: str, plan_id: str, mine: Ranks, settings: Mapping[str, object] | None = None) -> None:
    """Raises where this rank's order is not that of the rank which came first.

    Through torch.distributed's store, where there is one: nobody waits for anybody, so a loader that
    only some ranks make cannot hang. ``name`` tells the data of a job's loaders apart; those of the same data are
    compared in the order they were made. ``settings``: what must be equal too, and is named where it is not.
    """
    job = mine.job or (mine.rank, mine.world)
    if job[1] == 1 or _torch_distributed({}) != job:
        return
    import json

    from torch.distributed import distributed_c10d

    count = _named[name] = _named.get(name, 0) + 1
    said = json.dumps({"plan": plan_id, "rank": job[0], "settings": dict(settings or {})})
    try:
        store = distributed_c10d._get_default_store()
        first = json.loads(store.compare_set(f"headrace/{name}/{count}", "", said).decode())
    except (AttributeError, RuntimeError, ValueError):
        return  # a process group without a store to ask
    rank = first["rank"]
    for what, value in (settings or {}).items():
        if first["settings"].get(what) != value:
            raise UsageError(
                f"rank {job[0]} has {what}={value!r} and rank {rank} has {what}={first['settings'].get(what)!r}: "
                "every rank must say the same, or samples are lost and ranks wait for one another"
            )
    if first["plan"] != plan_id:
        raise UsageError(
            f"rank {job[0]} would load in another order than rank {rank} (plan {plan_id[:12]}, not {first['plan'][:12]}): "
            "seed, shuffle, window, reassign_every and weights must be the same on every rank"
        )


def check_still(mine: Ranks) -> None:
    """Raises where torch.distributed was started after the ranks were found, and says something else."""
    if mine.source in ("the arguments", "the mesh"):
        return
    now = _torch_distributed({})
    if now is not None and now != (mine.rank, mine.world):
        raise UsageError(
            f"this Loader was made as rank {mine.rank} of {mine.world}, before torch.distributed.init_process_group; now this "
            f"process is rank {now[0]} of {now[1]}: make the Loader after it, or say Loader(rank=..., world_size=...)"
        )
