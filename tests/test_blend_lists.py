# SPDX-License-Identifier: Apache-2.0
"""Blends as people who train language models write them: URLs, lists of files, epochs of each corpus."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import Shape, on_ranks, rest_of_epoch

SIZES = {"web": 900, "code": 300, "papers": 100}  # rows of 16 tokens
ROW = 16
TOKENS = {"t": hr.tokens(seq_len=ROW, stored="u16")}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of tokens a corpus; the first token of every row says which row it is."""
    folder = tmp_path_factory.mktemp("corpora")
    for n, (name, rows) in enumerate(SIZES.items()):
        (folder / name).mkdir()
        for half in range(2):
            tokens = np.arange(rows // 2 * ROW + 1, dtype=np.uint16) // ROW + half * (rows // 2) + n * 1000
            tokens.tofile(folder / name / f"{half}.bin")
    return folder


def urls(folder: Path) -> dict[str, float]:
    return {f"{folder}/web/*.bin": 0.7, f"{folder}/code/*.bin": 0.2, f"{folder}/papers/*.bin": 0.1}


def load(source: Any, batch: int = 10, **options: Any) -> hr.Loader:
    return hr.Loader(source, batch, TOKENS, **{"seed": 3, "output": "numpy", "threads": 1, "tail": "keep", **options})


def rows_of(batches: Any) -> list[int]:
    return [int(row[0]) for b in batches for row in b["t"]]


def test_data_that_moved_keep_their_order_and_their_states(corpora: Path, tmp_path: Path) -> None:
    with load(hr.blend(urls(corpora))) as loader:
        batches = loader.epoch(0)
        first = rows_of([next(batches) for _ in range(20)])
        state, plan = loader.state_dict(), loader.plan_id()
        rest = rows_of(batches)
    shutil.copytree(corpora, tmp_path / "moved")
    with load(hr.blend(urls(tmp_path / "moved"))) as loader:
        assert loader.plan_id() == plan
        loader.load_state_dict(json.loads(json.dumps(state)))
        assert rows_of(loader.epoch(0)) == rest and len(first) == 200
    named = {name: (url, w) for name, (url, w) in zip("xyz", urls(corpora).items())}
    with load(hr.blend(named)) as loader:  # names are part of the order
        assert loader.plan_id() != plan


def test_weights_are_set_by_the_urls(corpora: Path) -> None:
    web, code, papers = urls(corpora)
    with load(hr.blend(urls(corpora), epoch_samples=640), 64) as loader:
        loader.set_weights({web: 0, code: 1, papers: 1}, at_step=5)
        counts = [Counter(b.sources.tolist()) for b in loader.epoch(0)]
    assert all(set(c) == {0, 1, 2} for c in counts[:5]) and all(set(c) == {1, 2} for c in counts[5:])


def test_shares_that_do_not_add_up_are_told_of(corpora: Path, caplog: pytest.LogCaptureFixture) -> None:
    a, b = str(corpora / "web/*.bin"), str(corpora / "code/*.bin")
    for weights, words in [
        ((0.71, 0.2), "add up to 0.91, not to 1; they are taken as proportions, 78.0%, 22.0%"),
        ((0.7, 0.3), ""),
    ]:
        caplog.clear()
        hr.blend(dict(zip((a, b), weights)))
        assert words in caplog.text and bool(words) == bool(caplog.text)
    for weights in ((7, 2), (0.33, 0.67), (0.67, 0.34)):
        hr.blend(dict(zip((a, b), weights)))
    assert not caplog.text


def test_weights_need_not_add_up_to_one(corpora: Path) -> None:
    whole = [(url, w * 7) for url, w in urls(corpora).items()]
    with load(hr.blend(urls(corpora))) as a, load(hr.blend(dict(whole))) as b:
        assert a.plan_id() == b.plan_id()


def write_list(folder: Path, *lines: str) -> Path:
    place = folder / "mix.txt"
    place.write_text("\n".join(lines) + "\n")
    return place


def test_a_list_of_files_is_a_blend_of_its_corpora(corpora: Path) -> None:
    place = write_list(
        corpora,
        "# weight path corpus",
        "0.4 web/0 web",
        "0.3 web/1.bin web   # without and with its ending",
        "",
        f"0.2, {corpora}/code/0, code",
        "0.0 code/1 code",
        "0.1\tpapers/*.bin\tpapers",
    )
    wanted = {name: ([f"{corpora}/{name}/{n}.bin" for n in range(2)], w) for name, w in zip(SIZES, (0.7, 0.2, 0.1))}
    with load(hr.blend(place)) as a, load(hr.blend(wanted)) as b:
        assert a.plan_id() == b.plan_id()
        assert rows_of(a.epoch(0)) == rows_of(b.epoch(0))
        assert list(a.stats()["sources"]) == ["web", "code", "papers"]


def test_without_corpora_every_file_is_a_source(corpora: Path) -> None:
    place = write_list(corpora, "3 web/0", "1 code/1")
    with load(hr.blend(str(place), epoch_samples=64), 64) as loader:
        (batch,) = loader.epoch(0)
        assert Counter(batch.sources.tolist()) == {0: 48, 1: 16}
        assert list(loader.stats()["sources"]) == ["web/0", "code/1"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["0.5 web/0 web", "x code/0 code"], r"mix\.txt, line 2: the weight .* not 'x'"),
        (["-1 web/0 web"], "line 1: the weight"),
        (["nan web/0 web"], "line 1: the weight"),
        (["0.5 web/none web"], r"line 1: there is no .*web/none, nor .*web/none\.bin"),
        (["0.5 web/0 web", "0.5 code/0"], "line 2: 2 words, and the lines before have 3"),
        (["0.5"], "line 1: weight, path and corpus are wanted, not 1"),
        (["0.5 web/0 web", "0.5 web/0.bin web"], "line 2: 'web/0.bin' comes a second time in 'web'"),
        (["# nothing"], "names no file"),
        (["0 web/0 web", "0 code/0 code"], "no source has a weight above 0"),
    ],
)
def test_lists_that_make_no_sense_are_refused(corpora: Path, lines: list[str], words: str) -> None:
    with pytest.raises(hr.Error, match=words):
        hr.blend(write_list(corpora, *lines))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"web/*.bin": -1}, "the weight of 'web/\\*.bin' is a number from 0 on, not -1"),
        ({"a": ("x", float("nan"))}, "the weight of 'a' is a number from 0 on"),
        ({"a": ("x", "much")}, "the weight of 'a' is a number"),
        ({"a": 0.0, "b": 0.0}, "no source has a weight above 0"),
        ({"a": None}, "'a' is None"),
        ({3: 1.0}, "a source's name is a text"),
        ({}, "blend takes a dict"),
        ([("a", 1)], "blend takes a dict"),
        ("/none/list.txt", "the list of files cannot be read"),
    ],
)
def test_blends_that_make_no_sense_are_refused(parts: Any, words: str) -> None:
    with pytest.raises(hr.Error, match=words):
        hr.blend(parts)


def test_a_corpus_that_is_missing_is_named(corpora: Path) -> None:
    missing = {**urls(corpora), f"{corpora}/books/*.bin": 0.3}
    with pytest.raises(hr.Error, match=r"source '.*/books/\*\.bin' of the blend: "):
        load(hr.blend(missing))


# -- how often a source comes ------------------------------------------------------------------------


def test_epochs_say_how_often_each_corpus_comes(corpora: Path) -> None:
    parts = {name: (f"{corpora}/{name}/*.bin", 1.0) for name in SIZES}
    epochs = {"web": 0.5, "code": 2, "papers": 3}
    with load(hr.blend(parts, epochs=epochs)) as loader:
        assert len(loader) == 135  # of (450 + 600 + 300) / 10
        counts = Counter(row // 1000 for row in rows_of(loader.epoch(0)))
        found = loader.stats()["sources"]
    for n, (name, wanted) in enumerate(epochs.items()):
        assert found[name]["epochs"] == pytest.approx(wanted, abs=0.01)
        # 1,350 draws end within a mixing block of 64.
        assert found[name]["samples"] == counts[n] == pytest.approx(wanted * SIZES[name], abs=32)
    with pytest.raises(hr.UsageError, match="epochs name every source"):
        hr.blend(parts, epochs={"web": 1})
    with pytest.raises(hr.UsageError, match="all say how long an epoch is"):
        hr.blend(parts, epochs=epochs, epoch_samples=5)


@pytest.mark.parametrize("weights", [(0.7, 0.2, 0.1), (0.1, 0.3, 0.6), (0, 0.5, 0.5), (0.98, 0.015, 0.005)])
def test_a_run_may_end_before_a_source_repeats(corpora: Path, weights: tuple[float, ...]) -> None:
    parts = {name: (f"{corpora}/{name}/*.bin", w) for name, w in zip(SIZES, weights)}
    block = max(64, *(1 / w for w in weights if w))
    with load(hr.blend(parts, exhausted="stop"), 7) as loader:
        rows = [row for _, batches in loader.epochs(5) for row in rows_of(batches)]
        assert max(Counter(rows).values()) == 1  # nothing twice
        counts = Counter(row // 1000 for row in rows)
        left = [(size - counts[n]) / w for n, (size, w) in enumerate(zip(SIZES.values(), weights)) if w]
        assert min(left) <= block + 2 / min(w for w in weights if w)  # and one source is used up, to a mixing block
        with pytest.raises(hr.UsageError, match="used up"):
            loader.epoch(1)
        with pytest.raises(hr.UsageError, match="exhausted='stop'"):
            loader.set_weights(dict.fromkeys(SIZES, 1.0), at_step=3)


def test_a_source_that_is_too_small_to_stop_by_is_named(corpora: Path) -> None:
    parts = {"web": (f"{corpora}/web/*.bin", 1), "code": (hr.open(f"{corpora}/code/*.bin", TOKENS)[:3], 1)}
    with pytest.raises(hr.UsageError, match="fewer samples than its share"):
        load(hr.blend(parts, exhausted="stop"))


def test_counters_of_each_source(corpora: Path) -> None:
    def use(loader: hr.Loader) -> Any:
        for _ in loader.epoch(0):
            pass
        return loader.stats()["sources"]

    ranks = on_ranks(hr.blend(urls(corpora), epoch_samples=1920), Shape(4, 10), TOKENS, use=use, seed=1)
    for n, (url, weight) in enumerate(urls(corpora).items()):
        assert sum(r[url]["samples"] for r in ranks) == pytest.approx(1920 * weight, abs=1)
        assert ranks[0][url]["epochs"] == pytest.approx(1920 * weight / list(SIZES.values())[n], abs=0.02)
    assert sum(s["share"] for s in ranks[1].values()) == pytest.approx(1)


# -- quotas, whatever the weights do -----------------------------------------------------------------

shares = st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any)
ranks_and_batch = st.sampled_from([(1, 16), (2, 8), (4, 4), (8, 2)])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=shares,
    changes=st.lists(st.tuples(st.integers(1, 60), shares), max_size=4),
    cut=ranks_and_batch,
    again=ranks_and_batch,
    stop=st.integers(1, 70),
    seed=st.integers(0, 5),
)
def test_quotas_are_exact_under_changing_weights_and_a_resume_on_other_ranks(
    numbers: hr.Dataset,
    first: list[int],
    changes: list[tuple[int, list[int]]],
    cut: tuple[int, int],
    again: tuple[int, int],
    stop: int,
    seed: int,
) -> None:
    """Between two changes every source has its share of all draws so far, to one sample at the borders of mixing blocks."""
    steps, batch = 80, 16  # borders of mixing blocks, of 64 draws, are borders of steps
    schedule = sorted(dict(changes).items())
    parts = {n: (numbers[k * 70 : k * 70 + 70], w) for k, (n, w) in enumerate(zip("abc", first))}
    blend = hr.blend(parts, epoch_samples=steps * batch)

    def before(loader: hr.Loader) -> tuple[list[Any], Any]:
        for at, weights in schedule:
            loader.set_weights(dict(zip("abc", weights)), at_step=at)
        it = loader.epoch(0)
        drawn = [(b.sources.tolist(), b.indices.tolist()) for _, b in zip(range(stop), it)]
        return drawn, loader.state_dict()

    def straight(loader: hr.Loader) -> list[Any]:
        for at, weights in schedule:
            loader.set_weights(dict(zip("abc", weights)), at_step=at)
        return [(b.sources.tolist(), b.indices.tolist()) for b in loader.epoch(0)]

    def draws(ranks: list[list[Any]]) -> list[list[tuple[int, int]]]:
        return [sorted(d for s, i in step for d in zip(s, i)) for step in zip(*ranks)]

    options: dict[str, Any] = {"seed": seed, "threads": 1}
    (alone,) = on_ranks(blend, Shape(1, batch), use=straight, **options)
    order = [s for sources, _ in alone for s in sources]
    # Quotas, segment by segment.
    begins = [(0, first), *[(at * batch, w) for at, w in schedule]]
    ends = [b for b, _ in begins[1:]] + [len(order)]
    for (begin, weights), end in zip(begins, ends):
        total = sum(weights)
        block = max(64, -(-(1 << 32) // min(w * (1 << 32) // total for w in weights if w)))
        for border in range(begin + block, end + 1, block):
            had = Counter(order[begin:border])
            assert all(abs(had[k] - (border - begin) * w / total) < 1 + 1e-6 for k, w in enumerate(weights))
    # The same draws on other ranks, and after a resume on yet others.
    some = on_ranks(blend, Shape(*cut), use=before, **options)
    assert draws([r[0] for r in some]) == draws([alone])[:stop]
    states = [r[1] for r in some]
    assert all(s == states[0] for s in states)
    rest = on_ranks(blend, Shape(*again), state=json.loads(json.dumps(states[0])), use=rest_of_epoch, **options)
    rest = [[(b.sources.tolist(), b.indices.tolist()) for b in r] for r in rest]
    assert draws(rest) == draws([alone])[stop:]
