"""Changes of the links of a live lab, as the events of a scenario. Pure.

In: the text of the description that the lab was made of, its plan, the changes that were made
(`ewan.labs.runtime.state_documents.SettingsChange`). Out: the text of a scenario that makes them again, at times that
count from the first change, in a lab of the same description."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from ewan.generator.scenario.writing import to_yaml
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.source import read_yaml
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND, Duration
from ewan.labs.plan import Plan
from ewan.labs.runtime.state_documents import SettingsChange
from ewan.labs.spec import DescriptionError

BEFORE_NS = NS_PER_SECOND
"""From T0 to the first change: whatever is sent has begun."""
AFTER_NS = 5 * NS_PER_SECOND
"""From the last change to the end."""
_HEAD = """# What was done in the lab {lab}: times count from the first change, which is {before} after the start.
# What was sent meanwhile is not recorded: `steps:` has one transfer in its place.
"""


def recorded(description: str, plan: Plan, done: Sequence[SettingsChange]) -> str:
    """DescriptionError where nothing was done."""
    if not done:
        raise DescriptionError(f"nothing was done in {plan.lab} yet: ewan lab set changes a link")
    first_ns = min(each.due_unix_ns for each in done)
    times_ns = [BEFORE_NS + _rounded(each.due_unix_ns - first_ns) for each in done]
    document = {
        "steps": [_step(plan, max(times_ns) + AFTER_NS)],
        "events": [_event(each, at_ns) for each, at_ns in zip(done, times_ns, strict=True)],
    }
    head = _HEAD.format(lab=plan.lab, before=Duration(BEFORE_NS))
    return f"{head}name: {_name(plan.lab)}\nlab:\n{_within(description)}{to_yaml(document)}"


def _rounded(ns: int) -> int:
    """A time rounded to a millisecond, as people write it."""
    return round(ns / NS_PER_MS) * NS_PER_MS


def _name(lab: str) -> str:
    return f"{re.sub('[^A-Za-z0-9]+', '-', lab).strip('-')[:40] or 'lab'}-again"


def _within(description: str) -> str:
    """A description's text below a key, comments included, without a name of its own: a lab of that name may be up."""
    lines = [line for line in description.splitlines() if not re.match(r"name\s*:", line) and line.strip() != "---"]
    return textwrap.indent("\n".join(lines).rstrip() + "\n", "  ")


def _step(plan: Plan, lasts_ns: int) -> dict[str, JsonValue]:
    if plan.pairs:
        pair = plan.pairs[0]
        return {"name": "load", "from": pair.source, "to": pair.sink, "for": str(Duration(lasts_ns)), "bulk": {}}
    host = next(node.name for node in plan.nodes if node.kind != "emulator")
    return {"name": "wait", "on": host, "run": f"sleep {lasts_ns / NS_PER_SECOND:g}"}


def _event(each: SettingsChange, at_ns: int) -> dict[str, JsonValue]:
    direction = {} if each.direction == "both" else {"direction": each.direction}
    return {"at": str(Duration(at_ns)), "link": each.link, **direction, **_settings(each)}


def _settings(each: SettingsChange) -> dict[str, JsonValue]:
    if each.words.keys() & {"down", "up"}:
        return dict.fromkeys(each.words, True)
    return {key: read_yaml(text, key)[0] if text.startswith("{") else text for key, text in each.words.items()}
