"""Truths of every lab of the course, for another student each: there, as the formulas say, told from known mistakes.

What `python -m tests.extras.course.audit` tells of many students at once.
"""

from __future__ import annotations

import os
from pathlib import Path

from ewan.extras.course import reading
from ewan.extras.course.local_executor import LocalExecutor
from ewan.labs.context import Context
from tests.extras.course import audit

TIER = "virtual"
QUICK = 0  # tests/extras/course/test_labs.py has a sample
LONG = 50

_AUDITS: dict[str, audit.Audit] = {}
MOST_ALIKE = 0.05
"""Of the pairs of students that there were so far."""


def trial(seed: int, place: Path) -> None:
    context = Context.of(os.environ)
    executor = LocalExecutor(context.reporter, context.binary, None, place)
    problems: list[str] = []
    for name in reading.known():
        own = _AUDITS.setdefault(name, audit.Audit(reading.find(name)))
        before = len(own.problems)
        own.add(f"t{seed:04}", executor)
        problems += own.problems[before:]
        pairs = len(own.found) * (len(own.found) - 1) // 2
        if len(own.found) >= 10 and len(own.alike()) > MOST_ALIKE * pairs:
            problems.append(f"{name}: {len(own.alike())} of {pairs} pairs of students have the same answers")
    assert not problems, "\n".join(problems)
