"""What names a result: a SHA-256 over all that decides its bytes. Pure.

In: checksums of what a run executes and of what its results are made with. Out: the key. Two runs of one key leave the
same bytes, on any machine; whatever may change a byte is in the key, and nothing else: a run's number and the names of
its scenario and of the values that were chosen are not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

FORMAT = "ewan-unit/1"
CERTIFICATE_FORMAT = "ewan-unit-certificate/1"
DIGITS = 64


def of_run(
    *, plan: str, program: str, schedule: str, kernel: str, binary: str, tables: str, programs: Mapping[str, str]
) -> str:
    """The key of a run. All are SHA-256: of plan.json, program.json and `schedule`, of the virtual kernel, of the node
    binary, of what makes tables (`made_by.py`), and of each program of this machine that it starts, by its name."""
    parts = {"plan": plan, "program": program, "schedule": schedule, "kernel": kernel, "binary": binary}
    named = [(f"program {name}", programs[name]) for name in sorted(programs)]
    return _digest(FORMAT, [*parts.items(), ("tables", tables), *named])


def of_certificate(*, family: str, kernel: str, binary: str, judge: str) -> str:
    """The key of a lab's certificate. `family`: of its plan without seeds; `judge`: of what verifies."""
    parts = {"family": family, "kernel": kernel, "binary": binary, "judge": judge}
    return _digest(CERTIFICATE_FORMAT, parts.items())


def _digest(word: str, parts: Iterable[tuple[str, str]]) -> str:
    """Over a list of texts, each with its length before it: no two lists give the same bytes."""
    result = hashlib.sha256()
    for text in (word, *(each for part in parts for each in part)):
        content = text.encode()
        result.update(len(content).to_bytes(8, "big"))
        result.update(content)
    return result.hexdigest()
