# SPDX-License-Identifier: Apache-2.0
"""Which device batches are delivered on, and who brings them there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from . import _core, checks
from .errors import UsageError
from .messages import INFO, tell_once

Decode = Literal["auto", "gpu", "cpu"]
_DECODE = {"auto": _core.DecodeOn.AUTO, "gpu": _core.DecodeOn.GPU, "cpu": _core.DecodeOn.CPU}


class Target(NamedTuple):
    """``device``: the number of the GPU that the engine delivers on; None: the CPU. ``copy_to``: a device that PyTorch copies to."""

    device: int | None
    decode: _core.DecodeOn
    copy_to: Any
    stream_of: Callable[[], int] | None


def target_of(device: Any, decode: str, output: str) -> Target:
    checks.one_of(decode, "decode", tuple(_DECODE))
    how = _DECODE[decode]
    if output == "torch":
        return _for_torch(device, decode, how)
    kind, index = _parsed(device)
    if kind == "cpu":
        if output == "cupy":
            raise UsageError('output="cupy" goes with device="cuda"')
        return _on_cpu(decode)
    if output not in ("jax", "cupy"):
        raise UsageError(f'device={device!r} goes with output="torch", "jax" or "cupy"')
    add_folders()
    _tell_of_queues(how)
    return Target(index, how, None, _cupy_stream if output == "cupy" else None)


def _on_cpu(decode: str, copy_to: Any = None) -> Target:
    if decode == "gpu":
        raise UsageError('decode="gpu" goes with device="cuda"')
    return Target(None, _core.DecodeOn.CPU, copy_to, None)


def _parsed(device: Any) -> tuple[str, int]:
    kind, _, number = str(device).partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdigit()):
        raise UsageError(f'device={device!r}: there are "cpu", "cuda" and "cuda:N"')
    return kind, int(number or 0)


def _for_torch(device: Any, decode: str, how: _core.DecodeOn) -> Target:
    try:
        import torch  # here, not at the first batch
    except ImportError:
        raise UsageError('output="torch" needs PyTorch, which is not installed; say output="numpy" or "jax"') from None
    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError) as e:
        raise UsageError(f"device={device!r}: {e}") from None
    if wanted.type == "cpu":
        return _on_cpu(decode)
    if wanted.type != "cuda" or torch.version.hip is not None:
        target = _on_cpu(decode, wanted)  # ROCm, XPU, MPS: PyTorch copies
        try:
            torch.empty(0, device=wanted)
        except Exception as e:  # of a type for each device: now, and not at the first batch
            raise UsageError(f"device={device!r}: PyTorch cannot use it here: {e}") from None
        return target
    if not torch.cuda.is_available():
        raise UsageError(f"device={device!r}: PyTorch finds no CUDA device here; nvidia-smi shows whether there is one")
    index = torch.cuda.current_device() if wanted.index is None else wanted.index
    if index >= torch.cuda.device_count():
        raise UsageError(f"device={device!r}: PyTorch sees {torch.cuda.device_count()} CUDA devices, counted from 0")
    torch.cuda.init()
    add_folders()
    _tell_of_queues(how)
    where = torch.device("cuda", index)
    stream = torch.cuda.current_stream

    def stream_of() -> int:
        return int(stream(where).cuda_stream)

    return Target(index, how, where, stream_of)


def _tell_of_queues(decode: _core.DecodeOn) -> None:
    """CUDA puts all streams into eight queues unless told otherwise; nvJPEG alone has seven streams for a decoder."""
    if decode is not _core.DecodeOn.CPU and "CUDA_DEVICE_MAX_CONNECTIONS" not in os.environ:
        tell_once(
            "decoding on the GPU is faster beside a training step with CUDA_DEVICE_MAX_CONNECTIONS=32 in the environment, "
            "set before the program starts: else copies of the decoder wait behind kernels of the step",
            INFO,
        )


def _cupy_stream() -> int:
    import cupy  # type: ignore[import-not-found,unused-ignore]

    return int(cupy.cuda.get_current_stream().ptr)


def add_folders() -> None:
    """The libraries that came as Python packages (nvidia-nvjpeg, nvidia-cuda-nvrtc) are found too."""
    from pathlib import Path

    found = [str(lib) for place in sys.path if place for lib in sorted(Path(place).glob("nvidia/*/lib"))]
    _core.add_library_folders(found)
