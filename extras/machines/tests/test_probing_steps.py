"""The orders that the machines' processes get, and the treatment of their answers: with processes that play a part."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from ewan.extras.machines.joint_probes import FORMAT, JointProbes, Offset
from ewan.extras.machines.results import CompletedProgram
from ewan.labs.base import codec
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.probe_documents import Probe

MS = 1_000_000
AHEAD_NS = {"one": 0, "two": 5_000_000_000, "three": -7_000_000_000}
NOW, BEGUN_NS = 1_790_000_000_000_000_000, time.monotonic_ns()
Order = dict[str, Any]


@dataclass
class Played:
    """A machine whose process answers correctly, or as a test replaces it: order → answer."""

    name: str
    instead: Mapping[str, bytes] = field(default_factory=dict)
    orders: list[Order] = field(default_factory=list)
    closed: bool = False
    answer: bytes = b""

    def write(self, data: bytes) -> None:
        order = orjson.loads(data)
        self.orders.append(order)
        (what,) = order
        answers: dict[str, Order] = {
            "here": {"here": {"format": FORMAT, "real_ns": self.shows}},
            "probe": {"ready": {"ports": self.ports(order), "longest_ns": 2_500 * MS, "real_ns": self.shows}},
            "begin": {"sent": {}},
            "end": {"half": {"half": {"udp": self.name}, "real_ns": self.shows}},
            "drop": {"dropped": {}},
        }
        self.answer = self.instead.get(what, orjson.dumps(answers[what]) + b"\n")

    @property
    def shows(self) -> int:
        return NOW + time.monotonic_ns() - BEGUN_NS + AHEAD_NS[self.name]

    def ports(self, order: Order) -> dict[str, list[int | None]]:
        streams = order.get("probe", {}).get("probe", {}).get("streams", [])
        own = f"/run/netns/{self.name}"
        return {
            side: [
                1000 * (side == "to") + number if each[side]["netns"] == own else None
                for number, each in enumerate(streams)
            ]
            for side in ("from", "to")
        }

    def readline(self, longest_s: float | None = None) -> bytes:
        return self.answer

    def wait(self, longest_s: float | None = None) -> CompletedProgram:
        return CompletedProgram(2, b"", b"first\nprobe: no such device\n")

    def close(self) -> None:
        self.closed = True


class Stage:
    """Three machines with a namespace each, of the machine's name."""

    def __init__(self, place: Path, **instead: Mapping[str, bytes]) -> None:
        self.machines = {name: Played(name, instead.get(name, {})) for name in AHEAD_NS}
        self.compared = 0
        # In place of the node binary's: it notes what it was to merge.
        merging, self.merged = place / "merge", place / "merged"
        self.merged.unlink(missing_ok=True)
        result = '{"kind": "failed", "name": "merged", "elapsed_ns": 1, "error": "merged"}'
        merging.write_text(f"#!/bin/sh\n(cat; echo) >> {self.merged}\necho '{result}'\n")
        merging.chmod(0o755)
        of = {f"/run/netns/{name}": name for name in AHEAD_NS}
        self.probes = JointProbes(self.start, of, self.offsets, {"one": [0, 1]}, merging)

    def start(self, machine: str, argv: Sequence[str]) -> Played:
        assert list(argv) == ["probe", "--joint"]
        return self.machines[machine]

    def offsets(self) -> Mapping[str, Offset]:
        self.compared += 1
        return {name: Offset(ahead + self.compared, 10) for name, ahead in AHEAD_NS.items() if ahead}

    def run(self, *asked: Order, tell: Callable[[str], None] = lambda line: None) -> list[Order]:
        """The halves of each probe that were to be merged, or the result of a probe that failed before."""
        probes = codec.from_data(cast(Any, tuple[Probe, ...]), asked, "probes")
        results = codec.data_of(self.probes.run(probes, tell).results)
        merged = iter(self.merged.read_text().splitlines() if self.merged.exists() else ())
        return [orjson.loads(next(merged)) if each["name"] == "merged" else each for each in results]


def stream(source: str, sink: str) -> Order:
    ends = {side: {"netns": f"/run/netns/{name}", "address": "::1"} for side, name in (("from", source), ("to", sink))}
    return {"name": f"{source} to {sink}", **ends, "packet_bytes": 100, "interval_ns": 1, "packets": 1}


def probe(kind: str, *ways: tuple[str, str]) -> Order:
    return {"kind": kind, "name": f"a {kind}", "drain_ns": 5, "streams": [stream(*way) for way in ways]}


def test_each_machine_gets_its_orders_in_turn(tmp_path: Path) -> None:
    stage, told = Stage(tmp_path), list[str]()
    asked = probe("delay", ("one", "two"), ("two", "one"))
    (merged,) = stage.run(asked, tell=told.append)
    one, two, three = stage.machines.values()
    for machine, cpus in ((one, [0, 1]), (two, [])):
        here, first, begin, end = machine.orders
        assert here == {"here": {"format": FORMAT, "netns": [f"/run/netns/{machine.name}"], "cpus": cpus}}
        assert first["probe"]["probe"] == asked and 0 <= first["probe"]["run"] < 1 << 32
        # The machine of the end gives its port, and all machines get it.
        assert begin["begin"]["ports"] == {"from": [0, 1], "to": [1000, 1001]}
        # A bit later than it was ready, by the machine's own clock.
        assert -5_000 * MS < begin["begin"]["at_ns"] - machine.shows < 5_000 * MS
        assert end == {"end": {}} and machine.closed
    assert not three.orders
    assert told == ["probe 1 of 1: a delay (up to 2.5 s)"]
    assert merged["probe"] == asked and merged["elapsed_ns"] > 0
    assert [share["half"] for share in merged["shares"]] == [{"udp": "one"}, {"udp": "two"}]


def test_clocks_are_compared_before_and_after_what_is_read_off_two_of_them(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    (merged,) = stage.run(probe("delay", ("three", "two")))
    for share, name in zip(merged["shares"], ("three", "two"), strict=True):
        before, after = share["clock"]["before"], share["clock"]["after"]
        assert (before["offset_ns"], after["offset_ns"]) == (AHEAD_NS[name] + 1, AHEAD_NS[name] + 2)
        # By the clock of the first machine, which is not of this probe.
        assert before["at_ns"] < after["at_ns"] < NOW + time.monotonic_ns() - BEGUN_NS
        assert after["at_ns"] - before["at_ns"] < 5_000 * MS
    # Soon after another, one comparison is enough between them.
    stage = Stage(tmp_path)
    first, second = stage.run(probe("loss", ("one", "two")), probe("saturate", ("one", "two")))
    assert stage.compared == 3
    assert first["shares"][1]["clock"]["after"] == second["shares"][1]["clock"]["before"]


@pytest.mark.parametrize(
    "asked", [probe("rtt", ("one", "two")), probe("delay", ("one", "one"), ("two", "two")), probe("delay")]
)
def test_where_nothing_is_read_off_two_clocks_they_are_not_compared(tmp_path: Path, asked: Order) -> None:
    stage = Stage(tmp_path)
    (merged,) = stage.run(asked)
    assert not stage.compared
    assert [set(share) for share in merged["shares"]] == [{"half"}] * (2 if asked["streams"] else 0)


@pytest.mark.parametrize(("at", "others_last"), [("probe", "drop"), ("begin", "drop"), ("end", "end")])
def test_what_fails_on_one_machine_is_that_probes_error_alone(tmp_path: Path, at: str, others_last: str) -> None:
    stage = Stage(tmp_path, two={at: b'{"failed": {"error": "no room"}}\n'})
    asked = probe("delay", ("one", "two"))
    failed, good = stage.run(asked, probe("delay", ("one", "three")))
    assert failed["kind"] == "failed" and failed["name"] == "a delay" and failed["elapsed_ns"] > 0
    assert failed["error"] == "machine two: no room"
    assert [next(iter(order)) for order in stage.machines["one"].orders].count(others_last) == 1 + (at == "end")
    assert len(good["shares"]) == 2


@pytest.mark.parametrize(
    ("instead", "says"),
    [
        ({"here": b""}, "machine two: ewan-node probe ended: probe: no such device"),
        ({"here": b"Welcome to two!\n"}, "machine two: 'Welcome to two!' came where ewan-node probe answers: "),
        ({"here": b"[1]\n"}, "machine two: '[1]' came where"),
        ({"here": b'{"here": {"format": "ewan-joint/9", "real_ns": 0}}\n'}, "machine two: its ewan-node probes by"),
        ({"probe": b'{"sent": {}}\n'}, "machine two: ewan-node probe printed sent where ready was expected"),
        ({"end": b'{"half": {'}, "machine two: ewan-node probe ended: "),
    ],
)
def test_a_process_that_does_not_keep_to_it_is_named_in_one_line(
    tmp_path: Path, instead: Mapping[str, bytes], says: str
) -> None:
    stage = Stage(tmp_path, two=instead)
    with pytest.raises(LabError) as raised:
        stage.run(probe("delay", ("one", "two")))
    assert str(raised.value).startswith(says) and "\n" not in str(raised.value)
    assert stage.machines["one"].closed and stage.machines["two"].closed


def test_ctrl_c_ends_the_processes(tmp_path: Path) -> None:
    def tell(line: str) -> None:
        raise KeyboardInterrupt

    stage = Stage(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        stage.run(probe("delay", ("one", "two")), tell=tell)
    assert stage.machines["one"].closed and stage.machines["two"].closed


def test_a_merge_that_fails_says_why(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    (tmp_path / "merge").write_text("#!/bin/sh\ncat >/dev/null\necho 'halves: no' >&2\nexit 2\n")
    with pytest.raises(LabError, match=r"^ewan-node probe --merge: halves: no$"):
        stage.run(probe("delay", ("one", "two")))
