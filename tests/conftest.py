# SPDX-License-Identifier: Apache-2.0
"""Data sets, made once a session; a timeout on every test; ranks from nowhere but the test."""

from __future__ import annotations

import os
import pathlib
import signal

import headrace as hr
import pytest
import support
from _pytest.runner import runtestprotocol

TIMEOUT_S = 180 * support.SLOWDOWN  # a machine that others load takes a minute to import torch
# Few tests that take long: begun first, so that no worker ends with them while the other has nothing left.
FIRST = ("test_examples.py", "test_readme.py", "test_bench.py", "test_golden.py")
MEASURED_AT_MOST = 3  # times that a test of time or memory may try
_LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "OMPI_", "MV2_", "PMI_", "PALS_", "SLURM_", "TORCHELASTIC_")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow-count", metavar="FILE", help="write to FILE how many of the tests are marked slow")


@pytest.hookimpl(tryfirst=True)  # before -m takes any away
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    count = config.getoption("--slow-count")
    if count:
        # Every worker collects the same tests and writes the same number.
        pathlib.Path(count).write_text(str(sum(item.get_closest_marker("slow") is not None for item in items)))
    items.sort(key=lambda item: item.path.name not in FIRST)
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A test that measures is disturbed by whatever else the machine does: it fails when all of its tries fail."""
    if item.get_closest_marker("alone") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(1, MEASURED_AT_MOST + 1):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = [r for r in reports if r.failed]
        if not failed or attempt == MEASURED_AT_MOST:
            break
        print(f"\n{item.nodeid}: measured again, try {attempt} failed: {str(failed[0].longrepr).splitlines()[-1]}")
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(_LAUNCHERS):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> support.Data:
    return support.Data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> hr.Dataset:
    """211 samples whose cls is their number, in 23 shards."""
    return hr.open(support.write_numbers(tmp_path_factory.mktemp("numbers")))


@pytest.fixture
def say_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said once a process is said again."""
    monkeypatch.setattr("headrace.messages._told", set())


@pytest.fixture(scope="session")
def repository() -> pathlib.Path:
    return pathlib.Path(__file__).resolve().parent.parent


# A shell starts background jobs with Ctrl-C ignored, and children would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
