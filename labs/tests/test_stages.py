"""Nothing of a link's stages is forgotten in one place while it is there in another.

`python -m ewan.labs.tests.test_stages` writes `tests/golden/stages.json`: the kinds and keys of all stages as Python
has them. labs/node/src/stages_tests.rs compares it with Rust's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import orjson
import pytest

from ewan.labs.base.model import Model
from ewan.labs.base.typed import KIND, kinds
from ewan.labs.change import WORDS
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import NO_AGGREGATE, NO_HARQ, Change, ConstantDelay, Direction, DropTail, NoLoss, PacedClass, Queue
from ewan.labs.link.change import words
from ewan.labs.link.keys import DirectionKeys
from ewan.labs.link.loss import LossKeys
from ewan.labs.link.queue import QueueKeys
from ewan.labs.link.settings import _has_card
from ewan.labs.link.trace import TraceKeys
from ewan.labs.plan import Interface
from ewan.labs.spec import manual, parse

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden/stages.json"

OF_A_CARD = {"rate": "1Gbit/s", "buffer": "100pkt", "framing": "ethernet", "delay": "0ms", "queue": "drop-tail"}
"""What a network card does too."""
IMPAIRED: dict[str, dict[str, Any]] = {
    "delay": {"delay": "1ms"},
    "queue": {"queue": "codel"},
    "loss": {"loss": "1%"},
    "corrupt": {"corrupt": "1%"},
    "duplicate": {"duplicate": "1%"},
    "ecn": {"ecn": "bleach"},
    "blackhole": {"blackhole": "1400B"},
    "police": {"police": {"rate": "10Mbit/s", "burst": "32kB"}},
    "burst": {"burst": "32kB"},
    "peak": {"burst": "32kB", "peak": "100Gbit/s"},
    "aggregate": {"aggregate": {"packets": 64, "gap": "100us"}},
    "duplex": {"duplex": "half"},
    "slot": {"slot": "1ms"},
    "harq": {"harq": {"errors": "10%", "round": "8ms"}},
    "jitter": {"delay": "1ms", "jitter": "1ms"},
    "distribution": {"delay": "1ms", "jitter": "1ms", "distribution": "uniform"},
    "acks": {"acks": "filter"},
    "displace": {"displace": {"share": "1%", "packets": 3}},
    "correlation": {"delay": "1ms", "jitter": "1ms", "correlation": "90%"},
    "trace": {"trace": {"file": str(GOLDEN.parent / "stages.trace.csv")}},
    "reorder": {"delay": "1ms", "jitter": "1ms", "reorder": True},
}


def emulated(access: dict[str, Any]) -> bool:
    """Is the access link of a host that has these settings emulated?"""
    text = orjson.dumps({"topology": "dumbbell", "rtt": "100ms", "links": {"access-left1": access}}).decode()
    plan = compile(parse(text, Path("x.lab.yaml")), HostFacts((0, 1), ()))
    return "access-left1" in [link.name for link in plan.links]


@pytest.mark.parametrize("key", list(DirectionKeys.model_fields))
def test_an_access_link_with_an_impairment_is_emulated(key: str) -> None:
    assert key in OF_A_CARD or key in IMPAIRED, f"say in this test what {key} is"
    assert key not in OF_A_CARD or not emulated({key: OF_A_CARD[key]})
    assert key not in IMPAIRED or emulated(IMPAIRED[key])


def test_a_key_that_nobody_thought_of_makes_an_access_link_emulated() -> None:
    assert not _has_card("truncate", 1)


@pytest.mark.parametrize(
    "nothing",
    [{"ecn": "keep"}, {"acks": "keep"}, {"duplex": "full"}, {"harq": {"errors": "0%", "round": "8ms"}}]
    + [{key: "none"} for key in ("blackhole", "police", "burst", "peak", "displace", "aggregate", "slot", "harq")],
)
def test_a_key_that_asks_for_nothing_does_not(nothing: dict[str, Any]) -> None:
    assert not emulated(nothing)


def test_every_key_of_a_description_can_be_changed_while_a_link_runs() -> None:
    assert WORDS.keys() == DirectionKeys.model_fields.keys() - {"framing", "trace"}
    changed = {field.name for field in dataclasses.fields(Change)} - {"restart_trace"}
    assert {key for keys in WORDS.values() for key in keys} == changed


CHANGED: dict[str, Any] = {
    "rate_bps": 10**6,
    "delay": ConstantDelay(0),
    "reorder": False,
    "displace_ppb": 0,
    "displace_packets": 0,
    "displace_within_ns": 0,
    "loss": NoLoss(),
    "corrupt_ppb": 0,
    "duplicate_ppb": 0,
    "ecn_bleach": False,
    "blackhole_bytes": 0,
    "police_bps": 0,
    "police_bytes": 0,
    "burst_bytes": 0,
    "peak_bps": 0,
    "aggregate": NO_AGGREGATE,
    "half_duplex": False,
    "slot_ns": 0,
    "harq": NO_HARQ,
    "ack_filter": False,
    "queue": Queue(1, None, DropTail()),
    "restart_trace": True,
}


@pytest.mark.parametrize("key", [field.name for field in dataclasses.fields(Change)])
def test_every_change_has_words(key: str) -> None:
    """Also one that sets a stage to nothing."""
    displace = {"displace_ppb", "displace_packets", "displace_within_ns"}
    together = {"police_bps": {"police_bytes"}, **dict.fromkeys(displace, displace)}
    keys = {key, *together.get(key, {key})}
    assert words(Change(**{each: CHANGED[each] for each in keys})), f"labs/link/change.py does not say {key}"


def test_every_group_of_keys_of_a_stage_is_in_the_manual() -> None:
    shown = [model for _, model, _ in manual._SECTIONS]
    assert TraceKeys in shown
    for stage in (LossKeys, QueueKeys):
        for field in stage.model_fields.values():
            for part in get_args(field.annotation):
                if isinstance(part, type) and issubclass(part, Model) and part.model_fields:
                    assert part in shown, f"write {part.__name__} into labs/spec/manual.py"


def test_every_stage_of_a_direction_can_be_changed() -> None:
    of_direction, of_change = ({field.name for field in dataclasses.fields(kind)} for kind in (Direction, Change))
    assert of_direction - of_change == {"framing", "seed", "store_packets", "store_bytes", "trace"}
    assert of_change - of_direction == {"restart_trace"}


def test_rust_has_the_same_kinds_and_keys_of_stages() -> None:
    golden = orjson.loads(GOLDEN.read_bytes())
    ours = listed()
    for stage in golden.keys() | ours.keys():
        assert golden.get(stage) == ours.get(stage), f"{stage}: Rust's (tests/golden/stages.json) left, Python's right"


def listed() -> dict[str, Any]:
    """By the name of a stage its keys; or its kinds, each with its keys."""
    found: dict[str, Any] = {"change": _keys(Change), "direction": _keys(Direction)}
    of_sources = [("egress", get_type_hints(Interface)["egress"]), ("pacer", get_type_hints(PacedClass)["pacer"])]
    for name, hint in [*_nested(Direction), *of_sources]:
        found[name] = (
            _keys(hint)
            if dataclasses.is_dataclass(hint)
            else {kind: sorted(set(_keys(part)) - {KIND}) for part in get_args(hint) for kind in kinds(part)}
        )
    return found


def _nested(kind: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a dataclass, and of those in it, that are dataclasses or unions of them."""
    for name, hint in get_type_hints(kind).items():
        if dataclasses.is_dataclass(hint):
            yield name, hint
            yield from _nested(hint)
        elif any(dataclasses.is_dataclass(part) for part in get_args(hint)):
            yield name, hint


def _keys(kind: Any) -> list[str]:
    return sorted(field.name for field in dataclasses.fields(kind))


if __name__ == "__main__":
    GOLDEN.write_bytes(orjson.dumps(listed(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
