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


# -- encodings, line ends, and what Python's json writes ------------------------------------------------------------------------


def test_bytes_that_are_no_utf8_name_the_line_and_the_remedy(tmp_path: pathlib.Path) -> None:
    path = put(tmp_path / "latin.csv", "name,age\nAda,36\nGräfin,41\n".encode("latin-1"))
    with pytest.raises(hr.DataError, match=r"latin.csv.*line 3 is not UTF-8; convert it: iconv -f LATIN1"):
        hr.open(path)
    path = put(tmp_path / "wide.csv", "a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(hr.DataError, match=r"wide.csv.*UTF-16, not UTF-8; convert it: iconv -f UTF-16"):
        hr.open(path)
    path = put(tmp_path / "mac.csv", "a,b\r1,2\r3,4\r")
    with pytest.raises(hr.DataError, match=r"mac.csv.*end with CR alone.*tr "):
        hr.open(path)


@pytest.mark.parametrize("text", ['{\n "a": 1\n}\n', '{"a": 1}\n{"a":\n', '{"a": [1,\n2]}\n', '{"a": 1}\n{"a": "b'])
def test_an_object_over_several_lines_is_named_as_such(tmp_path: pathlib.Path, text: str) -> None:
    with pytest.raises(hr.DataError, match=r"line [12]: the JSON object does not end on this line.*jq -c"):
        hr.open(put(tmp_path / "a.jsonl", text))


def test_numbers_that_only_pythons_json_writes(tmp_path: pathlib.Path) -> None:
    path = put(
        tmp_path / "a.jsonl", "".join(json.dumps({"x": x}) + "\n" for x in (1.5, float("nan"), float("inf"), -float("inf")))
    )
    values = [s["x"] for s in hr.open(path)]
    assert np.array_equal(values, [1.5, np.nan, np.inf, -np.inf], equal_nan=True)
    with pytest.raises(hr.DataError, match="no JSON value"):
        hr.open(put(tmp_path / "b.jsonl", '{"x": Nan}\n'))


def test_names_without_extensions_and_backslashes_name_the_remedy(tmp_path: pathlib.Path) -> None:
    (tmp_path / "img").mkdir()
    for i in range(3):
        put(tmp_path / "img" / f"p{i}.jpg", b"x")
    path = put(tmp_path / "ids.csv", "id,label\np0,1\np1,2\np2,0\n")
    with pytest.raises(hr.StorageError, match=r"hr.join\(images=.FOLDER., labels=hr.open\(.*ids.csv., table=True\)"):
        hr.open(path, root=tmp_path / "img")
    both = hr.join(images=tmp_path / "img", labels=hr.open(path, table=True), on={"labels": "id"})
    assert [s["label"] for s in both] == [1, 2, 0]
    path = put(tmp_path / "win.csv", "path,label\nimg\\p0.jpg,1\n")
    with pytest.raises(hr.StorageError, match="backslashes"):
        hr.open(path)


# -- words that pandas reads as something else ------------------------------------------------------


def test_missing_values_among_numbers_are_missing(tmp_path: pathlib.Path) -> None:
    frame = pd.DataFrame({"a": [1.5, None, 3], "n": [1, 2, 3], "t": ["NA", "x", None], "b": [True, False, True]})
    frame.to_csv(tmp_path / "d.csv", index=False, na_rep="NA")
    ds = hr.open(tmp_path / "d.csv")
    assert rows(ds) == [
        {"a": 1.5, "n": 1, "t": "NA", "b": 1},
        {"n": 2, "t": "x", "b": 0},
        {"a": 3.0, "n": 3, "t": "NA", "b": 1},  # a text stays one
    ]
    (notice,) = ds.notices
    assert "column 'a': 1 cells among the numbers are words for a missing value, the first 'NA'" in notice
    batch = next(iter(hr.Loader(ds, 3, {"a": hr.scalar("a", default=-1.0), "b": hr.scalar("b")}, shuffle=False, output="numpy")))
    assert batch["a"].tolist() == [1.5, -1, 3] and batch["b"].tolist() == [1, 0, 1]


@pytest.mark.parametrize("cells", [["True", "maybe"], ["True", "1"], ["NA", "NA"], ["null", "true", "x"]])
def test_such_words_beside_others_are_texts(tmp_path: pathlib.Path, cells: list[str]) -> None:
    ds = hr.open(put(tmp_path / "d.csv", "word,n\n" + "".join(f"{c},{i}\n" for i, c in enumerate(cells))))
    assert ds["word"] == cells and not ds.notices


def test_columns_without_a_name_are_called_as_pandas_calls_them(tmp_path: pathlib.Path) -> None:
    path = put(tmp_path / "d.csv", "a,b,\n1,2,\n3,4,5\n")
    ds = hr.open(path)
    assert [n for n, _ in ds.schema] == [str(c) for c in pd.read_csv(path).columns] == ["a", "b", "Unnamed: 2"]
    assert rows(ds) == [{"a": 1, "b": 2}, {"a": 3, "b": 4, "Unnamed: 2": 5}]


def test_numbers_beyond_64_bits_are_texts(tmp_path: pathlib.Path) -> None:
    lines = [{"hash": 2**64 - 1, "n": 1}, {"hash": 5, "n": 2}, {"hash": -(10**30), "n": 3}]
    ds = hr.open(put(tmp_path / "d.jsonl", "".join(json.dumps(x) + "\n" for x in lines)))
    assert ds["hash"] == [str(x["hash"]) for x in lines] and ds["n"].tolist() == [1, 2, 3]
    with pytest.raises(hr.DataError, match="no JSON value: '1-'"):
        hr.open(put(tmp_path / "e.jsonl", '{"a": 1-}\n'))


def test_one_object_in_a_json_file_is_said(tmp_path: pathlib.Path) -> None:
    ds = hr.open(put(tmp_path / "squad.json", json.dumps({"version": "1", "data": [{"q": "x"}, {"q": "y"}]})))
    assert len(ds) == 1 and any("one JSON object, and so one sample" in n and "jq -c" in n for n in ds.notices)
    assert not hr.open(put(tmp_path / "chat.jsonl", '{"data": [1]}\n')).notices


# -- lists of numbers -------------------------------------------------------------------------------


def test_lists_of_numbers_in_json_lines_are_arrays(tmp_path: pathlib.Path) -> None:
    lines = [{"ids": list(range(i + 1)), "box": [[i, 0.5], [2, 3]], "same": [i, 2]} for i in range(4)]
    lines[2]["box"] = [[7, 8], [9, 10]]  # whole numbers among fractions
    path = put(tmp_path / "d.jsonl", "".join(json.dumps(x) + "\n" for x in lines))
    fields = {"ids": hr.tokens("ids", documents=True), "box": hr.array("box"), "f": hr.array("same", dtype="f32")}
    batch = next(iter(hr.Loader(path, 4, fields, shuffle=False, output="numpy")))
    tokens, lengths = batch["ids"]
    assert lengths.tolist() == [1, 2, 3, 4] and tokens[3].tolist() == [0, 1, 2, 3] and tokens.dtype == np.int64
    assert np.array_equal(batch["box"], [x["box"] for x in lines]) and batch["box"].dtype == np.float64
    assert np.array_equal(batch["f"], [x["same"] for x in lines]) and batch["f"].dtype == np.float32
    ds = hr.open(path, {"ids": hr.tokens("ids"), "raw": hr.json("ids")})
    assert all(ds[i]["ids"].tolist() == lines[i]["ids"] == ds[i]["raw"] for i in range(4))
    rows = hr.packed(hr.open(path, {"ids": hr.tokens("ids")}), seq_len=5)
    packed = list(hr.Loader(rows, 1, output="numpy", tail="keep"))
    assert sum(int((b["loss_mask"] > 0).sum()) for b in packed) == sum(len(x["ids"]) - 1 for x in lines)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['{"v": [1, 2]}', '{"v": [0.5, 2]}'], "say dtype="),
        (['{"v": [[1], [2, 3]]}'], r"different lengths.*|hr\.json"),
        (['{"v": ["a"]}'], r'take it with hr\.json\("v"\)'),
        (['{"v": "12345678"}'], r'take it with hr\.text\("v"\)'),  # never its bytes as numbers
    ],
)
@pytest.mark.parametrize("dtype", [None, "f32"])
def test_what_is_no_array_in_json_is_refused(tmp_path: pathlib.Path, lines: list[str], words: str, dtype: str | None) -> None:
    path = put(tmp_path / "d.jsonl", "\n".join(lines) + "\n")
    field = hr.array("v") if dtype is None else hr.array("v", dtype=dtype)
    if dtype and len(lines) == 2:
        batch = next(iter(hr.Loader(path, 2, {"v": field}, shuffle=False, output="numpy")))
        assert batch["v"].tolist() == [[1, 2], [0.5, 2]]
        return
    with pytest.raises(hr.Error, match=words):
        list(hr.Loader(path, 1, {"v": field}, shuffle=False, output="numpy"))


def test_a_loader_without_fields_has_nan_for_empty_cells_among_fractions(tmp_path: pathlib.Path) -> None:
    pd.DataFrame({"age": [22.5, None, 3], "name": ["a", None, "c"], "n": [1, 2, 3]}).to_csv(tmp_path / "t.csv", index=False)
    batch = next(iter(hr.Loader(tmp_path / "t.csv", 3, shuffle=False, output="numpy")))
    np.testing.assert_array_equal(batch["age"], [22.5, np.nan, 3])
    assert batch["name"] == ["a", None, "c"] and batch["n"].tolist() == [1, 2, 3]
    assert "age" not in hr.open(tmp_path / "t.csv")[1]
    put(tmp_path / "i.csv", "a,b\n1,x\n,y\n")  # an integer that is not there is no number
    with pytest.raises(hr.DataError, match=r"say default=… or optional=True"):
        list(hr.Loader(tmp_path / "i.csv", 2, shuffle=False))
