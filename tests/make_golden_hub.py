# SPDX-License-Identifier: Apache-2.0
"""Layouts of Hugging Face's hub: repositories as people clone them, and what ``datasets`` reads of each split.

peer | write FOLDER: see golden_script.py; tests/golden/arrow/requirements.txt has the versions.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import tempfile
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import datasets
import PIL
import pyarrow
from golden_script import run
from PIL import Image

PETS = datasets.Features(
    {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"]), "caption": datasets.Value("string")}
)


def picture(i: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4 + i % 3, 3), (i * 20, 100, 200)).save(out, "PNG")
    return out.getvalue()


def put(path: pathlib.Path, data: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def pets(first: int, count: int) -> datasets.Dataset:
    rows = [
        {"image": {"bytes": picture(i), "path": f"{i}.png"}, "label": i % 2, "caption": f"Tier {i}"}
        for i in range(first, first + count)
    ]
    return datasets.Dataset.from_list(rows, features=PETS)


def numbered(path: pathlib.Path, first: int, count: int) -> None:
    lines = [{"n": i, "text": f"{path.stem} {i}"} for i in range(first, first + count)]
    if path.suffix == ".csv":
        put(path, "n,text\n" + "".join(f"{row['n']},{row['text']}\n" for row in lines))
    else:
        put(path, "".join(json.dumps(row) + "\n" for row in lines))


def readme(path: pathlib.Path, configs: str) -> None:
    put(path / "README.md", f"---\nlicense: mit\nconfigs:\n{configs}---\n\n# A repository\n")


# Each makes one layout in the folder.


def data_parquet(at: pathlib.Path) -> None:
    for split, shards in (("train", [3, 2]), ("test", [2])):
        first = 0
        for n, count in enumerate(shards):
            path = at / "data" / f"{split}-{n:05d}-of-{len(shards):05d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pets(first, count).to_parquet(path)
            first += count
    put(at / "README.md", "# pets\n")


def configs(at: pathlib.Path) -> None:
    for language in ("de", "en"):
        for split in ("train", "validation"):
            numbered(at / language / f"{split}.jsonl", 10 * len(split), 3)
    readme(
        at,
        "".join(
            f"- config_name: {n}\n  data_files:\n  - split: train\n    path: {n}/train*\n  - split: validation\n    path: {n}/valid*\n"
            for n in ("en", "de")
        ),
    )


def default_config(at: pathlib.Path) -> None:
    numbered(at / "a" / "one.csv", 0, 3)
    numbered(at / "a" / "two.csv", 3, 2)
    numbered(at / "b" / "rest.csv", 9, 2)
    readme(at, '- config_name: main\n  default: true\n  data_files: "a/*.csv"\n- config_name: rest\n  data_files: b/rest.csv\n')


def data_dir_config(at: pathlib.Path) -> None:
    for language in ("de", "en"):
        for split in ("train", "test"):
            numbered(at / language / f"{split}.csv", len(language + split), 2)
    readme(at, "- config_name: de\n  data_dir: de\n- config_name: en\n  data_dir: en\n")


def names_carry_splits(at: pathlib.Path) -> None:
    numbered(at / "train.csv", 0, 4)
    numbered(at / "dev.csv", 4, 2)
    numbered(at / "test.csv", 6, 3)


def folders_carry_splits(at: pathlib.Path) -> None:
    for split, count in (("train", 3), ("validation", 2)):
        numbered(at / split / "a.jsonl", 0, count)
        numbered(at / split / "b.jsonl", count, 1)


def no_split(at: pathlib.Path) -> None:
    numbered(at / "poems.jsonl", 0, 3)
    numbered(at / "songs.jsonl", 3, 2)


def image_folder(at: pathlib.Path) -> None:
    for split, count in (("train", 5), ("test", 3)):
        for i in range(count):
            put(at / split / ("cat" if i % 2 else "dog") / f"{i}.png", picture(i))


def metadata(at: pathlib.Path, kind: str) -> None:
    for split, count in (("train", 4), ("validation", 2)):
        rows = []
        for i in range(count):
            name = f"sub/{i}.png" if i == 1 else f"{i}.png"
            put(at / split / name, picture(i))
            rows.append({"file_name": name, "text": f"picture {i}, so to say", "number": i * 3, "share": i / 4})
        rows = rows[::-1]
        if kind == "csv":
            lines = [f'{r["file_name"]},"{r["text"]}",{r["number"]},{r["share"]}' for r in rows]
            put(at / split / "metadata.csv", "\n".join(["file_name,text,number,share", *lines]) + "\n")
        else:
            put(at / split / "metadata.jsonl", "".join(json.dumps({**r, "tags": ["a", r["text"]]}) + "\n" for r in rows))


def dataset_dict(at: pathlib.Path) -> None:
    datasets.DatasetDict({"train": pets(0, 4), "test": pets(4, 2)}).save_to_disk(str(at))
    for state in at.rglob("state.json"):  # drawn anew each time
        state.write_text(json.dumps({**json.loads(state.read_text()), "_fingerprint": "0"}))


LAYOUTS = {
    "data_parquet": data_parquet,
    "configs": configs,
    "default_config": default_config,
    "data_dir_config": data_dir_config,
    "names": names_carry_splits,
    "folders": folders_carry_splits,
    "no_split": no_split,
    "image_folder": image_folder,
    "metadata_csv": lambda at: metadata(at, "csv"),
    "metadata_jsonl": lambda at: metadata(at, "jsonl"),
    "dataset_dict": dataset_dict,
}


def value(v: Any) -> Any:
    """A picture by its bytes, as they lie in the file or the row."""
    if not isinstance(v, dict) or "bytes" not in v:
        return v
    data = v["bytes"] if v["bytes"] is not None else pathlib.Path(v["path"]).read_bytes()
    return {"sha256": hashlib.sha256(data).hexdigest()[:16]}


def read(path: pathlib.Path, name: str) -> dict[str, Any]:
    """{config: {split: {classes, rows}}}."""
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        names = [None] if name == "dataset_dict" else datasets.get_dataset_config_names(str(path))
        for config in names:
            if config is None:
                found = datasets.load_from_disk(str(path))
            else:
                found = datasets.load_dataset(str(path), config, cache_dir=cache)
            splits: dict[str, Any] = {}
            for split, data in found.items():
                images = [n for n, f in data.features.items() if isinstance(f, datasets.Image)]
                classes = [f.names for f in data.features.values() if isinstance(f, datasets.ClassLabel)]
                for column in images:
                    data = data.cast_column(column, datasets.Image(decode=False))
                rows = [{k: value(v) for k, v in row.items()} for row in data]
                splits[str(split)] = {"classes": classes[0] if classes else [], "rows": rows}
            out[config or "default"] = splits
    return out


def write(out: pathlib.Path) -> None:
    expected = {}
    for name, make in LAYOUTS.items():
        make(out / name)
        expected[name] = read(out / name, name)
    (out / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    run(f"datasets {datasets.__version__}, pyarrow {pyarrow.__version__}, Pillow {PIL.__version__}", write)
