"""A command's flow by its own sockets is what the command sent and got, to the byte, in the virtual clock: also over
connections that live shorter than from one look at sockets to the next."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from ewan.generator import records, scenario
from ewan.labs import host
from ewan.labs.compile import compile as compile_spec
from ewan.labs.record import tables
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime

pytestmark = pytest.mark.virtual

SERVER = """
import socketserver, sys, threading
class Tcp(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data[:3])
class Udp(socketserver.BaseRequestHandler):
    def handle(self):
        pass
class Server(socketserver.ThreadingTCPServer):
    request_queue_size = 64
    daemon_threads = True
threading.Thread(target=socketserver.UDPServer(("", 7000), Udp).serve_forever, daemon=True).start()
Server(("", 7000), Tcp).serve_forever()
"""
# Connections one after the other, each of a process in a session of its own, open for so long after the answer.
CLIENT = """
import os, socket, sys, time
to, count, size, longer = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), [float(word) for word in sys.argv[4:]]
for number in range(count):
    if os.fork() == 0:
        os.setsid()
        with socket.create_connection((to, 7000)) as connection:
            connection.sendall(bytes(size))
            connection.recv(3)
            time.sleep(longer[number % len(longer)])
        os._exit(0)
    os.wait()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
    for number in range(5):
        datagrams.sendto(bytes(100), (to, 7000))
        time.sleep(0.02)
"""
TEXT = """
lab: {{name: own{process}, topology: {{dumbbell: {{pairs: 2}}}}, rtt: {rtt}, wan: {{rate: 50Mbit/s}}}}
needs: [{place}]
steps:
  - {{name: server, on: right1, service: true, ready: 7000, run: python3 {place}/server.py}}
  - {{name: client, on: left1, after: server, run: python3 {place}/client.py right1 20 2000 {longer},
      flows: {{sockets: own, to: right1}}}}
{more}
"""
STREAMS = """
  - {{name: streams, from: left2, to: right2, after: client, for: 1s, streams: 2, generator: iperf3, bulk: }}
"""
OTHER = """
  - {{name: other, on: left1, after: server, run: python3 {place}/client.py right1 9 777 {longer},
      flows: {{sockets: own, to: right1}}}}
"""
UDP_BYTES = 500


def ran(place: Path, rtt: str, longer: str, more: str = "") -> Path:
    (place / "server.py").write_text(SERVER)
    (place / "client.py").write_text(CLIENT)
    words = {"place": place, "longer": longer}
    text = TEXT.format(process=os.getpid(), rtt=rtt, more=more.format(**words), **words)
    (run,) = scenario.parse(text, Path("x.scenario.yaml")).runs()
    plan = compile_spec(run.spec, host.virtual_facts())
    made = run.schedule(plan, "virtual")
    directory = place / "run"
    assert not VirtualRuntime(BINARY).run(plan, made.program, directory).interrupted
    records.collect(directory, made.document, plan.links)
    return directory


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("own"), "1ms", "0 0.03", STREAMS)


def test_connections_of_a_command_alone_are_all_its_own(alone: Path) -> None:
    (row,) = tables.read(alone, "flows").filter(pl.col("step") == "client").to_dicts()
    assert row["error"] is None
    assert row["received_bytes"] == 20 * 2000 + UDP_BYTES
    sockets = tables.read(alone, "command_sockets").filter(pl.col("command") == 1)
    # Its library asks for the address of each datagram to either address; IPv6 is tried first, and refused.
    connected = sockets.filter(pl.col("peer").str.starts_with("10."))
    assert (connected.height, connected["port"].n_unique()) == (20, 20)
    own = tables.read(alone, "link_flows").filter(pl.col("flow") == row["flow"])
    assert own.filter(pl.col("payload_bytes") > 0)["source_port"].n_unique() == 21
    assert own.filter(pl.col("source").str.contains(":"))["payload_bytes"].sum() == 0


def test_links_tell_the_streams_of_iperf3_apart(alone: Path) -> None:
    streams = tables.read(alone, "flows").filter(pl.col("step") == "streams").sort("flow")
    counted = tables.read(alone, "link_flows").filter(pl.col("direction") == "forward")
    last = counted.filter(pl.col("flow").is_in(streams["flow"].implode())).group_by("entry").last().sort("flow")
    assert last["flow"].to_list() == streams["flow"].to_list()
    more = last["payload_bytes"] - streams["received_bytes"]
    assert len(more) == 2
    # What comes in a test's last round trip is not in iperf3's count.
    assert all(0 <= each < 200_000 for each in more)


def test_connections_that_may_be_of_two_commands_are_an_error_and_long_ones_are_not(tmp_path: Path) -> None:
    flows = {}
    beside, later = OTHER, OTHER.replace("after: server", "after: client")
    for name, longer, more in (("short", "0", beside), ("long", "0.03", beside), ("later", "0", later)):
        place = tmp_path / name
        place.mkdir()
        table = tables.read(ran(place, "1ms", longer, more), "flows").filter(pl.col("generator") == "run")
        flows[name] = [row[:2] for row in table.sort("step").select("error", "received_bytes").iter_rows()]
    for error, _ in flows["short"]:
        assert "of left1 may be its own: two commands ran there" in error
    right = [(None, 20 * 2000 + UDP_BYTES), (None, 9 * 777 + UDP_BYTES)]
    assert flows["long"] == right
    assert flows["later"] == right
