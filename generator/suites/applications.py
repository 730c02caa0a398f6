"""The five applications of HSTTS, each as the text of a scenario.

In: the parameters, who takes part, a profile's sizes, the congestion controls. Out: YAML (docs/scenario.md) that a
person can read, change and run alone. What each application is comes from the poster; what the poster leaves open
(all sizes but BU's, what WMI and WMII are) is decided here, and the scenario's `about` says so.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction as Exact

from generator.suites.ends import Ends
from generator.suites.parameters import Parameters
from generator.suites.profiles import NO_SIZE, Profile
from labs.units import BITS_PER_BYTE, NS_PER_SECOND, Duration, Size, parse_volume, time_for

SOURCE = "Guillier and Vicat-Blanc Primet, High Speed Transport Protocol Test Suite (poster)"
NXE = "Guillier and Vicat-Blanc Primet, methodology and Network eXperiment Engine (NXE), section 4.2"

TITLES = {
    "TU": "tuning",
    "WM": "web surfing",
    "PP": "peer to peer",
    "BU": "bulk data transfer",
    "PA": "distributed parallel application",
}

# Background: the share of the bottleneck that Poisson arrivals of web files fill, each way.
BACKGROUND = {"WMI": Exact("0.1"), "WMII": Exact("0.3")}
BACKGROUND_FILE = "100kB"  # mean; with its law as the files of the JGN2 experiments
BACKGROUND_CONGESTION = "cubic"
WEB_LOAD = Exact("0.9")  # of what each source gets of the bottleneck, by WM's large files, each way
TAIL = 1.3  # Pareto's shape of web files (JGN2)
# The largest draw, in means: an unbounded tail would be one file that outlasts all else.
LARGEST = 20
SESSIONS_APART = "10ms"  # starts of the sessions of one source
LONGEST_DAY_NS = 86_400 * NS_PER_SECOND

COMPLETION = [
    "mean completion time",
    "max completion time",
    "min completion time",
    "deviation of completion time",
    "coefficient of variation",
    "mean goodput",
    "fairness per flow",
    "fairness per source",
]
NETWORK = ["utilisation", "mean queueing delay", "queue loss", "link loss", "total loss", "retransmissions"]


@dataclass(frozen=True, slots=True)
class Case:
    """All that an application's scenario is made of."""

    app: str
    parameters: Parameters
    ends: Ends
    profile: Profile
    congestion: tuple[str, ...]
    reference: str
    seeds: int

    def size(self, key: str) -> str:
        return str(self.profile.sizes[self.app][key])


@dataclass(frozen=True, slots=True)
class Load:
    """What differs between the applications; `busy_ns`: how long it takes where nothing is lost."""

    about: str
    own: Mapping[str, str | int]
    steps: tuple[str, ...]
    busy_ns: int
    metrics: Sequence[str]
    source: str = SOURCE
    groups: tuple[Mapping[str, str], ...] = ()


def scenario(case: Case) -> str:
    """The scenario of an application; its runs are congestion controls × seeds (PA: × patterns)."""
    load = _LOADS[case.app](case)
    background = _background(case, load.busy_ns)
    own = {"congestion": case.reference, **load.own}
    about = [load.about, *_background_about(case), f"Parameters: {case.parameters.text()}."]
    about += [f"{note}." for note in case.parameters.notes]
    longest = Duration(min(20 * load.busy_ns + 60 * NS_PER_SECOND, LONGEST_DAY_NS))
    parts = [
        f"name: {name(case.app)}",
        f"title: {_title(case)}",
        "about: |\n" + _indent("\n".join(textwrap.fill(each, 110) for each in about)),
        f"source: {load.source}",
        "lab:\n" + _indent(case.ends.lab),
        f"parameters: {_flow(own)}",
        _sweep(case, load),
        f"seeds: {case.seeds}",
        f"normalise: {{by: congestion, to: {case.reference}}}",
        f"defaults: {{congestion: ${{congestion}}{_streams(case)}}}",
        f"longest: {_whole_seconds(longest)}",
        "steps:\n" + _indent("\n".join([*load.steps, *background])),
        f"metrics: [{', '.join([*load.metrics, *NETWORK])}]",
    ]
    return "\n".join(parts) + "\n"


def name(app: str) -> str:
    return f"hstts-{app.lower()}"


def _title(case: Case) -> str:
    return f"HSTTS {case.app}, {TITLES[case.app]}"


def _sweep(case: Case, load: Load) -> str:
    variants = f"[{', '.join(case.congestion)}]"
    if not load.groups:
        return f"sweep: {{congestion: {variants}}}"
    lines = []
    for group in load.groups:
        fixed = ", ".join(f"{key}: {value}" for key, value in group.items())
        lines.append(f"  - {{{fixed}, congestion: {variants}}}")
    return "\n".join(["sweep:", *lines])


def _streams(case: Case) -> str:
    return f", streams: {case.parameters.streams}" if case.parameters.streams > 1 else ""


def _tuning(case: Case) -> Load:
    volume = case.size("volume")
    about = (
        "A full speed, simple, unicast and unidirectional transfer from one source to one sink, to benchmark the whole "
        f"chain of communication. Its volume, {volume}, is ours."
    )
    busy = _drain(case, volume, 1)
    return Load(about, {"volume": volume}, (_transfer(case, "bulk"), *_reverse_volume(case)), busy, COMPLETION)


def _bulk(case: Case) -> Load:
    volume = case.size("volume")
    about = (
        "Unidirectional and big transfers, as in data centres and grids: each source sends one volume of uniform size; "
        "starts are a constant time apart. N_r further pairs do the same the other way (R). The papers' volume is "
        "30 Gbit, and 1 s their time between starts."
    )
    steps = (_transfer(case, "bulk"), *_reverse_volume(case))
    busy = _drain(case, volume, case.ends.pairs) + _staggered(case)
    return Load(about, _own(case), steps, busy, COMPLETION, f"{SOURCE}; {NXE}")


def _peer(case: Case) -> Load:
    about = (
        "Big bidirectional transfers: both ends of each pair send the volume at the same time over one connection. "
        "Volume and time between starts are ours. R adds pairs that send one way, from right to left."
    )
    steps = (_transfer(case, "bidirectional"), *_reverse_volume(case))
    busy = _drain(case, case.size("volume"), case.ends.pairs) + _staggered(case)
    return Load(about, _own(case), steps, busy, COMPLETION)


def _web(case: Case) -> Load:
    length, ends = Duration.parse(case.size("length"), LONGEST_DAY_NS), case.ends
    file = parse_volume(case.size("file"))
    interval = _interval(case, file, WEB_LOAD, ends.pairs)
    count = max(1, length.ns // interval.ns)
    about = (
        "Web surfing: big and small transfers in both directions, and a person who waits. Small: at each source N_s "
        "sessions of requests (300 B), responses of Pareto size, thinking in between, on a connection that stays. Big: "
        f"files of Pareto size arrive by Poisson's law and fill {_percent(WEB_LOAD)} of each source's share of the "
        "bottleneck. What counts is the response time of the small ones. All sizes and times are ours; the shape of "
        "the law is that of the JGN2 experiments, cut at twenty means."
    )
    own: dict[str, str | int] = {key: case.size(key) for key in ("length", "page", "think", "file")}
    own |= {"interval": str(interval), "files": count}
    streams = case.parameters.streams
    sessions = f"  repeat: {{times: {streams}, every: {SESSIONS_APART}}}\n" if streams > 1 else ""
    page, large = _pareto(case.size("page"), "page"), _pareto(case.size("file"), "file")
    steps = []
    for side, source, sink in (("left", ends.sources, ends.sinks), ("right", ends.sinks, ends.sources)):
        think = "think: {exponential: {mean: ${think}}}"
        steps.append(
            f"- name: surf-{side}\n  from: {source}\n  to: {sink}\n{sessions}  for: ${{length}}\n"
            f"  requests: {{request: 300B, response: {page}, {think}}}"
        )
        steps.append(
            f"- name: files-{side}\n  from: {source}\n  to: {sink}\n"
            f"  arrivals: {{count: ${{files}}, interval: {{exponential: {{mean: ${{interval}}}}}}, size: {large}}}"
        )
    steps += _reverse_time(case, "${length}")
    metrics = ["mean response time", "p95 response time", *COMPLETION]
    return Load(about, own, tuple(steps), 2 * length.ns, metrics)


def _parallel(case: Case) -> Load:
    ranks, parameters = len(case.ends.ranks.split(",")), case.parameters
    compute = Duration.parse(case.size("compute"))
    about = (
        "Message passing (MPI) between ranks on both sides, small messages in both directions, each rank on a node of "
        "its own; neighbours in rank are on different sides. All to all, exchange with both neighbours, and barriers, "
        "each in runs of its own. The sizes are ours. R adds pairs that send from right to left meanwhile."
    )
    busiest = 0
    for each in case.profile.patterns:
        size = 1 if each["size"] == NO_SIZE else parse_volume(each["size"]).bytes
        share = time_for(size * _crossing(each, ranks), parameters.rate.bps)
        busiest = max(busiest, int(case.size("iterations")) * (share + compute.ns + 2 * _rtt_ns(case)))
    step = (
        f"- name: job\n  ranks: {case.ends.ranks}\n"
        "  messages: {pattern: ${pattern}, size: ${size}, iterations: ${iterations}, compute: ${compute}}"
    )
    metrics = ["mean iteration time", "mean completion time", "max completion time"]
    own = {key: case.size(key) for key in ("compute", "iterations")} | {**case.profile.patterns[0]}
    steps = (step, *_reverse_time(case, _whole_seconds(Duration(busiest))))
    return Load(about, own, steps, busiest, metrics, groups=case.profile.patterns)


_LOADS: Mapping[str, Callable[[Case], Load]] = {
    "TU": _tuning,
    "WM": _web,
    "PP": _peer,
    "BU": _bulk,
    "PA": _parallel,
}
APPLICATIONS = tuple(_LOADS)


def _own(case: Case) -> dict[str, str | int]:
    return {key: case.size(key) for key in ("volume", "apart")}


def _transfer(case: Case, kind: str) -> str:
    """Each source sends the volume to its sink."""
    offset = "" if case.app == "TU" else "  offset: ${apart}\n"
    ends = f"  from: {case.ends.sources}\n  to: {case.ends.sinks}\n"
    return f"- name: forward\n{ends}{offset}  {kind}: {{volume: ${{volume}}}}"


def _reverse_volume(case: Case) -> list[str]:
    """The reverse pairs send the volume too, with the same starts."""
    if case.ends.reverse is None:
        return []
    source, sink = case.ends.reverse
    offset = "" if case.app == "TU" else "  offset: ${apart}\n"
    return [
        f"- name: reverse\n  role: reverse\n  from: {source}\n  to: {sink}\n{offset}  bulk: {{volume: ${{volume}}}}"
    ]


def _reverse_time(case: Case, length: str) -> list[str]:
    """The reverse pairs send all the time."""
    if case.ends.reverse is None:
        return []
    source, sink = case.ends.reverse
    streams = "  streams: 1\n"
    return [f"- name: reverse\n  role: reverse\n  from: {source}\n  to: {sink}\n{streams}  for: {length}\n  bulk: {{}}"]


def _background(case: Case, busy_ns: int) -> list[str]:
    """Web files both ways for half as long again as the load takes where nothing is lost."""
    if case.ends.background is None:
        return []
    share, size = BACKGROUND[case.parameters.background], parse_volume(BACKGROUND_FILE)
    interval = Duration(time_for(size.bytes, int(case.parameters.rate.bps * share)))
    steps = []
    for side, (source, sink) in zip(("left", "right"), (case.ends.background, case.ends.background[::-1]), strict=True):
        steps.append(
            f"- name: background-{side}\n  role: background\n  from: {source}\n  to: {sink}\n"
            f"  congestion: {BACKGROUND_CONGESTION}\n  for: {_whole_seconds(Duration(busy_ns * 3 // 2))}\n"
            f"  arrivals: {{interval: {{exponential: {{mean: {interval}}}}}, size: {_pareto(BACKGROUND_FILE)}}}"
        )
    return steps


def _background_about(case: Case) -> list[str]:
    if case.ends.background is None:
        return []
    share = _percent(BACKGROUND[case.parameters.background])
    return [
        f"Background {case.parameters.background}, which the poster names and does not define: files of Pareto size "
        f"(mean {BACKGROUND_FILE}, shape {TAIL}, cut at twenty means) arrive by Poisson's law, {share} of the "
        f"bottleneck each way, with {BACKGROUND_CONGESTION} whatever is tested."
    ]


def _pareto(mean: str, parameter: str | None = None) -> str:
    """The law, its mean written as the scenario's parameter if it is one, cut at LARGEST means."""
    most = Size(LARGEST * parse_volume(mean).bytes)
    shown = mean if parameter is None else f"${{{parameter}}}"
    return f"{{pareto: {{mean: {shown}, shape: {TAIL}, most: {most}}}}}"


def _interval(case: Case, size: Size, share: Exact, sources: int) -> Duration:
    """Between arrivals of files at a source so that they fill `share` of what it gets of the bottleneck."""
    rate = Exact(case.parameters.rate.bps, sources)
    if case.parameters.access is not None:
        rate = min(rate, Exact(case.parameters.access.bps))
    return Duration(round(size.bytes * BITS_PER_BYTE * NS_PER_SECOND / (rate * share)))


def _drain(case: Case, volume: str, sources: int) -> int:
    """Nanoseconds until the volumes of all sources are through the bottleneck, beside the background."""
    parameters, size = case.parameters, parse_volume(volume).bytes
    free = 1 - BACKGROUND.get(parameters.background, Exact(0))
    shared = time_for(size * sources, int(parameters.rate.bps * free))
    alone = 0 if parameters.access is None else time_for(size, parameters.access.bps)
    return max(shared, alone) + 10 * _rtt_ns(case)


def _staggered(case: Case) -> int:
    return Duration.parse(case.size("apart"), LONGEST_DAY_NS).ns * (case.ends.pairs - 1)


def _crossing(pattern: Mapping[str, str], ranks: int) -> int:
    """Messages of an iteration that cross the bottleneck one way, when every other rank is on the other side."""
    match pattern["pattern"]:
        case "all-to-all":
            return (ranks // 2) * (ranks - ranks // 2)
        case _:
            return ranks


def _rtt_ns(case: Case) -> int:
    text = "200ms" if case.parameters.rtt == "Mix" else case.parameters.rtt
    return Duration.parse(text, 2 * Duration.LONGEST).ns


def _whole_seconds(time: Duration) -> str:
    return f"{-(-time.ns // NS_PER_SECOND)}s"


def _percent(share: Exact) -> str:
    return f"{float(share * 100):g} %"


def _flow(values: Mapping[str, str | int]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"


def _indent(text: str) -> str:
    return textwrap.indent(text, "  ")
