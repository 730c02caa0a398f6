"""Labs that Python puts together: their scenarios, their runs, and the results of programs and flows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ewan
from ewan.experiments.api.lab import Lab
from ewan.experiments.api.run import LabProgram
from ewan.labs.base.units import Duration

BURST: dict[str, object] = {"rtt": "100ms", "rate": "20Mbit/s", "buffer": "1BDP"}


def transfer(lab: Lab) -> LabProgram:
    lab.right1.start("iperf3 -s -1 -p 4433", ready="tcp:4433", name="server")
    flows = {"port": 4433, "to": "right1"}
    return lab.node("left1").start("iperf3 -c right1 -p 4433 -n 2M", at="100ms", flows=flows, name="client")


@pytest.mark.virtual
def test_a_run_is_the_same_each_time_and_knows_its_programs_and_flows() -> None:
    measured = []
    for _ in range(2):
        lab = ewan.lab("dumbbell", **BURST)
        client = transfer(lab)
        lab.core.at("600ms").set(loss="30%", duration="50ms")
        result = lab.run()
        flow = result.flow(client)
        assert (client.exit_code, client.error, client.stopped) == (0, None, False)
        assert client.started is not None
        assert ewan.seconds(0.1) <= client.started < client.ended < ewan.seconds(10)
        assert "iperf Done" in client.output
        assert flow.received_bytes >= 2 * 2**20
        assert flow.counted is not None
        assert flow.lost.all == flow.lost.by_link + flow.lost.by_queue > 0
        assert result.metric(f"packet loss of {client.name}") == pytest.approx(
            flow.lost.all / flow.counted.filter(direction="forward")["in_packets"].sum(), rel=0.01
        )
        measured.append((client.ended, flow.lost, flow.received_bytes, result.table("links").rows()))
    assert measured[0] == measured[1]


@pytest.mark.virtual
def test_a_seed_decides_which_packets_are_lost_and_a_directory_keeps_the_records(tmp_path: Path) -> None:
    ends = set()
    for seed in (1, 2):
        lab = ewan.lab("dumbbell", rtt="20ms", rate="20Mbit/s", loss="1%")
        flow = lab.left1.send("right1", bulk="500kB")
        result = lab.run(seed=seed, directory=tmp_path / str(seed))
        ends.add(result.flow(flow).row["completion_ns"])
        with pytest.raises(ewan.UserError, match="flow-1: links counted no flows: write"):
            _ = result.flow(flow).lost
        with pytest.raises(ewan.UserError, match="packet loss of nobody: there is no such step"):
            result.metric("packet loss of nobody")
        assert (tmp_path / str(seed) / "scenario.yaml").exists()
    assert len(ends) == 2
    assert lab.run(seed=1, count_flows=True).flow(flow).lost.by_link > 0


@pytest.mark.virtual
def test_a_program_that_fails_is_no_error_and_a_flow_that_fails_is_one() -> None:
    lab = ewan.lab("dumbbell")
    failing = lab.left1.start("echo no >&2; exit 3")
    lab.run()
    assert (failing.exit_code, failing.error_output) == (3, "no\n")
    lab = ewan.lab("dumbbell")
    server = lab.right1.start("sleep 100", ready=4433)
    client = lab.left1.start("true")
    lab.run(longest="1s")
    assert not server.succeeded and "never listened at port 4433" in server.outcome
    assert not client.succeeded and client.outcome.startswith("was not started")
    lab = ewan.lab("dumbbell")
    lab.left1.send("right1", bulk="1MB")
    lab.core.at("10ms").down()
    with pytest.raises(ewan.UserError, match="flow-1"):
        lab.run(longest="3s")


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: ewan.lab("dumbell"), 'write "dumbbell"'),
        (lambda: ewan.lab("dumbbell", rtt=100), 'RTT "100": write a duration as "100ms"'),
        (lambda: ewan.lab("dumbbell").node("left9"), 'no node left9: write "left1"'),
        (lambda: ewan.lab("dumbbell").link("cor"), 'no emulated link cor: write "core"'),
        (lambda: ewan.lab("dumbbell").run(), "has nothing to run"),
        (lambda: ewan.lab({"topology": "dumbbell", "rtt": "1s", "wann": {}}), 'unknown key, write "wan"'),
        (lambda: ewan.lab("dumbbell", rate=20e6), 'write a rate as "20Mbit/s"'),
        (lambda: ewan.lab("dumbbell").left1.start(5), "5: write a command as text"),
        (lambda: ewan.run("first", seeds="3"), "seeds='3': write a whole number"),  # type: ignore[arg-type]
        (lambda: ewan.lab("dumbbell").left1.start(""), "'': is empty: write a command"),
        (lambda: ewan.lab("dumbbell").run(lab="star"), "lab='star': the lab has its own: leave lab out"),
        (lambda: ewan.lab("dumbbell").capture(5), "5: write a node, or a point of a link"),  # type: ignore[arg-type]
        (lambda: ewan.lab("dumbbell").left1.start("ls", after="x"), "after='x': write a list"),
        (lambda: ewan.sweep("first", 5), "5: write the values by the names of parameters"),  # type: ignore[arg-type]
    ],
)
def test_a_mistake_is_one_line(mistake: Callable[[], object], message: str) -> None:
    with pytest.raises(ewan.UserError) as raised:
        mistake()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_steps_wait_for_services_and_events_last() -> None:
    lab = ewan.lab({"topology": {"dumbbell": {"pairs": 2}}, "rtt": "10ms"})
    transfer(lab)
    lab.left2.send(lab.right2, bulk={"volume": "1MB"}, congestion="bbr", duration="5s", after=[])
    lab.core.at(ewan.seconds(1)).down(duration="200ms")
    document = lab.scenario(seed=7, watch="10ms").document
    assert [step.after for step in document.steps] == [(), ("server",), ()]
    assert [step.name for step in document.steps] == ["server", "client", "flow-3"]
    (event,) = document.events
    assert (event.at.ns, event.for_, event.down) == (10**9, Duration(200_000_000), True)
    with pytest.raises(AttributeError, match='no node or link left9: write "left'):
        _ = lab.left9
    with pytest.raises(ValueError, match="ready='dns': write the port"):
        lab.left1.start("true", ready="dns")
    with pytest.raises(ValueError, match="write a number of seconds"):
        ewan.seconds("1s")  # type: ignore[arg-type]
