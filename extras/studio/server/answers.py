"""Answers of the reader's process about experiments, as JSON data: only the types, for the interface's description.

The functions of `outcomes.py` make these. This module imports none of their needs, so that the server stays small."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import TypedDict

from ewan.labs.record.experiment import Clock, State, Status
from ewan.labs.record.figures import FigureSpec


class ExperimentRun(TypedDict):
    """A run in the words of a report. `verified`: None where its lab was not verified."""

    number: int
    point: list[str]
    seed: int
    status: Status
    error: str
    disturbed: str
    bottleneck: str
    certificate: str
    verified: bool | None
    measured: bool


class CertificateLine(TypedDict):
    """A certificate in a line, with the runs of its lab. `passed`: None where it cannot be read."""

    id: str
    runs: list[int]
    passed: bool | None
    words: str


class Disturbance(TypedDict):
    """A disturbance of a run, and its time. `marks`: the run is marked for it."""

    run: int
    time: str
    words: str
    marks: bool


class Table(TypedDict):
    """A table of results as text."""

    title: str
    columns: list[str]
    rows: list[list[str]]


class Comparison(TypedDict):
    """A comparison that a scenario asks for, as text."""

    value: str
    where: str
    metric: str
    reference: str
    here: str
    difference: str
    p: str
    test: str
    effect: str
    n: str
    outcome: str


class Experiment(TypedDict):
    """An experiment. `called`: the name that a person gave it; `asked`: the lines of the scenario's figures;
    `more_certificates` and `more_disturbances`: so many are not listed; `watched`: the host was observed."""

    name: str
    directory: str
    title: str
    called: str
    tags: list[str]
    note: str
    scenario: str
    about: list[str]
    source: str
    status: State
    clock: Clock
    warnings: list[str]
    so_far: str
    facts: dict[str, str]
    host: dict[str, str]
    parameters: list[tuple[str, str]]
    varied: Sequence[str]
    values: dict[str, list[str]]
    metrics: list[str]
    runs: list[ExperimentRun]
    few_runs: str
    certificates: list[CertificateLine]
    more_certificates: int
    disturbances: list[Disturbance]
    more_disturbances: int
    watched: bool
    tables: list[Table]
    comparisons: list[Comparison]
    figures: list[str]
    asked: list[str]
    report: bool
    text: str


class CertificateSheet(TypedDict):
    """A certificate, as `ewan lab certificate` prints it. Cells of `rows` are in the order of `columns`."""

    id: str
    lab: str
    passed: bool
    policy: str
    words: str
    circumstances: list[str]
    advice: list[str]
    columns: list[str]
    rows: list[list[str]]


class DrawnFigure(TypedDict):
    """A figure. `shown`: the SVG with the colours of a light and of a dark page; `files`: contents in base64;
    `command`: the command that makes the same figure at a terminal."""

    line: str
    spec: FigureSpec
    name: str
    title: str
    caption: str
    svg: str
    shown: str
    csv: str
    files: dict[str, str]
    command: str


class Difference(TypedDict):
    """A difference: its subject, and its value in each of two experiments."""

    what: str
    first: str
    second: str


class ComparedMetric(TypedDict):
    """A metric at a point of the parameters in two experiments, as text."""

    point: str
    metric: str
    first: str
    second: str
    n: str
    difference: str
    test: str
    p: str
    effect: str
    outcome: str


class Side(TypedDict):
    """One of two experiments that are compared."""

    name: str
    title: str
    scenario: str
    status: State
    clock: Clock
    so_far: str
    started: str | None
    warnings: list[str]
    varied: Sequence[str]
    figures: list[str]


class ExperimentComparison(TypedDict):
    """The differences between two experiments. `command`: the command that shows the same at a terminal."""

    sides: tuple[Side, Side]
    parameters: list[Difference]
    labs: list[Difference]
    certificates: list[Difference]
    circumstances: list[Difference]
    scenarios: list[str]
    rows: list[ComparedMetric]
    lines: list[str]
    metrics: list[str]
    command: str
