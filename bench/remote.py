# SPDX-License-Identifier: Apache-2.0
"""Samples of 100 KB from an S3 server on loopback, without and with latency: headrace beside curl and the peers.

    ./dev bench --remote [--samples 2000] [--rounds 3] [--latency 0,50] [--cap MB/s] [--busy 100] [--peers]

The server is versitygw, toxiproxy stands in front of it where there is latency; both as ./dev setup installs them. Every contender
runs in a process of its own, cold (its own cache folders), an epoch with construction; medians of the rounds, which take turns. The limit is
`curl --parallel` of the same shards with the same number of connections.

--cap: all connections together get so many megabytes a second (a wire of our own, before the latency); what is reached of it is shown.
--busy N: every N-th request is answered 503; beside the same wire without.
--peers: LitData, Streaming, s3torchconnector and s3fs, in environments of their own (bench/peers).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
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
from collections.abc import Callable, Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import remote_peers  # noqa: E402
import servers  # noqa: E402

BYTES = 100_000
SHARDS = 16
CURL = "curl --parallel, 16 connections"

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
    os.sync()  # or the fsync of whoever writes an index waits for all of this
    return names


def measured(code: str, *arguments: str, python: str = sys.executable) -> list[float]:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "HEADRACE_CACHE": cache}
        script = pathlib.Path(cache) / "contender.py"  # a file: those that spawn processes import it again
        script.write_text(code)
        done = subprocess.run([python, str(script), *arguments], capture_output=True, text=True, env=environment, timeout=600)
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
def before(s3: servers.S3, latency_ms: int, cap_mb: int, busy: int | None) -> Iterator[str]:
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


Run = Callable[[], list[float]]


def contenders(endpoint: str, names: list[str], samples: int, index: str, pythons: dict[str, pathlib.Path]) -> dict[str, Run]:
    pattern = "s3://bucket/d/{" + ",".join(names) + "}"
    keys = (servers.KEY, servers.SECRET)
    out: dict[str, Run] = {
        CURL: lambda: curl(endpoint, names, samples),
        "headrace": lambda: measured(HEADRACE, endpoint, pattern, *keys, ""),
        "headrace, index there": lambda: measured(HEADRACE, endpoint, pattern, *keys, index),
        "headrace, single objects": lambda: measured(HEADRACE, endpoint, "s3://bucket/d/objects", *keys, ""),
    }
    if importlib.util.find_spec("webdataset"):
        signed = (
            f"--aws-sigv4 aws:amz:us-east-1:s3 --user {servers.KEY}:{servers.SECRET} -H x-amz-content-sha256:UNSIGNED-PAYLOAD "
        )
        out["WebDataset, pipe:curl"] = lambda: measured(WEBDATASET, *[f"{signed}{endpoint}/bucket/d/{n}" for n in names])
    for name, environment, code, workers in remote_peers.PEERS:
        if environment in pythons:
            python = str(pythons[environment])
            out[name] = functools.partial(measured, code, endpoint, *keys, str(workers), str(samples), python=python)
    return out


def in_turns(runs: dict[str, Run], rounds: int) -> dict[str, list[list[float]]]:
    results: dict[str, list[list[float]]] = {}
    for _ in range(rounds):
        for name, run in runs.items():
            try:
                results.setdefault(name, []).append(run())
            except (RuntimeError, subprocess.SubprocessError) as error:
                print(f"{name}: {error}", file=sys.stderr)
    return {name: found for name, found in results.items() if found}


def table(results: dict[str, list[list[float]]], cap_mb: int) -> None:
    limit = statistics.median(r[0] for r in results[CURL])
    print(
        f"| | samples/s | of curl | {'of the cap | ' if cap_mb else ''}first batch s |\n|---|---|---|---|{'---|' if cap_mb else ''}"
    )
    for name, rounds in results.items():
        rate, first = (statistics.median(column) for column in zip(*rounds))
        of_cap = f" {rate * BYTES / cap_mb / 1e6:.2f} |" if cap_mb else ""
        print(f"| {name} | {rate:,.0f} | {rate / limit:.2f} |{of_cap} {f'{first:.2f}' if first else ''} |")
    print(f"\nload average {os.getloadavg()[0]:.1f}")


def with_503(s3: servers.S3, names: list[str], options: argparse.Namespace, index: str) -> None:
    """The same wire without and with refusals, in turns."""
    pattern = "s3://bucket/d/{" + ",".join(names) + "}"
    for latency in (int(x) for x in options.latency.split(",")):
        with before(s3, latency, options.cap, 0) as plain, before(s3, latency, options.cap, options.busy) as busy:
            runs: dict[str, Run] = {
                name: functools.partial(measured, HEADRACE, endpoint, pattern, servers.KEY, servers.SECRET, index)
                for name, endpoint in (("without", plain), ("with", busy))
            }
            results = in_turns(runs, options.rounds)
        without, with_ = (statistics.median(r[0] for r in results[name]) for name in ("without", "with"))
        print(
            f"{latency} ms, every {options.busy}th request 503: {with_:,.0f} of {without:,.0f} samples/s, {with_ / without:.2f}"
        )
        print(f"load average {os.getloadavg()[0]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", default="0,50", help="milliseconds, one or several")
    parser.add_argument("--cap", type=int, default=0, help="MB/s of all connections together")
    parser.add_argument("--busy", type=int, default=0, help="every so many-th request is answered 503")
    parser.add_argument("--peers", action="store_true", help="others too, in environments of their own")
    options = parser.parse_args()
    import headrace as hr

    with tempfile.TemporaryDirectory(prefix="headrace-remote-") as folder, servers.versitygw(pathlib.Path(folder)) as s3:
        names = write(s3.folder / "d", options.samples)
        index = str(pathlib.Path(folder) / "index")
        hr.build_index("s3://bucket/d/{" + ",".join(names) + "}", index, storage=s3.storage())
        if options.busy:
            return with_503(s3, names, options, index)
        pythons = remote_peers.prepare(s3.folder, names, options.samples) if options.peers else {}
        for latency in (int(x) for x in options.latency.split(",")):
            with before(s3, latency, options.cap, None) as endpoint:
                results = in_turns(contenders(endpoint, names, options.samples, index, pythons), options.rounds)
            wire = f", {options.cap} MB/s in all" if options.cap else ""
            print(f"\n{options.samples} samples of 100 KB, {latency} ms{wire}, medians of {options.rounds}\n")
            table(results, options.cap)


if __name__ == "__main__":
    main()
