"""The load of a run's flows on each link: that of the slowest link of each path, and never more than a link's rate."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from ewan.experiments.engine import engine, preparation
from ewan.experiments.engine.link_loads import loads
from ewan.experiments.engine.parts import Facts
from ewan.experiments.engine.verification import UnverifiedLabError
from ewan.experiments.tests import engines
from ewan.experiments.tests.origins import origin
from ewan.generator import scenario
from ewan.labs.record.schedule import CrossedLink, CrossedPath


def path(*hops: tuple[str, int | None]) -> CrossedPath:
    return CrossedPath("a", "b", "", tuple(CrossedLink(link, "forward", rate) for link, rate in hops))


def test_a_path_carries_as_much_as_its_slowest_link() -> None:
    found = loads([path(("access", 10**9), ("core", 10**8), ("wire", None))], ["core", "access"])
    assert found == {("access", "forward"): 10**8, ("core", "forward"): 10**8}


def test_several_paths_carry_no_more_than_the_link_they_share() -> None:
    paths = [path((f"access{n}", 4 * 10**8), ("core", 10**9)) for n in range(3)]
    found = loads(paths, ["core"])
    assert found == {("core", "forward"): 10**9}
    assert loads(paths[:2], ["core"]) == {("core", "forward"): 8 * 10**8}


def test_plain_links_alone_load_nothing() -> None:
    assert loads([path(("wire", None)), path(("card", 10**9))], ["core"]) == {}


def test_a_run_outside_the_hosts_envelope_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    runs = scenario.parse(engines.TEXT, Path("engine.scenario.yaml")).runs()
    facts = Facts({}, origin(scenario="engine"))
    prepared = preparation.prepare(preparation.jobs(runs, virtual=False), facts, virtual=False, directory=tmp_path)
    says = "^run 1: outside what this host can be trusted with: too fast: nothing was run: --runtime virtual"
    with pytest.raises(UnverifiedLabError, match=says):
        engine.run(prepared, parts=engines.parts("ok", outside="too fast"), context=engines.CONTEXT)
    document = orjson.loads((tmp_path / "experiment.json").read_bytes())
    assert document["status"] == "refused" and document["stages"]["deployment"]["status"] == "waiting"
