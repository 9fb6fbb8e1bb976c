# SPDX-License-Identifier: Apache-2.0
"""What others do with the samples of `remote.py`: a program each, run by the peer's own environment (`bench/peers/NAME.txt`)."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import environments
import headrace as hr

_COUNT = """
import sys, time, json, os, tempfile
os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"], os.environ["AWS_REGION"] = *sys.argv[2:4], "us-east-1"
os.environ["AWS_ENDPOINT_URL"] = os.environ["S3_ENDPOINT_URL"] = endpoint = sys.argv[1]
os.environ["AWS_ALLOW_HTTP"] = "true"
rest = sys.argv[4:]
def run(make):
    start = time.perf_counter()
    first, count = None, 0
    for batch in make():
        first = first or time.perf_counter() - start
        count += len(batch)
    print(json.dumps([count / (time.perf_counter() - start), first]))
"""

LITDATA = (
    _COUNT
    + """
import litdata
def make():
    options = {"endpoint_url": endpoint, "aws_access_key_id": sys.argv[2], "aws_secret_access_key": sys.argv[3], "region_name": "us-east-1"}
    data = litdata.StreamingDataset("s3://bucket/litdata", cache_dir=tempfile.mkdtemp(), shuffle=True, storage_options=options)
    return litdata.StreamingDataLoader(data, batch_size=64, num_workers=int(rest[0]), collate_fn=list)
if __name__ == "__main__":
    run(make)
"""
)

LITDATA_WRITE = """
import sys, litdata
def stored(name):
    with open(name, "rb") as f:
        return {"bin": f.read()}
if __name__ == "__main__":
    litdata.optimize(stored, sys.argv[2:], sys.argv[1], chunk_bytes="16MB", num_workers=1, verbose=False)
"""

STREAMING = (
    _COUNT
    + """
import streaming, torch
def make():
    data = streaming.StreamingDataset(remote="s3://bucket/mds", local=tempfile.mkdtemp(), shuffle=True, batch_size=64, predownload=512)
    return torch.utils.data.DataLoader(data, batch_size=64, num_workers=int(rest[0]), collate_fn=list)
if __name__ == "__main__":
    streaming.base.util.clean_stale_shared_memory()
    run(make)
"""
)

S3_CONNECTOR = (
    _COUNT
    + """
import torch, s3torchconnector
def make():
    config = s3torchconnector.S3ClientConfig(force_path_style=True)
    data = s3torchconnector.S3MapDataset.from_prefix(
        "s3://bucket/d/objects/", region="us-east-1", endpoint=endpoint, transform=lambda o: o.read(), s3client_config=config)
    return torch.utils.data.DataLoader(data, 64, shuffle=True, num_workers=int(rest[0]), collate_fn=list)
if __name__ == "__main__":
    run(make)
"""
)

S3FS = (
    _COUNT
    + """
import s3fs, torch
class Objects(torch.utils.data.Dataset):
    fs = None
    def __len__(self):
        return int(rest[1])
    def __getitem__(self, i):
        if self.fs is None:
            self.fs = s3fs.S3FileSystem(key=sys.argv[2], secret=sys.argv[3], client_kwargs={"endpoint_url": endpoint}, skip_instance_cache=True)
        return self.fs.cat_file(f"bucket/d/objects/{i:06d}.bin")
def make():
    return torch.utils.data.DataLoader(Objects(), 64, shuffle=True, num_workers=int(rest[0]), collate_fn=list, multiprocessing_context="spawn")
if __name__ == "__main__":
    run(make)
"""
)

TENSORSTORE = (
    _COUNT
    + """
import collections
import numpy as np, tensorstore as ts
def make():
    store = {"driver": "s3", "bucket": "bucket", "path": "zarr/x/", "endpoint": endpoint, "aws_region": "us-east-1"}
    context = {"s3_request_concurrency": {"limit": 64}}
    array = ts.open({"driver": "zarr", "kvstore": store, "context": context}, open=True, read=True).result()
    order = np.random.default_rng(1).permutation(int(rest[1]))
    batches = [order[i:i + 64] for i in range(0, len(order), 64)]
    under_way = collections.deque()
    while batches or under_way:
        while batches and len(under_way) < 8:
            under_way.append(array[batches.pop(0)].read())
        yield under_way.popleft().result()
if __name__ == "__main__":
    run(make)
"""
)

HEADRACE_ZARR = (
    _COUNT
    + """
import headrace as hr
def make():
    storage = hr.storage(endpoint=endpoint, region="us-east-1", access_key=sys.argv[2], secret_key=sys.argv[3])
    loader = hr.Loader("s3://bucket/zarr", 64, {"x": hr.array("x")}, shuffle=True, seed=1, tail="keep", output="numpy", storage=storage)
    return (batch["x"] for batch in loader.epoch(0))
if __name__ == "__main__":
    run(make)
"""
)

OURS = ""  # the environment that runs the benchmark

#: Name, environment, program, workers.
PEERS = (
    ("headrace, Zarr", OURS, HEADRACE_ZARR, 0),
    ("TensorStore, Zarr", OURS, TENSORSTORE, 0),
    ("LitData", "litdata", LITDATA, 2),
    ("Streaming", "mosaic", STREAMING, 2),
    ("s3torchconnector + DataLoader, single objects", "s3", S3_CONNECTOR, 4),
    ("s3fs + DataLoader, single objects", "s3", S3FS, 4),
)


def write_zarr(folder: pathlib.Path, objects: pathlib.Path, samples: int) -> None:
    """A chunk for each sample, as it lies."""
    (folder / "x").mkdir(parents=True)
    size = (objects / "000000.bin").stat().st_size
    (folder / ".zgroup").write_text('{"zarr_format": 2}')
    meta = {"zarr_format": 2, "shape": [samples, size], "chunks": [1, size], "dtype": "|u1", "order": "C"}
    (folder / "x/.zarray").write_text(json.dumps({**meta, "compressor": None, "fill_value": 0, "filters": None}))
    for i in range(samples):
        os.link(objects / f"{i:06d}.bin", folder / f"x/{i}.0")


def prepare(bucket: pathlib.Path, tars: list[str], samples: int) -> dict[str, pathlib.Path]:
    """The same samples as the peers want them, in the bucket; the Python of each environment that can be had."""
    pythons = {}
    for name in sorted({environment for _, environment, _, _ in PEERS}):
        if name == OURS:
            pythons[name] = pathlib.Path(sys.executable)
            continue
        try:
            pythons[name] = environments.make(name)
        except environments.NotInstalled as error:
            print(f"{name}: not measured: {error}")
    write_zarr(bucket / "zarr", bucket / "d/objects", samples)
    hr.pack([str(bucket / "d" / tar) for tar in tars], bucket / "mds", to="mds", shards=16)
    for index in (bucket / "mds").glob("*.hridx"):
        index.unlink()
    if "litdata" in pythons:
        files = [str(bucket / f"d/objects/{i:06d}.bin") for i in range(samples)]
        script = bucket.parent.parent / "write_litdata.py"
        script.write_text(LITDATA_WRITE)
        subprocess.run([str(pythons["litdata"]), str(script), str(bucket / "litdata"), *files], check=True, capture_output=True)
    return pythons
