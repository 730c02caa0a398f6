"""The words of a box: the driver's and the simulated box's are the same table, and another one does as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ewan.extras.devices import wire
from ewan.extras.devices.box import COARSE, SimulatedBox
from ewan.extras.devices.gtrcnet import TABLE
from ewan.labs.hardware import catalogue


class Recorder:
    """A datapath that carries nothing."""

    def __init__(self) -> None:
        self.applied: dict[str, Mapping[str, int]] = {}
        self.asked = 0

    def apply(self, heading: str, values: Mapping[str, int]) -> None:
        self.applied[heading] = dict(values)

    def complete(self) -> int:
        return 10

    def sent(self, heading: str, since: int, rows: int) -> tuple[int, Sequence[int]]:
        """The bytes of milliseconds 7 to 9, and of all that are asked for later."""
        self.asked = rows
        return max(since, 7), [since, 2, 3][:rows]


def box(text: str = TABLE.read_text()) -> tuple[SimulatedBox, Recorder]:
    datapath = Recorder()
    made = SimulatedBox(
        wire.read(text, "table"), "gtrcnet-1", catalogue.models("gtrcnet")["gtrcnet-1"].abilities, datapath
    )
    made.defaults()
    return made, datapath


def test_a_box_does_what_it_is_told_in_its_own_words() -> None:
    made, datapath = box()
    assert made.answer("ID") == "GtrcNET-1 simulated"
    assert made.answer("RATE 0 100") == "OK"
    assert made.answer("DELAY 0 6250000") == "OK"
    assert made.answer("LOSS 1 1000") == "OK"
    assert datapath.applied["forward"] == {"rate_bps": 100_000_000, "delay_ns": 50_000_000, "loss_ppb": 0}
    assert datapath.applied["backward"] == {"rate_bps": 10**9, "delay_ns": 0, "loss_ppb": 1_000_000}
    assert made.answer("DELAY? 0") == "DELAY 0 6250000"
    assert made.answer("MON 1 9 2") == "MON 1 9 19 2", "milliseconds are counted from when it was switched on"
    assert datapath.asked == 2, "no more than the command says is fetched"
    assert made.answer("RESET") == "OK"
    assert made.answer("DELAY? 0") == "DELAY 0 0"


@pytest.mark.parametrize("line", ["DELAY 0 16750001", "RATE 0 0", "DELAY 2 1", "DELAY 0", "DELAY 0 -1", "help", ""])
def test_what_a_box_does_not_know_it_refuses(line: str) -> None:
    made, datapath = box()
    before = dict(datapath.applied)
    assert str(made.answer(line)).startswith("ERR ")
    assert datapath.applied == before


def test_a_box_with_a_fault() -> None:
    made, _ = box()
    made.faults.rounding = True
    assert made.answer("DELAY 0 6250300") == "OK"
    assert made.answer("DELAY? 0") == f"DELAY 0 {6250300 // COARSE * COARSE}"
    made.faults.silent = True
    assert made.answer("ID") is None


def test_another_table_has_other_words() -> None:
    text = TABLE.read_text().replace('"DELAY {channel} {value}"', '"set ch{channel} latency={value}"')
    text = text.replace('"DELAY? {channel}"', '"show ch{channel}"').replace("delay_ns = 8 ", "delay_ns = 1000 ")
    made, datapath = box(text)
    assert made.answer("set ch0 latency=50") == "OK"
    assert datapath.applied["forward"]["delay_ns"] == 50_000
    assert made.answer("show ch0") == "set ch0 latency=50"


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("[line]", "[lines]", "table: lacks line"),
        ("baud = 115200", 'baud = "fast"', "table: 'fast' is no whole number from 1 on"),
        ('"RATE {channel} {value}"\ndelay', '"RATE {value}"\ndelay', 'table: "RATE {value}" has no place channel'),
        ('"RESET"', '"RESET {all}"', 'table: "RESET {all}" has an unknown place all'),
        ("[get]", "[get", "table: is no TOML"),
    ],
)
def test_a_table_that_is_wrong_is_refused_in_one_line(right: str, wrong: str, said: str) -> None:
    text = TABLE.read_text()
    assert right in text
    with pytest.raises(ValueError, match="table") as error:
        wire.read(text.replace(right, wrong, 1), "table")
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_the_steps_of_the_models_are_whole_units_of_the_table() -> None:
    table = wire.read(TABLE.read_text(), "table")
    models = catalogue.models("gtrcnet")
    assert set(models) == set(table.models)
    for each in models.values():
        known = each.abilities
        assert known.loss.ppb is not None
        steps = {"rate_bps": known.rate_bps, "delay_ns": known.delay.delay_ns, "loss_ppb": known.loss.ppb}
        for key, values in steps.items():
            assert all(amount % table.units[key] == 0 for amount in (values.least, values.step, values.most))
        assert each.sources, "nobody knows where the figures are from"
