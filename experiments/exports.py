"""A scenario, or the one that an experiment was made of, as files for others: NXE's XML, ns-2's Tcl, ns-3's C++.

In: an experiment's directory, a scenario's file or its name; a kind; the file to write. Out: the files, one for each
point of the parameters. All is made before any of it is written, so that what cannot be said leaves nothing behind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ewan.experiments.engine import source
from ewan.generator import nxe
from ewan.generator.exchange import ns2, ns3
from ewan.generator.exchange.flows import traffic
from ewan.generator.exchange.network import network
from ewan.generator.nxe import write as nxe_writing
from ewan.generator.scenario import Runs, ScenarioRun
from ewan.labs import host
from ewan.labs.base import writing
from ewan.labs.compile import compile as compile_spec
from ewan.labs.plan import Plan
from ewan.labs.spec import DescriptionError

KINDS = {"nxe": ".xml", "ns2": ".tcl", "ns3": ".cc"}
"""What can be written, and how the name of its file ends."""


def write(
    kind: str, of: Path | str, target: Path, scale: str | None = None, settings: Mapping[str, str] | None = None
) -> list[Path]:
    """Writes the files and names them; OSError where that cannot be.

    `scale` and `settings` as for `ewan run`; of an experiment's directory those that it was made with, unless given.
    """
    if target.suffix != KINDS[kind]:
        raise DescriptionError(f"--{kind} {target}: write the path of a file that ends in {KINDS[kind]}")
    runs = _runs(of, scale, settings or {})
    found = {_place(target, runs, run): _WRITERS[kind](run, plan, runs.seeds) for run, plan in _planned(runs)}
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        writing.write(path, text)
    return list(found)


def _runs(of: Path | str, scale: str | None, settings: Mapping[str, str]) -> Runs:
    if not Path(of).is_dir():
        return nxe.scenario(str(of)).runs(settings, scale)
    stored = source.of(Path(of))
    if stored is None:
        raise DescriptionError(f"{of}: has no {source.SCENARIO}: name the directory of an experiment, or a scenario")
    return stored.scenario.runs({**stored.settings, **settings}, scale or stored.scale, stored.seeds)


def _planned(runs: Runs) -> Iterator[tuple[ScenarioRun, Plan]]:
    """The first run of each point, with its plan."""
    for run in runs[:: runs.seeds]:
        yield run, compile_spec(run.spec, host.virtual_facts())


def _place(target: Path, runs: Runs, run: ScenarioRun) -> Path:
    """The file of a point: `target` where there is one point, else with its values in the name."""
    if len(runs.points) == 1:
        return target
    values = "-".join(f"{name}-{run.parameters[name]}" for name in runs.varying)
    return target.with_name(f"{target.stem}-{re.sub(r'[^A-Za-z0-9._-]+', '', values)}{target.suffix}")


def _nxe(run: ScenarioRun, plan: Plan, seeds: int) -> str:
    return nxe_writing.experiment(run, plan, seeds)


def _title(run: ScenarioRun) -> str:
    values = ", ".join(f"{name}={value}" for name, value in run.parameters.items())
    return " ".join(f"{run.scenario.title}{f' ({values})' if values else ''}".split())


def _ns2(run: ScenarioRun, plan: Plan, seeds: int) -> str:
    lab, schedule = network(plan), run.schedule(plan, "virtual")
    return ns2.script(_title(run), lab, traffic(run, schedule, lab.mtu, tuple(ns2.CONGESTION), ns2.SIMULATOR))


def _ns3(run: ScenarioRun, plan: Plan, seeds: int) -> str:
    lab, schedule = network(plan), run.schedule(plan, "virtual")
    return ns3.program(_title(run), lab, traffic(run, schedule, lab.mtu, tuple(ns3.CONGESTION), ns3.SIMULATOR))


_WRITERS: dict[str, Callable[[ScenarioRun, Plan, int], str]] = {"nxe": _nxe, "ns2": _ns2, "ns3": _ns3}
