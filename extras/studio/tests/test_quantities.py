"""The page writes quantities as Python does: both are held against one file, which has the page's table of units."""

from __future__ import annotations

import json

from ewan.labs.base.product import ROOT
from ewan.labs.base.units import Duration, scale
from ewan.labs.base.units.shown import about

KNOWN = json.loads((ROOT / "extras/studio/page/src/common/quantities.json").read_text())
DIGITS = 3


def test_the_table_of_units_is_that_of_python() -> None:
    table = {kind: list(units.items()) for kind, units in KNOWN["units"].items()}
    assert table == {kind: list(scale(kind).items()) for kind in ("rate", "size", "time")}


def test_measured_amounts_and_durations_are_written_as_in_the_page() -> None:
    for kind, texts in KNOWN["about"].items():
        assert texts == {amount: about(int(amount), kind, DIGITS) for amount in texts}
    assert KNOWN["exact"] == {ns: str(Duration(int(ns))) for ns in KNOWN["exact"]}
