"""One property of this machine with what it means for a lab, for people. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["good", "limited", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One property of the machine: what was found, and what it means for a lab."""

    what: str
    found: str
    verdict: Verdict
    meaning: str
