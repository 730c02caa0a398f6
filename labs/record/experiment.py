"""experiment.json: all its keys with their types, and the SHA-256 of each file that it vouches for.

In: the file's bytes, an experiment's directory. Out: a `ExperimentDocument`, and its bytes again; what is wrong with it
or with a file that it vouches for, in one line that begins with the path and ends with what to do. The engine writes
it, analysis reads it; no other part knows its keys. A key that may be absent has a default here: it is written when it
was set.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Annotated, Literal

import orjson
from msgspec.structs import asdict

from ewan.labs.base import codec
from ewan.labs.base.codec import MOST_SHOWN, Meta, MutableStruct, Struct, field
from ewan.labs.base.documents import DocumentError, check_values
from ewan.labs.base.reading import open_regular, read_bytes
from ewan.labs.record import CERTIFICATES_FOLDER, MachineFacts
from ewan.labs.record.demand import Demand
from ewan.labs.record.scenario_requests import Comparison, FigureRequest, PublishedValue, Reference

FORMAT = "ewan-experiment/2"
OLDER = ("ewan-experiment/1",)
DOCUMENT = "experiment.json"
LOCK = ".lock"
"""The file that an engine locks while it has the experiment."""
INPUTS = ("plan.json", "program.json", "schedule.json")
"""The files that each run executes."""
MOST_BYTES = 1 << 30
"""The size of the document: with 100,000 runs of fourteen files each it has 220 MB."""
_REMEDY = "take it from the experiment's archive"

Clock = Literal["live", "virtual"]
Status = Literal["waiting", "complete", "incomplete", "failed"]
"""The status of a run."""
State = Literal["running", "complete", "incomplete", "refused"]
"""The state of an experiment."""
StageName = Literal["reservation", "deployment", "configuration", "execution", "logs", "analysis", "archiving"]
STAGES: dict[StageName, str] = {
    "reservation": "reservation",
    "deployment": "deployment",
    "configuration": "configuration",
    "execution": "execution",
    "logs": "log handling",
    "analysis": "analysis",
    "archiving": "archiving and cleaning",
}
"""Those of NXE (Guillier and Vicat-Blanc Primet), in order; how each is shown, by the word that names it."""


class Stage(MutableStruct):
    """The progress of a stage; `seconds`: its wall time."""

    status: Literal["waiting", "running", "complete", "incomplete"]
    started: str = ""
    seconds: float | None = None


class DeployedLab(Struct):
    """The live lab that an experiment has up: its name, and the `id` of its manifest."""

    lab: str
    id: str


class Entry(MutableStruct):
    """A run and its outcome. `verified`: its certificate passed; None: there is none yet."""

    number: int
    name: str
    parameters: dict[str, str | int]
    seed: int
    plan_sha256: str
    """Empty until what the run executes is written."""
    family: str
    """SHA-256 of the plan without its seeds: runs of one family share a certificate."""
    directory: Annotated[str, Meta(pattern=r"\Aruns/[0-9]{3,9}\Z")]
    """Within the experiment's directory."""
    expected_ns: int
    status: Status
    error: str | None
    certificate: str | None
    """Its path within the experiment's directory."""
    verified: bool | None
    disturbed: list[int] | None = None
    """The seconds after T0 in which links left their tolerance or packets' clock was set (labs/record/disturbances.py);
    None, and not written: they were not watched, as in the virtual clock."""
    demand: Demand | None = None
    """The demand on a virtual kernel that was expected; None, and not written, if it was not counted."""
    key: str | None = None
    """The name of its results in the store (experiments/store/key.py); None, and not written: live, or none."""
    taken: bool | None = None
    """Its results are the store's; None, and not written: they were measured for this experiment."""

    @property
    def written(self) -> bool:
        """Return whether the executed plan is in the run's directory. If an experiment has many runs, each plan is
        written just before its run starts."""
        return self.plan_sha256 != ""

    def begin_anew(self) -> None:
        """As if it had never been executed; what it is remains, its certificate too."""
        self.status, self.error, self.disturbed, self.taken = "waiting", None, None, None


class ScenarioFacts(MutableStruct, kw_only=True):
    """The facts of its scenario that an experiment's record repeats, and the record of its repetition too."""

    scenario: str
    """Its name."""
    title: str
    about: str
    source: str
    metrics: list[str]
    normalise: Reference | None
    beside: list[PublishedValue]
    compare: list[Comparison] = field(default_factory=list)
    scale: str | None
    settings: dict[str, str]
    """Parameters given on the command line."""
    figures: list[FigureRequest] = field(default_factory=list)
    confidence: float | None = None
    """The confidence of intervals, if the scenario asks for repetitions until one is narrow enough."""
    name: str = ""
    """A person's name for the experiment (labs/record/labels.py); the next two keys are labels too."""
    tags: list[str] = field(default_factory=list)
    note: str = ""


class ExperimentOrigin(ScenarioFacts, kw_only=True):
    """The facts of an experiment that are known before it begins: the request, the version, the machine."""

    host: MachineFacts
    commit: str | None
    command: str
    runtime: str
    """The requested runtime; live, from the first lab on, the runtime that made it."""
    rerun_of: str | None = None
    """The path of the original, where this is a repetition."""


class ExperimentDocument(ExperimentOrigin, tag_field="format", tag=FORMAT, kw_only=True):
    """experiment.json."""

    clock: Clock
    unverified: bool
    """`--unverified` was given."""
    started: str
    ended: str | None
    status: State
    stages: dict[StageName, Stage]
    files: dict[str, str]
    """SHA-256 of each file that the document vouches for, by its path in the experiment's directory."""
    runs: list[Entry]
    deployed: DeployedLab | None = None
    kernel_sha256: str | None = None
    """The SHA-256 of the virtual kernel."""
    binary_sha256: str | None = None
    """The SHA-256 of ewan-node."""
    certified_with: list[str | None] | None = None
    """SHA-256 of the virtual kernel and of the node binary that the certificates were made with."""

    def __post_init__(self) -> None:
        if missing := [name for name in STAGES if name not in self.stages]:
            raise ValueError(f"stages has no key {missing[0]!r}")
        inside(self.files)

    @property
    def in_failed_labs(self) -> bool:
        """Return whether the lab of any run did not pass its verification."""
        return any(run.verified is False for run in self.runs)

    def again(
        self, host: MachineFacts, commit: str | None, command: str, runtime: str, rerun_of: str
    ) -> ExperimentOrigin:
        """The origin, as it is known before the repetition begins."""
        facts = {name: getattr(self, name) for name in ScenarioFacts.__struct_fields__}
        return ExperimentOrigin(**facts, host=host, commit=commit, command=command, runtime=runtime, rerun_of=rerun_of)


def inside(files: dict[str, str]) -> dict[str, str]:
    """The same; ValueError where a name leads out of the experiment's directory."""
    if any(name.startswith("/") or ".." in name.split("/") or "\0" in name for name in files):
        raise ValueError("files name one outside of the experiment")
    return files


def begin(origin: ExperimentOrigin, clock: Clock, unverified: bool, started: str) -> ExperimentDocument:
    """The document of an experiment that begins, without runs."""
    return ExperimentDocument(
        **asdict(origin),
        clock=clock,
        unverified=unverified,
        started=started,
        ended=None,
        status="running",
        stages={name: Stage(status="waiting") for name in STAGES},
        files={},
        runs=[],
    )


def to_json(document: ExperimentDocument) -> bytes:
    """Its bytes."""
    return codec.document(document)


def from_json(text: bytes, directory: Path) -> ExperimentDocument:
    """The document whose bytes are `text`; DocumentError for any other text, which names the first key that is wrong.

    `directory` stands before the file's name in errors.
    """
    check_values(text, str(directory / DOCUMENT))
    try:
        return codec.decode(ExperimentDocument, text, "")
    except ValueError as error:
        raise DocumentError(_refused(text, directory / DOCUMENT, error)) from None


def _refused(text: bytes, path: Path, error: ValueError) -> str:
    """Why the bytes are no document. Those of a document are parsed only once: of 100,000 runs they are 200 MB."""
    try:
        raw = orjson.loads(text)
    except orjson.JSONDecodeError as damaged:
        return f"{path}: is damaged ({damaged}): {_REMEDY}"
    found = raw.get("format") if isinstance(raw, dict) else None
    if found in OLDER:
        return (
            f"{path}: an older version made this experiment (format {found}, this version reads {FORMAT}): "
            "run its scenario.yaml once more with `ewan run`"
        )
    if found != FORMAT:
        return f"{path}: format is {repr(found)[:MOST_SHOWN]}, this version reads {FORMAT!r}"
    return f"{path}: not an experiment: {error}: {_REMEDY}"


def hidden(name: PurePath) -> bool:
    """Return whether a file, by its path in an experiment's or a run's directory, is not part of the results."""
    return any(part.startswith(".") for part in name.parts)


def checksum(path: Path) -> str:
    """SHA-256 of a regular file's bytes, in hexadecimal digits; OSError for any other file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_once(path: Path) -> str:
    """The same, of a large file that is asked for often: it is read once in this process, unless it changes."""
    status = path.stat()
    return _checksum_once(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=64)
def _checksum_once(path: Path, modified_ns: int, size: int) -> str:
    return checksum(path)


def damage(directory: Path, name: str, files: Mapping[str, str]) -> str:
    """The damage of a file of an experiment; empty if its bytes are those that were recorded, and if it is neither
    present nor recorded."""
    path = directory / name
    try:
        return _damage(directory, name, files, checksum(path) if path.exists() and name in files else None)
    except OSError as error:
        return f"{path}: {error.strerror}: {_remedy(directory, name)}"


def intact(directory: Path, name: str, files: Mapping[str, str]) -> bytes | None:
    """The bytes of a file of an experiment, read once; None where it is neither there nor recorded.

    DocumentError for what `damage` finds wrong, OSError where it cannot be read.
    """
    try:
        content = read_bytes(directory / name)
    except FileNotFoundError:
        content = None
    if content is not None and name.endswith(".json"):
        check_values(content, str(directory / name))
    found = None if content is None else hashlib.sha256(content).hexdigest()
    if why := _damage(directory, name, files, found):
        raise DocumentError(why)
    return content


def _damage(directory: Path, name: str, files: Mapping[str, str], found: str | None) -> str:
    """The same as `damage`; `found`: the checksum of the file's bytes."""
    path, remedy = directory / name, _remedy(directory, name)
    if not path.exists():
        return f"{path}: is missing: {remedy}" if name in files else ""
    if name not in files:
        return f"{path}: {DOCUMENT} does not record it, its writing was interrupted: {remedy}"
    if found != files[name]:
        return f"{path}: is damaged, its bytes are not those that {DOCUMENT} records: {remedy}"
    return ""


def _remedy(directory: Path, name: str) -> str:
    place, last = name.partition("/")[0], name.rpartition("/")[2]
    if place not in ("runs", CERTIFICATES_FOLDER) or last in INPUTS:
        return "take it from the experiment's archive, or run the scenario once more"
    stage = "execution" if place == "runs" else "configuration"
    return f"`ewan exp resume {directory} --from {stage}` measures it anew"
