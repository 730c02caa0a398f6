"""Walks: the smallest honest addition of each kind, as a patch, with what shows from end to end that it works.

In: the patches beside this file. Out: `WALKS`, and what each patch touches. `python -m tests.walks` makes all of them
in a copy of the checkout. The page of each in docs/contribute/adding names its files in the order in which they are
written, and docs/explanation/architecture.md has the same in a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PLACE = Path(__file__).parent
MOST_FILES = 5
"""That an addition may touch; a link's key, and what the link's model does, may touch one more."""
NAME = "NAME"
"""What stands in tables and pages for the new name."""


@dataclass(frozen=True)
class Check:
    """A command line of `ewan`, or of another module, and what its output or the file `found_in` must have (a regular
    expression)."""

    words: tuple[str, ...]
    said: str
    found_in: str = ""
    root: bool = False
    module: str = "ewan"


@dataclass(frozen=True)
class Walk:
    """One addition. `new`: its name; `page`: in docs/contribute/adding; `tests`: pytest's words; `inputs`: files by
    their names, for the checks."""

    name: str
    to_add: str
    new: str
    page: str
    tests: tuple[str, ...]
    checks: tuple[Check, ...]
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def patch(self) -> Path:
        """The file of the patch."""
        return PLACE / f"{self.name}.patch"

    @property
    def files(self) -> list[str]:
        """The paths that the patch touches, with the new name as `NAME`."""
        found = re.findall(r"^diff --git a/\S+ b/(\S+)$", self.patch.read_text(), re.M)
        return [path.replace(self.new, NAME) for path in found]

    @property
    def in_rust(self) -> bool:
        """Whether the model of the link is built and tested for it."""
        return any(path.endswith(".rs") for path in self.files)

    @property
    def most_files(self) -> int:
        """So many files the patch may touch."""
        return MOST_FILES + (self.in_rust or self.name == "link-key")

    @property
    def has_a_test(self) -> bool:
        """Whether the patch writes one, in a file of tests or beside what it tests in Rust."""
        return any("/test_" in path for path in self.files) or "\n+    #[test]\n" in self.patch.read_text()


LAB = "{topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s%s}}"


def scenario(step: str, more: str = "") -> dict[str, str]:
    """A scenario of one step on a small lab, as a file."""
    lab = f"lab: {LAB % ''}"
    return {"x.scenario.yaml": f"{lab}\nsteps: [{{name: a, from: left1, to: right1, for: 2s, {step}}}]\n{more}\n"}


def run(said: str, found_in: str = "") -> Check:
    """The scenario is run in the virtual clock."""
    return Check(("run", "x.scenario.yaml", "--runtime", "virtual"), said, found_in)


def trial(settings: str, every_us: int, said: str) -> Check:
    """Packets that come so often over a link of 10 Mbit/s with these settings, in the model of the link alone."""
    return Check((settings, str(every_us)), said, module="tests.walks.trial")


PING = Check(("batch", "x.lab.yaml", "--runtime", "virtual", "--do", "left1: ping -c 3 right1"), "3 received")
COMPILE = ("compile", "x.lab.yaml", "-o", "out")
PLAN = "out/x.plan.json"

WALKS = (
    Walk(
        "link-key",
        "a key of a link",
        "overhead",
        "impairment.md",
        ("labs/tests/test_link_table.py", "tests/test_links_page.py"),
        (Check(COMPILE, r'"overhead_bytes": ?22\b', PLAN), PING),
        {"x.lab.yaml": LAB % ", framing: ethernet, overhead: 4B"},
    ),
    Walk(
        "link-key-in-rust",
        "a key of a link whose behaviour is new",
        "spacing",
        "impairment.md",
        ("labs/tests/test_link_table.py", "labs/tests/test_stages.py", "tests/test_links_page.py"),
        (
            Check(COMPILE, r'"spacing_ns": ?2000000\b', PLAN),
            trial("spacing: 2ms", 1500, "lost: 1, 3, 5, 7, 9, 11"),
            trial("spacing: none", 1500, "lost: none"),
        ),
        {"x.lab.yaml": LAB % ", spacing: 2ms"},
    ),
    Walk(
        "queue-discipline",
        "a queue discipline",
        "diffserv3",
        "impairment.md",
        ("labs/tests/test_diffserv3.py", "labs/tests/test_spec.py", "tests/test_links_page.py"),
        (Check(COMPILE, r'"name": ?"voice"', PLAN), PING),
        {"x.lab.yaml": LAB % ", queue: diffserv3"},
    ),
    Walk(
        "queue-discipline-in-rust",
        "a queue discipline whose behaviour is new",
        "discard",
        "impairment.md",
        ("labs/tests/test_stages.py", "labs/tests/test_spec_queue.py", "tests/test_links_page.py"),
        (
            Check(COMPILE, r'"after_ns": ?50000000,\s*"kind": ?"discard"', PLAN),
            trial("queue: {discard: {after: 3ms}}", 600, "lost: 6, 8, 10"),
            trial("queue: {discard: {after: 1s}}", 600, "lost: none"),
        ),
        {"x.lab.yaml": LAB % ", queue: {discard: {after: 50ms}}"},
    ),
    Walk(
        "metric",
        "a metric",
        "least goodput",
        "metric.md",
        ("analysis/tests/test_metrics.py", "labs/tests/test_metrics.py"),
        (run(r"least goodput \(Mbit/s\) +[89]\."),),
        scenario("bulk: ", "metrics: [least goodput]"),
    ),
    Walk(
        "event",
        "an event of a scenario",
        "outage",
        "event.md",
        ("generator/tests/test_schedule.py",),
        (run(r'"down": ?true.*"down": ?false', "results/*/runs/*/events.json"),),
        scenario("bulk: ", "events: [{at: 1s, link: core, outage: 300ms}]"),
    ),
    Walk(
        "command",
        "a command",
        "pairs",
        "command.md",
        ("labs/tests/test_pairs_command.py",),
        (Check(("lab", "pairs", "x.lab.yaml"), "left1 → right1 .*core"),),
        {"x.lab.yaml": LAB % ""},
    ),
    Walk(
        "runtime",
        "a runtime",
        "settled",
        "runtime.md",
        ("labs/runtime/tests/test_protocols.py",),
        (
            Check(("up", "x.lab.yaml", "--name", "walk", "--runtime", "settled"), "walk is up", root=True),
            Check(
                ("lab", "exec", "--lab", "walk", "left1", "--", "ping", "-c", "1", "right1"), "1 received", root=True
            ),
            Check(("down", "walk"), "walk is down", root=True),
        ),
        {"x.lab.yaml": LAB % ""},
    ),
    Walk(
        "traffic-tool",
        "a traffic tool",
        "nuttcp",
        "traffic-tool.md",
        ("generator/tests/test_external.py",),
        (run(r"aggregate goodput \(Mbit/s\) +9\."),),
        scenario("generator: nuttcp, bulk: "),
    ),
    Walk(
        "extra",
        "an extra",
        "linklist",
        "extra.md",
        ("extras/linklist", "tests/test_architecture.py"),
        (
            Check(
                ("results", "export", "x.scenario.yaml", "--links", "links.csv"), "core,backward,10000000", "links.csv"
            ),
        ),
        scenario("bulk: "),
    ),
)
"""All of them, in the order of the table in docs/explanation/architecture.md."""
