"""A program sets windows in the virtual clock: exactly, again, later where it thinks; a broken one ends in one line."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.conftest import Ewan

ROOT = Path(__file__).parent.parent
RENO = ROOT / "labs/congestion/tests/external_reno.py"
TRANSFER = ("transfer", "dumbbell", "--rtt", "20ms", "--rate", "20M", "--for", "2s", "--runtime", "virtual")
HEAD = "import os, time\nfrom ewan.labs.congestion.external import *\n"
RAW = "socket = int(os.environ[VARIABLE])\nos.read(socket, 999)\n"

pytestmark = pytest.mark.virtual


def series(place: Path, control: str = "external") -> bytes:
    return next(place.glob(f"results/*/{control}/series.csv")).read_bytes()


def transfer(ewan: Ewan, place: Path, program: Path, *words: str, cc: str = "external") -> bytes:
    place.mkdir(exist_ok=True)
    done = ewan(*TRANSFER, "--cc", cc, "--program", str(program), *words, cwd=place)
    assert done.returncode == 0, done.stderr
    return series(place)


def test_aimd_outside_sends_the_packets_of_reno(ewan: Ewan, tmp_path: Path) -> None:
    outside = transfer(ewan, tmp_path, RENO, cc="reno,external")
    assert outside == series(tmp_path, "reno") and outside.count(b"\n") > 100


def test_flows_that_think_are_repeated_to_the_byte(ewan: Ewan, tmp_path: Path) -> None:
    words = ("--flows", "3", "--thinks", "2ms")
    first, second = (transfer(ewan, tmp_path / name, RENO, *words) for name in ("first", "second"))
    assert first == second
    assert first != transfer(ewan, tmp_path / "free", RENO, "--flows", "3")


def test_a_window_a_rate_and_an_interval_are_obeyed(ewan: Ewan, tmp_path: Path) -> None:
    program = tmp_path / "mine.py"
    program.write_text(
        HEAD
        + """
def decide(record):
    print(record.time_ns, record.events, record.addresses[0], flush=True)
    if record.events & FlowEvent.START:
        return WindowAnswer(1000, 250_000, 100_000_000, FlowEvent.INTERVAL)
serve(decide)
"""
    )
    transfer(ewan, tmp_path, program)
    (log,) = tmp_path.glob("results/*/external/program.log")
    times, events, addresses = zip(*(line.split() for line in log.read_text().splitlines()), strict=True)
    assert len(set(addresses)) == 1
    begin = int(times[0])
    assert [int(time) - begin for time in times[1:11]] == [100_000_000 * (number + 1) for number in range(10)]
    assert int(events[0]) == 32 and int(events[5]) == 3 and int(events[-1]) & 64
    rows = [line.split(",") for line in series(tmp_path).decode().splitlines()]
    names, last = rows[0], rows[-1]
    assert last[names.index("cwnd_segments")] == "1000"
    # 250 kB/s with headers, for 2 s.
    assert 450_000 < int(last[names.index("acked_bytes")]) < 510_000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("serve(lambda record: 1 / 0)", "it ended with status 1: ZeroDivisionError: division by zero"),
        ("serve(lambda record: WindowAnswer(cwnd_packets=float('nan')))", "cwnd_packets is nan: write a whole number"),
        (RAW + "os.write(socket, b'hello')\ntime.sleep(99)", "an answer has 5 bytes: write 48"),
        ("def decide(record):\n    if record.ends: exit(3)\nserve(decide)", "it ended with status 3"),
    ],
)
def test_a_broken_program_ends_its_run_in_one_line(ewan: Ewan, tmp_path: Path, text: str, why: str) -> None:
    program = tmp_path / "mine.py"
    program.write_text(HEAD + text)
    done = ewan(*TRANSFER, "--cc", "external", "--program", str(program), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and why in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--cc", "external"), "write the program that sets its windows: --program ./mine.py"),
        (("--cc", "reno", "--thinks", "1ms"), "--thinks is for --cc external"),
        (("--cc", "external", "--program", "missing.py"), "there is no such file"),
        (("--cc", "external", "--program", str(RENO), "--runtime", "netns"), "add --runtime virtual"),
    ],
)
def test_words_that_do_not_fit_are_refused(ewan: Ewan, words: tuple[str, ...], why: str) -> None:
    done = ewan(*TRANSFER, *words)
    assert done.returncode == 2 and why in done.stderr


SCENARIO = """name: outside
runtime: virtual
lab: {{topology: dumbbell, rtt: 20ms, wan: {{rate: 20Mbit/s}}}}
parameters: {{gain: 1}}
sweep: {{gain: [1, 2]}}
cc: {{external: {cc}}}
steps:
  - {{name: transfer, from: left1, to: right1, congestion: external, bulk: {{volume: 1MB}}}}
"""
STEPWISE = """
import os, sys, tempfile, time
from steps import step
from ewan.labs.congestion.external import *
def is_read(path):
    try:
        return bool(open(path))
    except OSError:
        return False
print("seed", os.environ["EWAN_SEED"], [is_read(path) for path in sys.argv[2:]], flush=True)
assert "EWAN_SECRET" not in os.environ and tempfile.TemporaryFile()
if os.fork() == 0:
    os.setsid()
    time.sleep(3000)
serve(lambda record: WindowAnswer(record.cwnd_packets + step(int(sys.argv[1]))))
"""


def scenario(place: Path, cc: str) -> Path:
    place.mkdir(exist_ok=True)
    (place / "mine.py").write_text(STEPWISE)
    (place / "tcp_mine.c").write_text("")
    (place / "steps.py").write_text("def step(gain): return gain * 2\n")
    (place / "outside.scenario.yaml").write_text(SCENARIO.format(cc=cc))
    return place / "outside.scenario.yaml"


def test_a_scenario_has_the_program_with_its_files_and_runs_again_elsewhere(
    ewan: Ewan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EWAN_SECRET", "1")
    secret = tmp_path / "secret"
    secret.touch()
    file = scenario(tmp_path / "here", f'{{program: "mine.py ${{gain}} {secret} steps.py", files: [steps.py]}}')
    done = ewan("run", file.name, "--runtime", "virtual", cwd=file.parent)
    assert done.returncode == 0, done.stderr
    assert not [each for each in psutil.process_iter(["cmdline"]) if str(secret) in (each.info["cmdline"] or ())]
    (place,) = (file.parent / "results").glob("2*")
    series = [(run / "series.parquet").read_bytes() for run in sorted(place.glob("runs/*"))]
    assert len(set(series)) == 2
    # It does not see this machine beyond its own files.
    assert {log.read_text() for log in place.glob("runs/*/program.log")} == {"seed 1 [False, True]\n"}
    assert not list(place.glob("runs/*/controller"))
    assert sorted(path.name for path in place.glob("sources/controller-*/*")) == ["mine.py", "steps.py"]
    (file.parent / "mine.py").unlink()
    asked = ewan("exp", "rerun", str(place / "outside.tar.zst"), cwd=tmp_path)
    assert asked.returncode == 2 and f"beside the virtual kernel: mine.py 1 {secret}" in asked.stderr + asked.stdout
    again = ewan("exp", "rerun", str(place / "outside.tar.zst"), "--trust", cwd=tmp_path)
    assert again.returncode == 0 and "identical" in again.stdout, again.stdout + again.stderr


@pytest.mark.parametrize(
    ("cc", "why"),
    [
        ("{program: missing.py}", "missing.py: there is no such file"),
        ("{program: mine.py, files: [../mine]}", "cc.external.files: ../mine: there is no such file beside"),
        ("{program: mine.py, parameters: {a: 1}}", "cc.external.parameters: is of a module"),
        ("{source: tcp_mine.c}", 'cc.external.source "tcp_mine.c": is of a module'),
        ("{program: mine.py}, cubic: {source: tcp_mine.c}", "cc.cubic: the virtual kernel has a"),
        ("{}", "cc.external: write the program that sets its windows"),
        ("{program: mine.py}, mine: {program: mine.py}", 'cc.mine.program "mine.py": is of a program'),
    ],
)
def test_a_scenario_without_its_program_is_refused(ewan: Ewan, tmp_path: Path, cc: str, why: str) -> None:
    file = scenario(tmp_path, cc)
    for name in ("mine", "cubic"):
        if f"{name}:" in cc:
            file.write_text(file.read_text().replace("congestion: external", f"congestion: {name}"))
    done = ewan("run", file.name, "--runtime", "virtual", cwd=tmp_path)
    assert done.returncode == 2 and why in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("results/*"))


def test_a_flow_of_a_scenario_needs_the_program(ewan: Ewan, tmp_path: Path) -> None:
    file = scenario(tmp_path, "{program: mine.py}")
    file.write_text("\n".join(line for line in file.read_text().splitlines() if not line.startswith("cc:")))
    done = ewan("run", file.name, "--runtime", "virtual", cwd=tmp_path)
    assert done.returncode == 2 and "write cc: {external: {program: ./mine.py}}" in done.stderr
    file = scenario(tmp_path, "{program: mine.py}")
    done = ewan("run", file.name, "--runtime", "netns", cwd=tmp_path)
    assert done.returncode == 2 and "write --runtime virtual" in done.stderr
