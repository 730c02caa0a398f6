"""What a description says of the TCP of its hosts, as sysctls and as words of routes; and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import Node, Stack
from ewan.labs.spec import DescriptionError, fields, parse

AUTOTUNED = 4 * 12_500_000
"""Bytes of the buffers of a lab of 1 Gbit/s and 100 ms: four times its BDP."""


def host_nodes(hosts: str, more: str = "") -> dict[str, Node]:
    """The hosts of a dumbbell with 20 pairs."""
    text = f"topology: {{dumbbell: {{pairs: 20}}}}\nrtt: 100ms\n{more}\nhosts:\n  {hosts}\n"
    plan = compile(parse(text, Path("x.lab.yaml")), HostFacts((0, 1), (), "virtual"))
    return {node.name: node for node in plan.nodes if node.kind == "host"}


def tcp(stack: str, more: str = "") -> tuple[dict[str, str], Stack]:
    """The sysctls of a host with a stack, those of TCP by their last word, and what its routes tell."""
    node = host_nodes(f"right1: {{stack: {stack}}}", more)["right1"]
    assert node.stack is not None
    found = {key.removeprefix("net/ipv4/tcp_"): value for key, value in node.sysctls.items() if "/tcp_" in key}
    return found, node.stack


def test_hosts_without_a_stack_are_as_they_were_without_any() -> None:
    with_one = host_nodes('"right[2-3]": {stack: windows-xp}')
    without = host_nodes("left1: {}")
    assert [name for name, node in with_one.items() if node.stack is not None] == ["right2", "right3"]
    assert {name: node for name, node in with_one.items() if name not in ("right2", "right3")} == {
        name: node for name, node in without.items() if name not in ("right2", "right3")
    }


def test_a_switch_that_is_on_is_as_no_stack() -> None:
    assert host_nodes("right1: {stack: {delayed_ack: on}}") == host_nodes("right1: {}")


def test_switches_are_sysctls_of_the_same_names() -> None:
    found, told = tcp("{window_scaling: off, sack: off, timestamps: off}")
    assert (found["window_scaling"], found["sack"], found["timestamps"]) == ("0", "0", "0")
    assert told == Stack(quick_acks=False, window_bytes=None)
    found, told = tcp("{delayed_ack: off}")
    assert (found["window_scaling"], found["sack"], found["timestamps"]) == ("1", "1", "1")
    assert told.quick_acks


def test_a_buffer_grows_to_its_size() -> None:
    found, _ = tcp("{rmem: 64kB, wmem: 2MiB}")
    assert (found["rmem"], found["wmem"]) == ("4096 64000 64000", "4096 65536 2097152")
    assert found["moderate_rcvbuf"] == "1"
    found, _ = tcp("{sack: off}")
    largest = int(found["rmem"].split()[2])
    assert AUTOTUNED <= largest < AUTOTUNED + 2**20 and found["rmem"] == f"4096 131072 {largest}"


@pytest.mark.parametrize(
    ("stack", "more", "window", "segment", "share"),
    [
        # Of 2048 bytes of memory and 256 that describe them, 1448 or 1460 are payload: 160 or 162 of 256.
        ("{window: 64KiB}", "", 65_536, 1448, 160),
        ("{window: 64KiB, timestamps: off}", "", 65_536, 1460, 162),
        ("windows-xp", "", 17_520, 1460, 162),
        # 8948 of 16384 + 256.
        ("{window: 1MiB}", "mtu: 9000", 2**20, 8948, 137),
    ],
)
def test_a_window_stays_in_a_buffer_of_which_it_is_the_payload(
    stack: str, more: str, window: int, segment: int, share: int
) -> None:
    found, told = tcp(stack, more)
    least, first, most = map(int, found["rmem"].split())
    assert least == 4096 and first == most and found["moderate_rcvbuf"] == "0"
    assert most * share >> 8 == window + segment, "the kernel rounds down, and counts the segment that has just come"
    assert told.window_bytes == window


def test_a_window_of_the_labs_own_size_does_not_grow() -> None:
    found, told = tcp("{window: auto}")
    _, first, most = map(int, found["rmem"].split())
    assert first == most >= AUTOTUNED
    assert found["moderate_rcvbuf"] == "0" and told.window_bytes is None


def test_what_is_written_holds_against_the_profile() -> None:
    plain, _ = tcp("windows-xp")
    assert (plain["window_scaling"], plain["sack"], plain["timestamps"]) == ("0", "1", "0")
    assert tcp("{profile: windows-xp}")[0] == plain
    assert tcp("{profile: windows-xp, sack: off}")[0] == plain | {"sack": "0"}
    grown, told = tcp("{profile: windows-xp, rmem: 1MiB}")
    assert grown["moderate_rcvbuf"] == "1" and told.window_bytes is None
    fixed, told = tcp("{profile: linux, window: 100kB}")
    assert fixed["moderate_rcvbuf"] == "0" and told.window_bytes == 100_000
    assert fixed["wmem"] == f"4096 65536 {4 << 20}"


@pytest.mark.parametrize("name", fields.PROFILES)
def test_every_profile_can_be_a_hosts_and_says_where_it_is_documented(name: str) -> None:
    _, told = tcp(name)
    assert not told.quick_acks, "all of these systems delay ACKs"
    profile = fields.PROFILES[name]
    assert profile.about and profile.sources
    page = (Path(__file__).resolve().parents[2] / "docs/how-to/labs/stacks.md").read_text()
    assert f"| `{name}` | {profile.about} | {profile.sources} |" in page


REFUSED = {
    "windows-98": 'x.lab.yaml:5: hosts.right1.stack "windows-98": unknown profile, write "windows-xp',
    "{sack: no}": 'x.lab.yaml:5: hosts.right1.stack.sack "no": write "on" or "off"',
    "{sakc: off}": 'x.lab.yaml:5: hosts.right1.stack.sakc "off": unknown key of a stack, write "sack"',
    "{rmem: 64}": "x.lab.yaml:5: hosts.right1.stack.rmem",
    "{wmem: 1kB}": 'x.lab.yaml:5: hosts.right1.stack.wmem "1kB": write 4096B to 2047MiB',
    "{window: 1GiB}": 'x.lab.yaml:5: hosts.right1.stack.window "1GiB": write "auto", or 4096B to 512MiB',
    "{window: 64kB, rmem: 1MB}": 'x.lab.yaml:5: hosts.right1.stack: "window" stays, "rmem" grows: write one of them',
    "{window: 64KiB, window_scaling: off}": 'stack.window "64KiB": a window without scaling has 65535 bytes at most',
    "{profile: freebsd-5.3, window_scaling: off}": "a window without scaling has 65535 bytes at most",
    "{}": "x.lab.yaml:5: hosts.right1.stack: write the name of a profile",
    "[linux]": "x.lab.yaml:5: hosts.right1.stack: write the name of a profile",
}


@pytest.mark.parametrize(("stack", "says"), REFUSED.items())
def test_what_contradicts_itself_is_refused_at_its_place(stack: str, says: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        host_nodes(f"right1: {{stack: {stack}}}")
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_only_hosts_have_stacks() -> None:
    with pytest.raises(DescriptionError, match="there is no node r1 in the lab"):
        host_nodes("r1: {stack: linux}")
