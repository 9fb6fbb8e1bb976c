# SPDX-License-Identifier: Apache-2.0
"""Traces: hr.trace and headrace trace write JSON that Perfetto opens."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
from typing import Any

import headrace as hr
import pytest
from support import Data


def events_of(path: pathlib.Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text())["traceEvents"])


def names_of(events: list[dict[str, Any]]) -> set[str]:
    return {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}


def test_a_trace_has_named_threads_and_every_stage_of_every_batch(data: Data, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.json"
    with hr.Loader(data.tar, 8, {"x": hr.image("jpg").resize((16, 16))}, output="numpy", threads=2) as loader:
        list(loader.epoch(0))  # not traced
        with hr.trace(path):
            batches = len(list(loader.epoch(1)))
        list(loader.epoch(2))
    events = events_of(path)
    spans = [e for e in events if e["ph"] in "Xb"]
    assert {e["name"] for e in spans} >= {"plan", "resolve", "read", "decode", "pack", "deliver", "consume"}
    count = {name: len([e for e in spans if e["name"] == name]) for name in ("deliver", "consume")}
    assert count == {"deliver": batches, "consume": batches - 1}  # the last ends when a batch of the next epoch is asked for
    assert any(n.startswith("hr-compute-") for n in names_of(events)) and any(n.startswith("hr-io-") for n in names_of(events))
    threads = {e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {e["tid"] for e in spans} <= threads and all(e["dur"] >= 0 for e in spans if e["ph"] == "X")


def consumed(path: pathlib.Path) -> list[float]:
    """How long each batch was in the consumer's hands, in microseconds."""
    begun: dict[Any, float] = {}
    taken = []
    for e in events_of(path):
        if e["name"] == "consume" and e["ph"] == "b":
            begun[e["id"]] = e["ts"]
        if e["name"] == "consume" and e["ph"] == "e":
            taken.append(e["ts"] - begun[e["id"]])
    return taken


def test_what_the_training_step_takes_is_in_the_trace(data: Data, tmp_path: pathlib.Path) -> None:
    """And no time outside the trace: not the step that was running when it began."""
    with hr.Loader(data.tar, 8, {"y": hr.scalar("cls")}, output="numpy") as loader:
        it = iter(loader)
        next(it)
        time.sleep(0.05)
        with hr.trace(tmp_path / "a.json"):
            next(it)
            time.sleep(0.02)
            next(it)
        with hr.trace(tmp_path / "b.json"):
            next(it)
    assert [us >= 20_000 for us in consumed(tmp_path / "a.json")] == [True]
    assert consumed(tmp_path / "b.json") == []


def test_nothing_of_one_trace_is_in_the_next(data: Data, tmp_path: pathlib.Path) -> None:
    with hr.Loader(data.tar, 8, {"y": hr.scalar("cls")}, output="numpy") as loader:
        with hr.trace(tmp_path / "a.json"):
            list(loader.epoch(0))
        with hr.trace(tmp_path / "b.json"):
            pass
    assert not [e for e in events_of(tmp_path / "b.json") if e["ph"] == "X" and e["name"] == "pack"]


def test_an_exception_leaves_a_trace_and_goes_on(data: Data, tmp_path: pathlib.Path) -> None:
    with pytest.raises(KeyError), hr.trace(tmp_path / "a.json"):
        raise KeyError
    assert events_of(tmp_path / "a.json")
    with pytest.raises(hr.UsageError, match="one at a time"), hr.trace(tmp_path / "a.json"), hr.trace(tmp_path / "b.json"):
        pass
    with hr.trace(tmp_path / "c.json"):
        pass


def test_a_trace_that_cannot_be_written_says_so_at_once(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError), hr.trace(tmp_path / "none" / "a.json"):
        raise AssertionError("not reached")
    with pytest.raises(hr.UsageError, match="path"), hr.trace(3):  # type: ignore[arg-type]
        pass


def test_the_command_writes_a_trace(data: Data, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.json"
    command = [sys.executable, "-m", "headrace", "trace", str(data.tar), "--to", str(path), "--batch-size", "8", "--batches", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "3 batches of 8" in done.stdout and "perfetto" in done.stdout
    assert names_of(events_of(path))
