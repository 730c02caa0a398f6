"""The command `bisect`: which commit of a project changed a value of a test.

In: a file of tests, a good and a bad commit, the command that builds the project. Out: the first commit whose value is
nearer to the bad one's. The labs are the same for all commits, so the value differs only by the programs. The work is
done in a worktree of git that is removed at the end; the user's own files stay as they are."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from ewan.experiments.engine import trust
from ewan.extras.testing import files, running
from ewan.extras.testing.files import FileTest
from ewan.labs.base import codec
from ewan.labs.base.errors import UserError
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.wording import nearest
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context, trust_option
from ewan.labs.context import Context


class BisectOutput(codec.Struct):
    """The first commit that changed the value, and the values of good, bad and that commit, in seconds for times."""

    commit: str
    title: str
    value: float
    good: float
    bad: float


@click.command("bisect")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--good", required=True, metavar="COMMIT", help="a commit at which the value was as it should be")
@click.option("--bad", default="HEAD", show_default=True, metavar="COMMIT", help="a commit at which it is not")
@click.option("--build", default="true", metavar="COMMAND", help="builds the project in its folder, before each run")
@click.option("--of", "step", metavar="STEP", help="whose end counts (default: the last program)")
@trust_option
@json_option(lambda: BisectOutput)
@guarded
@pass_context
def bisect_command(
    context: Context, file: Path, name: str | None, good: str, bad: str, build: str, step: str | None, as_json: bool
) -> None:
    """Find the commit of your project that changed how long a program takes in a test.

    FILE has tests (docs/how-to/testing/files.md), NAME is one of them. Each tried commit is checked out into a folder
    of its own and built there, and the test as it is now runs with it.

    \b
    ewan bisect network.test.yaml recovers --good v1.2 --build "cargo build --release"
    """
    tests = {test.name: test for test in files.load(file)}
    if name is None and len(tests) > 1:
        raise Refused(f"{file} has several tests: write one of {', '.join(tests)}")
    if name is not None and name not in tests:
        raise Refused(f"{file} has no test {name}: {nearest(name, tests)}")
    test = tests[name or next(iter(tests))]
    step = step or _last_program(test)
    if step not in test.programs:
        raise Refused(f'--of "{step}": runs no program in {test.name}: {nearest(step, test.programs)}')
    trust.ask_for_scenario(context, test.scenario.runs(), virtual=True)
    ends = [_commit(word, option) for word, option in ((good, "--good"), (bad, "--bad"))]
    if _git(Path.cwd(), "merge-base", *ends) != ends[0]:
        raise Refused(f"--good {good}: is no ancestor of {bad}: write an earlier commit, or exchange the two")
    inside = _inside(file)
    with (
        tempfile.TemporaryDirectory(prefix="ewan-bisect-") as scratch,
        _worktree(Path(scratch) / "project", ends[1]) as project,
    ):
        trial = Trial(project, project / inside, file.read_bytes(), test.name, step, build, Path(scratch))
        low, high = trial.value_of(ends[0]), trial.value_of(ends[1])
        context.reporter.tell(f"{step} ended at {low:.9g} s at {good}, and at {high:.9g} s at {bad}")
        if low == high:
            raise Refused(f"{step} ends at the same time at both commits: there is nothing to find")
        found, value = trial.first_changed(ends[0], ends[1], low, high, context)
        title = trial.git("log", "-1", "--format=%h %s (%an, %as)", found)
    context.reporter.tell(f"first changed by {title}: {value:.9g} s")
    if as_json:
        context.reporter.emit(BisectOutput(found, title, value, low, high))


class Trial:
    """Tries commits in a worktree."""

    def __init__(self, project: Path, file: Path, text: bytes, name: str, step: str, build: str, scratch: Path) -> None:
        self._project, self._file, self._text = project, file, text
        self._name, self._step, self._build = name, step, build
        self._scratch, self._runs = scratch, 0

    def git(self, *words: str) -> str:
        """The output of a command of git in the worktree."""
        return _git(self._project, *words)

    def commit(self, word: str) -> str:
        """The hash of the commit that a word means."""
        return self.git("rev-parse", "--verify", f"{word}^{{commit}}")

    def value_of(self, commit: str) -> float:
        """The time in seconds when the program ends at a commit; UserError where it cannot be tested."""
        self.git("checkout", "--quiet", "--force", "--detach", commit)
        words = ["sh", "-c", self._build]
        built = subprocess.run(words, cwd=self._project, capture_output=True, text=True, check=False)
        if built.returncode:
            last = (built.stderr or built.stdout).strip().splitlines()[-1:]
            why = "".join(f": {line}" for line in last)
            raise UserError(f"{commit[:12]}: `{self._build}` ended with status {built.returncode}{why}")
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_bytes(self._text)
        with contextlib.chdir(self._project):
            (test,) = (each for each in files.load(self._file) if each.name == self._name)
            case = next(running.cases([test]))
            self._runs += 1
            outcome = running.execute([case], self._scratch / f"run{self._runs}", 1, lambda outcome: None)[0]
        ended = outcome.ended_ns.get(self._step)
        if ended is None:
            raise UserError(f"{commit[:12]}: {self._step} did not end: {outcome.error or '; '.join(outcome.failures)}")
        return ended / NS_PER_SECOND

    def first_changed(self, good: str, bad: str, low: float, high: float, context: Context) -> tuple[str, float]:
        """The first commit whose value is nearer to that of the bad one, and its value."""
        values = {good: low, bad: high}
        self.git("bisect", "start", "--no-checkout", bad, good)
        try:
            while True:
                commit = self.commit("BISECT_HEAD")
                try:
                    value = values[commit] = self.value_of(commit)
                    word = "bad" if abs(value - high) < abs(value - low) else "good"
                    context.reporter.tell(f"{commit[:12]}: {value:.9g} s, {word}")
                except UserError as error:
                    word = "skip"
                    context.reporter.tell(f"{error}; skipped")
                said = self.git("bisect", word, commit)
                if "is the first bad commit" in said:
                    found = said.split(maxsplit=1)[0]
                    return found, values.get(found, high)
                if "only 'skip'ped commits left" in said or "cannot bisect more" in said:
                    raise UserError("the commits that are left cannot be tested: write another --good or --build")
        finally:
            self.git("bisect", "reset")


def _commit(word: str, option: str) -> str:
    """The hash of the commit that a word means in the user's repository."""
    try:
        return _git(Path.cwd(), "rev-parse", "--verify", "--quiet", f"{word}^{{commit}}")
    except UserError:
        raise Refused(f'{option} "{word}": is no commit of a repository of git here: write a commit or a tag') from None


def _inside(file: Path) -> Path:
    """The path of a file within the user's repository."""
    top = Path(_git(Path.cwd(), "rev-parse", "--show-toplevel")).resolve()
    if not file.resolve().is_relative_to(top):
        raise Refused(f"{file}: is outside of the repository {top}: put it there")
    return file.resolve().relative_to(top)


def _last_program(test: FileTest) -> str:
    """The last step that runs a program and is no service."""
    steps = [step.name for step in test.scenario.document.steps if step.run is not None and not step.service]
    if not steps:
        raise Refused(f"{test.name} runs no program that ends by itself: write --of STEP")
    return steps[-1]


@contextlib.contextmanager
def _worktree(place: Path, commit: str) -> Iterator[Path]:
    """A worktree of the repository of the current directory, for as long as the context lasts."""
    here = Path.cwd()
    _git(here, "worktree", "add", "--quiet", "--force", "--detach", str(place), commit)
    try:
        yield place
    finally:
        _git(here, "worktree", "remove", "--force", str(place))


def _git(folder: Path, *words: str) -> str:
    shown = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    if shown.returncode and not (words[0] == "bisect" and words[1] == "skip"):
        said = (shown.stderr or shown.stdout).strip().splitlines()[-1:]
        raise UserError(f"git {shlex.join(words)}: {''.join(said) or f'status {shown.returncode}'}")
    return shown.stdout.strip() or shown.stderr.strip()
