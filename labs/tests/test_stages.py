"""Nothing of a link's stages is forgotten in one place while it is there in another."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import orjson
import pytest

from labs.change import WORDS
from labs.compile import HostFacts, compile
from labs.compile.settings import _has_card
from labs.spec import fields, parse
from labs.stages import Change, Direction

OF_A_CARD = {"rate": "1Gbit/s", "buffer": "100pkt", "framing": "ethernet", "delay": "0ms", "queue": "drop-tail"}
"""What a network card does too."""
IMPAIRED: dict[str, dict[str, Any]] = {
    "delay": {"delay": "1ms"},
    "queue": {"queue": "codel"},
    "loss": {"loss": "1%"},
    "corrupt": {"corrupt": "1%"},
    "duplicate": {"duplicate": "1%"},
    "jitter": {"delay": "1ms", "jitter": "1ms"},
    "distribution": {"delay": "1ms", "jitter": "1ms", "distribution": "uniform"},
    "reorder": {"delay": "1ms", "jitter": "1ms", "reorder": True},
}


def emulated(access: dict[str, Any]) -> bool:
    """Is the access link of a host that has these settings emulated?"""
    text = orjson.dumps({"topology": "dumbbell", "rtt": "100ms", "links": {"access-left1": access}}).decode()
    plan = compile(parse(text, Path("x.lab.yaml")), HostFacts((0, 1), ()))
    return "access-left1" in [link.name for link in plan.links]


@pytest.mark.parametrize("key", list(fields.Direction.model_fields))
def test_an_access_link_with_an_impairment_is_emulated(key: str) -> None:
    assert key in OF_A_CARD or key in IMPAIRED, f"say in this test what {key} is"
    assert key not in OF_A_CARD or not emulated({key: OF_A_CARD[key]})
    assert key not in IMPAIRED or emulated(IMPAIRED[key])


def test_a_key_that_nobody_thought_of_makes_an_access_link_emulated() -> None:
    assert not _has_card("truncate", 1)


def test_every_key_of_a_description_can_be_changed_while_a_link_runs() -> None:
    assert WORDS.keys() == fields.Direction.model_fields.keys() - {"framing"}
    assert {key for keys in WORDS.values() for key in keys} == {field.name for field in dataclasses.fields(Change)}


def test_every_stage_of_a_direction_can_be_changed() -> None:
    of_direction, of_change = ({field.name for field in dataclasses.fields(kind)} for kind in (Direction, Change))
    assert of_direction - of_change == {"framing", "seed", "store_packets", "store_bytes"}
    assert of_change <= of_direction
