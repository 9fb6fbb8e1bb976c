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

import headrace as hr
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
STANDINS = ROOT / "build/release/standin"

PROGRAM = """
import logging, sys
import headrace as hr
import headrace.device
if "alone" in sys.argv[3:]:  # without the libraries that PyTorch's packages bring
    headrace.device.add_folders = lambda: None
if "epochs" in sys.argv[3:]:  # arrays that nobody reads
    import types
    cupy = types.ModuleType("cupy")
    cupy.from_dlpack = cupy.fromDlpack = lambda exported: exported
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=0))
    sys.modules["cupy"] = cupy
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
image = hr.image("jpg").random_resized_crop(32).random_flip()
if "invert" in sys.argv[3:]:
    image = image.random_invert()
try:
    loader = hr.Loader(sys.argv[1], 4, {"image": image, "label": hr.scalar("cls")}, **{"output": "cupy", **eval(sys.argv[2])})
    print("stats", loader.stats()["device"])
    if "epochs" in sys.argv[3:]:
        for _ in range(50):
            for batch in loader:
                pass
        print("fifty epochs")
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
        ({}, "{'device': 'cuda', 'device_memory_budget': '1 GB'}", "'memory_budget': 1073741824"),
        ({}, "{'device': 'cuda', 'decode': 'gpu', 'device_memory_budget': 1000}", "do not fit into device_memory_budget"),
        ({"HEADRACE_STANDIN_MEMORY": "8000"}, "{'device': 'cuda', 'decode': 'gpu'}", "no memory on the GPU"),
        ({}, "{'device': 'cuda', 'decode': 'cpu'}", "'name': 'stand-in'"),
    ],
)
def test_each_fault_is_named(
    photos: pathlib.Path, standins: pathlib.Path, tmp_path: pathlib.Path, environment: dict[str, str], options: str, wanted: str
) -> None:
    assert wanted in said(photos, options, standins, XDG_CACHE_HOME=str(tmp_path), **environment)


def test_a_step_that_the_gpu_has_not_is_named(photos: pathlib.Path, standins: pathlib.Path) -> None:
    out = said(photos, "{'device': 'cuda', 'decode': 'gpu'}", standins, "invert")
    assert "field 'image', decode=\"gpu\"" in out and "random_invert" in out
    out = said(photos, "{'device': 'cuda', 'decode': 'auto'}", standins, "invert")
    assert "field 'image' is decoded on the CPU" in out and "random_invert" in out


@pytest.mark.parametrize(
    ("decode", "queues", "told"), [("gpu", None, True), ("auto", None, True), ("cpu", None, False), ("gpu", "1", False)]
)
def test_cudas_queues_are_named_where_they_matter(
    photos: pathlib.Path, standins: pathlib.Path, decode: str, queues: str | None, told: bool
) -> None:
    """Where the user has chosen a number, whatever it is, nothing is said."""
    env = {**os.environ, "XDG_CACHE_HOME": str(photos.parent), "HEADRACE_CUDA_PATH": str(standins)}
    env.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    if queues is not None:
        env["CUDA_DEVICE_MAX_CONNECTIONS"] = queues
    options = f"{{'device': 'cuda', 'decode': {decode!r}}}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(photos), options], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert ("CUDA_DEVICE_MAX_CONNECTIONS=32" in done.stdout + done.stderr) is told


def test_without_nvjpeg_the_error_says_what_to_install(
    photos: pathlib.Path, standins: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for name in ("libcuda.so.1", "libnvrtc.so.13"):
        shutil.copy(standins / name, tmp_path)
    out = said(photos, "{'device': 'cuda', 'decode': 'gpu'}", tmp_path, "alone")
    assert "nvJPEG is not there" in out and "pip install nvidia-nvjpeg" in out


def test_without_nvrtc_the_error_says_what_to_install(
    photos: pathlib.Path, standins: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for name in ("libcuda.so.1", "libnvjpeg.so.13"):
        shutil.copy(standins / name, tmp_path)
    out = said(photos, "{'device': 'cuda', 'decode': 'gpu'}", tmp_path, "alone")
    assert "NVRTC is not there" in out and "pip install nvidia-cuda-nvrtc" in out


@pytest.mark.parametrize("device", ["mps", "xpu"])
def test_a_device_that_this_pytorch_lacks_is_a_usage_error(photos: pathlib.Path, device: str) -> None:
    torch = pytest.importorskip("torch")
    if getattr(torch, device).is_available():
        pytest.skip(f"there is {device} here")
    with pytest.raises(hr.UsageError, match=f"device='{device}': PyTorch cannot use it here"):
        hr.Loader(photos, 2, {"x": hr.bytes("jpg")}, device=device)


def test_decoding_on_a_gpu_without_one_is_a_usage_error(photos: pathlib.Path) -> None:
    out = said(photos, "{'device': 'cpu', 'decode': 'gpu', 'output': 'numpy'}", None)
    assert "UsageError" in out and 'decode="gpu" goes with device="cuda"' in out


@pytest.mark.parametrize(
    ("environment", "options", "wanted"),
    [
        # Room for the first batches alone: what is kept for later ones is not enough.
        (
            {"HEADRACE_STANDIN_MEMORY": "230000"},
            "{'device': 'cuda', 'decode': 'gpu', 'device_memory_budget': '1 GB'}",
            "Exhausted",
        ),
        ({"HEADRACE_STANDIN_LOST": "60"}, "{'device': 'cuda', 'decode': 'gpu'}", "the GPU failed (cu"),
        ({"HEADRACE_STANDIN_LOST": "20"}, "{'device': 'cuda', 'decode': 'cpu'}", "the GPU failed (cu"),
        ({"HEADRACE_STANDIN_FAILS": "40"}, "{'device': 'cuda', 'decode': 'gpu'}", "the decoder failed on the device"),
        ({"HEADRACE_STANDIN_REFUSES": "3"}, "{'device': 'cuda', 'decode': 'gpu'}", "fifty epochs"),
    ],
)
def test_a_fault_in_the_middle_is_named(
    photos: pathlib.Path, standins: pathlib.Path, environment: dict[str, str], options: str, wanted: str
) -> None:
    out = said(photos, options, standins, "epochs", **environment)
    assert wanted in out
    assert wanted == "fifty epochs" or "fifty epochs" not in out


# A CuPy of our own: arrays over what the stand-in calls device memory, read once its stream has come so far.
CUPY = """
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
"""

DELIVERS = (
    CUPY
    + """
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
)

# Every way of a device, against the CPU's batches.
EQUAL = (
    CUPY
    + """
def fields():
    crop = hr.image("jpg", orient=True).random_resized_crop(32)
    jitter = crop.color_jitter(0.4, 0.9, 0.4, 0.2).random_grayscale(0.3).random_flip().random_erasing(0.6, value="random")
    return {"image": jitter.normalize(hr.IMAGENET), "plain": crop, "label": hr.scalar("cls")}

def values(batch, name):
    value = batch[name]
    return value.host() if hasattr(value, "host") else value

if __name__ == "__main__":
    options = {"seed": 5, "tail": "keep", "bad_samples": eval(sys.argv[2]), "mix": eval(sys.argv[3])}
    try:
        cpu = hr.Loader(sys.argv[1], 4, fields(), output="numpy", **options)
        wanted = [(b.indices.tolist(), {n: b[n] for n in ("image", "plain", "label")}) for b in cpu]
    except hr.Error as e:
        wanted = (type(e).__name__, e.file, e.offset, e.sample, str(e))
    for decode in ("gpu", "auto", "cpu"):
        try:
            loader = hr.Loader(sys.argv[1], 4, fields(), output="cupy", device="cuda", decode=decode, **options)
            got = [(b.indices.tolist(), {n: values(b, n) for n in ("image", "plain", "label")}) for b in loader]
        except hr.Error as e:
            assert isinstance(wanted, tuple), e
            assert (type(e).__name__, e.file, e.offset, e.sample, str(e)) == wanted, (wanted, e)
            print(decode, e)
            continue
        assert [n for n, _ in got] == [n for n, _ in wanted], decode
        for (_, a), (_, b) in zip(wanted, got):
            for name in a:
                assert (a[name] == b[name]).all(), (decode, name)
        assert sorted(map(str, loader.stats()["bad_samples"])) == sorted(map(str, cpu.stats()["bad_samples"])), (loader.stats()["bad_samples"], cpu.stats()["bad_samples"])
        print(decode, "the same", loader.stats()["device"], len(loader.stats()["bad_samples"]))
        loader.close()
"""
)


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


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Pictures, turned by their EXIF; two are cut in the middle and end with a last mark: no header tells."""
    import io

    from headrace.photos import make_photo
    from PIL import Image

    root = tmp_path_factory.mktemp("damaged")
    for i in range(18):
        out = io.BytesIO()
        exif = Image.Exif()
        exif[0x112] = i % 8 + 1
        Image.open(io.BytesIO(make_photo(i, (96, 64)))).save(out, "JPEG", quality=60 + i, exif=exif, subsampling=i % 3)
        stored = out.getvalue()
        if i in (5, 11):
            stored = stored[: len(stored) * 3 // 4].rstrip(b"\xff") + b"\xff\xd9"
        (root / f"class{i % 3}").mkdir(exist_ok=True)
        (root / f"class{i % 3}" / f"{i}.jpg").write_bytes(stored)
    return root


def equal(source: pathlib.Path, standins: pathlib.Path, tmp_path: pathlib.Path, bad: str, mix: str, **environment: str) -> str:
    program = tmp_path / "program.py"
    program.write_text(EQUAL)
    env = {**os.environ, "HEADRACE_CUDA_PATH": str(standins), "XDG_CACHE_HOME": str(tmp_path), **environment}
    done = subprocess.run(
        [sys.executable, str(program), str(source), bad, mix], env=env, capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_bad_picture_is_named_as_on_the_cpu(damaged: pathlib.Path, standins: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = equal(damaged, standins, tmp_path, "'raise'", "None")
    assert out.count('bad_samples="replace" takes another sample instead') == 3
    assert "damaged" in out and ".jpg" in out


@pytest.mark.parametrize("temper", ["threads", "lazy"])
def test_bad_pictures_are_replaced_as_on_the_cpu(
    damaged: pathlib.Path, standins: pathlib.Path, tmp_path: pathlib.Path, temper: str
) -> None:
    out = equal(damaged, standins, tmp_path, "'replace'", "None", HEADRACE_STANDIN_TEMPER=temper)
    assert [line.split()[0] for line in out.splitlines()] == ["gpu", "auto", "cpu"]
    assert all(line.endswith(" 2") for line in out.splitlines()), out


@pytest.mark.parametrize("kind", ["hr.mixup(0.4, classes=10)", "hr.cutmix(classes=10)"])
def test_pictures_are_mixed_as_on_the_cpu(
    damaged: pathlib.Path, standins: pathlib.Path, tmp_path: pathlib.Path, kind: str
) -> None:
    assert equal(damaged, standins, tmp_path, "'replace'", kind).count("the same") == 3


def nvrtc_folder() -> pathlib.Path | None:
    for place in (os.environ.get("HEADRACE_NVRTC", ""), *sys.path):
        for found in pathlib.Path(place).glob("nvidia/*/lib") if place else ():
            if list(found.glob("libnvrtc.so.*")):
                return found
    return None


def test_the_kernels_compile_with_the_real_nvrtc(standins: pathlib.Path) -> None:
    folder = nvrtc_folder()
    if folder is None:
        pytest.skip(
            "THE KERNELS ARE NOT COMPILED BY THE REAL NVRTC: pip install nvidia-cuda-nvrtc (53 MB; PyTorch for CUDA brings it), or name its site folder in HEADRACE_NVRTC"
        )
    program = ROOT / "build/release/test_device"
    env = {**os.environ, "HEADRACE_NVRTC": str(folder)}
    done = subprocess.run([str(program), "--gtest_filter=RealNvrtc.*"], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "[  PASSED  ] 1 test." in done.stdout, done.stdout[-2000:]
