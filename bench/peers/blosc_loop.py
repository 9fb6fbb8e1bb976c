# SPDX-License-Identifier: Apache-2.0
"""Chunks in memory, opened by Blosc and nothing else: bench/micro/blosc_loop."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

from peers.common import Job, report

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "build/release/blosc_loop"


def run(job: Job) -> dict[str, float]:
    chunks = sorted(str(p) for p in pathlib.Path(job.options["source"]).rglob("*") if p.is_file() and "c" in p.parts)
    command = [PROGRAM, *chunks, f"threads={job.workers}", f"seconds={job.seconds}", f"batch={job.options['batch']}"]
    command.append(f"read={int(job.options['who'] == 'read')}")
    if job.options["pinned"]:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"([\d.]+) samples/s", out)
    if found is None:
        raise RuntimeError(f"blosc_loop said: {out}")
    return {"rate": float(found[1])}


if __name__ == "__main__":
    report(run(Job(**json.loads(sys.argv[1]))))
