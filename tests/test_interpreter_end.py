# SPDX-License-Identifier: Apache-2.0
"""What a script leaves behind when it ends: nothing that the interpreter complains of."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import headrace as hr, numpy as np, torch
loader = hr.Loader(hr.from_python({{"x": np.ones((64, 3), np.float32)}}), 8, output="{output}")
batches = iter(loader)
batch = next(batches)
kept = {kept}
"""
KEPT = {
    "a loss whose graph holds the batch": ("torch", "torch.nn.Linear(3, 1)(batch['x']).sum()"),
    "a view of the batch": ("torch", "batch['x'][2:4]"),
    "an array": ("numpy", "batch['x'][2:4]"),
    "an attribute of another module": ("torch", "setattr(torch, 'left_by_a_test', batch['x'])"),
}


@pytest.mark.parametrize("what", KEPT)
def test_batches_that_outlive_the_interpreter_are_no_leak_of_ours(what: str) -> None:
    output, kept = KEPT[what]
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(output=output, kept=kept)], capture_output=True, text=True)
    assert done.returncode == 0 and "leaked" not in done.stderr, done.stderr
