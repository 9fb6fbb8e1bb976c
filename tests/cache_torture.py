# SPDX-License-Identifier: Apache-2.0
"""Processes that share a cache and are killed at any moment: ``python cache_torture.py FOLDER ROUNDS PROCESSES DISK_KIB SEED``.

Each child opens a data set through the cache, reads samples at random and compares them with what they must be. The
parent kills some of them with SIGKILL. Where DISK_KIB is not 0 the cache lies on a file system of that size, which is full most of
the time. Exits with 1 and a line for each wrong byte, else with 0 and what was done, as JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import pathlib
import random
import signal
import sys
import tarfile
import time

import headrace as hr
from headrace import _core

FILES, BYTES = 24, 300_000


def content(number: int) -> bytes:
    return random.Random(number).randbytes(BYTES + number)


def make_data(folder: pathlib.Path) -> pathlib.Path:
    data = folder / "data"
    data.mkdir(parents=True)
    for n in range(FILES):
        with tarfile.open(data / f"{n:03}.tar", "w") as tar:
            member = tarfile.TarInfo(f"{n:03}.bin")
            member.size = BYTES + n
            tar.addfile(member, io.BytesIO(content(n)))
    return data


def damage(cache: pathlib.Path, rng: random.Random) -> None:
    """A byte of some block changes on the disk, as disks do."""
    files = sorted(cache.glob("data/*/*"))
    if files:
        # It may be a hole of a segment, on a disk that is full.
        with contextlib.suppress(OSError), open(rng.choice(files), "r+b") as file:
            file.seek(rng.randrange(8192, 8192 + 60_000))
            file.write(b"x")


def child(data: pathlib.Path, cache: pathlib.Path, seed: int) -> int:
    rng = random.Random(seed)
    # Two jobs with the same data, or with a part of it; limits from a few blocks to all of it.
    files = sorted(data.glob("*.tar"))[:: rng.choice((1, 2))]
    limit = rng.choice((1 << 20, 2 << 20, 4 << 20, 16 << 20))
    ds = hr.open([str(f) for f in files], cache=hr.cache(cache, bytes=limit, keep_free=0))
    for _ in range(rng.randrange(20, 120)):
        i = rng.randrange(len(ds))
        number = int(files[i].stem)
        if ds[i]["bin"] != content_of[number]:
            print(f"wrong bytes: {files[i]}", flush=True)
            return 1
    return 0


def run_child(*args: object) -> None:
    try:
        code = child(*args)  # type: ignore[arg-type]
    except BaseException as e:
        print(f"{type(e).__name__}: {e}", flush=True)
        code = 2
    os._exit(code)


folder = pathlib.Path(sys.argv[1])
rounds, processes, disk_kib, seed = (int(word) for word in sys.argv[2:6])
data = make_data(folder)
content_of = [content(n) for n in range(FILES)]
hr.open(data)  # the index is not what is tested
place = folder / "disk"
place.mkdir(mode=0o700)
if disk_kib:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, f"size={disk_kib}k,mode=0700".encode()) != 0:
        print("no mount")
        sys.exit(77)
killed = ended = 0
typical = 0.05  # seconds that a round takes those who are not killed
bad = 0
rng = random.Random(seed)
for r in range(rounds):
    # While nobody reads: a process trusts a block that it has checked.
    if r % 3 == 2 and (place / "cache").exists():
        damage(place / "cache", rng)
    children = []
    for p in range(processes):
        pid = os.fork()
        if pid == 0:
            run_child(data, place / "cache", seed * 1_000_000 + r * 1000 + p)
        children.append(pid)
    begin = time.monotonic()
    time.sleep(rng.uniform(0, 0.9 * typical))  # however fast this machine reads, within their time
    for pid in rng.sample(children, processes // 2):
        os.kill(pid, signal.SIGKILL)
    for pid in children:
        status = os.waitpid(pid, 0)[1]
        killed += os.WIFSIGNALED(status)
        ended += os.WIFEXITED(status)
        bad += os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0
    typical = time.monotonic() - begin
used = sum(row[2] for row in _core.list_cache(str(place / "cache")))
_core.verify_cache(str(place / "cache"))  # removes what was damaged above
left = _core.verify_cache(str(place / "cache"))[3]
_core.clear_cache(str(place / "cache"))
gone = not (place / "cache").exists()
if disk_kib:
    libc.umount(os.fsencode(place))
print(json.dumps({"killed": killed, "ended": ended, "bad": bad, "used": used, "damaged_left": len(left), "cleared": gone}))
sys.exit(1 if bad or left or not gone else 0)
