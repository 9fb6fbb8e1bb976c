# SPDX-License-Identifier: Apache-2.0
"""Our vector kernels as on a lesser processor: HEADRACE_TEST_VECTORS=sse4, ssse3 or none before pytest.

Kernels choose their instructions through Highway's library, which the package shares; what is hidden from
it before the first picture is not chosen.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any, Optional

VARIABLE = "HEADRACE_TEST_VECTORS"
# Highway's bits on x86-64: the better, the lower.  With none there is what every such processor has.
TARGETS = {"avx2": 1 << 9, "sse4": 1 << 11, "ssse3": 1 << 12, "none": 1 << 13}


def library() -> Optional[ctypes.CDLL]:
    """Highway's, as it is loaded in this process; none where the package carries its own inside."""
    import headrace  # noqa: F401  loads it

    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if "/libhwy.so" in line:
            return ctypes.CDLL(line.split()[-1])
    return None


def _function(name: str, result: Any, *arguments: Any) -> Any:
    highway = library()
    assert highway is not None, "Highway is not a shared library here"
    function = getattr(highway, name)
    function.restype, function.argtypes = result, list(arguments)
    return function


def supported() -> int:
    """The instruction sets that may be chosen from, as bits of TARGETS."""
    return int(_function("_ZN3hwy16SupportedTargetsEv", ctypes.c_int64)())


def chosen() -> int:
    """Those that kernels do choose the best from, since one of them has run."""
    mask = _function("_ZN3hwy15GetChosenTargetEv", ctypes.POINTER(ctypes.c_int64))()[0]
    assert mask != 1, "no kernel has run yet"
    return int(mask) >> 1


def limit(most: str) -> None:
    """Nothing better than this is chosen from now on; kernels that were chosen before stay."""
    allowed = supported() & -TARGETS[most]
    assert most == "none" or allowed & TARGETS[most], f"this processor has no {most}"
    _function("_ZN3hwy26SetSupportedTargetsForTestEl", None, ctypes.c_int64)(allowed)


def limit_by_environment() -> None:
    if VARIABLE in os.environ:
        limit(os.environ[VARIABLE])


def is_limited() -> bool:
    """Whether the kernels that have run are within the limit."""
    return chosen() & (TARGETS[os.environ[VARIABLE]] - 1) == 0


# -- as a plugin: python -m pytest -p vector_limit ----------------------------------------------------


def pytest_configure() -> None:
    limit_by_environment()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    import torch

    ours = "not limited" if VARIABLE not in os.environ else "limited" if is_limited() else "beyond the limit"
    terminalreporter.write_line(f"processor: torch {torch.backends.cpu.get_cpu_capability()}, our vectors {ours}")
