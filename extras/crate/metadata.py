"""The description of a crate: RO-Crate 1.3 with the profiles of Workflow Run RO-Crate 0.6.

In: an experiment's record, the files of the crate with their sizes and checksums. Out: an `ROCrate` of the library
`rocrate`. The scenario is the workflow and ewan its engine (OrganizeAction); what came of it as a whole is one
CreateAction, and so is each step: the verification, each run by ewan-node, the analysis. Runs that were not executed
are no actions. Sources: https://w3id.org/ro/crate/1.3, https://w3id.org/ro/wfrun/provenance/0.6.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from rocrate.model.contextentity import ContextEntity
from rocrate.model.entity import Entity
from rocrate.rocrate import ROCrate

from ewan.extras.crate.citation import Author, Licence
from ewan.extras.crate.files import METADATA, README, kind
from ewan.extras.crate.sources import ProjectSources
from ewan.extras.crate.texts import progress_of
from ewan.labs.record import CERTIFICATES_FOLDER
from ewan.labs.record.experiment import DOCUMENT, INPUTS, Entry, ExperimentDocument, Stage

SCENARIO, SETTINGS = "scenario.yaml", "settings.json"
VERSION = "1.3"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.6": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.6": "Workflow Run Crate",
    "https://w3id.org/ro/wfrun/provenance/0.6": "Provenance Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.1": "Workflow RO-Crate",
}
ANALYSED = ("summary.json", "report.html")
_STAGE = "a stage of the experiment; experiment.json tells when it began and how long it took"


@dataclass(frozen=True, slots=True)
class CrateFile:
    """A file of the crate; `sha256` None: of the file that holds the checksums of all others, this one's too."""

    size: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class CrateFacts:
    """Facts of the description beside the experiment's own record. `published`: this moment in UTC, ISO 8601.

    `walls`: the start and the end, ISO 8601, of each run that was executed, by its directory."""

    title: str
    description: str
    published: str
    authors: Sequence[Author]
    licence: Licence
    sources: ProjectSources
    walls: Mapping[str, tuple[str, str]]


def crate(document: ExperimentDocument, files: Mapping[str, CrateFile], told: CrateFacts, place: Path) -> ROCrate:
    """The description of the files of `place`, all of which are there but the description itself."""
    return _Description(document, files, told, place).crate


def ended(started: str, seconds: float | None) -> str | None:
    """The end (ISO 8601) of an action that began at a moment; None where its duration is unknown."""
    if not started or seconds is None:
        return None
    return (datetime.fromisoformat(started) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


class _Description:
    def __init__(
        self, document: ExperimentDocument, files: Mapping[str, CrateFile], told: CrateFacts, place: Path
    ) -> None:
        self.crate = ROCrate(version=VERSION)
        self._document, self._told = document, told
        self._files = {name: self._file(place, name, stored) for name, stored in files.items()}
        self._of_run: dict[str, list[str]] = {}
        for name in files:
            self._of_run.setdefault("/".join(name.split("/")[:2]), []).append(name)
        self._actions: list[Entity] = []
        self._software()
        self._parameters()
        self._workflow()
        self._runs()
        self._root()

    def _file(self, place: Path, name: str, stored: CrateFile) -> Entity:
        found = kind(name)
        properties: dict[str, str | list[str]] = {
            "name": name,
            "description": found.meaning,
            "encodingFormat": found.encoding,
            "contentSize": str(stored.size),
        }
        if stored.sha256 is not None:
            properties["sha256"] = stored.sha256
        if name == SCENARIO:
            properties["@type"] = ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"]
        return self.crate.add_file(place / name, name, properties=properties)

    def _add(self, at: str, of: str | list[str], /, **properties: Any) -> Any:
        given = {
            "@type": of,
            **{key: _compact(value) for key, value in properties.items() if value not in (None, [], "")},
        }
        return self.crate.add(ContextEntity(self.crate, at, given))

    def _of(self, names: Iterable[str]) -> list[Entity]:
        return [self._files[name] for name in names if name in self._files]

    def _software(self) -> None:
        document, sources = self._document, self._told.sources
        version = f"{sources.version}+{sources.commit}" if sources.commit else sources.version
        # README.md has version and commit where the user gave no address of the sources.
        known = {"version": version, "url": sources.repository or README}
        needs = None
        if document.clock == "virtual":
            needs = self._add(
                "#virtual-kernel",
                "SoftwareApplication",
                name="virtual kernel of ewan: User-Mode Linux",
                version=sources.kernel_version,
                url=f"https://packages.debian.org/{_quoted(sources.kernel_package)}",
                identifier=self._hashed("#virtual-kernel-sha256", document.kernel_sha256),
            )
        self._node = self._add(
            "#ewan-node",
            "SoftwareApplication",
            name="ewan-node, the program of every node of a lab",
            identifier=self._hashed("#ewan-node-sha256", document.binary_sha256),
            softwareRequirements=needs,
            **known,
        )
        self._ewan = self._add("#ewan", "SoftwareApplication", name="ewan, an emulator of networks", **known)
        # Tools and the engine are entities of their own, as Provenance Run Crate has it.
        self._verify = self._add(
            "#ewan-verify", "SoftwareApplication", name="the verification of labs of ewan", **known
        )
        self._analyse = self._add("#ewan-report", "SoftwareApplication", name="the analysis of ewan", **known)
        self._language = self._add("#scenario-language", "ComputerLanguage", name="scenario of ewan, in YAML", **known)

    def _hashed(self, identifier: str, digest: str | None) -> Entity | None:
        return self._add(identifier, "PropertyValue", name="SHA-256", value=digest) if digest else None

    def _parameters(self) -> None:
        """Formal parameters of the scenario; their values are made when a run first has one."""
        runs = self._document.runs
        names = {name: value for run in runs for name, value in run.parameters.items()}
        described = {name: _kind_of(value) for name, value in names.items()} | {"seed": "Integer"}
        self._formal = {
            name: self._add(f"#parameter-{_quoted(name)}", "FormalParameter", name=name, additionalType=of)
            for name, of in described.items()
        }
        self._values: dict[tuple[str, str | int], Entity] = {}

    def _value(self, name: str, value: str | int) -> Entity:
        if (name, value) not in self._values:
            self._values[name, value] = self._add(
                f"#{_quoted(name)}={_quoted(str(value))}",
                "PropertyValue",
                name=name,
                value=str(value),
                exampleOfWork=self._formal[name],
            )
        return self._values[name, value]

    def _workflow(self) -> None:
        steps = (
            ("verification", "verify each lab against its description", self._verify),
            ("run", "run the schedule in a lab, once for each point and seed", self._node),
            ("analysis", "compute metrics and their confidence intervals", self._analyse),
        )
        self._steps = {
            name: self._add(f"#step-{name}", "HowToStep", name=words, position=str(number), workExample=tool)
            for number, (name, words, tool) in enumerate(steps)
        }
        workflow = self._files[SCENARIO]
        workflow["name"] = self._document.title or self._document.scenario
        workflow["programmingLanguage"] = self._language
        workflow["description"] = self._told.description
        workflow["input"] = list(self._formal.values())
        workflow["step"] = list(self._steps.values())
        workflow["hasPart"] = [self._verify, self._node, self._analyse]

    def _action(self, identifier: str, name: str, tool: Entity, **more: Any) -> Entity:
        action = self._add(identifier, "CreateAction", name=name, instrument=tool, **more)
        self._actions.append(action)
        return action

    def _runs(self) -> None:
        document = self._document
        stages = document.stages
        settings = self._of([SETTINGS])
        tables = [name for name in self._files if name.startswith("runs/") and name.endswith(".parquet")]
        results = [name for name in self._files if name in ANALYSED or name.startswith("figures/")]
        verified = [name for name in self._files if name.startswith(f"{CERTIFICATES_FOLDER}/")]
        pairs: list[tuple[str, Entity]] = []
        if verified:
            plans = [name for name in self._files if name.startswith("runs/") and name.endswith("/plan.json")]
            times = _times(stages["configuration"])
            made = self._of(verified)
            action = self._action(
                "#verification",
                "Verification of labs",
                self._verify,
                description=_STAGE,
                object=self._of(plans),
                result=made,
                **times,
            )
            pairs.append(("verification", action))
        pairs += [("run", self._run(entry)) for entry in document.runs if entry.directory in self._told.walls]
        if results:
            times = _times(stages["analysis"])
            action = self._action(
                "#analysis",
                "Analysis",
                self._analyse,
                description=_STAGE,
                object=self._of(tables),
                result=self._of(results),
                **times,
            )
            pairs.append(("analysis", action))
        controls = [
            self._add(
                f"#control-{action.id.removeprefix('#')}",
                "ControlAction",
                name=f"{action['name']}, by ewan",
                instrument=self._steps[step],
                object=action,
            )
            for step, action in pairs
        ]
        inputs = [*settings, *self._values.values()]
        outcome = self._outcome()
        whole = self._action(
            "#experiment",
            f"Experiment {document.scenario}",
            self._files[SCENARIO],
            description=document.command,
            startTime=document.started,
            endTime=document.ended,
            object=inputs,
            result=self._of([*results, *verified, *tables, DOCUMENT]),
            **outcome,
        )
        engine = self._add(
            "#engine",
            "OrganizeAction",
            name=f"ewan exp list the scenario {document.scenario}",
            instrument=self._ewan,
            description=document.command,
            startTime=document.started,
            endTime=document.ended,
            object=controls,
            result=whole,
            **outcome,
        )
        self._actions.append(engine)

    def _outcome(self) -> dict[str, Entity | str]:
        if self._document.status == "complete":
            return {"actionStatus": self._status("Completed")}
        return {"actionStatus": self._status("Failed"), "error": progress_of(self._document)}

    def _status(self, name: Literal["Completed", "Failed"]) -> Entity:
        identifier = f"http://schema.org/{name}ActionStatus"
        return self.crate.get(identifier) or self._add(identifier, "ActionStatusType", name=name.lower())

    def _run(self, entry: Entry) -> Entity:
        started, over = self._told.walls[entry.directory]
        inputs = [f"{entry.directory}/{name}" for name in INPUTS]
        left = [name for name in self._of_run.get(entry.directory, ()) if name not in inputs]
        values = [self._value(name, value) for name, value in entry.parameters.items() if name != "seed"]
        failed = {} if entry.status == "complete" else {"error": entry.error or entry.status}
        return self._action(
            f"#run-{entry.number:03}",
            f"Run {entry.number}: {entry.name}",
            self._node,
            description=f"ewan-node executes program.json in the lab of plan.json; seed {entry.seed}",
            startTime=started,
            endTime=over,
            object=[*self._of(inputs), *values, self._value("seed", entry.seed)],
            result=self._of(left),
            actionStatus=self._status("Failed" if failed else "Completed"),
            **failed,
        )

    def _root(self) -> None:
        told, root = self._told, self.crate.root_dataset
        terms = self._add(
            told.licence.url,
            "CreativeWork",
            name=told.licence.name,
            identifier=told.licence.id,
            description=f"the licence of the data: {told.licence.id} of the SPDX License List",
            url=told.licence.url,
        )
        people = [
            self._add(
                each.url or f"#author-{number}",
                "Person",
                name=each.name,
                familyName=each.family,
                givenName=each.given,
            )
            for number, each in enumerate(told.authors, 1)
        ]
        profiles = [
            self._add(url, ["CreativeWork", "Profile"], name=name, version=url.rpartition("/")[2])
            for url, name in PROFILES.items()
        ]
        root["name"], root["description"] = told.title, told.description
        root.datePublished = told.published
        root["license"], root["conformsTo"] = terms, profiles
        root["mainEntity"] = self._files[SCENARIO]
        root["mentions"] = list(self._actions)
        root["keywords"] = ["network emulation", "measurement", "ewan", *self._document.tags]
        if people:
            root["author"] = _compact(people)
        self._files[README]["about"] = root
        self.crate.metadata["description"] = f"the description of this crate, {METADATA}, by RO-Crate {VERSION}"


def _compact(value: Any) -> Any:
    """A list of one entity as the entity, as RO-Crate wants it."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _times(stage: Stage) -> dict[str, str | None]:
    over = ended(stage.started, stage.seconds)
    return {"startTime": stage.started, "endTime": over}


def _kind_of(value: str | int) -> str:
    return "Integer" if isinstance(value, int) else "Text"


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")
