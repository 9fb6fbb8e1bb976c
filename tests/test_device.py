# SPDX-License-Identifier: Apache-2.0
"""The way to a GPU where there is none: errors by name, over libraries that stand in for the GPU's (tests/standin).

What batches hold on the device is tested in C++ (src/device/device_test.cc), on a GPU by bench/gpu/check.py.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
STANDINS = ROOT / "build/release/standin"

PROGRAM = """
import logging, sys
import headrace as hr
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
image = hr.image("jpg").random_resized_crop(32).random_flip()
if "jitter" in sys.argv[3:]:
    image = image.color_jitter(0.4)
try:
    loader = hr.Loader(sys.argv[1], 4, {"image": image, "label": hr.scalar("cls")}, output="cupy", **eval(sys.argv[2]))
    print("stats", loader.stats()["device"])
    loader.close()
except hr.Error as e:
    print(type(e).__name__, e)
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    from headrace.photos import make_photo

    root = tmp_path_factory.mktemp("photos")
    for i in range(8):
        (root / f"class{i % 2}").mkdir(exist_ok=True)
        (root / f"class{i % 2}" / f"{i}.jpg").write_bytes(make_photo(i, (96, 64)))
    return root


def said(photos: pathlib.Path, options: str, libraries: pathlib.Path | None, *words: str, **environment: str) -> str:
    env = {**os.environ, "XDG_CACHE_HOME": str(photos.parent), **environment}
    env.pop("HEADRACE_CUDA_PATH", None)
    if libraries is not None:
        env["HEADRACE_CUDA_PATH"] = str(libraries)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(photos), options, *words], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def standins() -> pathlib.Path:
    if not (STANDINS / "libcuda.so.1").exists():
        pytest.skip("the stand-ins are built with the C++ tests: ./dev test")
    return STANDINS


def test_without_a_driver_the_error_says_what_is_needed(photos: pathlib.Path) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("there is a GPU here")
    out = said(photos, "{'device': 'cuda'}", None)
    assert "CUDA's driver is not there" in out and 'device="cpu"' in out


@pytest.mark.parametrize(
    ("environment", "options", "wanted"),
    [
        ({"HEADRACE_STANDIN_VERSION": "11040"}, "{'device': 'cuda'}", "is for CUDA 11.4; headrace needs 12.0 or newer"),
        ({"HEADRACE_STANDIN_DEVICES": "0"}, "{'device': 'cuda'}", "CUDA_ERROR_NO_DEVICE"),
        ({}, "{'device': 'cuda:3'}", "there is no device cuda:3: this process sees 1"),
        ({"HEADRACE_STANDIN_NO_ENGINES": "1"}, "{'device': 'cuda', 'decode': 'gpu'}", "this chip decodes no JPEG by itself"),
        ({"HEADRACE_STANDIN_NO_ENGINES": "1"}, "{'device': 'cuda', 'decode': 'auto'}", "pictures are decoded on the CPU"),
        ({"HEADRACE_STANDIN_OTHER_PLANES": "1"}, "{'device': 'cuda', 'decode': 'gpu'}", "the chip's pixels are not the CPU's"),
        ({"HEADRACE_STANDIN_NO_COMPILE": "1"}, "{'device': 'cuda', 'decode': 'gpu'}", "NVRTC cannot compile for a chip"),
        ({}, "{'device': 'cuda', 'decode': 'gpu'}", "'name': 'stand-in'"),
        ({}, "{'device': 'cuda', 'decode': 'cpu'}", "'name': 'stand-in'"),
    ],
)
def test_each_fault_is_named(
    photos: pathlib.Path, standins: pathlib.Path, tmp_path: pathlib.Path, environment: dict[str, str], options: str, wanted: str
) -> None:
    assert wanted in said(photos, options, standins, XDG_CACHE_HOME=str(tmp_path), **environment)


def test_a_step_that_the_gpu_has_not_is_named(photos: pathlib.Path, standins: pathlib.Path) -> None:
    out = said(photos, "{'device': 'cuda', 'decode': 'gpu'}", standins, "jitter")
    assert "field 'image', decode=\"gpu\"" in out and "color_jitter" in out
    out = said(photos, "{'device': 'cuda', 'decode': 'auto'}", standins, "jitter")
    assert "field 'image' is decoded on the CPU" in out and "color_jitter" in out


def test_without_nvjpeg_the_error_says_what_to_install(
    photos: pathlib.Path, standins: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for name in ("libcuda.so.1", "libnvrtc.so.13"):
        shutil.copy(standins / name, tmp_path)
    out = said(photos, "{'device': 'cuda', 'decode': 'gpu'}", tmp_path)
    assert "nvJPEG is not there" in out and "pip install nvidia-nvjpeg" in out


# A CuPy of our own: arrays over what the stand-in calls device memory, read once its stream has come so far.
DELIVERS = """
import ctypes, os, sys, types
import numpy as np
driver = ctypes.CDLL(os.environ["HEADRACE_CUDA_PATH"] + "/libcuda.so.1")
driver.cuCtxPushCurrent_v2(None)

class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32), ("axes", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]

address = ctypes.pythonapi.PyCapsule_GetPointer
address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

class Array:
    def __init__(self, exported):
        self.capsule = exported if type(exported).__name__ == "PyCapsule" else exported.__dlpack__()
    def host(self):
        assert driver.cuStreamSynchronize(None) == 0
        t = Tensor.from_address(address(self.capsule, b"dltensor"))
        assert t.device == 2  # CUDA
        shape = [t.shape[i] for i in range(t.axes)]
        kind = "iuf"[t.code] + str(t.bits // 8)
        return np.frombuffer(ctypes.string_at(t.data, int(np.prod(shape)) * t.bits // 8), kind).reshape(shape)

cupy = types.ModuleType("cupy")
cupy.from_dlpack = cupy.fromDlpack = Array
cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=0))
sys.modules["cupy"] = cupy
import headrace as hr

def darker(image):
    return image // 2

if __name__ == "__main__":
    def image(halved):
        field = hr.image("jpg").random_resized_crop(32).random_flip()
        return field.map(darker, processes=2) if halved else field
    fields = {"image": image(False), "half": image(True), "label": hr.scalar("cls")}
    options = {"seed": 3, "tail": "keep", "shuffle": True}
    wanted = [(b.indices.tolist(), b["image"], b["half"], b["label"]) for b in hr.Loader(sys.argv[1], 3, fields, output="numpy", **options)]
    for decode in ("cpu", "gpu"):
        loader = hr.Loader(sys.argv[1], 3, fields, output="cupy", device="cuda", decode=decode, **options)
        held = [next(iter(loader))]
        got = list(hr.Loader(sys.argv[1], 3, fields, output="cupy", device="cuda", decode=decode, **options))
        for (numbers, *values), batch in zip(wanted, got, strict=True):
            assert batch.indices.tolist() == numbers
            for name, value in zip(("image", "half", "label"), values):
                assert (batch[name].host() == value).all(), (decode, name)
        loader.close()
        del held, got  # batches that outlive their Loader
    print("the same")
"""


@pytest.mark.parametrize("temper", ["threads", "lazy"])
def test_batches_and_functions_in_processes_reach_the_device(
    photos: pathlib.Path, standins: pathlib.Path, tmp_path: pathlib.Path, temper: str
) -> None:
    pytest.importorskip("cloudpickle")
    program = tmp_path / "program.py"
    program.write_text(DELIVERS)
    env = {**os.environ, "HEADRACE_CUDA_PATH": str(standins), "HEADRACE_STANDIN_TEMPER": temper, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, str(program), str(photos)], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "the same" in done.stdout, done.stderr[-3000:]
