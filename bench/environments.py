# SPDX-License-Identifier: Apache-2.0
"""A virtual environment for each peer, made once from `bench/peers/NAME.txt` into `build/peers/NAME`.

Beside pinned requirements such a file may hold two lines for us:

    # shares: torch          sees the packages of the environment that runs the benchmark (torch is 5 GB)
    # apt: libopencv-dev …   Debian packages without which the peer does not build

What the environment installs itself goes before what it shares.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench/peers"


class NotInstalled(RuntimeError):
    """The peer cannot be had here; the text is the reason."""


def interpreter(name: str) -> pathlib.Path:
    """The peer's Python: its own environment's, or ours where it needs nothing else."""
    if not requirements(name).exists():
        return pathlib.Path(sys.executable)
    return ROOT / "build/peers" / name / "bin/python"


def requirements(name: str) -> pathlib.Path:
    return PEERS / f"{name}.txt"


def version(name: str) -> str:
    """The pinned version of the peer itself: the file's first requirement."""
    if not requirements(name).exists():
        return ""
    found = re.search(r"^[\w.-]+==([\w.]+)", requirements(name).read_text(), re.MULTILINE)
    return found[1] if found else ""


def _directive(text: str, name: str) -> list[str]:
    found = re.search(rf"^# {name}: (.*)$", text, re.MULTILINE)
    return found[1].split() if found else []


def _run(command: list[str], what: str, seconds: float = 1200) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{what} took more than {seconds:.0f} s") from None
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if re.search(r"error", line, re.IGNORECASE)]
        raise NotInstalled(f"{what}: {(errors or lines or ['no message'])[0][:200]}")


def _apt(packages: list[str]) -> None:
    missing = [p for p in packages if subprocess.run(["dpkg", "-s", p], capture_output=True).returncode != 0]
    if not missing:
        return
    if os.getuid() != 0:
        raise NotInstalled(f"as root: apt-get install {' '.join(missing)}")
    _run(["apt-get", "update", "-qq"], "apt-get update")
    _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], "apt-get install")


def make(name: str, wanted: pathlib.Path | None = None) -> pathlib.Path:
    """Makes or completes the peer's environment, from `wanted` where that is given; raises `NotInstalled`."""
    wanted = wanted or requirements(name)
    if not wanted.exists():
        return interpreter(name)
    folder = ROOT / "build/peers" / name
    python = folder / "bin/python"
    stamp, text = folder / "installed.txt", wanted.read_text()
    if stamp.exists() and stamp.read_text() == text:
        return python
    if shutil.which("apt-get"):
        _apt(_directive(text, "apt"))
    venv.create(folder, clear=True, with_pip=False, symlinks=True)
    if _directive(text, "shares"):
        ours = [p for p in sys.path if p.endswith("site-packages")]
        site = next(folder.glob("lib/python*/site-packages"))
        (site / "shared.pth").write_text("\n".join(ours) + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--disable-pip-version-check"]
    _run([*pip, "-r", str(wanted)], "pip install")
    stamp.write_text(text)
    return python
