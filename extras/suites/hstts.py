"""HSTTS as scenarios: words of the command line in, one scenario for each application out. Reads descriptions only.

In: applications, a topology, parameters, congestion controls. Out: `ApplicationScenario`: the scenario's text, and
where files that its lab names are. Everything that contradicts itself is a DescriptionError of one line before anything
is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from ewan.extras.suites import background, document, endpoints, parameters, sweep
from ewan.extras.suites.application import OURS, Application, ApplicationCase
from ewan.extras.suites.applications import APPLICATIONS
from ewan.extras.suites.parameters import Parameters
from ewan.extras.suites.profiles import PROFILES, SuiteProfile
from ewan.generator.scenario.data import ScenarioMapping
from ewan.generator.scenario.fields import GENERATOR
from ewan.labs import host
from ewan.labs.base.codec import replace
from ewan.labs.base.reporter import Tell
from ewan.labs.base.units import Duration
from ewan.labs.base.wording import nearest
from ewan.labs.compile import compile as compile_spec
from ewan.labs.descriptions import describe
from ewan.labs.plan import Plan
from ewan.labs.spec import DescriptionError, Spec
from ewan.labs.spec.fields import Topology

FULL_STOP = ".scenario.yaml"
SWITCHED = "switched"
POSTERS = ("dumbbell", SWITCHED)
"""Topologies with the poster's bottleneck, that of `switched` in the output port of a layer-2 switch."""
# Words of a lab description that HSTTS has too.
_CONGESTION = re.compile("[a-z][a-z0-9_-]{0,14}")
_OF_A_LAB = {"RTT": "rtt", "RATE": "rate", "MTU": "mtu", "LOSS": "loss", "BUFFER": "buffer", "CA": "access"}


@dataclass(frozen=True, slots=True)
class ApplicationScenario:
    """An application's scenario: its text, where files that its lab names are, the poster's parameters."""

    app: str
    text: str
    folder: Path
    parameters: Parameters
    """The parameters; for a sweep, those of its first combination."""
    swept: tuple[str, ...] = ()
    """The scenario's parameters that have several values by the poster's words."""

    @property
    def file(self) -> Path:
        """The name of the scenario in errors, and the folder of other files that it names."""
        return self.folder / f"{APPLICATIONS[self.app].scenario}{FULL_STOP}"


@dataclass(frozen=True, slots=True)
class SuiteRequest:
    """The options of the suite; `given` are the poster's parameters by their words, in capitals, `beside` published
    values."""

    apps: tuple[str, ...]
    topology: str
    given: Mapping[str, str]
    profile: str = "quick"
    congestion: tuple[str, ...] = ("reno", "cubic", "bic", "highspeed", "scalable", "htcp")
    reference: str = "reno"
    seeds: int | None = None
    beside: tuple[ScenarioMapping, ...] = ()
    generators: tuple[str, ...] = (OURS,)


def names(text: str) -> tuple[str, ...]:
    """Applications: `all`, or some of them with commas between."""
    words = [word for word in text.upper().replace(",", " ").split() if word]
    if words == ["ALL"]:
        return tuple(APPLICATIONS)
    unknown = [word for word in words if word not in APPLICATIONS]
    if unknown or not words:
        raise DescriptionError(f'APP "{text}": write one of {", ".join(APPLICATIONS)}, several with commas, or all')
    return tuple(dict.fromkeys(words))


def generators(text: str) -> tuple[str, ...]:
    """The generators of the load, several with commas between."""
    known = get_args(GENERATOR)
    words = tuple(dict.fromkeys(text.lower().replace(",", " ").split()))
    unknown = next((word for word in words if word not in known), None)
    if unknown is not None or not words:
        instead = nearest(unknown, known) if unknown else f"write one of {', '.join(known)}"
        raise DescriptionError(f'--generator "{text}": there is no such generator, {instead}')
    return words


def congestion_controls(text: str, reference: str) -> tuple[tuple[str, ...], bool]:
    """Congestion controls in the order given, each once, and whether the reference had to be added as the first."""
    result = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not result:
        raise DescriptionError('CC: write the names of congestion controls, "reno,cubic"')
    for word, each in (("--normalise", reference), *(("CC", each) for each in result)):
        if not _CONGESTION.fullmatch(each):
            raise DescriptionError(f'{word} "{each}": write the kernel\'s name of a congestion control, like "cubic"')
    return (result, False) if reference in result else ((reference, *result), True)


def build(wanted: SuiteRequest, note: Tell = lambda line: None) -> list[ApplicationScenario]:
    """A scenario for each application; `note` is called with words that may have another meaning."""
    profile = PROFILES[wanted.profile]
    return [_build(wanted, profile, APPLICATIONS[app], note) for app in wanted.apps]


def _build(wanted: SuiteRequest, profile: SuiteProfile, app: Application, note: Tell) -> ApplicationScenario:
    given = {word: text for word, text in wanted.given.items() if text}
    if not app.streams and given.get("NS", "1") != "1":
        if len(wanted.apps) == 1:
            one = f"{app.word}'s ranks have one connection to each other"
            raise DescriptionError(f"NS={given['NS']}: {one}: leave NS out")
        del given["NS"]
    if app.one_source and len(wanted.apps) > 1:
        given = _for_one_source(given)
    if wanted.topology in POSTERS:
        return _in_dumbbell(wanted, profile, app, given)
    folder = Path()
    spec, plan = _lab(wanted.topology, given, profile, note)
    rate = endpoints.bottleneck([pair.bottleneck_bps for pair in plan.pairs])
    rtt = Duration(max(pair.rtt_ns for pair in plan.pairs))
    alone = {word: text for word, text in given.items() if word not in ("RTT", "RATE")}
    defaults = parameters.Defaults(str(rate), str(rtt))
    parameters.elsewhere(given, defaults, wanted.topology)
    result = parameters.elsewhere(alone, defaults, wanted.topology)
    pairs = [(pair.source, pair.sink) for pair in plan.pairs]
    who, folder = endpoints.elsewhere(spec.raw, pairs, result.background != background.NONE), spec.folder
    if app.one_source:
        who = endpoints.one(who)
    return ApplicationScenario(
        app.word, document.text(app, _case(wanted, profile, app, result, who)), folder, result, _compared(wanted)
    )


def _in_dumbbell(
    wanted: SuiteRequest, profile: SuiteProfile, app: Application, given: Mapping[str, str]
) -> ApplicationScenario:
    """The poster's topology; words with several values make one scenario with a sweep."""
    defaults, switched = profile.defaults(app.defaults), wanted.topology == SWITCHED
    swept = sweep.several(given)
    given_all = list(sweep.combinations(given, swept))
    results = [parameters.resolve(each, defaults, one_source=app.one_source) for each in given_all]
    room = endpoints.LabSize.of(results, switched) if swept else None
    varied = frozenset(swept)
    cases = [_case(wanted, profile, app, each, endpoints.dumbbell(each, switched, room), varied) for each in results]
    if not swept:
        return ApplicationScenario(app.word, document.text(app, cases[0]), Path(), results[0], _compared(wanted))
    known: dict[str, list[str | int]] = {word.lower(): [each[word] for each in given_all] for word in swept}
    known.setdefault("m", [each.m or 1 for each in results])
    known.setdefault("reverse", [each.reverse for each in results])
    known |= {"access": [str(each.access) for each in results]} if "ca" not in known else {}
    known |= {"core": [str(each.rate) for each in results]} if "rate" not in known else {}
    axes = [word.lower() for word in sorted(swept, key=lambda word: -len(swept[word]))]
    drafts = [document.draft(app, each) for each in cases]
    about = document.filled([*_lines(app, cases), sweep.words(swept), *_notes(results)])
    merged = replace(sweep.merged(drafts, known, wanted.congestion, axes), about=about)
    return ApplicationScenario(
        app.word, merged.text, Path(), results[0], (*(word.lower() for word in swept), *_compared(wanted))
    )


def _compared(wanted: SuiteRequest) -> tuple[str, ...]:
    """The parameters that vary beside the poster's."""
    return ("generator",) if len(wanted.generators) > 1 else ()


def _lines(app: Application, cases: Sequence[ApplicationCase]) -> list[str]:
    return list(dict.fromkeys(line for case in cases for line in document.lines(app, case)))


def _notes(results: Sequence[Parameters]) -> list[str]:
    return list(dict.fromkeys(f"{note}." for each in results for note in each.notes))


def _case(
    wanted: SuiteRequest,
    profile: SuiteProfile,
    app: Application,
    result: Parameters,
    who: endpoints.SuiteEndpoints,
    varied: frozenset[str] = frozenset(),
) -> ApplicationCase:
    seeds = profile.seeds if wanted.seeds is None else wanted.seeds
    sizes, controls = app.sizes[wanted.profile], wanted.congestion
    return ApplicationCase(
        result, who, profile, sizes, controls, wanted.reference, seeds, wanted.beside, varied, wanted.generators
    )


def _for_one_source(given: Mapping[str, str]) -> dict[str, str]:
    """The given parameters without those for the number of sources, which are for the other applications.

    C_a stays where C is not given, since C follows from it."""
    kept = {word: text for word, text in given.items() if word not in ("K", "M", "CG", "CA", "R")}
    if "RATE" not in kept and "CA" in given:
        kept["CA"] = given["CA"]
    return kept


def _lab(topology: str, given: Mapping[str, str], profile: SuiteProfile, note: Tell) -> tuple[Spec, Plan]:
    """Another topology or a description, with the given words of a lab; a template has the profile's defaults."""
    parameters.elsewhere(given, parameters.Defaults(profile.rate, profile.rtt), topology)
    words = {_OF_A_LAB[word]: text for word, text in given.items() if word in _OF_A_LAB}
    if topology in Topology.words() and topology != "graph":
        words = {"rtt": profile.rtt, "rate": profile.rate, **words}
    spec = describe(topology, words, note)
    plan = compile_spec(spec, host.virtual_facts())
    if not plan.pairs:
        raise DescriptionError(f"TOPO={topology}: lab {plan.lab} has no pairs of hosts: write them as pairs")
    return spec, plan


def described(built: Sequence[ApplicationScenario]) -> list[str]:
    """A line for each application with its parameters."""
    return [f"{each.app}: {each.parameters.text()}" for each in built]
