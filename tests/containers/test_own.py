"""A node of an image of one's own, which has nothing of ours in it, in a lab of containers; and what routers run there.

The image is made here, of Debian's busybox-static alone: no C library, no shell but that, a user who is not root.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests import own_routers
from tests.conftest import Ewan
from tests.container_engine.fixtures import EngineOfTests

pytestmark = pytest.mark.untimed

IMAGE = "ewan-tests/app:1"
PORT = 28080
SAYS = (
    'ENTRYPOINT ["/bin/busybox", "httpd", "-f", "-h", "/srv/www"]',
    'CMD ["-p", "8080"]',
    "USER app",
    "WORKDIR /srv",
)
LAB = """
topology: ring
wan: {rate: 50Mbit/s}
rtt: 40ms
routing: isis
nodes:
  host1:
    image: ewan-tests/app:1
    env: {GREETING: "it costs $5 {{ or so"}
    binds: ["www:/srv/www:ro", "../outside:/outside"]
    ports: ["28080:8080"]
    exec: ["sh -c 'echo $GREETING > /tmp/greeting'"]
  r1: {startup: {file: replaced.conf, mode: replace}}
  r2: {startup: merged.conf}
"""


def archive() -> bytes:
    busybox = shutil.which("busybox")
    assert busybox, "busybox is missing: apt install busybox-static"
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        tar.add(busybox, "bin/busybox")
        for path, text in (("etc/passwd", "app:x:1000:1000::/srv:/bin/sh\n"), ("etc/group", "app:x:1000:\n")):
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("bin/sh")
        link.type, link.linkname = tarfile.SYMTYPE, "busybox"
        tar.addfile(link)
        temporary = tarfile.TarInfo("tmp")
        temporary.type, temporary.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(temporary)
    return content.getvalue()


def made(engine: Sequence[str], image: str) -> None:
    """The image, in an engine that these words call."""
    changes = [word for line in SAYS for word in ("--change", line)]
    subprocess.run([*engine, "import", *changes, "-", image], input=archive(), check=True, capture_output=True)


@pytest.fixture(scope="module")
def lab(engine: EngineOfTests, ewan: Ewan, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """The name of a lab that is up, what was said of it, and the description's file."""
    made(["docker"], IMAGE)
    root = tmp_path_factory.mktemp("own")
    folder, name = root / "project", f"own-{os.getpid() % 100000}"
    (folder / "www").mkdir(parents=True)
    (folder / "www/index.html").write_text("hello from the project\n")
    (root / "outside").write_text("from outside\n")
    (folder / "merged.conf").write_text(own_routers.merged("isis"))
    # eth0 is the engine's.
    (folder / "replaced.conf").write_text(own_routers.replaced("isis", first_port=1))
    file = folder / f"{name}.lab.yaml"
    file.write_text(LAB)
    try:
        up = ewan("up", str(file), "--runtime", "containerlab", timeout=300)
        assert up.returncode == 0, up.stdout + up.stderr
        yield name, up.stdout + up.stderr, file
    finally:
        ewan("down", name, timeout=200)
        engine.docker("image", "rm", "--force", IMAGE)


def inside(engine: EngineOfTests, lab: str, node: str, *words: str) -> str:
    done = engine.docker("exec", f"ewan-{lab}-{node}", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_program_runs_as_the_image_says_with_what_the_description_adds(
    engine: EngineOfTests, lab: tuple[str, str, Path]
) -> None:
    name, said, file = lab
    enter = ["nsenter", f"--net=/proc/{engine.process}/ns/net"] if engine.process else []
    asked = subprocess.run(
        [*enter, "busybox", "wget", "-q", "-O", "-", f"http://127.0.0.1:{PORT}/"], capture_output=True, timeout=20
    )
    assert asked.stdout == b"hello from the project\n", asked.stderr
    assert engine.docker("port", f"ewan-{name}-host1").stdout.strip() == f"8080/tcp -> 127.0.0.1:{PORT}"
    programs = inside(engine, name, "host1", "busybox", "ps", "-o", "user,args")
    assert "app      /bin/busybox httpd -f -h /srv/www -p 8080" in programs
    assert inside(engine, name, "host1", "sh", "-c", "cat /tmp/greeting") == "it costs $5 {{ or so\n"
    assert (
        inside(engine, name, "host1", "sh", "-c", "echo $GREETING; cat /outside")
        == "it costs $5 {{ or so\nfrom outside\n"
    )
    outside = file.parent.parent / "outside"
    assert f"host1 sees {outside} of this machine at /outside, and may be changed there" in said
    assert "/srv/www" not in said


def test_it_is_a_node_like_others(engine: EngineOfTests, lab: tuple[str, str, Path]) -> None:
    answered = inside(engine, lab[0], "host1", "busybox", "ping", "-c", "2", "-W", "5", "host3")
    assert "0% packet loss" in answered


def test_routers_run_their_own_configurations(engine: EngineOfTests, lab: tuple[str, str, Path]) -> None:
    assert "redistribute ipv6 static" in inside(engine, lab[0], "r2", "vtysh", "-c", "show running-config")
    theirs = inside(engine, lab[0], "r1", "vtysh", "-c", "show running-config")
    assert "router isis mine" in theirs and "isis metric" not in theirs
    learned = inside(engine, lab[0], "r4", "sh", "-c", "ip -4 route; ip -6 route")
    for network in (network for networks in own_routers.ANNOUNCED.values() for network in networks):
        assert f"\n{network} " in f"\n{learned}", learned


def test_an_image_that_is_not_there_is_said(engine: EngineOfTests, ewan: Ewan, tmp_path: Path) -> None:
    file = tmp_path / "none.lab.yaml"
    file.write_text("topology: star\nnodes: {host1: {image: ewan-tests/none:1}}\n")
    up = ewan("up", str(file), "--runtime", "containerlab")
    assert up.returncode == 2
    assert "host1: image ewan-tests/none:1 is not there: docker pull ewan-tests/none:1" in up.stderr
