"""Files that are read, with changes: nothing ends in a traceback, hangs, takes much memory or more than one line.

Descriptions, scenarios, tables of delays, loss patterns, plans, programs, requests of traffic, experiments, their
tables and archives are changed at random and given to whoever reads them: a command, or where that would go on to run
traffic, what the command does before. Each has a process of its own with 5 s of processor time and 500 MB of memory.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ewan.analysis.tests import synthetic
from ewan.experiments.engine import archive, preparation
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.tests.origins import origin
from ewan.generator import scenario as scenarios
from ewan.labs.base.product import NODE_BINARY
from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import to_json
from ewan.labs.record.journal import JOURNAL
from ewan.labs.spec import load
from tests.forked import ROOT, Call, Done, Server
from tests.torture import mutations, readers

TIER = "torture"
QUICK = 400
LONG = 60_000

LIBRARY, GOLDEN = ROOT / "labs/library", ROOT / "tests/golden"
CPU_S = 5
MORE_BYTES = 500 << 20
LONGEST_LINE = 2000
THROUGH_A_SHELL = 200
"""One of so many trials calls the command as a person does."""


def trial(seed: int, place: Path) -> None:
    draw = random.Random(seed)
    kind = draw.choices(list(KINDS), [weight for weight, _ in KINDS.values()])[0]
    _, give = KINDS[kind]
    done, file = give(draw, place)
    try:
        judge(done, file)
    except AssertionError as error:
        raise AssertionError(f"{kind}: {file.name}: {error}") from None


def judge(done: Done, file: Path) -> None:
    """One line that names the file where it is refused, and nothing that a person must not see."""
    said = done.out[-1500:] + done.err[-1500:]
    assert done.signal is None, f"killed by {done.signal}: {said}"
    assert done.status in (0, 1, 2), f"status {done.status}: {said}"
    for word in ("Traceback", "panicked", "Exception ignored", "MemoryError"):
        assert word not in done.out + done.err, said
    assert done.cpu_s <= CPU_S, f"{done.cpu_s:.1f} s of processor time"
    if done.status:
        lines = done.err.splitlines()
        assert len(lines) == 1, f"{len(lines)} lines: {said}"
        assert len(lines[0]) <= LONGEST_LINE, f"a line of {len(lines[0])} characters: {said}"
        assert lines[0].isprintable(), repr(lines[0])
        assert re.search(r"\S: \S", lines[0]), f"no place or no reason: {said}"


@functools.cache
def server() -> Server:
    """One for all trials; it ends with the process."""
    made = Server(*readers.MODULES, "tests.torture.readers")
    atexit.register(made.close)
    return made


def command(words: list[str], place: Path, draw: random.Random) -> Done:
    if draw.randrange(THROUGH_A_SHELL):
        return server().command(words, place, cpu_s=CPU_S + 1, more_bytes=MORE_BYTES)
    whole = [sys.executable, str(ROOT / "ewan" / "cli.py"), *words]
    done = subprocess.run(whole, cwd=place, capture_output=True, text=True, timeout=120, check=False)
    return Done(done.returncode, None, done.stdout, done.stderr, 0, 0)


def read_by(function: str, path: Path) -> Done:
    call = f"tests.torture.readers:{function}"
    return server().run(Call(call, [str(path)], str(path.parent), cpu_s=CPU_S + 1, more_bytes=MORE_BYTES))


def node(words: list[str], place: Path) -> Done:
    """`ewan-node`, in the same limits."""
    limits = f"ulimit -t {CPU_S + 1}; ulimit -v {MORE_BYTES >> 10}; ulimit -c 0; exec timeout 60 "
    whole = ["sh", "-c", f'{limits}"$@"', "sh", str(NODE_BINARY), *words]
    done = subprocess.run(whole, cwd=place, capture_output=True, check=False)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    return Done(done.returncode, None, out, err, 0, 0)


def written(place: Path, name: str, content: bytes) -> Path:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# Text


@functools.cache
def descriptions() -> list[bytes]:
    return [path.read_bytes() for path in sorted([*LIBRARY.glob("*.lab.yaml"), *GOLDEN.glob("*.lab.yaml")])]


@functools.cache
def texts_of_scenarios() -> list[bytes]:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/reference/scenario.md").read_text(), re.DOTALL)
    assert blocks, "docs/reference/scenario.md has an example"
    return [
        *(path.read_bytes() for path in sorted(LIBRARY.glob("*.scenario.yaml"))),
        *(text.encode() for text in blocks),
    ]


def description(draw: random.Random, place: Path) -> tuple[Done, Path]:
    shutil.copy(GOLDEN / "stages.delays.txt", place)
    file = written(place, "x.lab.yaml", mutations.mutated(draw.choice(descriptions()), draw))
    clock = draw.choice((["--runtime", "virtual"], []))
    return command(["lab", "compile", file.name, "-o", "out", *clock], place, draw), file


def scenario(draw: random.Random, place: Path) -> tuple[Done, Path]:
    file = written(place, "x.scenario.yaml", mutations.mutated(draw.choice(texts_of_scenarios()), draw))
    return read_by("scenario", file), file


def table(draw: random.Random, place: Path) -> tuple[Done, Path]:
    """A file of delays or losses that a description names."""
    key, name, content = draw.choice(
        [
            ("delay: {table: NAME}", "delays.txt", (GOLDEN / "stages.delays.txt").read_bytes()),
            ("loss: {pattern: {file: NAME}}", "losses.txt", b"0001000100\n0000010001\n" * 20),
        ]
    )
    file = written(place, name, mutations.mutated(content, draw))
    written(place, "x.lab.yaml", f"topology: star\nwan: {{{key.replace('NAME', name)}}}\n".encode())
    return command(["lab", "compile", "x.lab.yaml", "-o", "out", "--runtime", "virtual"], place, draw), file


# What ewan-node reads


@functools.cache
def plans() -> list[bytes]:
    """The smaller ones of the golden plans: of a large one, most changes are alike."""
    small = compile(load(LIBRARY / "satellite.lab.yaml"), HostFacts((0, 1), (), "live"))
    return [to_json(small), *(path.read_bytes() for path in sorted(GOLDEN.glob("*.plan.json")))]


@functools.cache
def programs() -> list[bytes]:
    found = []
    for path in sorted(LIBRARY.glob("*.scenario.yaml")):
        found.append(next(preparation.jobs(scenarios.load(path).runs(), virtual=True)).program.to_json())
    return found


def plan(draw: random.Random, place: Path) -> tuple[Done, Path]:
    """The spinner of a lab that is not there: it reads the plan, then finds no namespace."""
    file = written(place, "state/plan.json", mutations.mutated(draw.choice(plans()), draw, structured=True))
    return node(["link", "--state", "state", "--spinner", "0", "--id", "none"], place), file


def program(draw: random.Random, place: Path) -> tuple[Done, Path]:
    """A program for a lab that is not there."""
    written(place, "state/plan.json", plans()[0])
    content = json.loads(draw.choice(programs()))
    for each in content.get("commands", ()):
        each["argv"] = ["true"]
    file = written(place, "program.json", mutations.mutated(json.dumps(content).encode(), draw, structured=True))
    (place / "out").mkdir()
    return node(["batch", "--state", "state", "--program", file.name, "--out", "out"], place), file


def request(draw: random.Random, place: Path) -> tuple[Done, Path]:
    """Traffic between nodes that are not there."""
    asked = [found["traffic"] for found in map(json.loads, programs()) if found.get("traffic")]
    content = json.dumps(draw.choice(asked)).encode()
    file = written(place, "request.json", mutations.mutated(content, draw, structured=True))
    (place / "out").mkdir()
    return node(["traffic", "--request", file.name, "--out", "out"], place), file


# Experiments


@functools.cache
def stored() -> Path:
    """An experiment that was not run, with all that a repetition reads, and its archive."""
    place = Path(tempfile.mkdtemp(prefix="ewan-mutants-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    directory = place / "x"
    directory.mkdir()
    made = Experiment.create(directory, origin(), "virtual")
    runs = scenarios.load(LIBRARY / "ping-under-load.scenario.yaml").runs()
    for job in itertools.islice(preparation.jobs(runs, virtual=True), 2):
        made.add(job)
    made.save()
    archive.pack(directory, "x")
    for entry in made.runs:
        made.save_run(entry)
    return directory


@functools.cache
def analysed() -> Path:
    place = Path(tempfile.mkdtemp(prefix="ewan-mutants-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    points = [{"congestion": name} for name in ("reno", "cubic")]
    synthetic.experiment(place / "x", points, seeds=(1,), pairs=1, seconds=2)
    return place / "x"


def packed(draw: random.Random, place: Path) -> tuple[Done, Path]:
    file = written(place, "x.tar.zst", mutations.mutated((stored() / "x.tar.zst").read_bytes(), draw))
    return read_by("experiment", file), file


def directory(draw: random.Random, place: Path) -> tuple[Done, Path]:
    """A file of an experiment's directory, before it is repeated."""
    shutil.copytree(stored(), place / "x")
    inputs = [place / "x/experiment.json", place / f"x/{JOURNAL}", *sorted(place.glob("x/runs/*/*.json"))]
    file = draw.choice(inputs[:2]) if draw.random() < 0.6 else draw.choice(inputs)
    file.write_bytes(mutations.mutated(file.read_bytes(), draw, structured=file.suffix == ".json"))
    if file not in inputs[:2]:
        (place / f"x/{JOURNAL}").unlink()
        synthetic.vouch(place / "x")
    done = read_by("experiment", place / "x")
    return done, file


def listed(draw: random.Random, place: Path) -> tuple[Done, Path]:
    shutil.copytree(analysed(), place / "results/x")
    file = draw.choice([found for found in sorted(place.glob("results/x/*.json")) if found.is_file()])
    file.write_bytes(mutations.mutated(file.read_bytes(), draw, structured=True))
    return command(["exp", "list", *draw.choice(([], ["--json"]))], place, draw), file


def reported(draw: random.Random, place: Path) -> tuple[Done, Path]:
    """A file of an experiment before its report; half of the time one whose record says that it is whole."""
    shutil.copytree(analysed(), place / "x")
    files = [found for found in sorted((place / "x").rglob("*")) if found.suffix in (".json", ".parquet", ".yaml")]
    file = place / "x/experiment.json" if draw.random() < 0.3 else draw.choice(files)
    file.write_bytes(mutations.mutated(file.read_bytes(), draw, structured=file.suffix == ".json"))
    if file.name != "experiment.json" and draw.random() < 0.5:
        synthetic.vouch(place / "x")
    return command(["results", "report", "x"], place, draw), file


KINDS: dict[str, tuple[int, Callable[[random.Random, Path], tuple[Done, Path]]]] = {
    "description": (300, description),
    "scenario": (300, scenario),
    "table": (60, table),
    "plan": (60, plan),
    "program": (60, program),
    "request": (60, request),
    "archive": (50, packed),
    "directory": (90, directory),
    "listed": (40, listed),
    "reported": (30, reported),
}
"""How often of a thousand, and what is made and read."""
