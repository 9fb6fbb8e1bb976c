# SPDX-License-Identifier: Apache-2.0
"""nvJPEG's hardware backend alone, one host thread, files in pinned memory: the limit. python bench/gpu/nvjpeg.py [batch sizes]."""

from __future__ import annotations

import ctypes
import sys
import time

import common
import torch

HARDWARE, YUV = 3, 1


class Image(ctypes.Structure):
    _fields_ = (("channel", ctypes.c_void_p * 4), ("pitch", ctypes.c_size_t * 4))


def library() -> ctypes.CDLL:
    for name in ("libnvjpeg.so.13", "libnvjpeg.so.12"):
        for folder in ("", "/usr/local/cuda/lib64/"):
            try:
                return ctypes.CDLL(folder + name)
            except OSError:
                continue
    raise SystemExit("no nvJPEG here")


def measure(batch: int, states: int, seconds: float = 1.5) -> float:
    """Pictures a second, with so many decoders taking turns."""
    lib = library()
    photos = [common.make_photo(i) for i in range(256)]
    places = [sum(len(p) + 256 for p in photos[:i]) for i in range(257)]  # nvJPEG reads past the end of a file
    memory = torch.zeros(places[-1], dtype=torch.uint8).pin_memory()
    for place, photo in zip(places, photos, strict=False):
        memory[place : place + len(photo)] = torch.frombuffer(bytearray(photo), dtype=torch.uint8)
    handle = ctypes.c_void_p()
    assert lib.nvjpegCreateEx(HARDWARE, None, None, 0, ctypes.byref(handle)) == 0
    planes = torch.empty(states, batch, 3, 512 * 384, dtype=torch.uint8, device="cuda")
    turns = []
    for s in range(states):
        state = ctypes.c_void_p()
        assert lib.nvjpegJpegStateCreate(handle, ctypes.byref(state)) == 0
        assert lib.nvjpegDecodeBatchedInitialize(handle, state, batch, 1, YUV) == 0
        images = (Image * batch)()
        for i in range(batch):
            for c in range(3):
                images[i].channel[c] = planes[s, i, c].data_ptr()
                images[i].pitch[c] = 512 if c == 0 else 256
        data = (ctypes.c_void_p * batch)(*[memory.data_ptr() + places[(s * batch + i) % 256] for i in range(batch)])
        lengths = (ctypes.c_size_t * batch)(*[len(photos[(s * batch + i) % 256]) for i in range(batch)])
        turns.append((state, data, lengths, images, torch.cuda.Stream()))
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for state, data, lengths, images, stream in turns:
            status = lib.nvjpegDecodeBatched(handle, state, data, lengths, images, ctypes.c_void_p(stream.cuda_stream))
            assert status == 0, status
            count += batch
    torch.cuda.synchronize()
    return count / (time.perf_counter() - begin)


if __name__ == "__main__":
    if common.is_dry():
        raise SystemExit(print("nvJPEG alone: there is nothing to try without a GPU"))
    for size in [int(a) for a in sys.argv[1:]] or [32, 64, 128, 256]:
        for states in (1, 2):
            common.record("nvjpeg", {"batch": size, "states": states, "rate": round(measure(size, states))})
