"""A node of an image of one's own, which has nothing of ours in it, in a lab of containers; and what routers run there.

The image is made here, of Debian's busybox-static alone: no C library, no shell but that, a user who is not root.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Ewan
from tests.container_engine.fixtures import EngineOfTests
from tests.test_own_nodes import STATIC, WHOLE

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
ip: 4
routing: ospf
nodes:
  host1:
    image: ewan-tests/app:1
    env: {GREETING: "it costs $5 {{ or so"}
    binds: ["www:/srv/www:ro", "../outside:/outside"]
    ports: ["28080:8080"]
    exec: ["sh -c 'echo $GREETING > /tmp/greeting'"]
  r1: {startup: merged.conf}
  r2: {startup: {file: replaced.conf, mode: replace}}
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


@pytest.fixture(scope="module")
def lab(engine: EngineOfTests, ewan: Ewan, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """The name of a lab that is up, what was said of it, and the description's file."""
    changes = [word for line in SAYS for word in ("--change", line)]
    subprocess.run(["docker", "import", *changes, "-", IMAGE], input=archive(), check=True, capture_output=True)
    root = tmp_path_factory.mktemp("own")
    folder, name = root / "project", f"own-{os.getpid() % 100000}"
    (folder / "www").mkdir(parents=True)
    (folder / "www/index.html").write_text("hello from the project\n")
    (root / "outside").write_text("from outside\n")
    (folder / "merged.conf").write_text(STATIC)
    # eth0 is the engine's; r2 has its neighbours at eth1 and eth3.
    shifted = WHOLE.replace("eth2", "eth3").replace("eth1", "eth2").replace("eth0", "eth1")
    (folder / "replaced.conf").write_text(shifted.replace("10.64.0.1", "10.64.0.2"))
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
    assert "blackhole" in inside(engine, lab[0], "r1", "vtysh", "-c", "show running-config")
    theirs = inside(engine, lab[0], "r2", "vtysh", "-c", "show running-config")
    assert "maximum-paths 1" in theirs and "ip ospf cost" not in theirs
    assert "via" in inside(engine, lab[0], "r3", "ip", "route", "show", "198.51.100.0/24")


def test_an_image_that_is_not_there_is_said(engine: EngineOfTests, ewan: Ewan, tmp_path: Path) -> None:
    file = tmp_path / "none.lab.yaml"
    file.write_text("topology: star\nnodes: {host1: {image: ewan-tests/none:1}}\n")
    up = ewan("up", str(file), "--runtime", "containerlab")
    assert up.returncode == 2
    assert "host1: image ewan-tests/none:1 is not there: docker pull ewan-tests/none:1" in up.stderr
