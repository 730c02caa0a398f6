"""A new experiment as it was asked for, by the command line or by Python: its scenario, its options, its execution.

In: a scenario and its options. Out: an experiment's directory with all that was measured, and the exit status."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import orjson

from ewan.experiments.engine import engine, preparation
from ewan.experiments.engine.executor import Executor, ThisMachine
from ewan.experiments.engine.parts import Facts, Parts
from ewan.experiments.engine.source import SCENARIO, SETTINGS
from ewan.generator.scenario import Scenario, Stop
from ewan.labs.base.errors import UserError
from ewan.labs.base.product import COMMIT, INSTALLED, ROOT
from ewan.labs.base.units.shown import about
from ewan.labs.context import Context
from ewan.labs.record import MachineFacts, figures, host_facts
from ewan.labs.record.experiment import ExperimentOrigin
from ewan.labs.record.labels import Labels

Elsewhere = contextlib.AbstractContextManager[Executor]
"""An executor on other machines, whose workers stay as long as the context lasts."""


@dataclass(frozen=True, slots=True)
class ScenarioRequest:
    """The options of the command line for a scenario's runs."""

    scale: str | None
    settings: Mapping[str, str]
    seeds: int | None
    unverified: bool
    labels: Labels
    """`name`, `tags`, `note`, those that were given."""
    fresh: bool = False
    """Nothing is taken from the store."""
    cluster: Elsewhere | None = None
    """The cores that execute the runs; None: this machine's."""


class ExperimentRequest:
    """An experiment that can begin. `virtual`: in which clock. UserError for runs that cannot be."""

    def __init__(
        self, context: Context, scenario: Scenario, parts: Parts, asked: ScenarioRequest, virtual: bool
    ) -> None:
        self._context, self._scenario, self._parts, self._asked = context, scenario, parts, asked
        self._virtual = virtual
        self._runs = scenario.runs(asked.settings, asked.scale, asked.seeds)
        self._stop = scenario.stop_at(asked.scale) if asked.seeds is None else None
        self._facts = facts_of(
            scenario,
            self._stop,
            asked.scale,
            asked.settings,
            asked.seeds,
            "virtual" if virtual else context.runtime,
            asked.labels,
            context.machines,
        )
        self._over = None if context.machines is None else context.multi_machine()

    def execute(self, directory: Path) -> int:
        """Run all of it in `directory`; the exit status is 0 if all was measured, and 1 if something is missing."""
        asked, context, scenario = self._asked, self._context, self._scenario
        prepared = preparation.prepare(
            preparation.in_time(self._runs, self._virtual, self._over),
            self._facts,
            virtual=self._virtual,
            directory=directory,
            unverified=asked.unverified,
            over=self._over,
        )
        if asked.scale is None and scenario.scales:
            lasting = about(prepared.expected_ns, "time", 3)
            length = f"{lasting} in {engine.counted(len(self._runs), 'run')}"
            context.reporter.tell(f"{scenario.name} at full length, {length}: --size {scenario.scales[0]} is shorter")
        if prepared.shorter:
            first, more = prepared.shorter[0], len(prepared.shorter) - 1
            others = f" (and {more} other{'s' if more > 1 else ''})" if more else ""
            context.reporter.note(f"a run lasts longer than a trace: {first}{others}")
        with asked.cluster or contextlib.nullcontext(ThisMachine(context)) as executor:
            return engine.run(
                prepared,
                parts=self._parts,
                context=context,
                stop=self._stop,
                repeat=self._runs.of,
                fresh=asked.fresh,
                executor=executor,
            )


def facts_of(
    scenario: Scenario,
    stop: Stop | None,
    scale: str | None,
    settings: Mapping[str, str],
    seeds: int | None,
    runtime: str,
    given: Labels,
    machines: Path | None = None,
) -> Facts:
    """The facts that an experiment records about a scenario, with all that is needed to read it again; `runtime` is
    that of the request.

    `given`: the experiment's labels (`labels_of`); `machines`: the file of the machines over which its labs stretch."""
    named = [str(path.absolute()) for path in (scenario.file, machines) if path is not None]
    for text in (*named, *settings.values()):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UserError(f"{text}: is not text in UTF-8: give it another name, or its folder") from None
    asked = {"file": str(scenario.file.absolute()), "scale": scale, "settings": dict(settings), "seeds": seeds}
    asked |= {} if machines is None else {"machines": str(machines.absolute())}
    document = scenario.document
    origin = ExperimentOrigin(
        scenario=scenario.name,
        title=scenario.title,
        about=scenario.description,
        source=document.source or "",
        metrics=list(document.metrics),
        normalise=None if document.normalise is None else document.normalise.recorded,
        compare=[each.recorded for each in document.compare],
        beside=[each.recorded for each in document.beside],
        figures=[figures.asked(each) for each in document.figures],
        scale=scale,
        settings=dict(settings),
        runtime=runtime,
        **circumstances(),
        confidence=None if stop is None else stop.confidence.share,
        **given,
    )
    return Facts({SCENARIO: scenario.text.encode(), SETTINGS: orjson.dumps(asked, option=orjson.OPT_INDENT_2)}, origin)


class Circumstances(TypedDict):
    """The circumstances of a request: its time, this machine, this version of the project (None: unknown), the
    command."""

    host: MachineFacts
    commit: str | None
    command: str


def circumstances() -> Circumstances:
    """The present circumstances: the time, this machine, this version of the project, the command."""
    return {"host": host_facts({}), "commit": _commit(), "command": shlex.join(["ewan", *sys.argv[1:]])}


def _commit() -> str | None:
    """The commit of this version's sources; None where it is unknown."""
    if INSTALLED:  # around an installed package there may be another user's repository
        return COMMIT.read_text().strip() or None
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    return shown.stdout.strip() or None
