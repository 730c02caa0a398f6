"""Runs the tests stage by stage and says how long each stage took: `make check` and `make test`.

usage: python -m tests.run check|all|aarch64

In: `check` (what needs no lab, within a minute and a half), `all`, or `aarch64` (of Rust what needs no lab, for arm64).
Out: the tests' own output and a table of durations; exit status 1 where a test failed. What runs side by side on all
CPUs, what in a few lanes and what one by one, is said in tests/tiers.py. Where the kernel can give a group of processes
the CPU time that nobody else wants, the first of these run there beside the others; else what is timed waits for their
end. What failed is tried once more, alone: on a shared machine a neighbour may have had the CPU. That a test needed its
second try is said.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

from tests.idle_group import idle_group, inside
from tests.tiers import BESIDE, TIERS, TIMED, files_with

CARGO = ["cargo", "test", "--profile", "checked", "--locked", "--quiet"]
"""Optimised as the product is, with checks of overflows and debug assertions."""
PURE_CRATES = ["--lib", "--bins", "--test", "properties", "--test", "simulate"]
ARM = "aarch64-unknown-linux-gnu"
ARM_ENVIRONMENT = {"LINKER": "aarch64-linux-gnu-gcc", "RUNNER": "qemu-aarch64-static"}
"""For Cargo: what links for arm64, and what runs it on another architecture without the kernel's help (binfmt)."""

NOT_EMULATED = (
    "report::tests::is_one_json_object_within_its_time",
    "tcp_info::tests::a_fin_is_no_payload",
    "counters::tests::this_kernel_has_those_of_udp",
)
"""Tests that fail under qemu-user: one asserts how long it takes, the others ask for what qemu does not know (TCP_INFO,
netlink's list of queueing disciplines)."""


class TestingStage(NamedTuple):
    """A name, what is run, and what is run where tests of it failed, which the exit status `failed` says."""

    name: str
    command: list[str]
    again: list[str]
    failed: int


COMPILING = TestingStage(
    "compiling tests",
    [
        "sh",
        "-c",
        'found=$(nice "$0" -m pytest --collect-only -qqq) || { echo "$found" | sed -n "/ ERRORS /,\\$p"; exit 1; }',
        sys.executable,
    ],
    [],
    -1,
)
"""Every process that runs tests imports all of their files: one does so first, and leaves them compiled."""


def cargo(name: str, *options: str) -> TestingStage:
    command = [*CARGO, *options]
    return TestingStage(name, command, [*command, "--", "--test-threads=1"], failed=101)


def pytest(name: str, marks: str, *options: str, files: Sequence[str] = ()) -> TestingStage:
    """`files`: those that have tests with these marks; every process that runs tests imports all of its files."""
    command = [sys.executable, "-m", "pytest", "-m", marks, "-o", f"cache_dir=.pytest_cache/{name.replace(' ', '-')}"]
    slowest = ("--durations=15", "--durations-min=10")
    return TestingStage(name, [*command, *options, *slowest, *files], [*command, "--last-failed", *files], failed=1)


def shared(stage: TestingStage) -> TestingStage:
    """The same, with links that leave their CPU to others when they are idle."""
    words = ["env", "EWAN_SCHED=shared"]
    return stage._replace(command=[*words, *stage.command], again=[*words, *stage.again])


def emulated(stage: TestingStage) -> TestingStage:
    """The same, for arm64. A few cases of each property: qemu-user takes ten times as long."""
    variables = [
        f"CARGO_TARGET_{ARM.upper().replace('-', '_')}_{name}={value}" for name, value in ARM_ENVIRONMENT.items()
    ]
    words = ["env", "PROPTEST_CASES=32", *variables]
    skips = [word for name in NOT_EMULATED for word in ("--skip", name)]
    return stage._replace(command=[*words, *stage.command, "--", *skips], again=[*words, *stage.again, *skips])


def nice(stage: TestingStage) -> TestingStage:
    """The same, after all others when it comes to CPU time."""
    return stage._replace(command=["nice", "-n", "5", *stage.command])


Lane = list[TestingStage]
"""Stages, one after the other."""


def stages(what: str, idle: Path | None = None) -> list[list[Lane]]:
    """One list after the other, the lanes of a list at the same time. KeyError for another word. `idle`: a group of
    processes that have the CPU time that nobody else wants; beside those no timing is disturbed."""
    cpus = len(os.sched_getaffinity(0))
    side_by_side = ("-n", str(cpus), "--dist", "loadscope")
    # One more than CPUs: each of them waits for a disk or a process now and then.
    some_more = ("-n", str(cpus + 1), "--dist", "loadscope", "--no-loadscope-reorder")
    # They wait for clocks and programs most of the time, so that three at once take hardly more of a CPU.
    lanes = ("-n", "3", "--dist", "loadscope")
    beside = f"({' or '.join(BESIDE)}) and not alone"
    timed = f"({' or '.join(TIMED)}) and not ({' or '.join(BESIDE)} or alone)"
    others = f"not ({' or '.join([*BESIDE, *TIMED])} or alone)"
    side = pytest("side by side", others, *some_more)
    one_by_one = pytest("one by one", timed, files=files_with(TIMED))
    waiting = shared(pytest("beside", beside, *lanes, files=files_with(BESIDE)))
    alone = pytest("alone", "alone", files=files_with(["alone"]))
    if idle is None:
        with_labs = [[[nice(side)], [waiting]], [[one_by_one]]]
    else:
        # It may have to wait for the others for minutes.
        patient = [*side.command, "--timeout", "1200"]
        with_labs = [[[side._replace(command=inside(idle, patient))], [one_by_one, waiting]]]
    return {
        "check": [
            [[cargo("Rust without labs", *PURE_CRATES)]],
            [[pytest("pure", f"not ({' or '.join(TIERS)})", *side_by_side)]],
        ],
        "all": [
            [[cargo("Rust")], [COMPILING]],
            *with_labs,
            [[alone]],
        ],
        "aarch64": [[[emulated(cargo("Rust on arm64, emulated", "--workspace", "--target", ARM, *PURE_CRATES))]]],
    }[what]


Run = Callable[[list[str], "IO[str] | None"], int]
"""Runs a command and gives its status; its output goes to a file where one is given."""


def call(command: list[str], output: IO[str] | None) -> int:
    return subprocess.call(command, stdout=output, stderr=output and subprocess.STDOUT)


class Attempt(NamedTuple):
    """What a stage's command ended with."""

    stage: TestingStage
    status: int
    seconds: float


def attempt(stage: TestingStage, run: Run, output: IO[str] | None = None) -> Attempt:
    begin = time.monotonic()
    return Attempt(stage, run(stage.command, output), time.monotonic() - begin)


def in_order(lane: Lane, run: Run, output: IO[str] | None = None) -> list[Attempt]:
    """The attempts of a lane; none after an error of the runner itself, or Ctrl-C."""
    attempts = []
    for stage in lane:
        attempts.append(attempt(stage, run, output))
        if attempts[-1].status not in (0, stage.failed):
            break
    return attempts


def together(lanes: list[Lane], run: Run) -> list[Attempt]:
    """The first one prints as it goes, the others when all have ended."""
    shown, *kept = lanes
    with contextlib.ExitStack() as files, ThreadPoolExecutor() as pool:
        outputs = [files.enter_context(tempfile.TemporaryFile("w+")) for _ in kept]
        others = [pool.submit(in_order, lane, run, output) for lane, output in zip(kept, outputs, strict=True)]
        attempts = [*in_order(shown, run), *chain.from_iterable(each.result() for each in others)]
        for lane, output in zip(kept, outputs, strict=True):
            output.seek(0)
            print(f"tests: {', then '.join(stage.name for stage in lane)}", output.read(), sep="\n", flush=True)
    return attempts


def main(words: list[str], run: Run = call, idle: Path | None = None) -> int:
    """The exit status; `run` gives that of a command, `idle` as in `stages`."""
    try:
        (what,) = words
        chosen = stages(what, idle)
    except (ValueError, KeyError):
        print("usage: python -m tests.run check|all|aarch64", file=sys.stderr)
        return 2
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a thousand processes import the same modules
    lines, failed, ended = [], [], False
    for each in chosen:
        print(f"tests: {', and '.join(', then '.join(stage.name for stage in lane) for lane in each)}", flush=True)
        for stage, first, seconds in together(each, run):
            status, note, begin = first, "", time.monotonic()
            if status == stage.failed:
                print(f"tests: {stage.name}: once more, what failed", flush=True)
                status, note = run(stage.again, None), "; at the second try"
                seconds += time.monotonic() - begin
            failed += [stage.name] if status else []
            outcome = "failed" if status else "passed"
            lines.append(f"  {stage.name:<20}{seconds:6.0f} s  {outcome}{note}")
            ended |= status not in (0, stage.failed)  # an error of the runner itself, or Ctrl-C
        if ended:
            break
    print("\n".join(["tests: wall time", *lines]), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        with idle_group() as group:
            sys.exit(main(sys.argv[1:], idle=group))
    except KeyboardInterrupt:
        sys.exit(130)
