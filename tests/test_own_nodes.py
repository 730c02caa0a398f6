"""Nodes with variables, commands and FRRouting configurations of their own, in namespaces and in the virtual clock.

Real daemons; needs FRRouting, and root for namespaces. Each lab has a router of either mode (tests/own_routers.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import own_routers
from tests.conftest import Ewan

pytestmark = pytest.mark.virtual

CHEAP = "route-map over-eth0 permit 10\n set metric +1\n"
"""By way of r2 for all that r4 is as near to."""
WRONG = "hostname r1\nip route 198.51.100.0/24 blackhole\nrouter ospf\n redistribute static\n bogus words\n"


def described(folder: Path, name: str, protocol: str, own: dict[str, str], more: str = "") -> Path:
    """A ring of four routers; those of `own` have configurations in these modes, host1 has variables and a command."""
    for router, mode in own.items():
        text = own_routers.replaced(protocol) if mode == "replace" else own_routers.merged(protocol)
        (folder / f"{router}.conf").write_text(text)
    startups = "".join(f"  {each}: {{startup: {{file: {each}.conf, mode: {mode}}}}}\n" for each, mode in own.items())
    return ring(folder, name, protocol, startups, more)


def ring(folder: Path, name: str, protocol: str, nodes: str, more: str = "") -> Path:
    file = folder / f"{name}.lab.yaml"
    lab = f"topology: ring\nwan: {{rate: 50Mbit/s}}\nrtt: 40ms\nrouting: {protocol}\n"
    host = f"{{env: {{GREETING: hello there}}, exec: [ip route add blackhole 192.0.2.0/24{more}]}}"
    file.write_text(f"{lab}nodes:\n{nodes}  host1: {host}\n")
    return file


BOTH = {"r1": "replace", "r2": "merge"}
LEARNED = "r4 at 6s: sh -c 'ip -4 route; ip -6 route'"


def check_learned(routes: str) -> None:
    """What both routers announce is known in both families, from one way and the other."""
    for networks in own_routers.ANNOUNCED.values():
        for network in networks:
            assert f"\n{network} " in f"\n{routes}", routes


@pytest.mark.parametrize("protocol", ["ospf", "isis", "bgp"])
def test_variables_commands_and_configurations_in_the_virtual_clock(ewan: Ewan, tmp_path: Path, protocol: str) -> None:
    file = described(tmp_path, f"own-{protocol}", protocol, BOTH)
    host = "host1 at 6s: sh -c 'echo $GREETING; ip route'"
    run = ewan("lab", "batch", str(file), "--runtime", "virtual", "--do", host, "--do", LEARNED, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "hello there" in run.stdout and "blackhole 192.0.2.0/24" in run.stdout
    check_learned(run.stdout)


def refused(ewan: Ewan, folder: Path, name: str, protocol: str, text: str) -> str:
    """The last line that is said of a ring where r1 has this besides ours."""
    (folder / "frr.conf").write_text(text)
    file = ring(folder, name, f"{protocol}\nip: 4", "  r1: {startup: frr.conf}\n")
    run = ewan("lab", "batch", str(file), "--runtime", "virtual", "--do", "r1: true", cwd=folder)
    assert run.returncode == 2
    return run.stderr.splitlines()[-1]


def test_what_frrouting_refuses_is_told_in_its_words(ewan: Ewan, tmp_path: Path) -> None:
    said = refused(ewan, tmp_path, "own-wrong", "ospf", WRONG)
    assert said.endswith("node r1: service startup: line 5: % Unknown command[41]: bogus words")


def test_a_detour_by_a_routers_own_configuration_is_said(ewan: Ewan, tmp_path: Path) -> None:
    said = refused(ewan, tmp_path, "own-detour", "bgp", CHEAP)
    assert "a detour from host" in said and "the configurations of r1 (startup) lead elsewhere than the plan's" in said


@pytest.mark.untimed
def test_variables_commands_and_configurations_in_namespaces(
    ewan: Ewan, state: Path, tmp_path: Path, name: str
) -> None:
    up = ewan("up", str(described(tmp_path, name, "bgp", BOTH)))
    try:
        assert up.returncode == 0, up.stderr
        host = ewan("lab", "exec", "--lab", name, "host1", "--", "sh", "-c", "echo $GREETING; ip route")
        assert host.stdout.startswith("hello there\n") and "blackhole 192.0.2.0/24" in host.stdout
        check_learned(ewan("lab", "exec", "--lab", name, "r4", "--", "sh", "-c", "ip -4 route; ip -6 route").stdout)
        words = ("vtysh", "--vty_socket", str(state / name / "nodes/r1"), "-c", "show running-config")
        runs = ewan("lab", "exec", "--lab", name, "r1", "--", *words).stdout
        assert "redistribute connected" in runs and "route-map" not in runs
    finally:
        assert ewan("down", name).returncode == 0


@pytest.mark.untimed
def test_a_lab_whose_command_fails_is_not_there(ewan: Ewan, tmp_path: Path, name: str) -> None:
    up = ewan("up", str(ring(tmp_path, name, "static", "", ", sh -c 'echo so >&2; exit 3'")))
    assert up.returncode == 2
    assert up.stderr.splitlines()[-1].endswith(f"lab {name}: host1: exec sh -c 'echo so >&2; exit 3': so")
    assert ewan("down", name).returncode == 2 and not list(Path("/run/netns").glob(f"ewan-{name}-*"))
