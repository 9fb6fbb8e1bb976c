# SPDX-License-Identifier: Apache-2.0
"""Samples of 100 KB from an S3 server on loopback, without and with latency: headrace beside curl and the peers.

    ./dev bench --remote [CASE] [--samples 2000] [--rounds 3] [--latency 0,50] [--peers] [--only TEXT,...]

    shards    (unless named) tars: beside `curl --parallel` of the same shards with 16 connections (whole, which this server sends with
              a fifth of the work, and in ranges as loaders ask for them), WebDataset, and with --peers
              LitData, Streaming, s3torchconnector, s3fs, boto3 and TensorStore, in environments of their own (bench/peers)
    pictures  the same contenders, JPEGs of 500x375 to tensors of 224x224 (random crop, flip, u8); TensorStore has none
    objects   every sample an object: beside curl with 64 connections
    cap       50 ms, and all connections together get 100 MB/s (a wire of our own, before the latency)
    busy      single objects (10,000 unless --samples says otherwise): every 100th request is answered 503, beside the same wire without
    stage     hr.stage to a disk: beside curl to files of the same disk, and to nowhere

The server is versitygw, toxiproxy stands in front of it where there is latency; both as ./dev setup installs them. With --peers the
data are sent to it (of files that were laid into its folder it knows no ETag, and some peers refuse those). Every contender
runs in a process of its own, cold (its own cache folders), an epoch with construction; medians of the rounds, which take turns.
A case takes less than two minutes on two cores, --peers more.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import remote_peers  # noqa: E402
import servers  # noqa: E402
from remote_runs import HEADRACE, STAGE, WEBDATASET, Run, before, curl, in_turns, measured, table, upload, write  # noqa: E402

KEYS = (servers.KEY, servers.SECRET)
CURL = "curl --parallel, {} connections"
CAP_MB, BUSY = 100, 100


class Data:
    """What lies in the bucket."""

    def __init__(self, s3: servers.S3, folder: pathlib.Path, options: argparse.Namespace) -> None:
        import headrace as hr

        self.s3, self.folder, self.samples, self.rounds = s3, folder, options.samples, options.rounds
        self.latencies = [int(x) for x in options.latency.split(",")]
        self.only = [text for text in options.only.split(",") if text]
        self.pictures = options.case == "pictures"
        suffix = "jpg" if self.pictures else "bin"
        files = folder / "files" if options.peers else s3.folder
        self.names = write(files / "d", options.samples, self.pictures)
        self.objects = [f"objects/{i:06d}.{suffix}" for i in range(options.samples)]
        self.pythons = remote_peers.prepare(files, self.names, self.objects, self.only) if options.peers else {}
        if options.peers:
            upload(s3, files)
        self.pattern = "s3://bucket/d/{" + ",".join(self.names) + "}"
        self.index = str(folder / "index")
        hr.build_index(self.pattern, self.index, storage=s3.storage())
        self.shard_bytes = min((files / "d" / name).stat().st_size for name in self.names)

    def ours(self, endpoint: str, pattern: str = "", index: str = "", order: str = "shuffled") -> Run:
        kind = "pictures" if self.pictures else "bytes"
        return functools.partial(measured, HEADRACE, endpoint, pattern or self.pattern, *KEYS, index, order, kind)

    def chosen(self, runs: dict[str, Run], limit: str) -> dict[str, Run]:
        wanted = [name for name in runs if name == limit or not self.only or any(text in name for text in self.only)]
        return {name: runs[name] for name in wanted}


def webdataset(data: Data, endpoint: str) -> Run:
    signed = f"--aws-sigv4 aws:amz:us-east-1:s3 --user {servers.KEY}:{servers.SECRET} -H x-amz-content-sha256:UNSIGNED-PAYLOAD "
    kind = "jpg" if data.pictures else "bin"
    code = remote_peers.PICTURE + WEBDATASET
    return functools.partial(measured, code, kind, *[f"{signed}{endpoint}/bucket/d/{n}" for n in data.names])


def shards(data: Data, latencies: list[int], cap_mb: int = 0) -> None:
    for latency in latencies:
        with before(data.s3, latency, cap_mb) as endpoint:
            limit = CURL.format(16)
            runs: dict[str, Run] = {
                limit: functools.partial(curl, endpoint, data.names, data.samples),
                CURL.format(16) + ", ranges of 4 MiB": functools.partial(
                    curl, endpoint, data.names, data.samples, ranges=(data.shard_bytes, 4 << 20)
                ),
                "headrace": data.ours(endpoint),
                "headrace, index there": data.ours(endpoint, index=data.index),
                "headrace, index there, in order": data.ours(endpoint, index=data.index, order="in order"),
            }
            if importlib.util.find_spec("webdataset"):
                runs["WebDataset, pipe:curl"] = webdataset(data, endpoint)
            for name, environment, code, workers, takes_pictures in remote_peers.PEERS:
                if environment in data.pythons and (takes_pictures or not data.pictures):
                    kind = "jpg" if data.pictures else "bin"
                    arguments = (endpoint, *KEYS, str(workers), str(data.samples), kind)
                    runs[name] = functools.partial(measured, code, *arguments, python=str(data.pythons[environment]))
            results = in_turns(data.chosen(runs, limit), data.rounds)
        wire = f", {cap_mb} MB/s in all" if cap_mb else ""
        what = "JPEGs of 500x375 to tensors" if data.pictures else "samples of 100 KB"
        print(f"\n{data.samples:,} {what} in {len(data.names)} shards, {latency} ms{wire}, medians of {data.rounds}\n")
        table(results, limit, latency, cap_mb)


def objects(data: Data) -> None:
    for latency in data.latencies:
        with before(data.s3, latency) as endpoint:
            limit = CURL.format(64)
            runs: dict[str, Run] = {
                limit: functools.partial(curl, endpoint, data.objects, data.samples, 64),
                "headrace, single objects": data.ours(endpoint, "s3://bucket/d/objects"),
            }
            results = in_turns(runs, data.rounds)
        print(f"\n{data.samples:,} objects of 100 KB, {latency} ms, medians of {data.rounds}\n")
        table(results, limit, latency)


def busy(data: Data) -> None:
    """The same wire without and with refusals, in turns."""
    for latency in data.latencies:
        with before(data.s3, latency, 0, 0) as plain, before(data.s3, latency, 0, BUSY) as refusing:
            runs = {n: data.ours(endpoint, "s3://bucket/d/objects") for n, endpoint in (("without", plain), ("with", refusing))}
            results = in_turns(runs, data.rounds)
        without, with_ = (statistics.median(r[0] for r in results[name]) for name in ("without", "with"))
        print(f"{data.samples:,} objects, {latency} ms, every {BUSY}th request 503:", end=" ")
        print(f"{with_:,.0f} of {without:,.0f} samples/s, {with_ / without:.2f}; load average {os.getloadavg()[0]:.1f}")


def stage(data: Data) -> None:
    to = data.folder / "to"

    def curl_to_files(endpoint: str) -> list[float]:
        to.mkdir()
        try:
            return curl(endpoint, data.names, data.samples, to=to)
        finally:
            shutil.rmtree(to)

    for latency in data.latencies:
        with before(data.s3, latency) as endpoint:
            limit = CURL.format(16) + ", to files"
            runs: dict[str, Run] = {
                limit: functools.partial(curl_to_files, endpoint),
                CURL.format(16) + ", to nowhere": functools.partial(curl, endpoint, data.names, data.samples),
                "hr.stage": functools.partial(measured, STAGE, endpoint, data.pattern, *KEYS, str(to), str(data.samples)),
            }
            results = in_turns(runs, data.rounds)
        print(f"\nStaging {data.samples * 0.1:,.0f} MB, {latency} ms, medians of {data.rounds}\n")
        table(results, limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", default="shards", choices=("shards", "pictures", "objects", "cap", "busy", "stage"))
    parser.add_argument("--samples", type=int, default=0, help="2,000; of busy 10,000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", default="0,50", help="milliseconds, one or several")
    parser.add_argument("--peers", action="store_true", help="shards, pictures: others too, in environments of their own")
    parser.add_argument("--only", default="", help="shards, pictures: only contenders whose names have one of these texts")
    options = parser.parse_args()
    options.samples = options.samples or (10_000 if options.case == "busy" else 2000)
    with tempfile.TemporaryDirectory(prefix="headrace-remote-") as name:
        folder = pathlib.Path(name)
        with servers.versitygw(folder, uploads=options.peers) as s3:
            data = Data(s3, folder, options)
            if options.case == "cap":
                shards(data, [50], CAP_MB)
            elif options.case in ("shards", "pictures"):
                shards(data, data.latencies)
            else:
                {"objects": objects, "busy": busy, "stage": stage}[options.case](data)


if __name__ == "__main__":
    main()
