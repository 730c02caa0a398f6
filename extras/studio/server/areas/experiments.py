"""Experiments: their list, the results of each, its certificates, figures of it, two side by side, its files.

In: names, words of a figure. Out: rows as `ewan exp list` has them, and the results of `ewan exp tag`, `certificate`,
`plot`, `compare`, `export` and `report`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ewan.analysis.experiment_list import ExperimentRow
from ewan.analysis.export_kinds import ExportKind
from ewan.extras.studio.server import answers, api, files, results, threads
from ewan.extras.studio.server.api import Body, Endpoint, Word
from ewan.extras.studio.server.guard import Access
from ewan.extras.studio.server.reader import Reader
from ewan.labs.context import Context
from ewan.labs.record.figures import POINTS, SCALES, VALUES
from ewan.labs.record.labels import LONGEST_NOTE
from ewan.labs.record.metrics import METRICS
from ewan.labs.record.series import SAMPLES, SERIES

CERTIFICATE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,80}")
StyleName = Literal["page", "paper-1col", "paper-2col", "slide"]
Kind = Literal["svg", "pdf", "png"]


class Labels(Body):
    """Changes of the labels of an experiment, as `ewan exp tag` takes them: `+TAG`, `-TAG`; an absent one stays."""

    tags: Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=64)] = Field(default_factory=list)
    name: Annotated[str, Field(max_length=1000)] | None = None
    note: Annotated[str, Field(max_length=4 * LONGEST_NOTE)] | None = None


@dataclass(frozen=True, slots=True)
class ExperimentLabels:
    """The labels of an experiment."""

    name: str
    tags: list[str]
    note: str


@dataclass(frozen=True, slots=True)
class MetricTerm:
    """A metric, in its group."""

    name: str
    unit: str
    meaning: str
    group: str


@dataclass(frozen=True, slots=True)
class Term:
    """A series or samples; `of`: whose it may be."""

    name: str
    unit: str
    meaning: str
    of: str


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The vocabulary of figures: metrics, series over time, samples that have a distribution; and the words of clauses
    that have some."""

    metrics: list[MetricTerm]
    series: list[Term]
    samples: list[Term]
    scale: tuple[str, ...] = SCALES
    values: tuple[str, ...] = VALUES
    points: tuple[str, ...] = POINTS
    style: tuple[StyleName, ...] = get_args(StyleName)


class Figure(Body):
    """A figure of an experiment, in the line that `ewan results plot` takes (docs/how-to/experiments/figures.md)."""

    experiment: Word
    figure: Annotated[Word, Field(min_length=1)]
    style: StyleName = "page"
    kind: Kind = "svg"
    beside: Word | None = None
    """Another experiment, whose runs are drawn on the same axes."""


class Experiments:
    """The results of experiments."""

    def __init__(self, context: Context, here: Path, access: Access) -> None:
        self._results = results.Experiments(here, context.environment)
        self._reader, self._access = Reader(here, context.environment), access

    def experiments(self) -> list[ExperimentRow]:
        """Experiments, the newest first."""
        return self._results.every()

    def experiment(self, name: str) -> answers.Experiment:
        """One experiment: its request, its runs, its labs' certificates in a line each, tables of its results."""
        found: answers.Experiment = self._reader.ask("about", self._results.words(name))
        return found

    def certificate(self, name: str, certificate: str) -> answers.CertificateSheet:
        """The measured behaviour of a lab of an experiment."""
        if not CERTIFICATE.fullmatch(certificate):
            raise files.RefusedError(f"{name}: has no such certificate")
        found: answers.CertificateSheet = self._reader.ask("certificate", self._results.words(name), certificate)
        return found

    def label(self, name: str, body: Labels) -> ExperimentLabels:
        """Changes tags, name and note."""
        called, tags, note = self._results.relabel(name, tuple(body.tags), body.name, body.note)
        return ExperimentLabels(name=called, tags=tags, note=note)

    def words(self) -> Vocabulary:
        """The vocabulary of figures."""
        return Vocabulary(
            metrics=[MetricTerm(each.name, each.unit, each.meaning, each.group) for each in METRICS.values()],
            series=[Term(each.name, each.unit, each.meaning, each.whose) for each in SERIES.values()],
            samples=[Term(each.name, each.unit, each.meaning, each.whose) for each in SAMPLES.values()],
        )

    def figure(self, body: Figure) -> answers.DrawnFigure:
        """Draws a figure, with its data as CSV; changes nothing."""
        first = self._results.words(body.experiment)
        other = None if body.beside is None else self._results.words(body.beside)
        found: answers.DrawnFigure = self._reader.ask("figure", first, body.figure, body.style, body.kind, other)
        return found

    def compared(self, first: str, second: str) -> answers.ExperimentComparison:
        """The differences between two experiments."""
        words = self._results.words(first), self._results.words(second)
        found: answers.ExperimentComparison = self._reader.ask("compared", *words)
        return found

    def exports(self) -> list[ExportKind]:
        """The kinds of files that `ewan results export` can write."""
        return list(results.exports().values())

    async def report(self, request: Request) -> Response:
        """A file of an experiment's report."""
        words = request.path_params
        return await _file(self._results.file, words["name"], words["path"])

    async def export(self, request: Request) -> Response:
        """The files that `ewan results export` writes."""
        words = request.path_params
        return await _file(self._results.export, words["name"], words["kind"], self._access.view)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """All that can be asked."""
        one = "/api/experiments/{name}"
        return (
            Endpoint("GET", "/api/experiments", "experiments, the newest first", self.experiments),
            Endpoint("GET", one, "one experiment", self.experiment),
            Endpoint("POST", f"{one}/labels", "change tags, name and note", self.label),
            Endpoint("GET", f"{one}/certificates/{{certificate}}", "a certificate of a lab", self.certificate),
            Endpoint("GET", "/api/compare/{first}/{second}", "the differences between two experiments", self.compared),
            Endpoint("GET", "/api/exports", "the formats of exports", self.exports),
            Endpoint("GET", "/api/figure", "the vocabulary of figures", self.words),
            Endpoint("POST", "/api/figure", "draw a figure; changes nothing", self.figure),
        )

    def routes(self) -> tuple[BaseRoute, ...]:
        """Files."""
        return (
            Route("/results/{name}/export/{kind}", self.export),
            Route("/results/{name}/{path:path}", self.report),
        )


async def _file(find: Callable[..., Response], *words: Any) -> Response:
    try:
        return await threads.run(find, find, *words)
    except files.RefusedError as error:
        return api.refused(HTTPStatus.NOT_FOUND, str(error))
