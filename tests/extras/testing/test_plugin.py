"""The plugin of pytest as a user's tests have it: the tests run in a process of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = ROOT / "docs/how-to/testing/pytest.md"
SERVER = """
import socket, sys
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(("0.0.0.0", int(sys.argv[1])))
while True:
    data, peer = here.recvfrom(2000)
    here.sendto(data[:8], peer)
"""
CLIENT = """
import socket, sys
there = (sys.argv[1], int(sys.argv[2]))
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.settimeout(0.3)
for number in range(900):
    while True:
        here.sendto(number.to_bytes(8, "big") + bytes(1200), there)
        try:
            while int.from_bytes(here.recv(8), "big") != number:
                pass
            break
        except TimeoutError:
            pass
    if number == 10 and len(sys.argv) > 3:
        sys.exit(3)
"""


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--basetemp",
        str(folder / "t"),
        *options,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "client.py").write_text(CLIENT)
    return tmp_path


@pytest.mark.virtual
def test_seeds_are_recorded_and_compared(project: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    text = blocks[1].replace("seeds=20", "seeds=3")
    (project / "test_seeds.py").write_text(text)
    ended = run_pytest(project, "-k", "seed1")
    assert ended.returncode == 1
    assert "was not recorded for test_seeds.py::test_completes[seed]: run pytest --ewan-record once" in ended.stdout
    assert run_pytest(project, "--ewan-record").returncode == 0
    assert (project / "ewan-records.json").exists()
    assert "3 passed" in run_pytest(project, "-n", "2").stdout
    (project / "test_seeds.py").write_text(text.replace('rtt="20ms"', 'rtt="400ms"'))
    ended = run_pytest(project, "-k", "seed2")
    assert ended.returncode == 1
    assert "by 3 seeds): see what changed, or run pytest --ewan-record" in ended.stdout


@pytest.mark.virtual
def test_a_failing_test_leaves_packets_and_the_command_that_repeats_it(project: Path) -> None:
    text = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    failing = text.replace('"right1", "4433"]', '"right1", "4433", "fail"]')
    (project / "test_fails.py").write_text(failing)
    ended = run_pytest(project, "--ewan-artifacts", "left")
    assert ended.returncode == 1
    assert "command-2 in left1: status 3" in ended.stdout
    assert ended.stdout.count("packets of the same run: ") == 2
    folder = project / "left/test_fails/test_recovers_from_a_burst"
    assert (folder / "lab1/report.html").exists()
    assert len(list(folder.rglob("*.pcapng"))) == 2
    assert f"repeat it: cd {project} && ewan run {folder}/lab1.scenario.yaml --runtime virtual" in ended.stdout


def test_a_test_without_labs_imports_nothing_of_the_product(project: Path) -> None:
    (project / "test_plain.py").write_text(
        "import sys\n\n\ndef test_it():\n    assert not [name for name in sys.modules if name.startswith('ewan.') "
        "and name != 'ewan.pytest_plugin']\n    assert 'polars' not in sys.modules\n"
    )
    assert run_pytest(project).returncode == 0


def test_a_mark_that_says_something_else_is_refused(project: Path) -> None:
    (project / "test_mark.py").write_text(
        "import pytest\n\n\n@pytest.mark.ewan(seed=3)\ndef test_it(ewan):\n    pass\n"
    )
    ended = run_pytest(project)
    assert "write the mark as @pytest.mark.ewan(seeds=20)" in ended.stdout + ended.stderr
    assert ended.returncode != 0
