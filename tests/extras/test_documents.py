"""Every command in README.md and docs/*.md: its words exist, and it ends as the document says when it is run.

The commands of all documents are run in their order, in one directory and with one state directory, as a reader does.
`ONLY_PARSED` says which are not, and why. Of those, and of commands that the text names, the command, its options
and the files of this tree that it names must exist.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from ewan import cli
from ewan.commands import current_name
from ewan.extras.machines.reading import parse as machines_of
from ewan.extras.testing.files import load as read_tests
from ewan.extras.transfers.reading import parse as requests_of
from ewan.generator.scenario import parse as parse_scenario
from ewan.labs.compile import HostFacts, compile
from ewan.labs.spec import parse
from tests.conftest import ROOT, Ewan
from tests.documents import DOCUMENTS, DocumentedCommand, commands, of_ewan, yaml_blocks

ONLY_PARSED = {
    r"^(git|cd) ": "downloads the project",
    r"^(python3 -m venv lab|lab/bin/)": "tests/test_wheel.py installs the wheel and runs the same",
    r"^sudo ": "needs containers: tests/containers run the same",
    r"RUNTIME=containerlab|^make (images|setup-containerlab)": "needs containers: tests/containers run the same",
    r"^make (kernel|check|test|bench|figures|torture|install|setup|bundle|quic)": "builds or measures for minutes",
    r"^ewan (lab|run) \S+( --size quick)? --runtime virtual$": "of the library: tests/test_library.py runs some",
    r"^ewan run quic-beside-cubic": "takes a minute: tests/test_quic_itself.py runs the libraries",
    r"^ewan run drain": "takes ten seconds: tests/test_state_conditions.py runs this scenario",
    r"^ewan run first --set .*--seeds": "takes minutes in the live clock, which the tests' environment names",
    r"^ewan kernel (add|verify)": "builds a kernel for minutes: tests/torture/own_kernels.py adds one, and verifies it",
    r"^ewan run queues-beside-the-kernel": "100 runs, or a kernel that is to be added: tests/test_library.py runs some",
    r"^ewan run bbr3-beside-google": "40 runs in a kernel that is to be added",
    r"failover": "takes half a minute: tests/test_routing.py runs the same",
    r"^ewan exp collect ": "needs shards: experiments/tests/test_shards.py collects some",
    r"^ewan exp archive ": "needs an experiment: tests/extras/test_reproduce.py archives one",
    r"^ewan results export ": "needs an experiment: analysis/tests/test_export.py exports one",
    r"^ewan course (hand-in|grade)": "needs a student's folder, or submissions: tests/extras/course has some",
    r"^ewan exp tag ": "needs an experiment: experiments/tests/test_tag.py tags one",
    r"--student 4711": "begins a lab that another document has begun for another student",
    r"^ewan course check": "ends with status 1 until all is answered: tests/extras/course has good students",
    r"^ewan run bufferbloat\.scenario\.yaml": "needs a student's folder: tests/extras/course runs those of labs",
    r"^make notebook": "installs JupyterLab, and serves until it is ended",
    r"^make studio": "serves until it is ended; tests/extras/studio starts it",
    r"^make hstts": "takes minutes: tests/test_workloads.py runs applications of the suite",
    r"^ewan transfer ": "takes a quarter of a minute: tests/test_transfer.py runs the command",
    r"ring-ospf|ring1|host1": "takes half a minute: tests/test_routing.py runs the same",
    r"--machines": "needs machines: tests/extras/machines has some",
    r"^ewan (test|bisect) ": "needs a file of tests: tests/extras/testing runs that of the page",
    r"root@box": "needs a box: tests/extras/test_box_vm.py has one",
    r"^ewan lab metrics( dumbbell.*)?$": "serves until it is ended, or needs a lab: tests/dashboards run it",
}
"""What a command's text has in it, and why it is not run."""

FILES = {
    # The files that documents speak of.
    "my.lab.yaml": "topology: dumbbell\nrtt: 100ms\nwan: {rate: 1 Gbps/s}\n",
    "tcp_mine.c": (ROOT / "labs/congestion/tests/tcp_mine.c").read_text(),
    "study.scenario.yaml": "lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 10Mbit/s}}\nseeds: 2\n"
    "sweep: {cc: [reno, cubic]}\n"
    'steps: [{name: load, from: left1, to: right1, congestion: "${cc}", for: 1s, bulk: {}}]\n',
    "my2.lab.yaml": "topology: dumbbell\nrtt: 100ms\nwan: {bandwith: 1Gbit/s}\n",
    "my.scenario.yaml": "name: two-variants\nlab: {topology: {dumbbell: {pairs: 4}}, rtt: 40ms}\nseeds: 5\n\nsteps:\n"
    '  - {name: files, from: "left[1-9]", to: "right[1-9]", congestion: cubic, bulk: {volume: 200MB}}\n',
}
LONGEST_S = 60
EVERY = [command for document in DOCUMENTS for command in commands(document)]


def reason(command: DocumentedCommand) -> str | None:
    return next((why for pattern, why in ONLY_PARSED.items() if re.search(pattern, command.text)), None)


PARSED = [command for command in EVERY if command.mention or reason(command)]


def once(every: list[DocumentedCommand]) -> list[DocumentedCommand]:
    """Each command once, where it stands first."""
    first: dict[str, DocumentedCommand] = {}
    for command in every:
        first.setdefault(command.text, command)
    return list(first.values())


RUN = once([command for command in EVERY if command not in PARSED])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands are run: the tree's library and the files that the documents speak of are there."""
    place = tmp_path_factory.mktemp("documents")
    (place / "labs").symlink_to(ROOT / "labs")
    for name, text in FILES.items():
        (place / name).write_text(text)
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/how-to/labs/hardware.md").read_text(), re.DOTALL)
    (place / "example").write_text(example)
    (place / "example").chmod(0o755)
    return place


@pytest.mark.parametrize("command", PARSED, ids=str)
def test_what_a_command_names_exists(command: DocumentedCommand) -> None:
    for words in alternatives(command):
        for own in of_ewan(words):
            parsed(own, command.mention)
        for word in words:
            if (
                re.match(r"(labs|docs|images|tests|generator|analysis|calibration|emulator|extras)/", word)
                or "LAB=labs/" in word
            ):
                assert (ROOT / word.rpartition("=")[2]).exists(), f"{word} is not there"


def alternatives(command: DocumentedCommand) -> list[list[str]]:
    """`ewan lab|up …` stands for `ewan lab …` and `ewan up …`."""
    first, second, *rest = command.words
    return [[first, word, *rest] for word in second.split("|")]


def parsed(words: list[str], mention: bool) -> None:
    """The command and its options exist; a mention may leave arguments out, and say so by "…"."""
    arguments = words[: words.index(">")] if ">" in words else words
    assert current_name(arguments) is None, f"{arguments[0]} is an old name"
    for attempt in (arguments, [word for word in arguments if word != "…"]):
        try:
            of_group(cli.main, "ewan", list(attempt))
            return
        except click.exceptions.Exit:  # of --help and --version
            return
        except click.MissingParameter:
            assert mention, f"an argument is missing: {words}"
            return
        except click.BadParameter as error:
            assert "does not exist" in error.message, error.message
            return
        except click.UsageError as error:
            if attempt == arguments and "…" in arguments:
                continue
            raise AssertionError(f"ewan {' '.join(words)}: {error.message}") from None


def of_group(command: click.Command, name: str, words: list[str]) -> None:
    """Reads the words of a command, and of the one in a group that they name; click's errors where they are wrong."""
    if not words and isinstance(command, click.Group):
        raise click.MissingParameter(ctx=click.Context(command), param_type="command")
    with command.make_context(name, list(words)) as context:
        group = context.command
        if isinstance(group, click.Group) and words and not words[0].startswith("-"):
            inner = group.get_command(context, words[0])
            assert inner is not None, f"{name} has no command {words[0]}"
            of_group(inner, words[0], words[1:])


@pytest.mark.untimed
@pytest.mark.parametrize("command", RUN, ids=str)
def test_a_command_ends_as_the_document_says(ewan: Ewan, place: Path, command: DocumentedCommand) -> None:
    lines = of_ewan(command.words)
    assert lines, "neither ewan's nor make's: write in ONLY_PARSED why it is not run"
    for words in lines:
        ended = ewan(*named(words), cwd=place, timeout=LONGEST_S)
        said = ended.stdout + ended.stderr
        if command.refusal:
            assert ended.returncode == 2, said
            shown = command.refusal.partition("…")[0].rstrip(", ")
            assert ended.stderr.startswith(shown), said
        elif ended.returncode == 1 and "the machine was busy" in ended.stderr:
            assert "close other programs" in ended.stderr  # what the documents say of a busy machine
        else:
            assert ended.returncode == 0, said


def named(words: list[str]) -> list[str]:
    """A live lab by a name of the tests' own: a person may have one of the documents' names up."""
    makes = words[0] == "up" or (words[0] == "lab" and " ".join(words[:2]) not in cli.names())
    live = makes and "virtual" not in words
    return [*words, "--name", "tdocs"] if live else words


def test_the_documents_have_commands_of_each_kind() -> None:
    """The lists are not empty because nothing was found."""
    assert len(RUN) >= 20 and len([each for each in PARSED if each.mention]) >= 40
    assert len([each for each in RUN if each.refusal]) >= 5
    for pattern in ONLY_PARSED:
        assert any(re.search(pattern, each.text) for each in EVERY), f"no document has {pattern}: take it out"


def test_a_command_that_stands_twice_is_run_where_it_stands_first() -> None:
    early, later, again = (
        DocumentedCommand("x", line, text) for line, text in enumerate(("make lab", "make down", "make lab"))
    )
    assert once([early, later, again]) == [early, later]


@pytest.mark.parametrize(
    "text",
    ["ewan lub dumbbell", "ewan lab dumbbell --rt 100ms", "make labb", "make lab TOPOL=dumbbell", "ewan run a b"],
)
def test_a_wrong_command_is_found(text: str) -> None:
    with pytest.raises(AssertionError):
        test_what_a_command_names_exists(DocumentedCommand("x", 1, text))


def _file(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


BLOCKS = [(path, line, text) for path in DOCUMENTS for line, text in yaml_blocks(path)]


@pytest.mark.parametrize(("path", "line", "text"), BLOCKS, ids=[f"{path.name}:{line}" for path, line, _ in BLOCKS])
def test_a_description_in_a_document_is_right(path: Path, line: int, text: str, tmp_path: Path) -> None:
    """Whole labs compile, whole scenarios give runs, requests of transfers are read; a piece of a lab is right where it
    belongs."""
    file = tmp_path / f"block.{'scenario' if 'steps:' in text else 'lab'}.yaml"
    for given in (*(ROOT / "labs/library").glob("*.csv"), ROOT / "labs/congestion/tests/tcp_mine.c"):
        shutil.copy(given, tmp_path)
    for folder in ("www", "weights"):
        (tmp_path / folder).mkdir()
    for program in ("mine.py", "policy.py"):
        (tmp_path / program).touch()
    (tmp_path / "frr.conf").write_text("router ospf\n")
    (tmp_path / "ospf.conf").write_text("interface eth0\n ip ospf hello-interval 10\n")
    if text.startswith("tests:"):
        assert read_tests(_file(tmp_path / "block.test.yaml", text))
    elif "steps:" in text:
        assert list(parse_scenario(text, file).runs().scheduled(HostFacts((0, 1), (), "virtual"), "virtual"))
    elif "machines:" in text:
        assert machines_of(text, file).machines
    elif "requests:" in text:
        assert requests_of(text, file, HostFacts((0, 1), (), "virtual")).problem.requests
    else:
        whole = text if "topology" in text else f"topology: dumbbell\n{text}"
        assert compile(parse(whole, file), HostFacts((0, 1), (), "live")).nodes


def test_what_make_runs_is_read_from_make() -> None:
    assert shutil.which("make")
    assert of_ewan(["make", "exec", "NODE=left1", "CMD=ping -c 3 right1"]) == [
        ["lab", "exec", "left1", "--", "sh", "-c", "ping -c 3 right1"]
    ]
    with pytest.raises(AssertionError):
        of_ewan(["make", "nothing-of-that-name"])
    assert subprocess.run(["make", "-n", "help"], cwd=ROOT, capture_output=True).returncode == 0
