# SPDX-License-Identifier: Apache-2.0
"""What `remote.py` measures: programs in processes of their own, each cold, and curl."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator

import servers

BYTES = 100_000
SHARDS = 16

# Each program waits a moment before it begins: numpy's libraries start threads when they are imported, which keep a processor
# busy for some 30 ms before they sleep.
HEADRACE = """
import sys, time, json
import headrace as hr
endpoint, pattern, key, secret, index, shuffle, kind = sys.argv[1:8]
time.sleep(0.2)
start = time.perf_counter()
storage = hr.storage(endpoint=endpoint, region="us-east-1", access_key=key, secret_key=secret)
field = hr.bytes("bin") if kind == "bytes" else hr.image("jpg").random_resized_crop(224).random_flip()
loader = hr.Loader(pattern, 64, {"x": field}, shuffle=shuffle == "shuffled", seed=1, tail="keep", output="numpy", storage=storage, index=index or None)
first, count = None, 0
for batch in loader.epoch(0):
    first = first or time.perf_counter() - start
    count += len(batch["x"])
print(json.dumps([count / (time.perf_counter() - start), first]))
"""

STAGE = """
import sys, time, json
import headrace as hr
endpoint, pattern, key, secret, to, samples = sys.argv[1:7]
time.sleep(0.2)
start = time.perf_counter()
hr.stage(pattern, to, storage=hr.storage(endpoint=endpoint, region="us-east-1", access_key=key, secret_key=secret))
took = time.perf_counter() - start
hr.remove_stage(to)
print(json.dumps([int(samples) / took, 0]))
"""

WEBDATASET = """
import sys, time, json, warnings
warnings.simplefilter("ignore")
import webdataset as wds
kind = sys.argv[1]
time.sleep(0.2)
start = time.perf_counter()
urls = ["pipe:curl -s " + u for u in sys.argv[2:]]
first, count = None, 0
for sample in wds.WebDataset(urls, shardshuffle=False, empty_check=False).shuffle(1000):
    first = first or time.perf_counter() - start
    count += len(picture(sample[kind]) if kind == "jpg" else sample[kind]) > 0
print(json.dumps([count / (time.perf_counter() - start), first]))
"""

Run = Callable[[], list[float]]
Results = dict[str, list[list[float]]]


DISTINCT = 200


def values(samples: int, pictures: bool) -> Callable[[int], bytes]:
    """Random bytes, or JPEGs, of which only so many are different: making one takes longer than all of their ways from a server."""
    generator = random.Random(1)
    if not pictures:
        return lambda i: generator.randbytes(BYTES)
    from headrace.photos import make_photo

    made = [make_photo(i) for i in range(min(samples, DISTINCT))]
    return lambda i: made[i % len(made)]


def write(folder: pathlib.Path, samples: int, pictures: bool = False) -> list[str]:
    """Shards, and the same samples as single objects."""
    folder.mkdir(parents=True)
    (folder / "objects").mkdir()
    value_of, suffix = values(samples, pictures), "jpg" if pictures else "bin"
    names = []
    for shard in range(SHARDS):
        name = f"{shard:04d}.tar"
        with tarfile.open(folder / name, "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(shard, samples, SHARDS):
                value = value_of(i)
                member = tarfile.TarInfo(f"{i:06d}.{suffix}")
                member.size = len(value)
                tar.addfile(member, io.BytesIO(value))
                (folder / f"objects/{i:06d}.{suffix}").write_bytes(value)
        names.append(name)
    os.sync()  # or the fsync of whoever writes an index waits for all of this
    return names


def measured(code: str, *arguments: str, python: str = sys.executable) -> list[float]:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "HEADRACE_CACHE": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as everywhere
        script = pathlib.Path(cache) / "contender.py"  # a file: those that spawn processes import it again
        script.write_text(code)
        done = subprocess.run([python, str(script), *arguments], capture_output=True, text=True, env=environment, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed")
    return [float(x) for x in json.loads(done.stdout.splitlines()[-1])]


def curl(
    endpoint: str,
    names: list[str],
    samples: int,
    connections: int = 16,
    to: pathlib.Path | None = None,
    ranges: tuple[int, int] | None = None,
) -> list[float]:
    """Whole objects, to nowhere, or as files in the folder `to`; or (bytes of an object, bytes of a range): ranges of it."""
    cuts = [""]
    if ranges:
        size, step = ranges
        cuts = [f'range = "{at}-{min(at + step, size) - 1}"\n' for at in range(0, size, step)]
    wanted = []
    for name in names:
        output = "/dev/null" if to is None else f'"{to / name}"'
        wanted += [f'{SIGNED}url = "{endpoint}/bucket/d/{name}"\noutput = {output}\n{cut}' for cut in cuts]
    return [samples / run_curl(wanted, connections), 0.0]


# By curl itself: no query, so its signatures are good here.
SIGNED = f'fail\nuser = "{servers.KEY}:{servers.SECRET}"\naws-sigv4 = "aws:amz:us-east-1:s3"\nheader = "x-amz-content-sha256: UNSIGNED-PAYLOAD"\n'


def run_curl(wanted: list[str], connections: int) -> float:
    """Seconds that curl takes for all of these."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "urls"
        config.write_text("next\n".join(wanted))
        start = time.perf_counter()
        command = ["curl", "-sS", "--parallel", "--parallel-max", str(connections), "-K", str(config)]
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - start


def upload(s3: servers.S3, folder: pathlib.Path) -> None:
    """All files of the folder, as objects of their relative names."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    run_curl(
        [
            f'{SIGNED}url = "{s3.endpoint}/bucket/{p.relative_to(folder)}"\nupload-file = "{p}"\noutput = /dev/null\n'
            for p in files
        ],
        16,
    )
    os.sync()


@contextlib.contextmanager
def before(s3: servers.S3, latency_ms: int, cap_mb: int = 0, busy: int | None = None) -> Iterator[str]:
    """The endpoint with so much added."""
    with contextlib.ExitStack() as stack:
        port = s3.port
        if cap_mb or busy is not None:
            port = stack.enter_context(servers.between(port, cap_mb * 1_000_000, busy or 0))
        if latency_ms:
            proxy = stack.enter_context(servers.toxiproxy(port))
            stack.enter_context(proxy.toxic("latency", latency=latency_ms))
            port = proxy.port
        yield f"http://127.0.0.1:{port}"


def in_turns(runs: dict[str, Run], rounds: int) -> Results:
    results: Results = {}
    for _ in range(rounds):
        for name, run in runs.items():
            try:
                results.setdefault(name, []).append(run())
            except (RuntimeError, subprocess.SubprocessError) as error:
                print(f"{name}: {error}", file=sys.stderr)
    return {name: found for name, found in results.items() if found}


def table(results: Results, limit: str, latency_ms: int = 0, cap_mb: int = 0) -> None:
    """`limit`: of these contenders the others' shares are shown."""
    most = statistics.median(r[0] for r in results[limit])
    heads = ["", "samples/s", "of the limit", *(["of the cap"] if cap_mb else []), "first batch s"]
    heads += ["round trips"] if latency_ms else []
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for name, rounds in results.items():
        rate, first = (statistics.median(column) for column in zip(*rounds))
        cells = [name, f"{rate:,.0f}", f"{rate / most:.2f}"]
        cells += [f"{rate * BYTES / cap_mb / 1e6:.2f}"] if cap_mb else []
        cells += [f"{first:.3f}" if first else ""]
        cells += [f"{first * 1000 / latency_ms:.1f}" if first else ""] if latency_ms else []
        print("| " + " | ".join(cells) + " |")
    print(f"\nload average {os.getloadavg()[0]:.1f}\n")
