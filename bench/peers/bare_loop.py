# SPDX-License-Identifier: Apache-2.0
"""The kernels alone, from memory or from one open file: bench/micro/jpeg_loop. It has no batches to hand out and none to compare."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys

from peers.common import Job, report

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "build/release/jpeg_loop"


def run(job: Job) -> dict[str, float]:
    options = {"threads": job.workers, "seconds": job.seconds, "mode": job.mode, **job.options}
    command = [PROGRAM, job.photos, *(f"{k}={v}" for k, v in options.items())]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"([\d.]+) images/s", out)
    if found is None:
        raise RuntimeError(f"jpeg_loop said: {out}")
    return {"rate": float(found[1])}


if __name__ == "__main__":
    report(run(Job(**json.loads(sys.argv[1]))))
