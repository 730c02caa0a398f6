"""The variables of the state of congestion controls, by which a scenario may wait for a state. Pure but for a table.

In: the table of what kernels tell themselves (TCP_CC_INFO), which `ewan-node` has too, and layouts of modules. Out: for
a control its variables, each with the words that its values have, and what is wrong with a comparison.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct, field
from ewan.labs.base.product import ROOT
from ewan.labs.base.wording import nearest
from ewan.labs.record.traffic import StateComparison, StateField, TrafficRequest

_TABLE = ROOT / "emulator/traffic/src/congestion_info.json"

Variables = Mapping[str, Sequence[str]]
"""Name → the words of its values; none: it is a number."""


class _ControlInfo(Struct):
    """A structure of TCP_CC_INFO; emulator/traffic/src/congestion.rs."""

    structure: str
    controls: tuple[str, ...]
    bytes: int
    columns: tuple[str, ...]
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)


@functools.cache
def _table() -> tuple[_ControlInfo, ...]:
    return codec.decode(tuple[_ControlInfo, ...], _TABLE.read_bytes(), _TABLE.name)


def told(control: str) -> Variables:
    """The variables that a kernel itself tells of a control; empty: it tells nothing."""
    found = next((each for each in _table() if control in each.controls), None)
    return {} if found is None else {name: found.words.get(name, ()) for name in found.columns}


def controls() -> list[str]:
    """The controls of which a kernel tells something."""
    return [name for each in _table() for name in each.controls]


def refusal(control: str, known: Variables, asked: StateComparison) -> str | None:
    """Why no state of the control can be compared so; None where it can."""
    if not known:
        return f"no kernel tells the state of {control}: write a step with one of {', '.join(controls())}"
    if asked.variable not in known:
        return f"the state of {control} has no {asked.variable}, {nearest(asked.variable, known)}"
    words = known[asked.variable]
    if asked.is_word and not words:
        return f"{asked.variable} of {control} is a number: write one, like 2 or \">= 2\""  # fmt: skip
    if words and not (asked.is_word and asked.value in words):
        return f"{asked.variable} of {control} is a word, {nearest(asked.value, words)}"
    return None


def check(request: TrafficRequest, layouts: Mapping[str, Sequence[StateField]]) -> str | None:
    """Why a condition of the request cannot hold, of a control that has a layout; None where all can."""
    of = {flow.step: flow.socket.congestion for flow in request.flows}
    for condition in request.conditions:
        control = of.get(condition.of)
        if control is None or control not in layouts:
            continue
        known: Variables = {**told(control), **{each.name: tuple(each.values.values()) for each in layouts[control]}}
        for asked in condition.state:
            if why := refusal(control, known, asked):
                return why
    return None
