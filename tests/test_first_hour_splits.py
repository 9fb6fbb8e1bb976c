# SPDX-License-Identifier: Apache-2.0
"""Splits: recognised in folders, file names and arrays, chosen by ``#train``, never mixed in silence."""

from __future__ import annotations

import json
import pathlib

import headrace as hr
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_first_hour_files import dogs_and_cats, keys, picture, put

WHICH = r"it holds the splits {}: say which, as in '{}#{}'"


def test_split_folders_are_no_classes(tmp_path: pathlib.Path) -> None:
    from torchvision.datasets import ImageFolder

    for split in ("train", "val"):
        dogs_and_cats(tmp_path / "d" / split)
    with pytest.raises(hr.UsageError, match=WHICH.format("train, val", tmp_path / "d", "train")):
        hr.open(tmp_path / "d")
    ds = hr.open(f"{tmp_path}/d#val")
    assert len(ds) == 40 and ds.classes == ImageFolder(str(tmp_path / "d" / "val")).classes
    with pytest.raises(hr.Error, match="no folder 'test'"):
        hr.open(f"{tmp_path}/d#test")


def test_file_names_carry_splits(tmp_path: pathlib.Path) -> None:
    for split, n in (("train", 4), ("test", 2)):
        for shard in range(2):
            pd.DataFrame({"x": range(shard * n, (shard + 1) * n)}).to_parquet(tmp_path / f"{split}-{shard:05d}-of-00002.parquet")
    with pytest.raises(hr.UsageError, match=WHICH.format("test, train", tmp_path, "test")):
        hr.open(tmp_path)
    assert hr.open(f"{tmp_path}#train")["x"].tolist() == list(range(8))
    assert hr.open(f"{tmp_path}#test")["x"].tolist() == list(range(4))
    assert len(hr.open(f"{tmp_path}/*.parquet")) == 12  # asked for


def labelled(path: pathlib.Path, count: int) -> None:
    """As Hugging Face's datasets writes it: the features in the schema's metadata."""
    features = {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
    images = pa.array([{"bytes": picture(i), "path": f"{i}.jpg"} for i in range(count)])
    table = pa.table({"image": images, "label": pa.array([i % 2 for i in range(count)], pa.int64())})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})}), path)


def test_a_cloned_repository_of_the_hub(tmp_path: pathlib.Path) -> None:
    labelled(tmp_path / "repo" / "data" / "train-00000-of-00001.parquet", 6)
    labelled(tmp_path / "repo" / "data" / "test-00000-of-00001.parquet", 3)
    put(tmp_path / "repo" / "README.md", b"# pets\n")
    put(tmp_path / "repo" / ".gitattributes", b"")
    with pytest.raises(hr.UsageError, match="splits test, train"):
        hr.open(tmp_path / "repo")
    ds = hr.open(f"{tmp_path}/repo#train")
    assert len(ds) == 6 and ds["label"].tolist() == [0, 1] * 3 and ds.classes == ["cat", "dog"]
    assert hr.open(f"{tmp_path}/repo#train", {"x": hr.image("image").resize((8, 8))})[0]["x"].shape == (3, 8, 8)


def test_the_configs_of_a_readme(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    for name in ("en", "de"):
        for split in ("train", "validation"):
            path = tmp_path / "repo" / name / f"{split}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame({"x": [f"{name} {split}"]}).to_parquet(path)
    configs = "".join(
        f"- config_name: {n}\n  data_files:\n  - split: train\n    path: {n}/train*\n  - split: validation\n    path: {n}/valid*\n"
        for n in ("en", "de")
    )
    put(tmp_path / "repo" / "README.md", f"---\nconfigs:\n{configs}---\n# x\n".encode())
    assert hr.open(f"{tmp_path}/repo#de/validation")["x"] == ["de validation"]
    with pytest.raises(hr.UsageError, match=r"configurations en, de: say which, as in '.*#en/train'"):
        hr.open(tmp_path / "repo")
    with pytest.raises(hr.UsageError, match="splits train, validation: there is no split 'test'"):
        hr.open(f"{tmp_path}/repo#de/test")


def test_a_dataset_dict_saved_to_disk(tmp_path: pathlib.Path) -> None:
    features = {"x": {"dtype": "int64", "_type": "Value"}, "label": {"names": ["no", "yes"], "_type": "ClassLabel"}}
    for split, n in (("train", 5), ("test", 2)):
        folder = tmp_path / "dd" / split
        folder.mkdir(parents=True)
        table = pa.table({"x": pa.array(range(n), pa.int64()), "label": pa.array([1] * n, pa.int64())})
        with pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as f, pa.ipc.new_stream(f, table.schema) as w:
            w.write_table(table)
        put(folder / "dataset_info.json", json.dumps({"features": features}).encode())
        put(folder / "state.json", b"{}")
    put(tmp_path / "dd" / "dataset_dict.json", b'{"splits": ["train", "test"]}')
    with pytest.raises(hr.UsageError, match="splits test, train"):
        hr.open(tmp_path / "dd")
    ds = hr.open(f"{tmp_path}/dd#train")
    assert ds["x"].tolist() == list(range(5)) and ds.classes == ["no", "yes"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_image_folder_with_metadata(tmp_path: pathlib.Path, kind: str) -> None:
    for i in range(3):
        put(tmp_path / "d" / f"im.{i}.png", picture(i, "PNG"))
    frame = pd.DataFrame({"file_name": [f"im.{i}.png" for i in (2, 0, 1)], "text": ["two", "zero", "one"], "n": [2, 0, 1]})
    if kind == "csv":
        frame.to_csv(tmp_path / "d" / "metadata.csv", index=False)
    elif kind == "parquet":
        frame.to_parquet(tmp_path / "d" / "metadata.parquet")
    else:
        frame.to_json(tmp_path / "d" / "metadata.jsonl", orient="records", lines=True)
    ds = hr.open(tmp_path / "d")
    assert keys(ds) == ["im.2", "im.0", "im.1"] and ds["text"] == ["two", "zero", "one"] and ds["n"].tolist() == [2, 0, 1]
    assert ds[0]["png"] == (tmp_path / "d" / "im.2.png").read_bytes()


def test_metadata_with_several_columns_of_files(tmp_path: pathlib.Path) -> None:
    for i in range(2):
        put(tmp_path / "in" / f"{i}.png", picture(i, "PNG"))
        put(tmp_path / "out" / f"{i}.png", picture(10 + i, "PNG"))
    put(tmp_path / "metadata.csv", b"input_file_name,target_file_name,n\nin/0.png,out/0.png,5\nin/1.png,out/1.png,6\n")
    ds = hr.open(tmp_path)  # Hugging Face's datasets calls them so too
    assert keys(ds) == ["in/0", "in/1"] and ds["n"].tolist() == [5, 6]
    assert ds[1]["input"] == picture(1, "PNG") and ds[1]["target"] == picture(11, "PNG")


# -- arrays -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_medmnist_and_mnist(tmp_path: pathlib.Path, save: object) -> None:
    rng = np.random.default_rng(0)
    arrays = {}
    for split, n in (("train", 7), ("val", 3), ("test", 4)):
        arrays[f"{split}_images"] = rng.integers(0, 255, (n, 28, 28), np.uint8)
        arrays[f"{split}_labels"] = rng.integers(0, 9, (n, 1), np.uint8)
    save(tmp_path / "med.npz", **arrays)  # type: ignore[operator]
    with pytest.raises(hr.UsageError, match=r"splits train, val, test: say which, as in '.*med.npz#train'.*") as e:
        hr.open(tmp_path / "med.npz")
    assert "#whole" in str(e.value)
    for split, n in (("train", 7), ("val", 3), ("test", 4)):
        ds = hr.open(f"{tmp_path}/med.npz#{split}")
        assert len(ds) == n and [name for name, _ in ds.schema] == ["images", "labels"]
        for i in range(n):
            assert np.array_equal(ds[i]["images"], arrays[f"{split}_images"][i])
            assert np.array_equal(ds[i]["labels"], arrays[f"{split}_labels"][i])
    keras = {"x_train": rng.random((6, 4)), "y_train": np.arange(6), "x_test": rng.random((2, 4)), "y_test": np.arange(2)}
    save(tmp_path / "mnist.npz", **keras)  # type: ignore[operator]
    ds = hr.open(f"{tmp_path}/mnist.npz#test", {"x": hr.array("x"), "y": hr.scalar("y")})
    assert np.array_equal(ds[1]["x"], keras["x_test"][1]) and ds[1]["y"] == 1
    assert len(hr.open(f"{tmp_path}/mnist.npz#whole")) == 1
    with pytest.raises(hr.UsageError, match=r"'#dev' is no way.*#train, #test, #rows"):
        hr.open(f"{tmp_path}/mnist.npz#dev")
    np.savez(tmp_path / "rows.npz", train_a=np.arange(3), train_b=np.arange(3))
    assert len(hr.open(tmp_path / "rows.npz")) == 3


def test_folders_of_shards_are_no_classes(tmp_path: pathlib.Path) -> None:
    """A partitioned table, as pandas and Spark write it: its folders would else be classes of unread files."""
    pq.write_to_dataset(pa.table({"y": ["a", "b", "a"], "x": [1, 2, 3]}), tmp_path / "t", partition_cols=["y"])
    with pytest.raises(hr.UsageError, match=r"holds .parquet files, each with samples of its own; open '.*t/\*/\*.parquet'"):
        hr.open(tmp_path / "t")
    assert sorted(hr.open(f"{tmp_path}/t/*/*.parquet")["x"].tolist()) == [1, 2, 3]


def test_metadata_in_every_folder_is_that_of_its_pictures(tmp_path: pathlib.Path) -> None:
    for name in ("a", "b"):
        for i in range(2):
            put(tmp_path / "d" / name / f"{i}.png", picture(i, "PNG"))
        lines = [json.dumps({"file_name": f"{i}.png", "caption": f"{name} {i}"}) + "\n" for i in range(2)]
        put(tmp_path / "d" / name / "metadata.jsonl", "".join(lines).encode())
    ds = hr.open(tmp_path / "d")
    assert keys(ds) == ["a/0", "a/1", "b/0", "b/1"] and [s["caption"] for s in ds] == ["a 0", "a 1", "b 0", "b 1"]
    assert ds.classes == [] and ds[3]["png"] == (tmp_path / "d/b/1.png").read_bytes()
    put(tmp_path / "d" / "c" / "0.png", picture(0, "PNG"))
    with pytest.raises(hr.UsageError, match="other folders have no such file"):
        hr.open(tmp_path / "d")
