# SPDX-License-Identifier: Apache-2.0
"""Who am I among how many: from the arguments, from a framework, from a launcher; never guessed."""

from __future__ import annotations

import logging
import pathlib

import headrace as hr
import pytest
from headrace import ranks
from support import NUMBER, NUMBERS, Data, run_python

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}
SLURM_BATCH = {
    "SLURM_JOB_ID": "7",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "0",
    "SLURM_NPROCS": "8",
    "SLURM_TASKS_PER_NODE": "4(x2)",
}
SLURM_STEP = {
    **SLURM_BATCH,
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "5",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
}

LAUNCHERS = {
    "RANK and WORLD_SIZE": {"RANK": "3", "WORLD_SIZE": "8"},
    "Open MPI": {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"},
    "MVAPICH": {"MV2_COMM_WORLD_RANK": "3", "MV2_COMM_WORLD_SIZE": "8", "MV2_COMM_WORLD_LOCAL_SIZE": "4"},
    "PMI": {"PMI_RANK": "3", "PMI_SIZE": "8"},
    "PALS": {"PALS_RANKID": "3", "PALS_SIZE": "8", "PALS_LOCAL_SIZE": "4"},
    "the Slurm step": {**SLURM_STEP, "SLURM_PROCID": "3"},
}


def test_without_anything_there_is_one_rank() -> None:
    assert ranks.find(env={}) == ranks.Ranks(0, 1, "nobody", 1)


@pytest.mark.parametrize("name", LAUNCHERS)
def test_each_launcher_is_understood_and_named(name: str) -> None:
    found = ranks.find(env=LAUNCHERS[name])
    assert (found.rank, found.world, found.source) == (3, 8, name)


@pytest.mark.parametrize("name", ["Open MPI", "MVAPICH", "PALS", "the Slurm step"])
def test_the_ranks_of_a_node_are_counted(name: str) -> None:
    assert ranks.find(env=LAUNCHERS[name]).local == 4


def test_a_batch_script_that_runs_plain_python_is_one_rank() -> None:
    assert ranks.find(env=SLURM_BATCH) == ranks.Ranks(0, 1, "nobody", 1)


def test_a_slurm_step_is_many() -> None:
    assert ranks.find(env=SLURM_STEP) == ranks.Ranks(5, 8, "the Slurm step", 4)


def test_torchrun_under_slurm_is_believed() -> None:
    """srun starts one torchrun a node: what the step says is about torchrun, not about us."""
    step = {**SLURM_STEP, "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}
    assert ranks.find(env={**step, **TORCHRUN}) == ranks.Ranks(3, 8, "RANK and WORLD_SIZE", 4)


def test_torchrun_under_mpi_is_believed() -> None:
    assert ranks.find(env={"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", **TORCHRUN}).rank == 3


def test_arguments_end_the_search() -> None:
    found = ranks.find(1, 2, env={**LAUNCHERS["PMI"], "RANK": "0", "WORLD_SIZE": "5"})
    assert (found.rank, found.world, found.source) == (1, 2, "the arguments")


def test_launchers_that_agree_are_no_trouble() -> None:
    found = ranks.find(
        env={**LAUNCHERS["PMI"], **LAUNCHERS["Open MPI"], **LAUNCHERS["the Slurm step"], "RANK": "3", "WORLD_SIZE": "8"}
    )
    assert (found.rank, found.world, found.source) == (3, 8, "RANK and WORLD_SIZE")


def test_launchers_that_disagree_are_an_error_that_names_them_and_the_remedy() -> None:
    env = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "RANK": "0", "WORLD_SIZE": "1"}
    with pytest.raises(hr.UsageError, match=r"RANK and WORLD_SIZE: rank 0 of 1; Open MPI: rank 1 of 2.*rank=\.\.\., world_size="):
        ranks.find(env=env)


@pytest.mark.parametrize(("rank", "world"), [(0, None), (None, 2), (2, 2), (-1, 2), (0, 0), (0, -1)])
def test_arguments_that_make_no_sense_are_refused(rank: object, world: object) -> None:
    with pytest.raises(hr.UsageError):
        ranks.find(rank, world, env={})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["", "three", "1.0", "-1", "8", "99999999999999999999"])
def test_a_launcher_that_says_nonsense_is_a_usage_error_that_names_the_variable(value: str) -> None:
    with pytest.raises(hr.UsageError, match="RANK"):
        ranks.find(env={"RANK": value, "WORLD_SIZE": "8"})


def test_half_of_a_launchers_variables_is_an_error() -> None:
    """Silently one rank of one would give every rank the whole data."""
    with pytest.raises(hr.UsageError, match="WORLD_SIZE"):
        ranks.find(env={"WORLD_SIZE": "8"})


def test_half_of_them_is_no_trouble_where_torch_distributed_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lightning sets WORLD_SIZE in the processes it starts, and not RANK."""
    known = ("torch.distributed", lambda _: (1, 2))
    monkeypatch.setattr(ranks, "_SOURCES", [known, *ranks._SOURCES[1:]])
    assert ranks.find(env={"WORLD_SIZE": "2", "LOCAL_RANK": "1"}).rank == 1
    with pytest.raises(hr.UsageError, match="told differently"):
        ranks.find(env={"WORLD_SIZE": "3", "RANK": "1"})


def test_the_loader_uses_what_was_found_and_says_so_once(
    numbers: hr.Dataset, monkeypatch: pytest.MonkeyPatch, say_again: None, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    caplog.set_level("INFO", "headrace")
    for _ in range(2):
        with hr.Loader(numbers, 8, NUMBER, output="numpy") as loader:
            assert len(loader) == NUMBERS // 32
    assert caplog.record_tuples == [("headrace", logging.INFO, "rank 0 of 4, as RANK and WORLD_SIZE says")]


def test_other_ranks_say_nothing(
    numbers: hr.Dataset, monkeypatch: pytest.MonkeyPatch, say_again: None, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    caplog.set_level("INFO", "headrace")
    with hr.Loader(numbers, 8, NUMBER, output="numpy"):
        assert caplog.text == ""


TWO = """
import sys, os
import torch.distributed as dist, torch.multiprocessing as mp
import headrace as hr
def work(rank, source, place, out):
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
    with hr.Loader(source.split("|"), 8, {"n": hr.scalar("cls")}, tail="pad") as loader:
        assert loader.ranks.source == "torch.distributed", loader.ranks
        seen = []
        for batch in loader.epoch(0):
            total = batch["n"].sum(); dist.all_reduce(total)      # one step of all ranks: hangs where counts differ
            seen += batch.indices[batch.valid].tolist()
        gathered = [None, None]
        dist.all_gather_object(gathered, (seen, loader.plan_id(), loader.state_dict()))
    if rank == 0:
        print(sorted(gathered[0][0] + gathered[1][0]) == list(range(211)), gathered[0][1:] == gathered[1][1:])
    dist.destroy_process_group()
if __name__ == "__main__":
    pids = []
    for rank in range(2):
        pid = os.fork()
        if pid == 0:
            work(rank, sys.argv[1], sys.argv[2], None); sys.stdout.flush(); os._exit(0)
        pids.append(pid)
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in pids))
"""


@pytest.mark.timeout(120)
def test_torch_distributed_with_two_processes(numbers: hr.Dataset, tmp_path: object) -> None:
    run = run_python(TWO, "|".join(numbers._urls), f"{tmp_path}/rendezvous", timeout=100)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "True True\n"
    assert "rank 0 of 2, as torch.distributed says" in run.stderr


def test_jax_that_was_not_started_is_not_asked() -> None:
    """Asking would start its back end."""
    run = run_python(
        "import jax, headrace.ranks as r, jax._src.xla_bridge as b; print(r.find(env={})); print(b.backends_are_initialized())"
    )
    assert run.stdout.splitlines() == ["Ranks(rank=0, world=1, source='nobody', local=1)", "False"], run.stderr


def test_the_ranks_share_the_cores_of_a_node(numbers: hr.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody bound them: two ranks on two cores compute with one thread each."""
    import headrace._core as core

    if core.affinity_cpus() != core.machine_cpus():
        pytest.skip("this process is bound already")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(core.usable_cpus()))
    with hr.Loader(numbers, 8, NUMBER, rank=0, world_size=2, output="numpy") as loader:
        assert loader.stats()["compute_threads"] == 1


OTHER_SEEDS = """
import os, sys
import torch.distributed as dist
import headrace as hr
def work(rank, source, place):
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
    hr.Loader(source, 8, {"n": hr.scalar("cls")}, seed=5)                   # the same on both: fine
    refused = [False, False]
    try:
        hr.Loader(source, 8, {"n": hr.scalar("cls")}, seed=rank)
        said = ""
    except hr.UsageError as e:
        said = str(e)
    dist.all_gather_object(refused, said)
    if rank == 0:
        print(sum("would load in another order than rank" in r for r in refused))
    dist.destroy_process_group()
pids = []
for rank in range(2):
    pid = os.fork()
    if pid == 0:
        work(rank, sys.argv[1], sys.argv[2]); sys.stdout.flush(); os._exit(0)
    pids.append(pid)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in pids))
"""


def test_ranks_that_would_load_in_another_order_are_refused(data: Data, tmp_path: pathlib.Path) -> None:
    ended = run_python(OTHER_SEEDS, str(data.tar), str(tmp_path / "meet"))
    assert ended.returncode == 0 and ended.stdout.split() == ["1"], (ended.stdout, ended.stderr)
