# SPDX-License-Identifier: Apache-2.0
"""Tables as they are handed around: CSV, TSV and JSON lines, compared with pandas."""

from __future__ import annotations

import gzip
import json
import pathlib
from typing import Any

import headrace as hr
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest


def put(path: pathlib.Path, text: str | bytes) -> pathlib.Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows(ds: hr.Dataset) -> list[dict[str, Any]]:
    return [dict(s) for s in ds]


def same(ds: hr.Dataset, frame: pd.DataFrame) -> None:
    assert [n for n, _ in ds.schema] == [str(c) for c in frame.columns]
    assert len(ds) == len(frame)
    for mine, (_, theirs) in zip(rows(ds), frame.iterrows()):
        assert mine == {str(k): v for k, v in theirs.items() if not pd.isna(v)}


# -- CSV and TSV ------------------------------------------------------------------------------------


def test_cells_stay_as_they_are_written(tmp_path: pathlib.Path) -> None:
    path = put(tmp_path / "sst2.tsv", 'sentence\tlabel\nhide new secretions \t0\n  it \'s a charming film\t1\n" quoted "\t 1\n')
    ds = hr.open(path)
    assert ds["sentence"] == ["hide new secretions ", "  it 's a charming film", " quoted "]
    assert ds["label"].tolist() == [0, 1, 1]
    frame = pd.DataFrame({"text": [" a ", "b\t", "c,d", 'say "x"', "line\nbreak"], "n": [1, 2, 3, 4, 5]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    same(hr.open(tmp_path / "t.csv"), frame)


def test_quotes_that_are_no_quotes(tmp_path: pathlib.Path) -> None:
    path = put(tmp_path / "glue.tsv", 'sentence\tlabel\n"open and never closed\t1\nfine\t0\n"half" quoted\t1\n')
    assert hr.open(path)["sentence"] == ['"open and never closed', "fine", '"half" quoted']


def test_a_file_without_a_header_keeps_its_first_row(tmp_path: pathlib.Path) -> None:
    text = '"3","Wall St. Bears, again","Short-sellers are seeing green."\n"3","Carlyle","A firm."\n"4","Chips","New ones."\n'
    path = put(tmp_path / "ag_news.csv", text)
    ds = hr.open(path)
    theirs = pd.read_csv(path, header=None)
    same(ds, theirs)
    assert any("header=" in n for n in ds.notices)
    named = hr.open(path, header=["cls", "title", "text"])
    assert named["cls"].tolist() == [3, 3, 4] and named[2]["title"] == "Chips"
    assert len(hr.open(path, header=False)) == 3


def test_the_separator_is_recognised(tmp_path: pathlib.Path) -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
    for separator in (",", ";", "\t", "|"):
        frame.to_csv(tmp_path / "t.csv", sep=separator, index=False)
        same(hr.open(tmp_path / "t.csv"), frame)
    put(tmp_path / "wine.csv", "acid;price\n7,4;3,2\n8,1;2,9\n")
    assert hr.open(tmp_path / "wine.csv")[0] == {"acid": "7,4", "price": "3,2"}


def test_what_can_be_read_in_two_ways_is_refused_with_both(tmp_path: pathlib.Path) -> None:
    path = put(tmp_path / "two.csv", "a;b,c\n1;2,3\n4;5,6\n")
    with pytest.raises(
        hr.UsageError, match=r"by ',' line 1 is 'a;b', 'c'; by ';' it is 'a', 'b,c'; say separator=',' or separator=';'"
    ):
        hr.open(path)
    assert hr.open(path, separator=";")[1] == {"a": 4, "b,c": "5,6"}
    assert hr.open(path, separator=",")[1] == {"a;b": "4;5", "c": 6}
    path = put(tmp_path / "head.csv", "1,name\n2,3\n3,4\n")
    with pytest.raises(hr.UsageError, match="header=True, header=False"):
        hr.open(path)
    assert len(hr.open(path, header=True)) == 2 and len(hr.open(path, header=False)) == 3


def test_a_dot_or_a_slash_in_a_cell_makes_no_list_of_files(tmp_path: pathlib.Path) -> None:
    path = put(tmp_path / "t.csv", "name,score\nSt. Gallen,3\na/b,4\n")
    assert hr.open(path)["name"] == ["St. Gallen", "a/b"]
    put(tmp_path / "x.txt", "hello")
    path = put(tmp_path / "l.csv", "name,score\nx.txt,3\n")
    assert hr.open(path)[0] == {"txt": "hello", "score": 3}  # there is such a file
    assert hr.open(path, table=True)[0] == {"name": "x.txt", "score": 3}


def test_the_output_of_pandas_opens(tmp_path: pathlib.Path) -> None:
    frame = pd.DataFrame({"x": [1, 2, 3], "y": [0.5, np.nan, 1.5], "text": ["a", "b", "c"]})
    frame.to_csv(tmp_path / "t.csv")
    ds = hr.open(tmp_path / "t.csv")
    assert [n for n, _ in ds.schema] == ["index", "x", "y", "text"]
    assert ds["index"].tolist() == [0, 1, 2] and ds["y"][1] is None
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    same(hr.open(tmp_path / "t.csv.gz"), frame)


def test_wrong_words_are_refused(tmp_path: pathlib.Path) -> None:
    path = put(tmp_path / "t.csv", "a,b\n1,2\n")
    for wrong in ({"header": "yes"}, {"separator": "ab"}, {"table": 1}, {"header": []}):
        with pytest.raises(hr.UsageError):
            hr.open(path, **wrong)


def test_a_list_of_files_with_a_root(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "lists").mkdir()
    put(tmp_path / "pictures" / "a.txt", "A")
    path = put(tmp_path / "lists" / "l.csv", "name,cls\na.txt,3\n")
    assert hr.open(path, root=tmp_path / "pictures")[0] == {"txt": "A", "cls": 3}
    assert hr.open(path)[0] == {"name": "a.txt", "cls": 3}


# -- JSON lines -------------------------------------------------------------------------------------

RECORDS = [
    {"text": "Zürich 日本", "label": 1, "meta": {"lang": "de", "score": 0.5, "deep": {"n": 1}}, "tags": ["a", "b"]},
    {"text": " two\n", "label": 0, "meta": {"lang": "en", "score": 1}, "tags": []},
    {"text": "", "label": 2, "meta": {"lang": None}, "path": "not/a/file.txt"},
]


def check_records(ds: hr.Dataset) -> None:
    assert len(ds) == 3
    assert ds["text"] == [r["text"] for r in RECORDS] and ds["label"].tolist() == [1, 0, 2]
    assert ds["meta.lang"] == ["de", "en", None] and ds["meta.score"] == [0.5, 1.0, None]
    assert ds[0]["meta.deep.n"] == 1 and json.loads(ds[0]["tags"]) == ["a", "b"] and ds[2]["path"] == "not/a/file.txt"
    assert len(ds.where("label > 0 and `meta.lang` == 'de'")) == 1


def test_records_are_a_table(tmp_path: pathlib.Path) -> None:
    text = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in RECORDS)
    check_records(hr.open(put(tmp_path / "c.jsonl", text)))
    check_records(hr.open(put(tmp_path / "c.jsonl.gz", gzip.compress(text.encode()))))
    check_records(hr.open(put(tmp_path / "c.jsonl.zst", pa.Codec("zstd").compress(text.encode()).to_pybytes())))
    with pa.CompressedOutputStream(str(tmp_path / "d.jsonl.zst"), "zstd") as out:  # a frame that does not say its size
        out.write(text.encode())
    check_records(hr.open(tmp_path / "d.jsonl.zst"))


def test_pandas_lines(tmp_path: pathlib.Path) -> None:
    frame = pd.DataFrame({"x": [1, 2], "t": ["a", "b"], "f": [0.5, 1.25]})
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    same(hr.open(tmp_path / "t.jsonl"), frame)


def test_lines_that_name_files_are_a_list(tmp_path: pathlib.Path) -> None:
    put(tmp_path / "a.txt", "A")
    put(tmp_path / "b.txt", "B")
    path = put(tmp_path / "l.jsonl", '{"file": "a.txt", "y": 1}\n{"file": "b.txt", "y": 2}\n')
    assert rows(hr.open(path)) == [{"txt": "A", "y": 1}, {"txt": "B", "y": 2}]
    assert rows(hr.open(path, table=True)) == [{"file": "a.txt", "y": 1}, {"file": "b.txt", "y": 2}]


def test_a_cut_gzip_is_an_error(tmp_path: pathlib.Path) -> None:
    data = gzip.compress(b'{"a": 1}\n' * 1000)
    with pytest.raises(hr.DataError, match="cut short"):
        hr.open(put(tmp_path / "c.jsonl.gz", data[:-9]))


def test_one_json_list_is_refused_with_the_command_that_makes_lines_of_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "list.json"
    pd.DataFrame({"n": [1, 2]}).to_json(path, orient="records")
    with pytest.raises(hr.UsageError, match=r"one JSON list.*jq -c '\.\[\]' .*list\.json > .*list\.jsonl"):
        hr.open(path)
