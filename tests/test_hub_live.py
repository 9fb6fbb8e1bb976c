# SPDX-License-Identifier: Apache-2.0
"""Layouts of Hugging Face's hub, split by split, against the installed ``datasets``.

test_hub.py has the same against frozen files; here the library itself is the reference, also for layouts that people make by
hand.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
from collections.abc import Callable
from unittest import mock

import headrace as hr
import pytest
from test_hub import row_of

pytest.importorskip("datasets", reason="NOT TESTED AGAINST DATASETS: it is not installed (tools/requirements-test.txt)")
pytest.importorskip("yaml", reason="NOT TESTED AGAINST DATASETS: PyYAML is not installed")
with mock.patch.dict(os.environ):  # it says that it is offline, for itself
    import make_golden_hub as hub


def packed_lines(at: pathlib.Path) -> None:
    for split, count in (("train", 5), ("test", 2)):
        rows = "".join(json.dumps({"n": i, "text": f"Zeile {i}\nüber zwei"}) + "\n" for i in range(count))
        hub.put(at / f"{split}.jsonl.gz", gzip.compress(rows.encode()))


def folders_in_data(at: pathlib.Path) -> None:
    hub.put(at / "README.md", "# A repository\n")
    for split, count in (("train", 4), ("validation", 2), ("test", 3)):
        hub.numbered(at / "data" / split / "part-0.jsonl", 0, count)
        hub.numbered(at / "data" / split / "part-1.jsonl", count, 2)


def quoted_csv(at: pathlib.Path) -> None:
    for split in ("train", "test"):
        hub.put(at / f"{split}.csv", f'text,label\r\n"{split}, one\nline two",1\r\n"say ""hi""",0\r\n')


def many_words(at: pathlib.Path) -> None:
    hub.numbered(at / "my-train-file_0.csv", 0, 3)
    hub.numbered(at / "my-eval-file_0.csv", 3, 2)


def class_folders(at: pathlib.Path) -> None:
    for i in range(6):
        hub.put(at / ("Hündin" if i % 2 else "cat") / f"bild {i}.png", hub.picture(i))


def one_metadata_below_another(at: pathlib.Path) -> None:
    """Each folder of a split with its own metadata.jsonl: names are relative to it."""
    for split in ("train", "test"):
        for name in ("a", "b"):
            rows = []
            for i in range(2):
                hub.put(at / split / name / f"{i}.png", hub.picture(i + 3 * len(rows)))
                rows.append({"file_name": f"{i}.png", "caption": f"{split} {name} {i}"})
            hub.put(at / split / name / "metadata.jsonl", "".join(json.dumps(r) + "\n" for r in rows))


def lists_in_configs(at: pathlib.Path) -> None:
    for name in ("a", "b", "c"):
        hub.numbered(at / "texts" / f"{name}.jsonl", ord(name), 2)
    hub.readme(
        at,
        "- config_name: default\n  data_files:\n  - split: train\n    path: [texts/a.jsonl, texts/c.jsonl]\n"
        "  - split: held_out\n    path: texts/b.jsonl\n",
    )


def parquet_with_nothing_in_some_cells(at: pathlib.Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    hub.put(at / "README.md", "# A repository\n")
    (at / "data").mkdir()
    for split in ("train", "test"):
        table = pa.table({"text": ["a", "ä", "c"], "n": pa.array([1, 2, 3], pa.int32()), "x": pa.array([0.5, 1.5, -2.0])})
        pq.write_table(table, at / "data" / f"{split}-00000-of-00001.parquet")


OWN: dict[str, Callable[[pathlib.Path], None]] = {
    f.__name__: f
    for f in (
        packed_lines,
        folders_in_data,
        quoted_csv,
        many_words,
        class_folders,
        one_metadata_below_another,
        lists_in_configs,
        parquet_with_nothing_in_some_cells,
    )
}


@pytest.mark.parametrize("name", [*hub.LAYOUTS, *OWN])
def test_every_split_is_what_the_installed_datasets_reads(tmp_path: pathlib.Path, name: str) -> None:
    path = tmp_path / name
    path.mkdir()
    (hub.LAYOUTS | OWN)[name](path)
    theirs = hub.read(path, name)
    assert theirs
    for config, splits in theirs.items():
        for split, want in splits.items():
            part = split if len(theirs) == 1 else f"{config}/{split}"
            one = len(theirs) == 1 and list(splits) == ["train"]
            ds = hr.open(path) if one else hr.open(f"{path}#{part}")
            rows, theirs_rows = [row_of(sample, dict(ds.schema)) for sample in ds], want["rows"]
            if name == "one_metadata_below_another":  # theirs come in the order of the file system
                rows, theirs_rows = (sorted(r, key=lambda row: json.dumps(row, sort_keys=True)) for r in (rows, theirs_rows))
            assert rows == theirs_rows, part
            assert ds.classes == want["classes"]
