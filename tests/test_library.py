"""The library shows what its cards say: scenarios at a small size in the virtual clock, with a physical statement each;
and each file says what it is for.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.generator import scenario
from ewan.generator.scenario import gallery
from ewan.labs.base.product import LIBRARY
from tests.conftest import Ewan
from tests.experiments import only

Value = Callable[[str, str], float]
"""A metric where the parameters that vary have these values, separated by a space."""


def test_the_librarys_table_is_up_to_date() -> None:
    assert (LIBRARY / "README.md").read_text() == gallery.index(LIBRARY), "ewan docs writes it"


def test_each_file_says_what_it_shows() -> None:
    rows = [line for line in gallery.index(LIBRARY).splitlines() if line.startswith("| [")]
    assert len(rows) == len([*LIBRARY.glob("*.lab.yaml"), *LIBRARY.glob("*.scenario.yaml")])
    silent = [row for row in rows if not row.split(" | ")[1].strip(" .")]
    assert not silent


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("# A lab.\n# Source: RFC 1,\n# and RFC 2.\ntopology: dumbbell\n", "RFC 1, and RFC 2."),
        ("# A lab.\n# Source: RFC 1.\n", "RFC 1."),
        ("# A lab.\ntopology: dumbbell    # Source: RFC 1\n", ""),
        ("", ""),
    ],
)
def test_a_labs_comment_names_its_source(text: str, source: str) -> None:
    assert gallery.source_of(text) == source


def player() -> dict[str, Any]:
    """Return the names that the player of the scenario `video` defines."""
    (step,) = [step for step in scenario.load("video").document.steps if step.name == "player"]
    names: dict[str, Any] = {"__name__": "player"}
    exec(shlex.split(step.run or "")[2], names)
    return names


@pytest.mark.parametrize(
    ("present", "buffered", "rate"),
    [
        (3000, 22.5, 235),  # the reservoir
        (235, 54, 5800),  # the cushion's end
        (235, 23, 235),  # the map says 323, and the next rate is 375
        (235, 30, 1050),  # the map says 1560
        (1050, 26, 1050),  # the map says 854: between the lower rate, 750, and the next
        (3000, 30, 1750),  # the map says 1560, which is below the lower rate
    ],
)
def test_the_players_rate_goes_by_its_buffer(present: int, buffered: float, rate: int) -> None:
    assert player()["next_rate"](present, buffered) == rate


def incast(value: Value) -> None:
    assert value("aggregate goodput", "4") > 800e6
    assert value("aggregate goodput", "16") < 0.1 * value("aggregate goodput", "4")
    assert value("timeouts", "16") > 0 == value("timeouts", "4")


def leaf_spine(value: Value) -> None:
    marked_at_ns = 20 * 1538 * 8
    assert value("queueing delay p50", "dctcp") == pytest.approx(marked_at_ns, rel=0.25)
    assert value("queueing delay p50", "cubic") > 5 * marked_at_ns
    assert value("aggregate goodput", "dctcp") > 900e6


def docsis(value: Value) -> None:
    assert 5e6 < value("queueing delay p50", "pie 10ms") < 20e6
    assert value("queueing delay p50", "drop-tail") > 100e6


def l4s(value: Value) -> None:
    assert value("ping rtt p99 of l4s-ping", "prague") < 23e6, "a base RTT of 20 ms and the queue of L4S"
    assert value("ping rtt p50 of classic-ping", "prague") > 28e6


def voice(value: Value) -> None:
    assert value("voice mos of call", "drop-tail") < 3.6 < 4.2 < value("voice mos of call", "fq-codel")
    assert value("answers within 100ms", "drop-tail") < 0.5 < 0.99 < value("answers within 100ms", "fq-codel")


def path_mtu(value: Value) -> None:
    assert value("aggregate goodput", "reported off") > 90e6
    assert value("timeouts", "reported off") == 0
    assert value("aggregate goodput", "silent off") == 0
    assert 50e6 < value("aggregate goodput", "silent on") < 90e6


def multipath(value: Value) -> None:
    assert value("aggregate goodput", "2") > 1.4 * value("aggregate goodput", "1") > 20e6


def media(value: Value) -> None:
    for control in ("gcc", "scream"):
        assert 0.4e6 < value("media rate", control) < 1e6, "it begins at 0.3 of 1 Mbit/s"
        # 50 ms on the way, at most 300 ms in the queue.
        assert 50e6 < value("frame delay p50", control) < 120e6
        assert value("frames lost", control) < 0.06, "of the fall to 0.6 Mbit/s"


def quic_beside_cubic(value: Value) -> None:
    own = "aggregate goodput of own"
    # 1448 of 1538 bytes are payload; half a second of 10 s may be another flow's start.
    assert 0.95 < value(own, "none") / (20e6 * 1448 / 1538) < 1
    assert value("share of own", "none") == 1
    # The flow that starts second has less of 10 s, and neither starves.
    assert 0.3 < value("share of own", "quic") < 0.8
    assert 0.2 * value(own, "none") < value(own, "quic") < 0.8 * value(own, "none")
    assert value("utilisation", "quic") > 0.95


def branch_vpn(value: Value) -> None:
    for sink in ("server", "pc"):
        assert value("timeouts", sink) == 0
        assert 20e6 < value("aggregate goodput", sink) < 40e6  # of 45 Mbit/s for 3 s, and 18 for 5 s


CASES = {
    "branch-vpn": (branch_vpn, "sink", ("length=8s", "fail=3s", "keepalive=1s")),
    "incast": (incast, "senders", ("servers=16", "senders=4,16")),
    "leaf-spine": (leaf_spine, "congestion", ("length=500ms", "short=10")),
    "multipath": (multipath, "paths", ("length=6s", "fail=4s")),
    "path-mtu": (path_mtu, "router probing", ()),
    "docsis-uploads": (docsis, "queue", ("length=5s", "pings=110")),
    "l4s-beside-cubic": (l4s, "first", ("length=5s", "pings=150", "first=prague")),
    "media-capacity": (media, "control", ("length=20s", "rises=10s", "falls=13s", "returns=17s")),
    "quic-beside-cubic": (
        quic_beside_cubic,
        "beside",
        ("rate=20Mbit/s", "rtt=40ms", "time=10s", "beside=none,quic", "seeds=1"),
    ),
    "voice-and-games": (voice, "queue", ("length=6s", "updates=180", "queue=drop-tail,fq-codel")),
}
"""The statement, the parameters that vary, and how the scenario is made small; `seeds`: runs of each point."""


@pytest.mark.virtual
@pytest.mark.parametrize("name", CASES)
def test_a_scenario_shows_what_its_card_says(name: str, tmp_path: Path, ewan: Ewan) -> None:
    statement, varies, settings = CASES[name]
    words = [("--seeds", each[6:]) if each.startswith("seeds=") else ("--set", each) for each in settings]
    ewan("run", name, "--runtime", "virtual", *itertools.chain(*words), cwd=tmp_path)
    summary = orjson.loads((only(tmp_path) / "summary.json").read_bytes())
    assert summary["status"] == "complete"

    def value(metric: str, at: str) -> float:
        (found,) = [
            run for run in summary["runs"] if " ".join(str(run["parameters"][name]) for name in varies.split()) == at
        ]
        number: float = found["metrics"][metric]["value"]
        return number

    statement(value)
