# SPDX-License-Identifier: Apache-2.0
"""The stages of bench/gpu, each under 8 minutes and resumable: python bench/gpu/run.py build|check|stress|nvjpeg|copies|alone|train|dali|table.

A stage is a list of short programs. Each writes its results to build/results/gpu.jsonl; those that are there already are not run
again (--again: they are). --only '(gpu|dali) (1|2)$' runs those whose name the pattern finds. A stage ends by itself after 7 minutes and says what is left: the same command goes on there.
--dry: the same programs for a moment on the CPU, to see that they run; nothing is measured.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import NamedTuple

import common

HERE = pathlib.Path(__file__).resolve().parent
MOST_SECONDS = 7 * 60
CORES = (1, 2, 4, 6, 8, 16)


class Task(NamedTuple):
    name: str
    program: tuple[str, ...]
    cores: int = 0  # 0: all
    seconds: int = 120


def tasks_of(stage: str, dry: bool) -> list[Task]:
    """What a stage runs, in order."""
    if stage == "build":
        return [Task("build", ("build.py",), seconds=300)]
    if stage == "check":
        counts = ("60",) if dry else ("2000", "10000", "40000")
        return [Task(f"check {n}", ("check.py", n), seconds=200) for n in counts]
    if stage == "stress":
        return [Task("stress", ("stress.py",), seconds=300)]
    if stage == "nvjpeg":
        return [Task("nvjpeg", ("nvjpeg.py",), cores=2, seconds=120)]
    if stage == "copies":
        return [Task("copies", ("copies.py",), seconds=90)]
    cores = (2,) if dry else CORES
    ways = ("cpu", "cpu:memory") if dry else ("gpu", "gpu:memory", "auto", "cpu")
    if stage == "alone":
        return [Task(f"alone {way} {n}", ("alone.py", way), n, 90) for n in cores for way in ways]
    if stage == "train":
        models = ("resnet18",) if dry else ("resnet50", "resnet18")
        every = (*ways, "dataloader")
        return [Task(f"train {m} {way} {n}", ("train.py", m, way), n, 120) for m in models for n in cores for way in every]
    if stage == "dali":
        alone = [Task(f"dali alone {n}", ("dali.py", "alone"), n, 90) for n in cores]
        return alone + [Task(f"dali {m} {n}", ("dali.py", m), n, 120) for m in ("resnet50", "resnet18") for n in cores]
    raise SystemExit(f"there is no stage {stage!r}: build, check, stress, nvjpeg, copies, alone, train, dali, table")


def done() -> set[str]:
    return {str(line["task"]) for line in common.results() if "failed" not in line and "task" in line}


def run(task: Task, dry: bool) -> str:
    """Runs it; what went wrong, or nothing."""
    usable = sorted(os.sched_getaffinity(0))
    if task.cores > len(usable):
        return f"this process may use {len(usable)} cores"
    env = {
        **os.environ,
        "HEADRACE_BENCH_TASK": task.name,
        "PYTHONUNBUFFERED": "1",
        **({"HEADRACE_BENCH_DRY": "1"} if dry else {}),
    }
    cores = set(usable[: task.cores] if task.cores else usable)
    program = [sys.executable, str(HERE / task.program[0]), *task.program[1:]]
    try:
        ended = subprocess.run(
            program,
            env=env,
            timeout=task.seconds,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
    except subprocess.TimeoutExpired:
        return f"it ran for more than {task.seconds} s"
    sys.stderr.write(ended.stderr[-2000:])
    return "" if ended.returncode == 0 else (ended.stderr.strip().splitlines() or ["no message"])[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", nargs="+")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--only", default="", help="a regular expression: of the programs those that it finds by name")
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args()
    if asked.dry:
        os.environ.setdefault("HEADRACE_BENCH_RESULTS", "build/results/gpu-dry.jsonl")
    failures = 0
    for stage in asked.stage:
        if stage == "table":
            import table

            print(table.made_of(common.results()))
            continue
        begin, known = time.monotonic(), set() if asked.again or asked.dry else done()
        left = [t for t in tasks_of(stage, asked.dry) if t.name not in known and re.search(asked.only, t.name)]
        print(f"== {stage}: {len(left)} to run", flush=True)
        for i, task in enumerate(left):
            if time.monotonic() - begin + task.seconds > MOST_SECONDS + 60:
                print(f"== {stage}: {len(left) - i} left; the same command goes on", flush=True)
                break
            if why := run(task, asked.dry):
                failures += 1
                common.record(stage, {"task": task.name, "failed": why})
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
