# SPDX-License-Identifier: Apache-2.0
"""The tools behind ./dev test and ./dev check: what the summary counts, and which type names are refused."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_layers  # noqa: E402

JUNIT = '<testsuites><testsuite tests="{}" failures="{}" errors="{}" skipped="{}"/></testsuites>'


def summary(folder: pathlib.Path, tier: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/summary.py"), str(folder), "61", tier]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_closing_line_counts_every_call_of_pytest(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pytest-together.xml").write_text(JUNIT.format(100, 0, 0, 3))
    (tmp_path / "pytest-alone.xml").write_text(JUNIT.format(20, 0, 0, 1))
    (tmp_path / "slow.txt").write_text("17")
    (tmp_path / "phases.tsv").write_text("setup\t4\nPython tests\t57\n")
    done = summary(tmp_path, "short")
    assert done.returncode == 0, done.stderr
    *_, time, left, last = done.stdout.splitlines()
    assert time.endswith("1 min 1 s: setup 4 s, Python tests 57 s")
    assert left.startswith("left to --long   17 slow Python tests")
    assert last == "116 passed, 0 failed, 4 skipped"


def test_failures_of_either_call_and_missing_results_fail_the_run(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pytest-together.xml").write_text(JUNIT.format(100, 0, 0, 3))
    done = summary(tmp_path, "short")
    assert done.returncode == 1 and done.stdout.endswith("97 passed, 1 failed, 3 skipped\n")
    (tmp_path / "pytest-alone.xml").write_text(JUNIT.format(20, 1, 1, 0))
    assert summary(tmp_path, "short").stdout.endswith("115 passed, 2 failed, 3 skipped\n")
    long = summary(tmp_path, "long")
    assert long.returncode == 1 and long.stdout.endswith("115 passed, 3 failed, 3 skipped\n")
    assert "left to --long" not in long.stdout


def test_the_slow_tests_are_counted_also_where_they_are_not_run(tmp_path: pathlib.Path) -> None:
    count = tmp_path / "count"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", "not slow", "--slow-count", str(count)]
    done = subprocess.run([*command, str(ROOT / "tests/test_pack_kill.py")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert int(count.read_text()) == int(re.search(r"(\d+) deselected", done.stdout)[1]) > 0  # type: ignore[index]


def test_every_slow_test_says_which_one_keeps_its_promise() -> None:
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        for line in path.read_text().splitlines():
            if re.match(r"\s*(@|pytestmark = |marks=)pytest\.mark\.slow", line):
                assert "#" in line, f"{path.name}: {line.strip()} needs a comment: which shorter test keeps the promise"


# -- names of types ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "types"),
    [
        ("namespace headrace { class A; struct B final : C { int n; }; enum class D : uint8_t { kE }; }", ["B", "D"]),
        ("namespace headrace {\nnamespace {\nstruct Hidden {};\n}\nstruct Seen {};\n}", ["Seen"]),
        ("namespace headrace { struct A { struct Inner {}; }; class A::Other { }; void f() { struct Local {}; } }", ["A"]),
        ("namespace headrace::py { struct Held {}; }", ["Held"]),
        ("namespace hr { class Loader {}; }", []),
        ('extern "C" {\nstruct ArrowArray { int n; };\n}', ["ArrowArray"]),
        ("namespace headrace { template <typename T>\nclass [[nodiscard]] Result : public Base<T> { }; }", ["Result"]),
        ('namespace headrace { class HEADRACE_TSA(capability("mutex")) Mutex { }; }', ["Mutex"]),
        (
            "namespace headrace { // struct No {\n/* struct No { */ const char* t = \"struct No {\"; char c = '{';\nstruct Yes {}; }",
            ["Yes"],
        ),
        ("#define X struct No {\nnamespace headrace { struct Yes {}; const struct Yes y = {}; void g(struct Yes a); }", ["Yes"]),
    ],
)
def test_types_that_everyone_may_name_are_found(code: str, types: list[str]) -> None:
    assert list(check_layers.types_of(code)) == types


def test_a_type_name_that_occurs_twice_is_refused_with_both_files(tmp_path: pathlib.Path) -> None:
    for name, text in {
        "src/format/tar/header.h": "namespace headrace { struct Held {}; struct Header {}; }",
        "src/format/tar/header.cc": "namespace headrace { namespace { struct Header {}; } }",
        "python/src/held.h": "namespace headrace::py { struct Held {}; }",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(check_layers.doubled_types(tmp_path)) == [
        "type Held is defined in python/src/held.h and src/format/tar/header.h: rename all but one"
    ]


@pytest.mark.parametrize(
    ("folder", "code", "found"),
    [
        ("src/base", "const auto salt = std::random_device()();", True),
        ("src/base", "// std::random_device is not used", False),
        ("python/src", "n = PyList_GET_SIZE(numbers);", True),
        ("python/src", "n = PyList_Size(numbers);", False),
        ("python/src", "struct V { Py_buffer view; };", True),
        ("python/src", '#include "python_buffer.h"\nstruct V { Py_buffer view; };', False),
    ],
)
def test_what_wheels_cannot_have_is_refused(tmp_path: pathlib.Path, folder: str, code: str, found: bool) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "a.cc").write_text(code)
    assert bool(list(check_layers.not_in_wheels(tmp_path))) is found
