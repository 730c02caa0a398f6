"""The description of an application of HSTTS: its name, parameters with their defaults, traffic and metrics. Types
only.

A module of `extras/suites/applications` holds one `Application`; `document.py` writes it as a scenario. Steps and labs
are plain data with the keys of docs/reference/scenario.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ewan.extras.suites.endpoints import SuiteEndpoints
from ewan.extras.suites.parameters import Parameters
from ewan.extras.suites.profiles import PROFILES, SuiteProfile
from ewan.generator.scenario.data import ScenarioMapping
from ewan.labs.record.metrics import METRICS

POSTER = "Guillier and Vicat-Blanc Primet, High Speed Transport Protocol Test Suite (poster)"
NXE = "Guillier and Vicat-Blanc Primet, methodology and Network eXperiment Engine (NXE), section 4.2"

OURS = "ewan"
"""The generator of this project, as scenarios call it."""
RESPONSES_IN_TIME = "responses in time"
"""In an overview: the share of the load's responses that kept to `--constraint`."""

COMPLETION = (
    "mean completion time",
    "max completion time",
    "min completion time",
    "deviation of completion time",
    "coefficient of variation",
    "mean goodput",
    "fairness per flow",
    "fairness per source",
)

Values = Mapping[str, str | int]
"""Parameters of a scenario by name."""


@dataclass(frozen=True, slots=True)
class ApplicationCase:
    """The case for which one scenario of an application is made: participants, sizes, the congestion controls to
    compare."""

    parameters: Parameters
    ends: SuiteEndpoints
    profile: SuiteProfile
    sizes: Values
    congestion: tuple[str, ...]
    reference: str
    seeds: int
    beside: tuple[ScenarioMapping, ...] = ()
    varied: frozenset[str] = frozenset()
    """Words of the poster's parameters that have several values."""
    generators: tuple[str, ...] = (OURS,)
    """The generators of the load: where there are several, each has runs of its own."""

    @property
    def generator(self) -> str | None:
        """The generator of a step of the load; None where it is our own."""
        if len(self.generators) > 1:
            return "${generator}"
        return None if self.generators == (OURS,) else self.generators[0]

    @property
    def several_streams(self) -> bool:
        """Return whether steps have a number of streams for each source."""
        return self.parameters.streams > 1 or "NS" in self.varied

    def size(self, key: str) -> str:
        """A size as text with its unit."""
        return str(self.sizes[key])


@dataclass(frozen=True, slots=True)
class ApplicationTraffic:
    """The traffic of an application in one case.

    `own`: the parameters of its scenario, with their values; `busy_ns`: how long the load takes where nothing is lost;
    `points`: values of `own` that have runs of their own."""

    own: Values
    steps: tuple[ScenarioMapping, ...]
    busy_ns: int
    points: tuple[Values, ...] = ()


@dataclass(frozen=True, slots=True)
class Application:
    """One application. ValueError that names it when its data do not suffice for a run.

    `word`: its name on the command line; `about`: its traffic and the source of its sizes, with `{size}` for a size's
    value; `sizes`: those of each profile; `metrics`: the first ones of its table; `overview`: those in the table of the
    whole suite; `defaults`: those of the poster's parameters (`k`, `cg`, `r`) where they are not the suite's;
    `one_source`: M is 1; `streams`: N_s may be above 1."""

    word: str
    title: str
    about: str
    sizes: Mapping[str, Values]
    traffic: Callable[[ApplicationCase], ApplicationTraffic]
    metrics: tuple[str, ...]
    overview: tuple[str, ...]
    source: str = POSTER
    defaults: Mapping[str, str] = field(default_factory=dict)
    one_source: bool = False
    streams: bool = True

    def __post_init__(self) -> None:
        if wrong := self._wrong():
            raise ValueError(f"application {self.word}: {wrong}")

    def _wrong(self) -> str:
        for what, names in (("metrics", self.metrics), ("overview", self.overview)):
            if not names:
                return f"{what} is empty: name at least one metric"
            if unknown := [name for name in names if name not in (*METRICS, RESPONSES_IN_TIME)]:
                return f"{what} names {unknown[0]!r}, which is no metric of labs/record/metrics.py"
        if apart := [name for name in self.overview if name not in (*self.metrics, RESPONSES_IN_TIME)]:
            return f"overview names {apart[0]!r}, which is not among its metrics"
        if missing := [name for name in PROFILES if name not in self.sizes]:
            return f"sizes has no profile {missing[0]!r}"
        first, *others = (set(self.sizes[name]) for name in PROFILES)
        if apart := sorted(name for other in others for name in first ^ other):
            return f"sizes: {apart[0]!r} is not in every profile"
        return ""

    @property
    def scenario(self) -> str:
        """The name of its scenario."""
        return f"hstts-{self.word.lower()}"
