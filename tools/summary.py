# SPDX-License-Identifier: Apache-2.0
"""The last words of a test run: what ran, under which sanitizers, and how it ended."""

from __future__ import annotations

import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict


def cpp_suites(folder: pathlib.Path) -> tuple[dict[str, list[int]], dict[str, int]]:
    """Of each suite [programs, tests, failures, skipped]; and the properties the tests recorded, summed."""
    suites: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    numbers: dict[str, int] = defaultdict(int)
    for path in sorted(folder.glob("*-test_*.json")):
        suite = suites[path.name.split("-test_")[0]]
        result = json.loads(path.read_text())
        suite[0] += 1
        suite[1] += result["tests"]
        suite[2] += result["failures"] + result.get("errors", 0)
        for case in result["testsuites"]:
            suite[3] += sum(test.get("result") == "SKIPPED" for test in case["testsuite"])
        for name in ("shapes", "resumes"):
            numbers[name] += int(result.get(name, 0)) if path.name.startswith("gcc-") else 0
    return suites, numbers


def fuzz_runs(folder: pathlib.Path) -> dict[str, int]:
    runs = {}
    for path in sorted(folder.glob("*_fuzz.log")):
        found = re.search(r"stat::number_of_executed_units:\s*(\d+)", path.read_text(errors="replace"))
        runs[path.stem] = int(found[1]) if found else 0
    return runs


def python_suite(path: pathlib.Path) -> tuple[int, int, int]:
    """(passed, failed, skipped) of one call of pytest."""
    suite = ET.parse(path).getroot()
    suite = suite if suite.tag == "testsuite" else suite[0]
    count = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    return count["tests"] - failed - count["skipped"], failed, count["skipped"]


# Of each call of pytest: the file of its results, and what the line of the summary adds.
PYTHON = {
    "pytest-together.xml": "examples and README code among them",
    "pytest-alone.xml": "those that measure time or memory, one after the other",
    "pytest-asan.xml": "again, under AddressSanitizer and UBSan",
}


def python_suites(folder: pathlib.Path, tier: str) -> dict[str, tuple[int, int, int]]:
    """By what the line adds; results that are missing count as a failure."""
    names = [name for name in PYTHON if tier == "long" or name != "pytest-asan.xml"]
    return {PYTHON[n]: python_suite(folder / n) if (folder / n).exists() else (0, 1, 0) for n in names}


def phases(folder: pathlib.Path) -> list[str]:
    path = folder / "phases.tsv"
    rows = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
    return [f"{name} {seconds} s" for name, seconds in rows]


def left_to_long(folder: pathlib.Path) -> str:
    path = folder / "slow.txt"
    slow = path.read_text() if path.exists() else "all"
    return f"{slow} slow Python tests, and the Python tests under AddressSanitizer and UBSan (./dev test --long)"


def main() -> int:
    folder, seconds, tier = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    suites, numbers = cpp_suites(folder)
    total = [0, 0, 0]
    print("\n== summary")
    for name, (programs, tests, failures, skips) in suites.items():
        print(f"C++ {name:12} {tests - failures - skips} tests passed, {failures} failed, {skips} skipped in {programs} programs")
        total = [t + n for t, n in zip(total, (tests - failures - skips, failures, skips))]
    print(f"plan             {numbers['shapes']:,} shapes, {numbers['resumes']:,} resumes")
    for name, runs in fuzz_runs(folder).items():
        print(f"fuzz             {name}: {runs:,} inputs")
    for what, counts in python_suites(folder, tier).items():
        print(f"Python           {counts[0]} tests passed, {counts[1]} failed, {counts[2]} skipped ({what})")
        total = [t + n for t, n in zip(total, counts)]
    print(f"time             {seconds // 60} min {seconds % 60} s: {', '.join(phases(folder))}")
    if tier != "long":
        print(f"left to --long   {left_to_long(folder)}")
    print("{} passed, {} failed, {} skipped".format(*total))
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
