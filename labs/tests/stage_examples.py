"""Links with one setting each, as its page shows it: what `KEYS` says or else the first example of each key, and each
queue discipline by its word.

`tests/golden/stages.json` has what they become in the plan, so that tests of Rust run each of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ewan.labs.base import codec
from ewan.labs.change import compile_change, wanted
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link.change import LIVE
from ewan.labs.link.disciplines import KINDS
from ewan.labs.link.keys import DirectionKeys
from ewan.labs.plan import Plan
from ewan.labs.spec import parse

SPREAD = {"delay": "50ms", "jitter": "1ms", "distribution": "normal"}
TRACE = str(Path(__file__).resolve().parents[2] / "tests/golden/stages.trace.csv")
KEYS: dict[str, tuple[Any, Mapping[str, Any]]] = {
    "rate": ("100Mbit/s", {}),
    "buffer": ("5GB", {}),
    "queue": ("fq-codel", {}),
    "framing": ("ethernet", {"buffer": "100pkt"}),
    "loss": ({"every": 100}, {}),
    "corrupt": ("1%", {}),
    "duplicate": ("1%", {}),
    "delay": ("60ms", {}),
    "jitter": ("1ms", {}),
    "distribution": ("uniform", SPREAD),
    "correlation": ("90%", SPREAD),
    "reorder": (True, SPREAD),
    "displace": ({"share": "1%", "packets": 3}, {}),
    "ecn": ("bleach", {}),
    "blackhole": ("1400B", {}),
    "police": ({"rate": "10Mbit/s", "burst": "32kB"}, {}),
    "burst": ("32kB", {}),
    "peak": ("100Gbit/s", {"burst": "32kB"}),
    "aggregate": ({"packets": 64, "gap": "100us"}, {}),
    "duplex": ("half", {}),
    "slot": ("1ms", {}),
    "harq": ({"errors": "10%", "round": "8ms"}, {}),
    "acks": ("filter", {}),
    "trace": ({"file": TRACE}, {}),
}


def example_of(key: str) -> Any:
    """What the page shows first for a key."""
    shape = DirectionKeys.model_json_schema()["properties"][key]
    found = [example for part in (shape, *shape.get("anyOf", [])) for example in part.get("examples", [])]
    assert found, f"write examples=[…] for {key} in labs/link/keys.py"
    return found[0]


ASKED: dict[str, tuple[Any, Mapping[str, Any]]] = {
    key: KEYS[key] if key in KEYS else (example_of(key), {}) for key in DirectionKeys.model_fields
}
"""What asks for a key, and what the same link says without it."""


def asking(keys: Mapping[str, Any]) -> dict[str, Any]:
    """These keys, with a delay unless a trace says it."""
    return {**({} if "trace" in keys else {"delay": "50ms"}), **keys}


def lab(**wan: Any) -> Plan:
    """A dumbbell whose wide-area link has these settings."""
    text = json.dumps({"topology": "dumbbell", "wan": wan, "seed": 1})
    return compile(parse(text, Path("x.lab.yaml")), HostFacts((0, 1), ()))


def changes() -> Mapping[str, Any]:
    """By key what a running link is told that becomes so."""
    told = {}
    for key in LIVE:
        value, beside = ASKED[key]
        made = lab(**asking({"buffer": "3GB" if key == "buffer" else "100MB", **beside}))
        asked = wanted({key: value if isinstance(value, str) else json.dumps(value)})
        told[key] = codec.data_of(compile_change(made, made.links[0], "forward", asked))
    return told


def disciplines() -> Mapping[str, Any]:
    """By word what is in the plan for it."""
    asked = {word: word if kind.example is None else {word: kind.example} for word, kind in KINDS.items()}
    return {
        word: codec.data_of(lab(delay="10ms", queue=queue).links[0].forward.queue.discipline)
        for word, queue in asked.items()
    }
