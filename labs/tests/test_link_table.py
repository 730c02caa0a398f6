"""Each key of a link is in the description, the plan, `ewan lab set`, tables, refusals and devices as its row says.

`ASKED` in stage_examples.py has for each key what asks for it, and what the same link says without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ewan.labs.base import codec
from ewan.labs.base.codec import replace
from ewan.labs.base.units import Rate
from ewan.labs.change import compile_change, wanted
from ewan.labs.commands.set import HELP
from ewan.labs.compile import HostFacts, compile
from ewan.labs.hardware.abilities import Abilities, Delays, Losses, Queues, Range, refusal
from ewan.labs.hardware.settings import NAMES, settings_of
from ewan.labs.hardware.settings import words as device_words
from ewan.labs.link import Change, Direction, Framing, plain_direction
from ewan.labs.link.change import LIVE, words
from ewan.labs.link.direction import TABLE, column_words, is_plain, obstacle
from ewan.labs.link.keys import ROWS, DirectionKeys
from ewan.labs.link.row import BIT_RATE, BYTES, NANOSECONDS, PARTS_PER_BILLION
from ewan.labs.link.settings import settings
from ewan.labs.plan import Plan
from ewan.labs.render.table import stages
from ewan.labs.spec import DescriptionError, json_schema, markdown, parse
from ewan.labs.tests.stage_examples import ASKED, asking

OF_A_CARD = {"rate": "1Gbit/s", "buffer": "100pkt", "framing": "ethernet", "delay": "0ms", "queue": "drop-tail"}
"""What a network card does too; it does nothing of the other keys."""
OF_NETEM = {"rate", "framing", "corrupt", "duplicate", "delay"}
"""What netem does too, as `ASKED` has it."""
every_key = pytest.mark.parametrize("key", list(DirectionKeys.model_fields))


def lab(**groups: Any) -> Plan:
    text = json.dumps({"topology": "dumbbell", "wan": {"delay": "50ms"}, "seed": 1, **groups})
    return compile(parse(text, Path("x.lab.yaml")), HostFacts((0, 1), ()))


def both(key: str) -> tuple[Direction, Direction]:
    """A direction without the key, and with it."""
    value, beside = ASKED[key]
    return tuple(lab(wan=wan).links[0].forward for wan in (asking(beside), asking({**beside, key: value})))  # type: ignore[return-value]


def fields_of(key: str) -> set[str]:
    return set(ROWS[key].plan)


@every_key
def test_a_key_has_a_row(key: str) -> None:
    assert key in ROWS, f"write Annotated[…, Row(…)] for {key} in labs/link/keys.py"
    assert fields_of(key) <= set(Direction.__struct_fields__)


@every_key
def test_a_key_that_is_a_number_names_its_unit_as_its_field_does(key: str) -> None:
    row = ROWS[key]
    suffixes = tuple(unit.suffix for unit in (BIT_RATE, BYTES, NANOSECONDS, PARTS_PER_BILLION))
    if row.unit is not None:
        assert len(row.plan) == 1 and row.plan[0].endswith(row.unit.suffix)
    else:
        assert len(row.plan) > 1 or not row.plan[0].endswith(suffixes), f"write unit=… into the row of {key}"


def test_every_field_of_the_plan_has_a_key() -> None:
    of_the_datapath = {"seed", "store_packets", "store_bytes"}
    decided = {name for row in ROWS.values() for name in row.plan}
    assert decided == set(Direction.__struct_fields__) - of_the_datapath


@every_key
def test_a_key_decides_its_fields_of_the_plan(key: str) -> None:
    without, having = both(key)
    differ = {name for name in Direction.__struct_fields__ if getattr(without, name) != getattr(having, name)}
    assert differ & fields_of(key), "the key decides nothing"
    follow = {"queue"} if key in ("rate", "delay", "trace") else set()  # a buffer in BDP
    traced = {"rate_bps", "delay", "loss", "queue"} if key == "trace" else set()
    assert differ <= fields_of(key) | follow | traced | {"store_packets", "store_bytes"}


@every_key
def test_tables_say_a_key(key: str) -> None:
    without, having = both(key)
    assert stages(without, "user") != stages(having, "user")


@every_key
def test_an_access_link_with_a_key_is_emulated_where_no_card_has_it(key: str) -> None:
    value, beside = ASKED[key]

    def emulated(access: Mapping[str, Any]) -> bool:
        return "access-left1" in [link.name for link in lab(links={"access-left1": access}).links]

    assert key not in OF_A_CARD or not emulated({key: OF_A_CARD[key]})
    assert key in ("rate", "buffer", "framing") or emulated(asking({**beside, key: value}))


@pytest.mark.parametrize("key", [key for key, row in ROWS.items() if row.nothing])
def test_a_key_that_asks_for_nothing_is_that_of_a_plain_link(key: str) -> None:
    found = lab(links={"access-left1": {key: ROWS[key].nothing}, "core": {key: ROWS[key].nothing}}).links
    assert [link.name for link in found] == ["core"] and is_plain(ROWS[key], found[0].forward)


def test_harq_without_errors_asks_for_nothing() -> None:
    assert len(lab(links={"access-left1": {"harq": {"errors": "0%", "round": "8ms"}}}).links) == 1


@every_key
def test_a_running_link_takes_what_a_description_says(key: str) -> None:
    value, beside = ASKED[key]
    text = {key: value if isinstance(value, str) else json.dumps(value)}
    if key not in LIVE:
        assert key in ("framing", "trace")
        with pytest.raises(DescriptionError, match="a link has rate, delay"):
            wanted(text)
        return
    made = lab(wan=asking({"buffer": "3GB" if key == "buffer" else "100MB", **beside}))
    change = compile_change(made, made.links[0], "forward", wanted(text))
    assert set(codec.data_of(change)) == fields_of(key)
    after = change.applied(made.links[0].forward)
    assert ROWS[key].values(after) != ROWS[key].values(made.links[0].forward)
    saying = {other for other, row in LIVE.items() if row.words is not None and fields_of(other) & fields_of(key)}
    assert {word.split("=")[0] for word in words(change).split() if "=" in word} == saying


@every_key
def test_help_page_and_schema_have_a_key(key: str) -> None:
    keys = HELP[HELP.index("KEY is") : HELP.index(";", HELP.index("KEY is"))]
    assert (re.search(rf"\b{key}\b", keys) is not None) == (key in LIVE)
    assert f"| `{key}` |" in markdown()
    of_schema = json_schema()["$defs"]["DirectionKeys"]["properties"][key]  # Studio's forms go by it
    assert of_schema.get("live", True) == (key in LIVE)


def test_a_change_has_the_fields_of_the_keys_that_change() -> None:
    named = set(Change.__struct_fields__) - {"restart_trace"}
    assert named == {name for row in LIVE.values() for name in row.plan}
    assert words(Change(restart_trace=True)) == "trace=restarted"


@pytest.mark.parametrize("key", [key for key, row in LIVE.items() if row.words is not None])
def test_a_change_back_to_a_plain_link_has_words(key: str) -> None:
    plain = lab().links[0].forward
    said = words(Change(**{name: getattr(plain, name) for name in ROWS[key].plan}))
    assert f"{key}=" in said and not said.endswith("=")


@every_key
def test_netem_is_asked_for_no_key_that_it_lacks(key: str) -> None:
    _, having = both(key)
    if key == "queue":
        having = lab(wan={"queue": "drr"}).links[0].forward  # the kernel has that of the examples
    found = obstacle(having, settings((), Rate.parse("1Gbit/s"), []))
    if key in OF_NETEM:
        assert found is None
    else:
        saying = {"reorder": "delay", "peak": "burst"}.get(key, key)
        assert found is not None and fields_of(found[0]) == fields_of(saying)
        assert "write " in found[1] or key == "trace"


LEAST = Abilities(
    framing=Framing(38, 84),
    rate_bps=Range(10**9, 10**9, 1),
    delay=Delays(("constant",), Range(50_000_000, 50_000_000, 1), None),
    loss=Losses(("none",), None),
    corrupt_ppb=None,
    duplicate_ppb=None,
    reorder=False,
    queue=Queues(("drop_tail",), Range(12_500_000, 12_500_000, 1), None),
    apart=True,
    series=None,
    counters=False,
)
"""A device that has a dumbbell's link as it is, and nothing else."""


@every_key
def test_a_device_is_refused_each_key_that_it_lacks(key: str) -> None:
    """A device would ignore what nobody compares."""
    row, (_, having) = ROWS[key], both(key)
    only = replace(lab().links[0].forward, **{name: getattr(having, name) for name in row.plan})
    assert refusal(lab().links[0].forward, LEAST) is None
    found = refusal(only, LEAST)
    assert found is not None and fields_of(found[0]) == fields_of(key)
    assert (found[1] == "no external emulator is asked for it") != row.device


def test_drivers_are_asked_for_the_fields_of_their_keys() -> None:
    asked = {name for row in ROWS.values() if row.device for name in row.plan}
    assert asked == {*NAMES, "framing"}


@pytest.mark.parametrize("key", [key for key, row in LIVE.items() if row.device])
def test_what_a_device_has_instead_of_a_key_is_said(key: str) -> None:
    without, having = (device_words(settings_of(each, queue=True)) for each in both(key))
    assert without != having


def test_the_table_is_in_the_order_of_the_plan() -> None:
    assert TABLE.keys() == ROWS.keys()
    assert list(LIVE)[:7] == ["rate", "delay", "jitter", "distribution", "correlation", "reorder", "displace"]
    assert not refusal(plain_direction(Framing(38, 84), 10**9, lab().links[0].forward.queue, 50_000_000), LEAST)


def test_tables_say_the_delay_of_a_link_without_one() -> None:
    (link,) = lab(links={"core": {"delay": "0ms", "framing": "ip"}}).links
    assert column_words(link.forward)["delay"] == "0ms" and column_words(link.forward)["framing"] == "ip"
