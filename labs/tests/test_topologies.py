"""Every topology of the schema has what docs/contribute/adding/topology.md lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.labs import topologies
from ewan.labs.spec.fields import Topology
from ewan.labs.tests.test_compile import LABS

ROOT = Path(__file__).resolve().parents[2]
# Anything can be drawn: it has a ready lab, but no shape of its own to be listed or compiled without one.
TEMPLATES = sorted(set(Topology.words()) - {"graph"})


def test_every_topology_of_the_schema_is_built_and_no_other() -> None:
    assert set(topologies._BUILDERS) == set(Topology.words())


@pytest.mark.parametrize("name", [*TEMPLATES, "graph"])
def test_a_topology_has_a_ready_lab(name: str) -> None:
    assert (ROOT / f"labs/library/{name}.lab.yaml").exists()


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_topology_is_compiled_by_a_test_and_named_to_users(name: str) -> None:
    assert name in {template for template, _ in LABS}, "labs/tests/test_compile.py: LABS"
    assert name in (ROOT / "docs/reference/commands.md").read_text(), "docs/reference/commands.md"
    assert name in (ROOT / "calibration/cli.py").read_text(), "calibration/cli.py: the help of ewan lab"
