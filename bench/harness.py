# SPDX-License-Identifier: Apache-2.0
"""Runs contenders: each in a process of its own, in its own environment, one at a time.

`prepare` makes the environment, the peer's own data format, compares pixels with Pillow's and finds the best number
of workers; what it found is kept in build/peers/prepared.json until the peer's files change.
`rounds` measures, interleaved.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any

import environments
import numpy as np
from contenders import CORES, Contender
from peers.common import BATCH, MEAN, SHORT, SIZE, STD
from photo_set import ROOT, Data

BENCH = ROOT / "bench"
KEPT = ROOT / "build/peers/prepared.json"
MODES = ("f32", "u8")
PATIENCE_SECONDS = 120  # for a start; FFCV compiles for 15 s on a free machine
CALIBRATION_SECONDS = 2.0
SAME_LEVELS = 3  # rounding at another place; another filter differs by dozens


class Failed(RuntimeError):
    """A contender did not run; the text is the reason."""


@dataclasses.dataclass(frozen=True)
class Prepared:
    workers: int
    calibration: dict[str, float]  # workers → images/s
    most: float  # difference from Pillow, in levels
    mean: float
    pixels: str  # "same", or what filter it is
    cache: bool = False  # it has a data format of its own


# -- one run ----------------------------------------------------------------------------------------------


def run(c: Contender, data: Data, action: str, mode: str, workers: int, seconds: float, out: str = "") -> dict[str, float]:
    """The line that the contender's script prints. Raises `Failed`."""
    job = {
        "action": action,
        "mode": mode,
        "photos": str(data.photos),
        "shards": str(data.shards),
        "cache": str(data.cache(c.script)),
        "workers": workers,
        "seconds": seconds,
        "started": time.monotonic(),
        "out": out,
        "options": c.options,
    }
    command = [str(environments.interpreter(c.script)), "-m", f"peers.{c.script}", json.dumps(job)]
    # Files, not pipes, and a session of its own: worker processes may outlive their parent and hold a pipe open.
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        process = subprocess.Popen(command, cwd=BENCH, stdout=stdout, stderr=stderr, start_new_session=True)
        try:
            process.wait(timeout=seconds + PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"gave nothing in {seconds + PATIENCE_SECONDS:.0f} s") from None
        finally:
            _end(process)
        stdout.seek(0)
        stderr.seek(0)
        lines = stdout.read().split("\n")
        errors = [line for line in stderr.read().split("\n") if line.strip()]
    if process.returncode != 0:
        raise Failed(errors[-1].strip()[:200] if errors else f"exit code {process.returncode}")
    return json.loads([line for line in lines if line.startswith("{")][-1])


def _end(process: subprocess.Popen[bytes]) -> None:
    """The process and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# -- pixels -----------------------------------------------------------------------------------------------


def reference(data: Data, crop_first: bool = False) -> np.ndarray:
    """The first pictures by Pillow: shorter side to 256, the middle 224, as torchvision rounds.

    `crop_first`: the middle 224/256 of the shorter side, then to 224, for who has no other; half a pixel beside
    the first, which would count as a difference of pixels.
    """
    from PIL import Image

    out = np.empty((BATCH, 3, SIZE, SIZE), np.float32)
    for i, name in enumerate(sorted(data.photos.glob("*/*.jpg"))[:BATCH]):
        with Image.open(name) as file:
            picture = file.convert("RGB")
        short, bilinear = min(picture.size), Image.Resampling.BILINEAR
        if crop_first:
            side = short * SIZE // SHORT
            x, y = ((whole - side) // 2 for whole in picture.size)
            picture = picture.crop((x, y, x + side, y + side)).resize((SIZE, SIZE), bilinear)
        else:
            picture = picture.resize(tuple(SHORT * side // short for side in picture.size), bilinear)
            x, y = (round((side - SIZE) / 2) for side in picture.size)
            picture = picture.crop((x, y, x + SIZE, y + SIZE))
        out[i] = np.asarray(picture).transpose(2, 0, 1)
    return out


def differences(c: Contender, data: Data, want: np.ndarray) -> tuple[float, float]:
    """Largest and mean, in levels, over both modes. One worker: with several the first batch need not be the first pictures."""
    most = mean = 0.0
    for mode in MODES:
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "pixels.npy")
            run(c, data, "pixels", mode, 1, 0, out)
            got = np.load(out).astype(np.float32)
        if mode == "f32":
            got = 255 * (got * np.reshape(STD, (3, 1, 1)) + np.reshape(MEAN, (3, 1, 1)))
        apart = np.abs(got - want)
        most, mean = max(most, float(apart.max())), max(mean, float(apart.mean()))
    return most, mean


# -- preparing --------------------------------------------------------------------------------------------


def _key(c: Contender, data: Data) -> str:
    files = [BENCH / "peers" / name for name in (f"{c.script}.py", f"{c.script}.txt", "common.py", "pictures.py")]
    texts = [f.read_bytes() for f in files if f.exists()]
    settings = f"{c} {data.images} {CORES}".encode()
    return hashlib.sha256(b"\0".join([settings, *texts])).hexdigest()[:16]


def _prepare(c: Contender, data: Data, say: Callable[[str], None]) -> Prepared:
    say(f"{c.name}: data")
    run(c, data, "prepare", "u8", 1, 600)
    say(f"{c.name}: pixels")
    most, mean = differences(c, data, reference(data, c.crop_first))
    calibration = {}
    for workers in c.workers if len(c.workers) > 1 else ():
        say(f"{c.name}: {workers} {c.unit}")
        calibration[str(workers)] = run(c, data, "rate", "f32", workers, CALIBRATION_SECONDS)["rate"]
    best = int(max(calibration, key=lambda w: calibration[w])) if calibration else c.workers[0]
    pixels = "same" if most <= SAME_LEVELS else c.filter
    return Prepared(best, calibration, most, mean, pixels, data.cache(c.script).exists())


def prepare(c: Contender, data: Data, say: Callable[[str], None], again: bool = False) -> Prepared:
    """Raises `Failed` or `environments.NotInstalled`. headrace changes under us: it is compared every time."""
    if not c.has_batches:
        return Prepared(c.workers[0], {}, 0, 0, "")
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    key = _key(c, data)
    say(f"{c.name}: environment")
    environments.make(c.script)
    if key in kept and c.script != "headrace" and not again:
        found = Prepared(**kept[key])
        if data.cache(c.script).exists() or not found.cache:
            return found
    done = _prepare(c, data, say)
    kept[key] = dataclasses.asdict(done)
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=1))
    return done


# -- measuring --------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Measured:
    """All rounds of one contender in one mode."""

    rate: list[float] = dataclasses.field(default_factory=list)
    first: list[float] = dataclasses.field(default_factory=list)  # seconds from the process's start to the first batch
    memory: list[float] = dataclasses.field(default_factory=list)  # MB, with all its processes
    failure: str = ""

    def add(self, line: dict[str, float]) -> None:
        for name in ("rate", "first", "memory"):
            if name in line:
                getattr(self, name).append(line[name])


def rounds(
    todo: list[tuple[Contender, int]],
    data: Data,
    count: int,
    seconds: float,
    next_: Callable[[str], None],
    done: Callable[[], None],
) -> dict[tuple[str, int, str], Measured]:
    """(name, workers, mode) → what was measured. Who fails once is left out from then on."""
    out = {(c.name, workers, mode): Measured() for c, workers in todo for mode in MODES}
    for _ in range(count):
        for mode in MODES:
            for c, workers in todo:
                measured = out[c.name, workers, mode]
                next_(f"{mode} {c.name}")
                if not measured.failure:
                    try:
                        measured.add(run(c, data, "rate", mode, workers, seconds))
                    except Failed as why:
                        measured.failure = str(why)
                done()
    return out
