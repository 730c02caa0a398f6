"""An application's case as the text of a scenario, which a person can read, change and run by itself. Pure.

In: an application and the case of its scenario. Out: YAML with the keys of docs/reference/scenario.md."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ewan.extras.suites import background
from ewan.extras.suites.application import Application, ApplicationCase, Values
from ewan.extras.suites.steps import LONGEST_DAY_NS, whole_seconds
from ewan.generator.scenario.data import ScenarioMapping
from ewan.generator.scenario.writing import to_yaml
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.base.units import NS_PER_SECOND, Rate

NETWORK = ("utilisation", "mean queueing delay", "queue loss", "link loss", "total loss", "retransmissions")
"""Metrics that every application's table has after its own."""
WIDTH = 110  # of the lines of `about`


class Normalisation(Struct):
    """The results by which others are divided: those with the value `to` of the parameter `by`."""

    by: str
    to: str


class ScenarioDraft(Struct):
    """A scenario's keys, in their order."""

    name: str
    title: str
    about: str
    source: str
    lab: ScenarioMapping
    parameters: Values
    sweep: ScenarioMapping | list[ScenarioMapping]
    seeds: int
    normalise: Normalisation
    defaults: Values
    longest: str
    steps: list[ScenarioMapping]
    metrics: list[str]
    beside: tuple[ScenarioMapping, ...] = ()
    figures: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The scenario as YAML."""
        return to_yaml(codec.data_of(self))


def text(application: Application, case: ApplicationCase) -> str:
    """The scenario of an application; its runs are its points × congestion controls × seeds."""
    return draft(application, case).text


def draft(application: Application, case: ApplicationCase) -> ScenarioDraft:
    """The scenario's keys."""
    traffic = application.traffic(case)
    longest_ns = min(20 * traffic.busy_ns + 60 * NS_PER_SECOND, LONGEST_DAY_NS)
    several = len(case.generators) > 1
    compared = {"congestion": case.congestion, **({"generator": case.generators} if several else {})}
    streams = {"streams": case.parameters.streams} if case.several_streams else {}
    generator = {"generator": case.generators[0]} if several else {}
    about = [*lines(application, case), f"Parameters: {case.parameters.text()}."]
    about += [f"{note}." for note in case.parameters.notes]
    return ScenarioDraft(
        name=application.scenario,
        title=f"HSTTS {application.word}, {application.title}",
        about=filled(about),
        source=application.source,
        lab=case.ends.lab,
        parameters={"congestion": case.reference, **generator, **traffic.own},
        sweep=[{**point, **compared} for point in traffic.points] or compared,
        seeds=case.seeds,
        normalise=Normalisation("congestion", case.reference),
        defaults={"congestion": "${congestion}", **streams},
        longest=whole_seconds(longest_ns),
        steps=[*(_sent_by(case.generator, step) for step in traffic.steps), *_background(case, traffic.busy_ns)],
        metrics=[*application.metrics, *NETWORK],
        beside=case.beside,
    )


def _sent_by(generator: str | None, step: ScenarioMapping) -> ScenarioMapping:
    """A step of the load by another generator; other steps stay with ours."""
    return step if generator is None or "role" in step else {**step, "generator": generator}


def lines(application: Application, case: ApplicationCase) -> list[str]:
    """The application, its background and its lab in words, a paragraph each."""
    about = [] if case.ends.background is None else [background.about(case.parameters.background)]
    return [application.about.format_map(case.sizes), *about, *case.ends.notes]


def filled(paragraphs: Sequence[str]) -> str:
    """Paragraphs as the lines of `about`."""
    return "\n".join(textwrap.fill(each, WIDTH) for each in paragraphs) + "\n"


def _background(case: ApplicationCase, busy_ns: int) -> list[ScenarioMapping]:
    """Background traffic both ways, for one and a half times the duration of the load without losses."""
    if case.ends.background is None:
        return []
    parameters, length = case.parameters, whole_seconds(busy_ns * 3 // 2)
    each = Rate(parameters.rate.bps // case.ends.background_pairs)
    return background.steps(parameters.background, each, case.ends.background, length)
