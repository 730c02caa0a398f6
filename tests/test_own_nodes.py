"""Nodes with variables, commands and FRRouting configurations of their own, in namespaces and in the virtual clock.

Real daemons; needs FRRouting, and root for namespaces.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Ewan

pytestmark = pytest.mark.virtual

STATIC = "hostname r1\nip route 198.51.100.0/24 blackhole\nrouter ospf\n redistribute static\nexit\n"
PORT = " ip ospf area 0\n ip ospf network point-to-point\n"
TIMERS = " ip ospf hello-interval 1\n ip ospf dead-interval 12\n"
WHOLE = "".join(
    [f"interface {name}\n{PORT}{TIMERS}" for name in ("eth0", "eth2")]
    + [f"interface eth1\n{PORT} ip ospf passive\n", "router ospf\n ospf router-id 10.64.0.1\n maximum-paths 1\n"]
)
"""All that r1 of the ring below needs to be a neighbour of the others, as somebody may have it from elsewhere."""
DEAR = "interface eth0\n ip ospf cost 60000\n"
SAID = "ip route get 198.51.100.1"


def described(folder: Path, name: str, startup: str, text: str, more: str = "") -> Path:
    """A ring of four routers; r1 has a configuration of its own, host1 variables and a command."""
    (folder / "frr.conf").write_text(text)
    file = folder / f"{name}.lab.yaml"
    lab = "topology: ring\nwan: {rate: 50Mbit/s}\nrtt: 40ms\nip: 4\nrouting: ospf\n"
    host = f"{{env: {{GREETING: hello there}}, exec: [ip route add blackhole 192.0.2.0/24{more}]}}"
    file.write_text(f"{lab}nodes:\n  r1: {{startup: {startup}}}\n  host1: {host}\n")
    return file


@pytest.mark.parametrize("mode", ["merge", "replace"])
def test_variables_commands_and_a_configuration_in_the_virtual_clock(ewan: Ewan, tmp_path: Path, mode: str) -> None:
    text = STATIC if mode == "merge" else WHOLE + STATIC
    file = described(tmp_path, f"own-{mode}", f"{{file: frr.conf, mode: {mode}}}", text)
    host = "host1 at 6s: sh -c 'echo $GREETING; ip route'"
    run = ewan("batch", str(file), "--runtime", "virtual", "--do", host, "--do", f"r3 at 6s: {SAID}", cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "hello there" in run.stdout and "blackhole 192.0.2.0/24" in run.stdout
    assert "198.51.100.1 via 10.64.0." in run.stdout


def test_what_frrouting_refuses_is_told_in_its_words(ewan: Ewan, tmp_path: Path) -> None:
    file = described(tmp_path, "own-wrong", "frr.conf", STATIC + "router ospf\n bogus words\n")
    run = ewan("batch", str(file), "--runtime", "virtual", "--do", "r1: true", cwd=tmp_path)
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1].endswith("node r1: service startup: line 7: % Unknown command[41]: bogus words")


def test_a_detour_by_a_routers_own_configuration_is_said(ewan: Ewan, tmp_path: Path) -> None:
    file = described(tmp_path, "own-detour", "frr.conf", DEAR)
    run = ewan("batch", str(file), "--runtime", "virtual", "--do", "r1: true", cwd=tmp_path)
    assert run.returncode == 2
    said = run.stderr.splitlines()[-1]
    assert "a detour from host" in said and "the configurations of r1 (startup) lead elsewhere than the plan's" in said


@pytest.mark.untimed
def test_variables_commands_and_a_configuration_in_namespaces(
    ewan: Ewan, state: Path, tmp_path: Path, name: str
) -> None:
    up = ewan("up", str(described(tmp_path, name, "frr.conf", STATIC)))
    try:
        assert up.returncode == 0, up.stderr
        host = ewan("exec", "--lab", name, "host1", "--", "sh", "-c", "echo $GREETING; ip route")
        assert host.stdout.startswith("hello there\n") and "blackhole 192.0.2.0/24" in host.stdout
    finally:
        ewan("down", name)
    replaced = described(tmp_path, name, "{file: frr.conf, mode: replace}", WHOLE + STATIC)
    try:
        up = ewan("up", str(replaced))
        assert up.returncode == 0, up.stderr
        words = ("vtysh", "--vty_socket", str(state / name / "nodes/r1"), "-c", "show running-config")
        runs = ewan("exec", "--lab", name, "r1", "--", *words).stdout
        assert "maximum-paths 1" in runs and "cost" not in runs
    finally:
        assert ewan("down", name).returncode == 0


@pytest.mark.untimed
def test_a_lab_whose_command_fails_is_not_there(ewan: Ewan, tmp_path: Path, name: str) -> None:
    up = ewan("up", str(described(tmp_path, name, "frr.conf", STATIC, ", sh -c 'echo so >&2; exit 3'")))
    assert up.returncode == 2
    assert up.stderr.splitlines()[-1].endswith(f"lab {name}: host1: exec sh -c 'echo so >&2; exit 3': so")
    assert ewan("down", name).returncode == 2 and not list(Path("/run/netns").glob(f"ewan-{name}-*"))
