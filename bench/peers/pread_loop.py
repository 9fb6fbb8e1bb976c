# SPDX-License-Identifier: Apache-2.0
"""Each value by one pread into one buffer, in a shuffled order, by one thread: bench/micro/pread_loop."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

from peers.common import Job, report

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "build/release/pread_loop"


def run(job: Job) -> dict[str, float]:
    command = [PROGRAM, job.options["source"], f"field={job.options['field']}", f"seconds={job.seconds}"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"([\d.]+) samples/s", out)
    if found is None:
        raise RuntimeError(f"pread_loop said: {out}")
    return {"rate": float(found[1])}


if __name__ == "__main__":
    report(run(Job(**json.loads(sys.argv[1]))))
