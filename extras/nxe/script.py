"""A step's script: the options of launch_client.sh as the keys of a scenario's step, and back. Pure.

In: the text of `<scriptparam>`, or a step. Out: keys of docs/reference/scenario.md, or that text. NXE's scripts wrap
iperf and D-ITG; the papers show only `--protocol`, the other options are ours. Laws are one word:
`pareto:100kB:1.3:most=2MB`."""

from __future__ import annotations

import re
from typing import Any

from ewan.generator.scenario.data import ScenarioMapping, ScenarioValue
from ewan.generator.scenario.fields import ScenarioStep, Socket
from ewan.generator.scenario.flows import FOREIGN
from ewan.generator.scenario.kinds import Kind
from ewan.generator.scenario.laws import Law
from ewan.labs.base.source import scalar
from ewan.labs.base.wording import nearest

SERVER, CLIENT = "launch_server.sh", "launch_client.sh"
IPERF_S = "10s"
"""The time for which iperf sends by default."""

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")

SOCKET = {
    "--protocol": "congestion",
    "--streams": "streams",
    "--sndbuf": "send_buffer",
    "--rcvbuf": "receive_buffer",
    "--window": "window",
    "--mss": "mss",
    "--dscp": "dscp",
    "--ecn": "ecn",
    "--nodelay": "nodelay",
    "--generator": "generator",
}
"""Option → key of a step; these are also keys of `defaults`."""
WORK: dict[Kind, dict[str, str]] = {
    "messages": {"--messages": "pattern", "--iterations": "iterations", "--size": "size", "--compute": "compute"},
    "requests": {
        "--response": "response",
        "--request": "request",
        "--think": "think",
        "--count": "count",
        "--reconnect": "new_connection",
    },
    "udp": {
        "--packet": "size",
        "--rate": "rate",
        "--interval": "interval",
        "--on": "on",
        "--off": "off",
        "--count": "count",
    },
    "arrivals": {"--size": "size", "--interval": "interval", "--count": "count"},
    "bidirectional": {"--both": "", "--volume": "volume"},
    "bulk": {"--volume": "volume"},
}
"""Kind of work → option → key below it; the first option makes it this kind, in this order. "": it says no more."""
FLAGS = ("--ecn", "--nodelay", "--reconnect", "--both")
TIMES = ("--duration", "--interval", "--on", "--off", "--think", "--compute")
"""Options whose bare numbers are seconds."""
LAWS = {
    "uniform": ("low", "high"),
    "exponential": ("mean",),
    "pareto": ("mean", "shape"),
    "weibull": ("mean", "shape"),
    "normal": ("mean", "deviation"),
    "gamma": ("mean", "shape"),
}


def client(text: str) -> ScenarioMapping:
    """Keys of a step: its kind with its work, its socket, its duration. ValueError that names the remedy."""
    given = _options(text.split())
    kind: Kind = next((kind for kind, options in WORK.items() if next(iter(options)) in given), "bulk")
    work: dict[str, ScenarioValue] = {}
    step: dict[str, ScenarioValue] = {}
    for option, value in given.items():
        key = WORK[kind].get(option)
        if option == "--duration":
            step["for"] = value
        elif option in SOCKET:
            step[SOCKET[option]] = value
        elif key is None:
            known = [*WORK[kind], "--duration", *SOCKET]
            raise ValueError(f"{option} has no use for {kind}, {nearest(option, known)}")
        elif key:
            work[key] = value
    if kind in ("bulk", "bidirectional") and not {"--volume", "--duration"} & set(given):
        step["for"] = IPERF_S
    return {**step, kind: work or None}


def _options(words: list[str]) -> dict[str, ScenarioValue]:
    """Each option with its value."""
    known = dict.fromkeys([*SOCKET, "--duration", *(option for options in WORK.values() for option in options)])
    result: dict[str, ScenarioValue] = {}
    place = 0
    while place < len(words):
        option = words[place]
        if option not in known:
            raise ValueError(f'{CLIENT} has no "{option}", {nearest(option, known)}')
        if option in result:
            raise ValueError(f"{option} stands twice: write it once")
        if option in FLAGS:
            result[option] = True
            place += 1
            continue
        if place + 1 == len(words) or words[place + 1].startswith("--"):
            raise ValueError(f'{option} has no value: write one after it, like "--volume 30Gbit"')
        result[option] = law(words[place + 1], "s" if option in TIMES else "")
        place += 2
    return result


def law(text: str, unit: str) -> ScenarioValue:
    """A value as YAML has it; `pareto:100kB:1.3` is a law. Bare numbers are in `unit`, if there is one."""
    kind, colon, rest = text.partition(":")
    if not colon:
        return _value(text, unit)
    if kind not in LAWS:
        raise ValueError(f'there is no law "{kind}", {nearest(kind, LAWS)}')
    parts = rest.split(":")
    most = [part.removeprefix("most=") for part in parts if part.startswith("most=")]
    parts = [part for part in parts if not part.startswith("most=")]
    if len(parts) != len(LAWS[kind]) or len(most) > 1:
        raise ValueError(
            f'write {kind} as "{":".join([kind, *LAWS[kind]])}", and ":most=" with its largest value if any'
        )
    values = {key: part if key == "shape" else _value(part, unit) for key, part in zip(LAWS[kind], parts, strict=True)}
    return {kind: values | ({"most": _value(most[0], unit)} if most else {})}


def _value(text: str, unit: str) -> ScenarioValue:
    if unit and _NUMBER.fullmatch(text):
        return text + unit
    value: ScenarioValue = scalar(text)
    return value


def words(step: ScenarioStep, defaults: Socket) -> str:
    """The options of a step that sends; `run` has none."""
    kind = step.kind
    said = {option: _said(step, defaults, key) for option, key in SOCKET.items()}
    if kind != "udp" and said["--protocol"] is None:
        said["--protocol"] = "cubic"
    said["--duration"] = step.for_
    for option, key in WORK[kind].items():
        said[option] = getattr(step.work, key) if key else True
    parts: list[str] = []
    for option, value in said.items():
        if value is None or value is False:
            continue
        parts += [option] if option in FLAGS else [option, shown(value)]
    return " ".join(parts)


def _said(step: ScenarioStep, defaults: Socket, key: str) -> Any:
    """A step's own word, or that of `defaults` where it concerns the kind."""
    own = getattr(step, key)
    return own if own is not None else None if key in FOREIGN[step.kind] else getattr(defaults, key)


def shown(value: Any) -> str:
    """A value or law in one word."""
    if not isinstance(value, Law):
        return str(value)
    given = value.choice
    if value.kind == "constant":
        return str(given)
    parts = [value.kind, *(str(getattr(given, key)) for key in LAWS[value.kind])]
    return ":".join([*parts, *([f"most={given.most}"] if given.most is not None else [])])
