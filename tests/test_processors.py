# SPDX-License-Identifier: Apache-2.0
"""The tests of steps as on other processors: torch with fewer instructions, our kernels with fewer."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
import torch
import vector_limit

HERE = pathlib.Path(__file__).resolve().parent
FILES = ("test_transforms.py", "test_transforms_draws.py", "test_against_torchvision.py", "test_joint.py")
CAPABILITIES = ("default", "avx2", "avx512")  # ATEN_CPU_CAPABILITY; torch does not refuse what the processor lacks


def has(capability: str) -> bool:
    best = torch.backends.cpu.get_cpu_capability().lower()
    return best in CAPABILITIES and CAPABILITIES.index(capability) <= CAPABILITIES.index(best)


def has_vectors(most: str) -> bool:
    if vector_limit.library() is None:
        return False
    return most == "none" or bool(vector_limit.supported() & vector_limit.TARGETS[most])


@pytest.mark.slow  # test_transforms.py on this processor as it is
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("default", ""), ("avx2", ""), ("avx512", ""), ("", "sse4"), ("", "ssse3"), ("", "none"), ("default", "none")],
    ids=lambda limit: limit or "all",
)
def test_steps_pass_on_another_processor(theirs: str, ours: str) -> None:
    if theirs and not has(theirs):
        pytest.skip(f"torch knows no {theirs} here")
    if ours and not has_vectors(ours):
        pytest.skip(f"our kernels cannot be limited to {ours} here")
    limits = {"ATEN_CPU_CAPABILITY": theirs, vector_limit.VARIABLE: ours}
    environment = {name: value for name, value in os.environ.items() if name not in limits}
    environment |= {name: value for name, value in limits.items() if value}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", "-p", "vector_limit", "-p", "no:cacheprovider", "-q", "-x", *FILES]
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"our vectors {'limited' if ours else 'not limited'}\n" in done.stdout
    if theirs:
        assert f"processor: torch {theirs.upper()}," in done.stdout
