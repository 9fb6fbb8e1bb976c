# SPDX-License-Identifier: Apache-2.0
"""Views: where, split, repeat; what NumPy computes, over every format, through the loader, pickled and packed."""

from __future__ import annotations

import collections
import pathlib
import pickle
from typing import Any

import headrace as hr
import numpy as np
import pytest
from support import COUNT, NUMBER, Data, Shape, digest, indices_of, on_ranks, one_epoch, write_tar

LABELS = np.repeat(np.arange(5), [17, 3, 11, 1, 21])  # of support.Data
TABLE = 500


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hr.Dataset:
    """A list of files with numbers and texts; some samples lack some of them."""
    root = tmp_path_factory.mktemp("table")
    rows = columns()
    with (root / "list.csv").open("w") as out:
        out.write("path,width,score,source\n")
        for i in range(TABLE):
            (root / f"{i:04d}.bin").write_bytes(b"x%d" % i)
            score = "" if rows["there"][i] == 0 else repr(float(rows["score"][i]))
            out.write(f"{i:04d}.bin,{rows['width'][i]},{score},{rows['source'][i]}\n")
    return hr.open(root / "list.csv")


def columns() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "width": rng.integers(-50, 50, TABLE),
        "score": rng.random(TABLE).round(3) + 0.0005,
        "there": rng.integers(0, 4, TABLE),
        "source": rng.choice(["web", "scan", "Zürich"], TABLE),
    }


def keys(ds: hr.Dataset) -> list[str]:
    return [ds.key(i) for i in range(len(ds))]


# -- where: expressions ------------------------------------------------------------------------------

_C = columns()
_W, _S, _T, _SRC = _C["width"], _C["score"], _C["there"] != 0, _C["source"]
EXPRESSIONS = {
    "width < 10": _W < 10,
    "width >= -3 and width < 7": (_W >= -3) & (_W < 7),
    "-3 <= width < 7": (_W >= -3) & (_W < 7),
    "10 > width": _W < 10,
    "width == 3 or width == -4 or width == 5": np.isin(_W, [3, -4, 5]),
    "width in [3, -4, 5,]".replace(",]", "]"): np.isin(_W, [3, -4, 5]),
    "width not in [3, -4, 5]": ~np.isin(_W, [3, -4, 5]),
    "width in [3.0, 4.5]": _W == 3,
    "width < 2.5": _W < 2.5,
    "not width < 10": _W >= 10,
    "not (width < 10 or width > 20)": (_W >= 10) & (_W <= 20),
    "not not width < 10": _W < 10,
    "width < 0 or width > 20 and source == 'web'": (_W < 0) | ((_W > 20) & (_SRC == "web")),
    '(width < 0 or width > 20) and source == "web"': ((_W < 0) | (_W > 20)) & (_SRC == "web"),
    "source in ['scan', 'Zürich']": _SRC != "web",
    "source != 'web'": _SRC != "web",
    "`source` < 'web'": _SRC != "web",
    "score > 0.5": _T & (_S > 0.5),
    "not score > 0.5": ~(_T & (_S > 0.5)),
    "score != 0.25": _T,
    "score > width": _T & (_S > _W),
    "score > -1e300": _T,
    "key >= '0250' and key < '0260'": (np.arange(TABLE) >= 250) & (np.arange(TABLE) < 260),
    "1 < 2": np.ones(TABLE, bool),
    "2 < 1": np.zeros(TABLE, bool),
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_picks_what_numpy_picks(table: hr.Dataset, expression: str) -> None:
    assert keys(table.where(expression)) == [f"{i:04d}" for i in np.flatnonzero(EXPRESSIONS[expression])]


@pytest.mark.parametrize(
    ("expression", "position", "words"),
    [
        ("", 1, "missing"),
        ("width", 6, "comparison"),
        ("width <", 8, "missing"),
        ("width = 3", 7, "=="),
        ("width < 3 &", 11, "and"),
        ("width < 3 width > 2", 11, "'and', 'or' or the end"),
        ("(width < 3", 11, r"'\)'"),
        ("width in 3", 10, r"'\['"),
        ("width in [3", 12, "',' or"),
        ("width in []", 11, "number"),
        ("width in [width]", 11, "numbers or texts"),
        ("width in [1, 'a']", 14, "not both"),
        ("width < 'a'", 1, "a text is compared with a number"),
        ("source in [1]", 1, "a text is compared with a number"),
        ("source == 'a", 11, "does not end"),
        ("width < 3x", 9, "cannot be read"),
        ("width < -nan", 9, "cannot be read"),
        ("and width < 3", 1, "wanted"),
        ("width not < 3", 11, "'in'"),
        ("(" * 1000 + "width < 3" + ")" * 1000, 65, "brackets"),
        (" or ".join(["width < 3"] * 5000), None, "too many"),
    ],
    ids=lambda v: str(v)[:30],
)
def test_a_bad_expression_is_named_with_its_position(
    table: hr.Dataset, expression: str, position: int | None, words: str
) -> None:
    with pytest.raises(hr.UsageError, match=words) as error:
        table.where(expression)
    assert position is None or f"position {position}:" in str(error.value)


def test_unknown_fields_are_named_with_the_nearest(table: hr.Dataset) -> None:
    with pytest.raises(hr.UsageError, match="did you mean 'width'"):
        table.where("widht < 3")


def test_pictures_cannot_be_compared(data: Data) -> None:
    with pytest.raises(hr.UsageError, match=r"jpg.*jpeg"):
        hr.open(data.folder).where("jpg == 3")


def test_large_numbers_compare_exactly(tmp_path: pathlib.Path) -> None:
    big = 2**53
    write_tar(tmp_path / "x.tar", [(f"{i}.cls", str(big + i).encode()) for i in range(4)])
    ds = hr.open(tmp_path / "x.tar")
    assert keys(ds.where(f"cls > {big}")) == ["1", "2", "3"]
    assert keys(ds.where(f"cls in [{big + 1}, {big + 3}]")) == ["1", "3"]
    assert keys(ds.where(f"cls > {float(big)!r}")) == ["1", "2", "3"]


# -- where: functions, and every place a label may lie in ---------------------------------------------


@pytest.mark.parametrize("place", ["folder", "tar", "pickle", "csv", "list", "jsonl"])
def test_labels_are_found_wherever_they_lie(data: Data, place: str) -> None:
    ds = hr.open(data.everywhere[place])
    wanted = [s.key for s in data.samples if s.label in (0, 2)]
    assert keys(ds.where("cls in [0, 2]")) == wanted
    assert keys(ds.where(lambda s: s["cls"] in (0, 2), fields=["cls"])) == wanted


def test_a_function_gets_what_lies_in_the_index(table: hr.Dataset) -> None:
    seen = []
    view = table.where(lambda s: seen.append(s) or s.get("score", 0) > 0.5)
    assert {frozenset(s) for s in seen} == {
        frozenset({"width", "score", "source", "key"}),
        frozenset({"width", "source", "key"}),
    }
    assert keys(view) == [f"{i:04d}" for i in np.flatnonzero(_T & (_S > 0.5))]


def test_a_function_that_raises_is_heard(table: hr.Dataset) -> None:
    with pytest.raises(ZeroDivisionError):
        table.where(lambda s: 1 / 0)


@pytest.mark.parametrize(
    "arguments",
    [(3,), ("cls < 3", ["cls"]), (lambda s: True, "cls"), (lambda s: True, [3])],
    ids=["number", "text and fields", "function and text", "function and numbers"],
)
def test_where_takes_a_text_or_a_function(data: Data, arguments: Any) -> None:
    with pytest.raises(hr.UsageError):
        hr.open(data.folder).where(*arguments)


def test_a_label_that_is_no_number_is_named(tmp_path: pathlib.Path) -> None:
    write_tar(tmp_path / "x.tar", [("a.cls", b"1"), ("b.cls", b"two")])
    with pytest.raises(hr.DataError, match=r"x\.tar.*'b'.*cls"):
        hr.open(tmp_path / "x.tar").where("cls < 3")


# -- split --------------------------------------------------------------------------------------------


def test_a_split_by_key_has_every_sample_once(numbers: hr.Dataset) -> None:
    parts = numbers.split(train=0.7, val=0.2, test=0.1)
    assert list(parts) == ["train", "val", "test"]
    assert sorted(k for part in parts.values() for k in keys(part)) == keys(numbers)
    assert 120 < len(parts["train"]) < 175 and 25 < len(parts["val"]) < 65


def test_a_split_by_key_stays_when_data_is_added(numbers: hr.Dataset) -> None:
    part_of = {k: name for name, part in numbers.split(a=0.5, b=0.5).items() for k in keys(part)}
    some = numbers[[3, 200, 7, 150, 9, 11]].split(a=0.5, b=0.5)
    assert all(part_of[k] == name for name, part in some.items() for k in keys(part))
    assert keys(numbers.split(a=0.5, b=0.5, seed=1)["a"]) != keys(numbers.split(a=0.5, b=0.5)["a"])


def test_the_rule_of_splits_is_frozen(numbers: hr.Dataset) -> None:
    assert keys(numbers[:40].split(val=0.1)["val"]) == FROZEN


FROZEN = ["00007", "00022", "00024", "00025", "00032", "00036"]


def test_shares_below_one_leave_the_rest_out(numbers: hr.Dataset) -> None:
    parts = numbers.split(a=0.25, b=0.25)
    assert 70 < sum(map(len, parts.values())) < 140
    both = numbers.split(a=0.25, b=0.75)
    assert keys(both["a"]) == keys(parts["a"])


def test_a_split_by_order_is_exact(numbers: hr.Dataset) -> None:
    parts = numbers.split(by="order", train=0.7, val=0.2, test=0.1)
    assert [keys(p) for p in parts.values()] == [keys(numbers)[:147], keys(numbers)[147:189], keys(numbers)[189:]]
    assert [len(p) for p in numbers[:100].split(by="order", a=0.29, b=0.71).values()] == [29, 71]


@pytest.mark.parametrize("shares", [{}, {"a": 0.5, "b": 0.6}, {"a": 0}, {"a": -1}, {"a": "half"}, {"a": float("nan")}], ids=str)
@pytest.mark.parametrize("by", ["key", "order"])
def test_shares_that_make_no_sense_are_refused(numbers: hr.Dataset, by: str, shares: dict[str, Any]) -> None:
    with pytest.raises(hr.UsageError):
        numbers.split(by=by, **shares)


# -- repeat -------------------------------------------------------------------------------------------


def rounds(counts: Any) -> list[int]:
    """First all samples once, then those that come a second time, …"""
    return [i for n in range(max(counts, default=0)) for i in np.flatnonzero(np.asarray(counts) > n)]


def test_repeats_come_round_by_round(numbers: hr.Dataset) -> None:
    counts = np.random.default_rng(1).integers(0, 5, len(numbers))
    names = keys(numbers)
    assert keys(numbers.repeat(3)) == names * 3
    assert keys(numbers.repeat(counts)) == [names[i] for i in rounds(counts)]
    assert len(numbers.repeat(0)) == 0


def test_classes_are_repeated_by_name(data: Data) -> None:
    ds = hr.open(data.folder)
    counts = np.array([1, 7, 1, 0, 2])[LABELS]
    assert keys(ds.repeat({1: 7, 3: 0, 4: 2}, "cls")) == [data.samples[i].key for i in rounds(counts)]


def test_balance_evens_the_classes(data: Data) -> None:
    counted = collections.Counter(s["cls"] for s in hr.open(data.folder).balance("cls"))
    assert counted == {0: 17, 1: 21, 2: 22, 3: 21, 4: 21}


@pytest.mark.parametrize(
    "arguments", [(-1,), (1.5,), ([1, 2],), ({3: 2},), ({99: 2}, "cls"), ({3: -2}, "cls"), (2, "cls"), (2**60,)], ids=str
)
def test_repeats_that_make_no_sense_are_refused(data: Data, arguments: Any) -> None:
    with pytest.raises(hr.UsageError):
        hr.open(data.folder).repeat(*arguments)


# -- views of views, and what the rest of headrace makes of them ----------------------------------------


def test_views_of_views_see_the_base(numbers: hr.Dataset) -> None:
    view = numbers.where("cls >= 100").repeat(2).where("cls < 110")[::-1]
    assert keys(view) == [f"{i:05d}" for i in [*range(100, 110)] * 2][::-1]
    assert view.fingerprint == numbers[[*range(100, 110)] * 2][::-1].fingerprint


def test_views_are_told_apart_by_their_fingerprints(numbers: hr.Dataset) -> None:
    views = [numbers, numbers.where("cls < 50"), numbers.where("cls < 51"), numbers.repeat(2), numbers[:50:-1]]
    assert len({v.fingerprint for v in views}) == len(views)
    assert numbers.where("cls < 50").fingerprint == numbers[:50].fingerprint


def test_an_empty_view_has_length_0(numbers: hr.Dataset) -> None:
    assert len(numbers.where("cls < 0")) == 0
    with pytest.raises(hr.UsageError):
        hr.Loader(numbers.where("cls < 0"), 4, NUMBER, output="numpy")


def test_views_are_pickled_with_their_numbers(numbers: hr.Dataset) -> None:
    view = numbers.where("cls in [3, 5, 8]").repeat(2)
    again = pickle.loads(pickle.dumps(view))
    assert keys(again) == keys(view) and again.fingerprint == view.fingerprint


VIEWS = {
    "where": lambda ds: ds.where("cls >= 30 and cls < 190"),
    "sparse": lambda ds: ds.where(lambda s: s["cls"] % 7 == 0, ["cls"]),
    "split": lambda ds: ds.split(train=0.8)["train"],
    "repeat": lambda ds: ds.repeat(dict.fromkeys(range(50), 4), "cls"),
    "shuffled": lambda ds: ds[np.random.default_rng(0).permutation(len(ds))],
}


@pytest.mark.parametrize("shuffle", [False, "global", "pool"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_loader_gives_every_sample_of_a_view_once(numbers: hr.Dataset, name: str, shuffle: Any) -> None:
    view = VIEWS[name](numbers)
    wanted = sorted(int(k) for k in keys(view))
    for shape in (Shape(1, 8), Shape(3, 5)):
        runs = on_ranks(view, shape, shuffle=shuffle, tail="keep", seed=2, use=one_epoch(1))
        assert len({len(run) for run in runs}) == 1
        assert sorted(int(n) for run in runs for b in run for n in b["n"]) == wanted
        assert sorted(i for run in runs for i in indices_of(run)) == list(range(len(view)))


@pytest.mark.parametrize("name", VIEWS)
def test_a_loader_over_a_view_resumes(numbers: hr.Dataset, name: str) -> None:
    view = VIEWS[name](numbers)
    options: dict[str, Any] = {"shuffle": "pool", "seed": 4, "output": "numpy"}
    with hr.Loader(view, 5, NUMBER, **options) as loader:
        straight = list(loader.epoch(0))
    with hr.Loader(view, 5, NUMBER, **options) as loader:
        batches = iter(loader)
        first = [next(batches) for _ in range(3)]
        state = loader.state_dict()
    with hr.Loader(view, 5, NUMBER, **options) as loader:
        loader.load_state_dict(state)
        assert digest([*first, *loader]) == digest(straight)
    with hr.Loader(numbers, 5, NUMBER, **options) as loader, pytest.raises(hr.Error, match="fingerprint"):
        loader.load_state_dict(state)


@pytest.mark.parametrize("name", VIEWS)
def test_reading_by_runs_gives_the_same(numbers: hr.Dataset, name: str) -> None:
    view = VIEWS[name](numbers)
    digests = set()
    for runs in (False, True):
        with hr.Loader(view, 5, NUMBER, shuffle="pool", seed=4, output="numpy", _read_runs=runs) as loader:
            digests.add(digest(loader.epoch(0)))
    assert len(digests) == 1


@pytest.mark.parametrize("name", [n for n in VIEWS if n != "repeat"])
def test_a_view_is_packed(numbers: hr.Dataset, tmp_path: pathlib.Path, name: str) -> None:
    view = VIEWS[name](numbers)
    hr.pack(view, tmp_path / "out", shards=3, keep_order=True)
    assert keys(hr.open(tmp_path / "out")) == keys(view)


def test_all_53_samples_are_the_data_of_these_tests(data: Data) -> None:
    assert len(LABELS) == COUNT and [s.label for s in data.samples] == LABELS.tolist()
