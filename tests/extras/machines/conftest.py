"""Machines that the tests of this directory share; a test leaves them up, with nothing delayed and nothing lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.extras.machines_rig import Rig, machines


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    with machines(3) as made:
        yield made
