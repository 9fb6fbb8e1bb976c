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


def python_suite(folder: pathlib.Path) -> tuple[int, int, int]:
    """(passed, failed, skipped)."""
    path = folder / "pytest.xml"
    if not path.exists():
        return 0, 1, 0
    suite = ET.parse(path).getroot()
    suite = suite if suite.tag == "testsuite" else suite[0]
    count = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    failed = count["failures"] + count["errors"]
    return count["tests"] - failed - count["skipped"], failed, count["skipped"]


def main() -> int:
    folder, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    suites, numbers = cpp_suites(folder)
    passed, failed, skipped = python_suite(folder)
    print("\n== summary")
    for name, (programs, tests, failures, skips) in suites.items():
        print(f"C++ {name:12} {tests - failures - skips} tests passed, {failures} failed, {skips} skipped in {programs} programs")
        passed, failed, skipped = passed + tests - failures - skips, failed + failures, skipped + skips
    print(f"plan             {numbers['shapes']:,} shapes, {numbers['resumes']:,} resumes")
    for name, runs in fuzz_runs(folder).items():
        print(f"fuzz             {name}: {runs:,} inputs")
    python = python_suite(folder)
    print(
        f"Python           {python[0]} tests passed, {python[1]} failed, {python[2]} skipped (examples and README code among them)"
    )
    print(f"time             {seconds // 60} min {seconds % 60} s")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
