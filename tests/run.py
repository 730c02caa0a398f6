"""Runs the tests stage by stage and says how long each stage took: `make check` and `make test`.

usage: python -m tests.run check|all

In: `check` (what needs no lab, within a minute and a half) or `all`. Out: the tests' own output and a table of
durations; exit status 1 where a test failed. Tests that start no live lab run side by side on all CPUs, the others
afterwards, one by one. What failed is tried once more, alone: on a shared machine a neighbour may have had the CPU.
That a test needed its second try is said.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.tiers import ALONE, TIERS

CARGO = ["cargo", "test", "--profile", "checked", "--locked", "--quiet"]
"""Optimised as the product is, with checks of overflows and debug assertions."""
PURE_CRATES = ["--lib", "--bins", "--test", "properties", "--test", "simulate"]


class TestingStage(NamedTuple):
    """A name, what is run, and what is run where tests of it failed, which the exit status `failed` says."""

    name: str
    command: list[str]
    again: list[str]
    failed: int


def cargo(name: str, *options: str) -> TestingStage:
    command = [*CARGO, *options]
    return TestingStage(name, command, [*command, "--", "--test-threads=1"], failed=101)


def pytest(name: str, marks: str, *options: str) -> TestingStage:
    command = [sys.executable, "-m", "pytest", "-m", marks, "-o", f"cache_dir=.pytest_cache/{name.replace(' ', '-')}"]
    return TestingStage(name, [*command, *options], [*command, "--last-failed"], failed=1)


def stages(what: str) -> list[TestingStage]:
    """KeyError for another word than check and all."""
    cpus = len(os.sched_getaffinity(0))
    side_by_side = ("-n", str(cpus), "--dist", "loadscope")
    alone = " or ".join(ALONE)
    return {
        "check": [
            cargo("Rust without labs", *PURE_CRATES),
            pytest("pure", f"not ({' or '.join(TIERS)})", *side_by_side),
        ],
        "all": [
            cargo("Rust"),
            pytest("side by side", f"not ({alone})", *side_by_side),
            pytest("one by one", alone),
        ],
    }[what]


def main(words: list[str], run: Callable[[list[str]], int] = subprocess.call) -> int:
    """The exit status; `run` gives that of a command."""
    try:
        (what,) = words
        chosen = stages(what)
    except (ValueError, KeyError):
        print("usage: python -m tests.run check|all", file=sys.stderr)
        return 2
    lines, failed = [], []
    for stage in chosen:
        print(f"tests: {stage.name}", flush=True)
        begin = time.monotonic()
        status, note = run(stage.command), ""
        if status == stage.failed:
            print(f"tests: {stage.name}: once more, what failed", flush=True)
            status, note = run(stage.again), "; at the second try"
        failed += [stage.name] if status else []
        outcome = "failed" if status else "passed"
        lines.append(f"  {stage.name:<20}{time.monotonic() - begin:6.0f} s  {outcome}{note}")
        if status not in (0, stage.failed):
            break  # an error of the runner itself, or Ctrl-C
    print("\n".join(["tests: wall time", *lines]), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
