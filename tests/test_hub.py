# SPDX-License-Identifier: Apache-2.0
"""Layouts of Hugging Face's hub, split by split, against what its ``datasets`` reads (tests/golden/hub/expected.json)."""

from __future__ import annotations

import hashlib
import json
import pathlib
import shutil
from typing import Any

import headrace as hr
import numpy as np
import pytest

GOLDEN = pathlib.Path(__file__).parent / "golden/hub"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
CASES = [(name, config, split) for name, found in EXPECTED.items() for config, splits in found.items() for split in splits]
NEEDS_YAML = ("configs", "default_config", "data_dir_config")


def plain(v: Any) -> Any:
    return v.item() if isinstance(v, np.generic) else v.tolist() if isinstance(v, np.ndarray) else v


def row_of(sample: dict[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    """As expected.json has it: pictures by their bytes; a class folder's number is 'label' there."""
    out: dict[str, Any] = {}
    for name, v in sample.items():
        if kinds[name] == "json":
            out[name] = json.loads(v)
        elif isinstance(v, bytes):
            out["image"] = {"sha256": hashlib.sha256(v).hexdigest()[:16]}
        elif name != "image.path":
            out["label" if name == "cls" else name] = plain(v)
    return out


def opened(name: str, config: str, split: str, folder: pathlib.Path) -> hr.Dataset:
    path = shutil.copytree(GOLDEN / name, folder / name)
    part = split if len(EXPECTED[name]) == 1 else f"{config}/{split}"
    return hr.open(f"{path}#{part}")


@pytest.mark.parametrize(("name", "config", "split"), CASES, ids=lambda v: str(v))
def test_a_split_is_what_datasets_reads(tmp_path: pathlib.Path, name: str, config: str, split: str) -> None:
    if name in NEEDS_YAML:
        pytest.importorskip("yaml", reason="PyYAML is not installed")
    want = EXPECTED[name][config][split]
    ds = opened(name, config, split, tmp_path)
    assert ds.classes == want["classes"]
    assert [row_of(sample, dict(ds.schema)) for sample in ds] == want["rows"]


@pytest.mark.parametrize("name", [n for n, found in EXPECTED.items() if len(next(iter(found.values()))) > 1])
def test_opening_without_a_split_lists_them(tmp_path: pathlib.Path, name: str) -> None:
    if name in NEEDS_YAML:
        pytest.importorskip("yaml", reason="PyYAML is not installed")
    shutil.copytree(GOLDEN / name, tmp_path / name)
    with pytest.raises(hr.UsageError, match="say which"):
        hr.open(tmp_path / name)


def test_what_has_one_split_opens_without_a_word(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    shutil.copytree(GOLDEN / "default_config", tmp_path / "d")
    assert [s["n"] for s in hr.open(tmp_path / "d")] == [r["n"] for r in EXPECTED["default_config"]["main"]["train"]["rows"]]


def test_validation_is_what_files_call_val_or_dev(tmp_path: pathlib.Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    for name, split, count in (("plain", "train", 3), ("plain", "val", 2), ("repo/data", "train", 3), ("repo/data", "dev", 2)):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": list(range(count))}), tmp_path / name / f"{split}-00000-of-00001.parquet")
    (tmp_path / "repo/README.md").write_text("# a repository\n")
    for name in ("plain", "repo"):
        assert [len(hr.open(f"{tmp_path}/{name}#{split}")) for split in ("train", "validation")] == [3, 2]
    assert len(hr.open(f"{tmp_path}/plain#val")) == 2


def test_a_folder_of_tables_that_has_no_such_split(tmp_path: pathlib.Path) -> None:
    shutil.copytree(GOLDEN / "names", tmp_path / "d")
    with pytest.raises(hr.UsageError, match=r"splits dev, test, train: there is no split 'extra', as in '.*d#dev'"):
        hr.open(f"{tmp_path}/d#extra")
    (tmp_path / "d" / "data.bin").write_bytes(b"x")  # no longer of tables alone: files, as before
    assert "csv" in dict(hr.open(tmp_path / "d").schema)
