"""The images as nodes use them: in an engine, with their programs, our binary, and no more bytes than promised."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ewan.labs import images
from images.container import archive, packages, rootfs
from images.container.build import file_system, node_binary
from tests.container_engine.docker import ROOT
from tests.container_engine.fixtures import EngineOfTests
from tests.kept import kept

pytestmark = pytest.mark.untimed

LARGEST_MB = {"host": 250, "router": 250, "switch": 250, "emulator": 120}
PROGRAMS = {
    "host": "ip ping ethtool tcpdump iperf3 nuttcp ITGSend ITGRecv ITGDec flent fping irtt python3 ps",
    "router": "ip ping ethtool tcpdump zebra staticd ospfd ospf6d bgpd isisd bfdd vtysh",
    "switch": "ip ping ethtool tcpdump ovsdb-tool ovsdb-server ovs-vswitchd ovs-vsctl ovs-appctl",
    "emulator": "ip ping ethtool",
}


def described(engine: EngineOfTests, name: str) -> dict[str, object]:
    found = engine.docker("image", "inspect", name)
    assert found.returncode == 0, found.stderr
    image: dict[str, object] = json.loads(found.stdout)[0]
    return image


@pytest.mark.parametrize("kind", images.KINDS)
def test_an_image_has_its_programs_and_our_binary(engine: EngineOfTests, kind: str) -> None:
    names = PROGRAMS[kind].split()
    script = (
        f"for p in {' '.join(names)}; do command -v $p >/dev/null || echo $p; done; sha256sum $(command -v ewan-node)"
    )
    ran = engine.docker("run", "--rm", "--network", "none", images.IMAGES[kind], "sh", "-c", script)
    assert ran.returncode == 0, ran.stderr
    digest = images.digest(node_binary())
    assert ran.stdout.split() == [digest, "/usr/local/bin/ewan-node"]
    image = described(engine, images.IMAGES[kind])
    config = image["Config"]
    assert isinstance(config, dict)
    assert images.complaint(images.IMAGES[kind], config["Labels"], digest) == ""


@pytest.mark.parametrize("kind", images.KINDS)
def test_an_image_is_small(engine: EngineOfTests, kind: str) -> None:
    size = described(engine, images.IMAGES[kind])["Size"]
    assert isinstance(size, int)
    assert size <= LARGEST_MB[kind] * 1e6


@pytest.mark.parametrize("kind", images.KINDS)
def test_an_image_has_licences_and_nothing_of_this_machine(engine: EngineOfTests, kind: str) -> None:
    """What the build leaves out, and what it must not."""
    script = """
    find /usr/share/man /usr/share/locale -type f 2>/dev/null
    find /var/lib/apt/lists /var/cache/apt -name '*_*' -o -name '*.bin' 2>/dev/null
    ls -d /etc/machine-id /etc/apt/sources.list /var/lib/dpkg/status-old 2>/dev/null
    [ -e /usr/share/doc/libc6/copyright ] || echo no licence of libc6
    [ -x /bin/sh ] && [ -L /bin ] || echo /bin is not merged
    """
    ran = engine.docker("run", "--rm", "--network", "none", images.IMAGES[kind], "sh", "-c", script)
    assert (ran.stdout, ran.stderr) == ("", "")


@pytest.mark.parametrize("kind", images.KINDS)
def test_what_is_installed_is_what_is_locked(engine: EngineOfTests, kind: str) -> None:
    lock = packages.read_lock(packages.LOCK.read_text())
    layer = file_system(kind, lock, kept("images"))
    assert rootfs.installed(layer.file) == {package.name: package.version for package in lock.of(kind)}
    assert archive.digest(layer.file) == layer.sha256


def test_a_new_binary_takes_the_place_of_the_old_one(engine: EngineOfTests, tmp_path: Path) -> None:
    """Only the small layer is made anew; the old image goes, and the same binary gives the same image again."""
    name = images.IMAGES["emulator"]
    old, new = tmp_path / "old", tmp_path / "new"
    shutil.copy2(node_binary(), old)
    new.write_bytes(b"#!/bin/sh\necho another one\n")
    new.chmod(0o755)

    def load(binary: Path) -> str:
        command = [str(ROOT / "images/build-images.sh"), "emulator"]
        environment = os.environ | {"EWAN_NODE": str(binary)}
        built = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert (built.returncode, built.stdout) == (0, f"{name}\n"), built.stderr
        assert "installing" not in built.stderr
        return str(described(engine, name)["Id"])

    try:
        before = load(old)
        assert load(new) != before
        ran = engine.docker("run", "--rm", "--network", "none", name, "ewan-node")
        assert ran.stdout == "another one\n"
        config = described(engine, name)["Config"]
        assert isinstance(config, dict)
        assert "of another version" in images.complaint(name, config["Labels"], images.digest(old))
        assert engine.docker("image", "inspect", before).returncode != 0
        assert load(old) == before
    finally:
        load(node_binary())


def test_containerlab_is_the_pinned_one(engine: EngineOfTests, tmp_path: Path) -> None:
    told = engine.clab("version", cwd=tmp_path)
    assert "version: 0.60.0" in told.stdout, told.stderr
    assert json.loads(engine.schema.read_text())["title"]


def test_containerlab_runs_our_images(engine: EngineOfTests, tmp_path: Path) -> None:
    """Two hosts and a link, by containerlab alone; nothing is left."""
    image = images.image("host")
    (tmp_path / "two.clab.yml").write_text(
        f"""
name: engine-two
prefix: ewan
mgmt: {{network: bridge}}
topology:
  defaults: {{kind: linux, image: "{image}", network-mode: none, image-pull-policy: never}}
  nodes:
    a: {{exec: [ip address add 10.9.0.1/30 dev eth0]}}
    b: {{exec: [ip address add 10.9.0.2/30 dev eth0]}}
  links: [{{endpoints: [a:eth0, b:eth0]}}]
"""
    )
    namespaces = set(Path("/run/netns").iterdir()) if Path("/run/netns").exists() else set()
    deployed = engine.clab("deploy", "--topo", "two.clab.yml", cwd=tmp_path)
    try:
        assert deployed.returncode == 0, deployed.stderr
        pinged = engine.docker("exec", "ewan-engine-two-a", "ping", "-c", "1", "-W", "2", "10.9.0.2")
        assert pinged.returncode == 0, pinged.stdout + pinged.stderr
    finally:
        destroyed = engine.clab("destroy", "--cleanup", "--topo", "two.clab.yml", cwd=tmp_path)
    assert destroyed.returncode == 0, destroyed.stderr
    assert engine.docker("ps", "-aq", "--filter", "label=containerlab=engine-two").stdout == ""
    assert {path for path in Path("/run/netns").iterdir() if "engine-two" in path.name} <= namespaces
