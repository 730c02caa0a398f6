"""Options of qdiscs, classes and policers that come in pairs of a word and its value. See tc/q_tbf.c of iproute2.

Comes in: words. Goes out: values by their words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ewan.extras.importers.findings import Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.labs.base.units import Size
from ewan.labs.base.units.tools import tc_size

ALIKE = {"lat": "latency", "buffer": "burst", "maxburst": "burst", "minburst": "mtu"}
OF_BUCKETS = ("rate", "burst", "latency", "limit", "peakrate", "mtu", "mpu", "overhead", "linklayer")
"""Options of tbf and policers; tc takes each once."""


def bucket(text: str) -> Size:
    """`6000/16` has the size of a cell behind it, which old kernels needed."""
    return tc_size(text.split("/")[0])


def pairs(
    words: Sequence[str], flags: Sequence[str], command: ScriptCommand, findings: Findings, *,
    once: Sequence[str] = (), alike: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:  # fmt: skip
    """`key value` pairs and flags, of which the last one counts; ImportingError where a value is missing, or for a key
    that tc takes `once`. `alike`: other names of keys."""
    found: dict[str, str] = {}
    left = list(words)
    while left:
        key = alike.get(left[0], left[0])
        left.pop(0)
        if key in found and key in once:
            raise findings.error(command.line, command.text, f"{key} is there twice, so tc refuses it: leave one out")
        if key in flags:
            found[key] = ""
        elif not left:
            raise findings.error(command.line, command.text, f"{key} has no value: write it")
        else:
            found[key] = left.pop(0)
    return found


def unknown(given: dict[str, str], known: Sequence[str], command: ScriptCommand, findings: Findings) -> None:
    """ImportingError for a key that is not known."""
    for key in given:
        if key not in known:
            raise findings.error(
                command.line, key, f"is no option that can be read here: write one of {', '.join(known)}"
            )
