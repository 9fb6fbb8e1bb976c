# SPDX-License-Identifier: Apache-2.0
"""Writes TFRecord files with TensorFlow, for our reader to agree with; reads ours with TensorFlow.

peer | write FOLDER | check FOLDER: see golden_script.py; bench/peers/tfdata.txt has the versions.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found,unused-ignore]
from golden_script import agree, expected, run, sets_in, shards_in

PEER = f"TensorFlow {tf.__version__}"


def feature(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    if all(isinstance(v, bytes) for v in values) and values:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if all(isinstance(v, int) for v in values) and values:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def example(**features: Any) -> bytes:
    return bytes(
        tf.train.Example(
            features=tf.train.Features(feature={k.replace("__", "/"): feature(v) for k, v in features.items()})
        ).SerializeToString(deterministic=True)
    )


def picture(i: int) -> bytes:
    return bytes(tf.io.encode_jpeg(tf.cast(tf.fill([8 + i, 12, 3], 20 * i), tf.uint8)).numpy())


SCALARS = [
    {"image__encoded": picture(i), "label": 7 * i - 10, "weight": i / 8, "txt": f"caption {i} ü".encode()} for i in range(10)
]
LISTS = [
    {
        "ids": list(range(-i, 3 * i)),
        "box": [i + k / 4 for k in range(4 * i)],
        "tags": [f"tag{k}".encode() for k in range(i % 3)],
        "big": 2**62 + i,
    }
    for i in range(1, 8)
]
RAW = [b"", b"no protocol buffer", bytes(range(256)) * 9, b"\n"]


def as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    return [as_json(v) for v in value] if isinstance(value, list) else value


def write(folder: pathlib.Path) -> None:
    files = {
        "scalars": [example(**s) for s in SCALARS],
        "lists": [example(**s) for s in LISTS],
        "raw": RAW,
        "empty": [],
    }
    for name, records in files.items():
        with tf.io.TFRecordWriter(str(folder / f"{name}.tfrecord")) as out:
            for record in records:
                out.write(record)
    with tf.io.TFRecordWriter(str(folder / "zipped.tfrecord.gz"), tf.io.TFRecordOptions(compression_type="GZIP")) as out:
        for record in files["scalars"]:
            out.write(record)
    wanted = {
        "writer": PEER,
        "scalars": [{k.replace("__", "/"): as_json(v) for k, v in s.items()} for s in SCALARS],
        "lists": [{k.replace("__", "/"): as_json(v) for k, v in s.items()} for s in LISTS],
        "raw": [as_json(r) for r in RAW],
    }
    (folder / "expected.json").write_text(json.dumps(wanted, indent=1) + "\n")


def read(paths: list[pathlib.Path]) -> list[dict[str, list[Any]]]:
    """The features of every record that have a value; the key is headrace's own."""
    out = []
    for record in tf.data.TFRecordDataset([str(p) for p in paths]):
        found = tf.train.Example.FromString(record.numpy()).features.feature
        assert found.pop("__key__").bytes_list.value
        features = {name: list(getattr(f, f.WhichOneof("kind")).value) for name, f in found.items()}
        out.append({name: [as_json(v) for v in values] for name, values in features.items() if values})
    return out


def check(folder: pathlib.Path) -> None:
    """As headrace writes them: lists of numbers are the bytes that it reads them as."""
    for packed in sets_in(folder):
        want = [{k: v if isinstance(v, list) else [v] for k, v in sample.items()} for sample in expected("tfrecord")[packed.name]]
        for sample in want if packed.name == "lists" else []:
            sample["ids"] = [as_json(np.array(sample["ids"], "<i8").tobytes())]
            sample["box"] = [as_json(np.array(sample["box"], "<f4").tobytes())]
        want = [{k: v for k, v in sample.items() if v} for sample in want]
        agree(packed.name, read(shards_in(packed, ".tfrecord")), want)


if __name__ == "__main__":
    run(PEER, write, check)
