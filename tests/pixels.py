# SPDX-License-Identifier: Apache-2.0
"""codec/ and transform/ as Python functions over NumPy arrays, without the module.

Builds tests/pixels_capi.cc and the sources it needs into build/pixels once per change.
"""

from __future__ import annotations

import ctypes
import hashlib
import pathlib
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
DTYPES = {"u8": (0, np.uint8), "f16": (8, np.float16), "bf16": (9, np.uint16), "f32": (10, np.float32)}
FILTERS = {"nearest": 0, "bilinear": 1, "bicubic": 2}


def _build() -> pathlib.Path:
    sources = [p for d in ("base", "codec", "transform") for p in sorted((ROOT / "src" / d).glob("*.cc"))]
    sources = [p for p in sources if not p.name.endswith("_test.cc")] + [ROOT / "tests/pixels_capi.cc"]
    headers = [p for d in ("base", "codec", "transform") for p in sorted((ROOT / "src" / d).glob("*.h"))]
    digest = hashlib.sha256(b"".join(p.read_bytes() for p in sources + headers)).hexdigest()[:16]
    folder = ROOT / "build/pixels"
    library = folder / f"libpixels-{digest}.so"
    if library.exists():
        return library
    generated = folder / "generated"
    for table in ("codec/codecs.inc", "transform/transforms.inc"):
        path = generated / table
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / "src" / table).read_text()
        path.write_text("\n".join(line.split(",")[0] + (")" if "," in line else "") for line in text.splitlines() if line.startswith("HEADRACE")))
    objects = []
    for source in sources:
        out = folder / (source.parent.name + "_" + source.stem + ".o")
        objects.append(str(out))
        command = ["c++", "-std=c++20", "-O2", "-fPIC", "-I", str(generated), "-I", str(ROOT / "src"), "-c", str(source), "-o", str(out)]
        subprocess.run(["ccache", *command] if subprocess.run(["which", "ccache"], capture_output=True).returncode == 0 else command, check=True)
    subprocess.run(["c++", "-shared", "-o", str(library), *objects, "-ljpeg", "-lhwy", "-lfmt"], check=True)
    return library


_lib = ctypes.CDLL(str(_build()))
_lib.hr_error.restype = ctypes.c_char_p
_lib.hr_make.restype = ctypes.c_void_p
_lib.hr_run.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
_lib.hr_free.argtypes = [ctypes.c_void_p]


class PixelError(Exception):
    pass


def _check(code: int) -> None:
    if code:
        raise PixelError(_lib.hr_error().decode())


def probe(data: bytes) -> tuple[int, int, int]:
    out = (ctypes.c_int * 3)()
    _check(_lib.hr_probe(data, ctypes.c_size_t(len(data)), out))
    return tuple(out)


def decode(data: bytes, box=None, mode: str = "RGB", shrink: int = 1) -> np.ndarray:
    channels = 3 if mode == "RGB" else 1
    if box is None:
        w, h, _ = probe(data)
        box = (0, 0, -(-w // shrink), -(-h // shrink))
    out = np.empty((box[3], box[2], channels), np.uint8)
    _check(_lib.hr_decode(data, ctypes.c_size_t(len(data)), (ctypes.c_int * 4)(*box), channels, shrink, out.ctypes.data_as(ctypes.c_void_p)))
    return out


def resample(picture: np.ndarray, box, size, filter="bilinear", window=None, flip=False, dtype="u8", layout="NHWC",
             scale=(1, 1, 1, 1), bias=(0, 0, 0, 0), scalar=False) -> np.ndarray:
    picture = np.ascontiguousarray(np.concatenate([picture, np.zeros((2 + 64 // picture.shape[1], *picture.shape[1:]), np.uint8)]))
    window = window or (0, 0, *size)
    channels = picture.shape[2]
    shape = (window[3], window[2], channels) if layout == "NHWC" else (channels, window[3], window[2])
    code, np_dtype = DTYPES[dtype]
    out = np.empty(shape, np_dtype)
    _lib.hr_resample(picture.ctypes.data_as(ctypes.c_void_p), picture.shape[1], channels, (ctypes.c_int * 10)(*box, *size, *window),
                     FILTERS[filter], int(flip), code, int(layout == "NHWC"), (ctypes.c_float * 4)(*scale), (ctypes.c_float * 4)(*bias),
                     int(scalar), out.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(out.nbytes))
    return out


class Program:
    """make_decoder(): steps as "name:key=value;key=1,2|name"."""

    def __init__(self, steps: str = "", options: str = "", what: str = "image", name: str = "image", dtype: str = "u8") -> None:
        self._dtype = DTYPES[dtype][1]
        self._it = _lib.hr_make(name.encode(), what.encode(), options.encode(), steps.encode())
        if not self._it:
            raise PixelError(_lib.hr_error().decode())

    def __del__(self) -> None:
        if getattr(self, "_it", None):
            _lib.hr_free(self._it)

    def __call__(self, data: bytes, seed: int = 0, room: int = 1 << 24) -> np.ndarray:
        shape = (ctypes.c_int64 * 4)()
        out = np.empty(room, np.uint8)
        _check(_lib.hr_run(self._it, data, len(data), seed, shape, out.ctypes.data_as(ctypes.c_void_p), room))
        dims = [n for n in shape][:3]
        return out.view(self._dtype)[: int(np.prod(dims))].reshape(dims).copy()
