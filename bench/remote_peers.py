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

#: JPEG bytes to a tensor as most people do it.
PICTURE = """
def picture(jpeg):
    global steps
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    if "steps" not in globals():
        import warnings
        from torchvision.transforms import v2
        warnings.filterwarnings("ignore")
        torch.set_num_threads(1)
        steps = v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()])
    if not isinstance(jpeg, (bytes, bytearray)):  # Streaming has decoded it, with Pillow
        from torchvision.transforms.functional import pil_to_tensor
        return steps(pil_to_tensor(jpeg.convert("RGB")))
    return steps(decode_jpeg(torch.frombuffer(jpeg, dtype=torch.uint8), mode=ImageReadMode.RGB))
"""

_COUNT = (
    PICTURE
    + """
import sys, time, json, os, tempfile
os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"], os.environ["AWS_REGION"] = *sys.argv[2:4], "us-east-1"
os.environ["AWS_ENDPOINT_URL"] = os.environ["S3_ENDPOINT_URL"] = endpoint = sys.argv[1]
os.environ["AWS_ALLOW_HTTP"] = "true"
rest = sys.argv[4:]
kind = rest[2]
def value(stored):
    return picture(stored) if kind == "jpg" else stored
def run(make):
    time.sleep(0.2)
    start = time.perf_counter()
    first, count = None, 0
    for batch in make():
        first = first or time.perf_counter() - start
        count += len(batch)
    print(json.dumps([count / (time.perf_counter() - start), first]))
"""
)

LITDATA = (
    _COUNT
    + """
import litdata
import litdata.streaming.downloader as downloader
# Its client refuses plain http, and has no option for it.
downloader._OBSTORE_CLIENT_OPTIONS = {**(downloader._OBSTORE_CLIENT_OPTIONS or {}), "allow_http": True}
class Samples(litdata.StreamingDataset):
    def __getitem__(self, at):
        return value(super().__getitem__(at)[kind])
def make():
    options = {"endpoint_url": endpoint, "aws_access_key_id": sys.argv[2], "aws_secret_access_key": sys.argv[3], "region_name": "us-east-1"}
    data = Samples("s3://bucket/litdata", cache_dir=tempfile.mkdtemp(), shuffle=True, storage_options=options)
    return litdata.StreamingDataLoader(data, batch_size=64, num_workers=int(rest[0]), collate_fn=list)
if __name__ == "__main__":
    run(make)
"""
)

LITDATA_WRITE = """
import sys, litdata
def stored(name):
    with open(name, "rb") as f:
        return {name.rsplit(".", 1)[1]: f.read()}
if __name__ == "__main__":
    litdata.optimize(stored, sys.argv[2:], sys.argv[1], chunk_bytes="16MB", num_workers=1, verbose=False)
"""

STREAMING = (
    _COUNT
    + """
import streaming, torch
class Samples(streaming.StreamingDataset):
    def __getitem__(self, at):
        return value(super().__getitem__(at)[kind])
def make():
    data = Samples(remote="s3://bucket/mds", local=tempfile.mkdtemp(), shuffle=True, batch_size=64, predownload=512)
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
def read(opened):
    return value(opened.read())
def make():
    config = s3torchconnector.S3ClientConfig(force_path_style=True)
    data = s3torchconnector.S3MapDataset.from_prefix(
        "s3://bucket/d/objects/", region="us-east-1", endpoint=endpoint, transform=read, s3client_config=config)
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
        return value(self.fs.cat_file(f"bucket/d/objects/{i:06d}.{kind}"))
def make():
    return torch.utils.data.DataLoader(Objects(), 64, shuffle=True, num_workers=int(rest[0]), collate_fn=list, multiprocessing_context="spawn")
if __name__ == "__main__":
    run(make)
"""
)

BOTO3 = (
    _COUNT
    + """
import boto3, torch
class Objects(torch.utils.data.Dataset):
    client = None
    def __len__(self):
        return int(rest[1])
    def __getitem__(self, i):
        if self.client is None:
            self.client = boto3.client("s3", endpoint_url=endpoint)
        return value(self.client.get_object(Bucket="bucket", Key=f"d/objects/{i:06d}.{kind}")["Body"].read())
def make():
    return torch.utils.data.DataLoader(Objects(), 64, shuffle=True, num_workers=int(rest[0]), collate_fn=list)
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

#: Name, environment, program, workers, whether it takes pictures.
PEERS = (
    ("headrace, Zarr", OURS, HEADRACE_ZARR, 0, False),
    ("TensorStore, Zarr", OURS, TENSORSTORE, 0, False),
    ("LitData", "litdata", LITDATA, 2, True),
    ("Streaming", "mosaic", STREAMING, 2, True),
    ("s3torchconnector + DataLoader, single objects", "s3", S3_CONNECTOR, 4, True),
    ("s3fs + DataLoader, single objects", "s3", S3FS, 4, True),
    ("boto3 + DataLoader, single objects", "litdata", BOTO3, 4, True),
)


def write_zarr(folder: pathlib.Path, objects: list[pathlib.Path]) -> None:
    """A chunk for each sample, as it lies."""
    (folder / "x").mkdir(parents=True)
    size = objects[0].stat().st_size
    (folder / ".zgroup").write_text('{"zarr_format": 2}')
    meta = {"zarr_format": 2, "shape": [len(objects), size], "chunks": [1, size], "dtype": "|u1", "order": "C"}
    (folder / "x/.zarray").write_text(json.dumps({**meta, "compressor": None, "fill_value": 0, "filters": None}))
    for i, path in enumerate(objects):
        os.link(path, folder / f"x/{i}.0")


def prepare(folder: pathlib.Path, tars: list[str], objects: list[str], only: list[str]) -> dict[str, pathlib.Path]:
    """The same samples as the peers want them, beside the others; the Python of each environment that can be had."""
    wanted = {environment for name, environment, *_ in PEERS if not only or any(text in name for text in only)}
    pythons = {}
    for name in sorted(wanted):
        if name == OURS:
            pythons[name] = pathlib.Path(sys.executable)
            continue
        try:
            pythons[name] = environments.make(name)
        except environments.NotInstalled as error:
            print(f"{name}: not measured: {error}")
    files = [folder / "d" / name for name in objects]
    if OURS in pythons and objects[0].endswith(".bin"):
        write_zarr(folder / "zarr", files)
    if "mosaic" in pythons:
        hr.pack([str(folder / "d" / tar) for tar in tars], folder / "mds", to="mds", shards=16)
        for index in (folder / "mds").glob("*.hridx"):
            index.unlink()
    if "litdata" in pythons:
        script = folder.parent / "write_litdata.py"
        script.write_text(LITDATA_WRITE)
        command = [str(pythons["litdata"]), str(script), str(folder / "litdata"), *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"litdata: not measured: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
            del pythons["litdata"]
    return pythons
