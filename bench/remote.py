# SPDX-License-Identifier: Apache-2.0
"""Samples of 100 KB from an S3 server on loopback, without and with latency: headrace beside curl and the peers.

    ./dev bench --remote [--samples 2000] [--rounds 3] [--latency 0,50] [--cap MB/s]

The server is versitygw, toxiproxy stands in front of it where there is latency or a cap; both as ./dev setup installs them. Every contender
runs in a process of its own, cold (its own cache folders), an epoch with construction; medians of the rounds, which take turns. The limit is
`curl --parallel` of the same shards with the same number of connections.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
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
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import servers  # noqa: E402

BYTES = 100_000
SHARDS = 16

HEADRACE = """
import sys, time, json, os
import headrace as hr
endpoint, pattern, key, secret, index = sys.argv[1:6]
start = time.perf_counter()
storage = hr.storage(endpoint=endpoint, region="us-east-1", access_key=key, secret_key=secret)
loader = hr.Loader(pattern, 64, {"x": hr.bytes("bin")}, shuffle=True, seed=1, tail="keep", output="numpy", storage=storage, index=index or None)
first, count = None, 0
for batch in loader.epoch(0):
    first = first or time.perf_counter() - start
    count += len(batch["x"])
print(json.dumps([count / (time.perf_counter() - start), first]))
"""

WEBDATASET = """
import sys, time, json, warnings
warnings.simplefilter("ignore")
import webdataset as wds
start = time.perf_counter()
urls = ["pipe:curl -s " + u for u in sys.argv[1:]]
first, count = None, 0
for sample in wds.WebDataset(urls, shardshuffle=False, empty_check=False).shuffle(1000):
    first = first or time.perf_counter() - start
    count += len(sample["bin"]) == 100000
print(json.dumps([count / (time.perf_counter() - start), first]))
"""

S3FS = """
import sys, time, json
import s3fs, torch
endpoint, key, secret = sys.argv[1:4]
paths = sys.argv[4:]
class Objects(torch.utils.data.Dataset):
    fs = None
    def __len__(self): return len(paths)
    def __getitem__(self, i):
        if self.fs is None:
            self.fs = s3fs.S3FileSystem(key=key, secret=secret, client_kwargs={"endpoint_url": endpoint}, skip_instance_cache=True)
        return self.fs.cat_file(paths[i])
start = time.perf_counter()
first, count = None, 0
for batch in torch.utils.data.DataLoader(Objects(), 64, shuffle=True, num_workers=4, collate_fn=list, multiprocessing_context="spawn"):
    first = first or time.perf_counter() - start
    count += len(batch)
print(json.dumps([count / (time.perf_counter() - start), first]))
"""


def write(folder: pathlib.Path, samples: int) -> list[str]:
    """Shards, and the same samples as single objects."""
    folder.mkdir(parents=True)
    (folder / "objects").mkdir()
    generator = random.Random(1)
    names = []
    for shard in range(SHARDS):
        name = f"{shard:04d}.tar"
        with tarfile.open(folder / name, "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(shard, samples, SHARDS):
                value = generator.randbytes(BYTES)
                member = tarfile.TarInfo(f"{i:06d}.bin")
                member.size = len(value)
                tar.addfile(member, io.BytesIO(value))
                (folder / f"objects/{i:06d}.bin").write_bytes(value)
        names.append(name)
    return names


def measured(code: str, *arguments: str) -> list[float]:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "HEADRACE_CACHE": cache}
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "failed")
    return [float(x) for x in json.loads(done.stdout.splitlines()[-1])]


def curl(endpoint: str, names: list[str], samples: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "urls"
        # Signed by curl itself: no query, so its signatures are good here.
        config.write_text("".join(f'url = "{endpoint}/bucket/d/{n}"\noutput = /dev/null\n' for n in names))
        start = time.perf_counter()
        command = ["curl", "-sS", "--fail", "--parallel", "--parallel-max", "16", "--aws-sigv4", "aws:amz:us-east-1:s3"]
        user = ["--user", f"{servers.KEY}:{servers.SECRET}", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
        subprocess.run([*command, *user, "-K", str(config)], check=True, capture_output=True)
        return [samples / (time.perf_counter() - start), 0.0]


@contextlib.contextmanager
def before(s3: servers.S3, latency_ms: int, cap_mb: int) -> Iterator[str]:
    """The endpoint with so much added."""
    if latency_ms == 0 and cap_mb == 0:
        yield s3.endpoint
        return
    with servers.toxiproxy(s3.port) as proxy, contextlib.ExitStack() as stack:
        if latency_ms:
            stack.enter_context(proxy.toxic("latency", latency=latency_ms))
        elif cap_mb:
            stack.enter_context(proxy.toxic("bandwidth", rate=cap_mb * 1000))
        yield f"http://127.0.0.1:{proxy.port}"


def contenders(
    endpoint: str, s3: servers.S3, web: servers.Web | None, names: list[str], samples: int, index: str
) -> dict[str, object]:
    pattern = "s3://bucket/d/{" + ",".join(names) + "}"
    objects = [f"bucket/d/objects/{i:06d}.bin" for i in range(samples)]
    keys = (servers.KEY, servers.SECRET)
    out: dict[str, object] = {
        "curl --parallel, 16 connections": lambda: curl(endpoint, names, samples),
        "headrace": lambda: measured(HEADRACE, endpoint, pattern, *keys, ""),
        "headrace, index there": lambda: measured(HEADRACE, endpoint, pattern, *keys, index),
        "headrace, single objects": lambda: measured(HEADRACE, endpoint, "s3://bucket/d/objects", *keys, ""),
    }
    if importlib.util.find_spec("webdataset"):
        signed = (
            f"--aws-sigv4 aws:amz:us-east-1:s3 --user {servers.KEY}:{servers.SECRET} -H x-amz-content-sha256:UNSIGNED-PAYLOAD "
        )
        out["WebDataset, pipe:curl"] = lambda: measured(WEBDATASET, *[f"{signed}{endpoint}/bucket/d/{n}" for n in names])
    if importlib.util.find_spec("s3fs"):
        out["s3fs + DataLoader, single objects"] = lambda: measured(S3FS, endpoint, *keys, *objects)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", default="0,50", help="milliseconds, one or several")
    parser.add_argument(
        "--cap", type=int, default=0, help="MB/s in all of one connection (toxiproxy), in place of a latency of 0"
    )
    options = parser.parse_args()
    import headrace as hr

    with tempfile.TemporaryDirectory(prefix="headrace-remote-") as folder, servers.versitygw(pathlib.Path(folder)) as s3:
        names = write(s3.folder / "d", options.samples)
        index = str(pathlib.Path(folder) / "index")
        hr.build_index("s3://bucket/d/{" + ",".join(names) + "}", index, storage=s3.storage())
        for latency in (int(x) for x in options.latency.split(",")):
            results: dict[str, list[list[float]]] = {}
            with before(s3, latency, options.cap) as endpoint:
                runs = contenders(endpoint, s3, None, names, options.samples, index)
                for _ in range(options.rounds):
                    for name, run in runs.items():
                        try:
                            results.setdefault(name, []).append(run())  # type: ignore[operator]
                        except (RuntimeError, subprocess.CalledProcessError) as error:
                            print(f"{name}: {error}", file=sys.stderr)
            limit = statistics.median(r[0] for r in results["curl --parallel, 16 connections"])
            print(f"\n{options.samples} samples of 100 KB, {latency} ms, medians of {options.rounds}\n")
            print("| | samples/s | of curl | first batch s |\n|---|---|---|---|")
            for name, rounds in results.items():
                rate, first = (statistics.median(column) for column in zip(*rounds))
                print(
                    f"| {name} | {rate:,.0f} | {rate / limit:.2f} | {first:.2f} |" if first else f"| {name} | {rate:,.0f} | 1 | |"
                )


if __name__ == "__main__":
    main()
