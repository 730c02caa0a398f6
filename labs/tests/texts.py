"""Descriptions that a test writes out: the plan of one, or what it is refused for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.labs.base.source import DescriptionError
from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import Plan
from ewan.labs.spec import parse

HOST = HostFacts((0, 1), ())
"""A live machine of two CPUs, all of whose addresses are free."""


def described(text: str, host: HostFacts = HOST) -> Plan:
    """The plan; the description's file is t.lab.yaml."""
    return compile(parse(text, Path("t.lab.yaml")), host)


def refusal(text: str, host: HostFacts = HOST) -> str:
    """The line in which the description is refused."""
    with pytest.raises(DescriptionError) as refused:
        described(text, host)
    return str(refused.value)
