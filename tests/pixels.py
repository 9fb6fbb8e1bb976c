# SPDX-License-Identifier: Apache-2.0
"""codec/ and transform/ as Python functions over NumPy arrays, beneath the module.

Links tests/pixels_capi.cc with the libraries of build/release where they are up to date; else it
compiles what it needs into build/pixels, once per change.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import fcntl
import hashlib
import pathlib
import shutil
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/pixels"
PARTS = ("transform", "codec", "trace", "base")  # in the order that a linker wants
DTYPES = {"u8": (0, np.uint8), "f16": (8, np.float16), "bf16": (9, np.uint16), "f32": (10, np.float32)}
LIBRARIES = ("-ljpeg", "-lspng", "-lz", "-lwebpdemux", "-lwebp", "-lhwy", "-lfmt")
CHANNELS = {"L": 1, "RGB": 3, "RGBA": 4, "P": 9}  # PixelMode; the lower three bits are the channels
FILTERS = {"nearest": 0, "bilinear": 1, "bicubic": 2}


def _sources() -> list[pathlib.Path]:
    found = [p for part in PARTS for p in sorted((ROOT / "src" / part).rglob("*.cc"))]
    return [p for p in found if not p.name.endswith("_test.cc")]


def _headers() -> list[pathlib.Path]:
    return [p for part in PARTS for p in sorted((ROOT / "src" / part).rglob("*.h"))]


def _compile(source: pathlib.Path) -> str:
    out = FOLDER / ("_".join(source.relative_to(ROOT).with_suffix("").parts) + ".o")
    command = ["c++", "-std=c++20", "-O2", "-fPIC", f"-I{FOLDER}/generated", f"-I{ROOT}/src", "-c", str(source), "-o", str(out)]
    subprocess.run([*(["ccache"] if shutil.which("ccache") else []), *command], check=True)
    return str(out)


def _tables() -> None:
    """What CMake makes of the tables: rows without the libraries they need."""
    for table in ("codec/codecs.inc", "codec/encoders.inc", "transform/transforms.inc"):
        rows = [r for r in (ROOT / "src" / table).read_text().splitlines() if r.startswith("HEADRACE")]
        path = FOLDER / "generated" / table
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(r.split(",")[0].rstrip(")") + ")\n" for r in rows))
    have = FOLDER / "generated/base/have.h"  # no library of those that unpack data: pictures need none
    have.parent.mkdir(parents=True, exist_ok=True)
    have.write_text("#pragma once\n")


def _objects() -> list[str]:
    built = [ROOT / f"build/release/libheadrace_{part}.a" for part in PARTS]
    newest = max(p.stat().st_mtime for p in _sources() + _headers())
    if all(p.exists() and p.stat().st_mtime > newest for p in built):
        return [str(p) for p in built]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(_compile, _sources()))


def _build() -> pathlib.Path:
    ours = ROOT / "tests/pixels_capi.cc"
    digest = hashlib.sha256(b"".join(p.read_bytes() for p in [*_sources(), *_headers(), ours])).hexdigest()[:16]
    library = FOLDER / f"libpixels-{digest}.so"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "lock", "w") as lock:  # the others that test beside this one wait for it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            _tables()
            made = library.with_suffix(".made")
            subprocess.run(["c++", "-shared", "-o", str(made), _compile(ours), *_objects(), *LIBRARIES], check=True)
            made.rename(library)
    return library


_lib = ctypes.CDLL(str(_build()))
_lib.hr_error.restype = ctypes.c_char_p
_lib.hr_make.restype = ctypes.c_void_p
_lib.hr_run.argtypes = [
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.c_size_t,
    ctypes.c_uint64,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
]
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
    channels = CHANNELS[mode]
    if box is None:
        w, h, _ = probe(data)
        box = (0, 0, -(-w // shrink), -(-h // shrink))
    out = np.empty((box[3], box[2], channels & 7), np.uint8)
    _check(
        _lib.hr_decode(
            data, ctypes.c_size_t(len(data)), (ctypes.c_int * 4)(*box), channels, shrink, out.ctypes.data_as(ctypes.c_void_p)
        )
    )
    return out


def encode(name: str, picture: np.ndarray, quality: int = 90, lossless: bool = False) -> bytes:
    """encode_jpeg and the like, of rows that lie apart."""
    height, width, channels = picture.shape
    apart = np.zeros((height, width * channels + 5), np.uint8)
    apart[:, : width * channels] = picture.reshape(height, -1)
    out = np.empty(2 * picture.size + 65536, np.uint8)
    size = ctypes.c_size_t(out.nbytes)
    _check(
        _lib.hr_encode(
            name.encode(), apart.ctypes.data_as(ctypes.c_void_p), width, height, channels, ctypes.c_size_t(apart.shape[1]), quality,
            int(lossless), out.ctypes.data_as(ctypes.c_void_p), ctypes.byref(size),
        )
    )  # fmt: skip
    return out[: size.value].tobytes()


def draw_crops(width: int, height: int, n: int, seed: int) -> np.ndarray:
    """n rows of (x, y, width, height) as random_resized_crop draws them."""
    out = np.empty((n, 4), np.int32)
    _lib.hr_draw_crops(width, height, n, ctypes.c_uint64(seed), out.ctypes.data_as(ctypes.c_void_p))
    return out


def resample(
    picture: np.ndarray,
    box,
    size,
    filter="bilinear",
    window=None,
    flip=False,
    dtype="u8",
    layout="NHWC",
    scale=(1, 1, 1, 1),
    bias=(0, 0, 0, 0),
    scalar=False,
) -> np.ndarray:
    picture = np.ascontiguousarray(
        np.concatenate([picture, np.zeros((2 + 64 // picture.shape[1], *picture.shape[1:]), np.uint8)])
    )
    window = window or (0, 0, *size)
    channels = picture.shape[2]
    shape = (window[3], window[2], channels) if layout == "NHWC" else (channels, window[3], window[2])
    code, np_dtype = DTYPES[dtype]
    out = np.empty(shape, np_dtype)
    _lib.hr_resample(
        picture.ctypes.data_as(ctypes.c_void_p),
        picture.shape[1],
        channels,
        (ctypes.c_int * 10)(*box, *size, *window),
        FILTERS[filter],
        int(flip),
        code,
        int(layout == "NHWC"),
        (ctypes.c_float * 4)(*scale),
        (ctypes.c_float * 4)(*bias),
        int(scalar),
        out.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_size_t(out.nbytes),
    )
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
        dims = list(shape)[:3]
        return out.view(self._dtype)[: int(np.prod(dims))].reshape(dims).copy()
