"""A lab of the course in Python, for notebooks: `import ewan; lab = ewan.course()`.

In: a student's folder. Out: commands that run, figures, answers that are written into answers.yaml, verdicts. All of it
is what the commands do; what is wrong is a ValueError of one line.

    lab.run("ewan run bufferbloat.scenario.yaml --runtime virtual")
    lab.figure("rtt over time, lines buffer")
    lab.answer("pipe", "86.6kB")
    lab.check()
"""

from __future__ import annotations

import html
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ewan.extras.course import (
    answer_check,
    answer_file,
    answers,
    folder,
    history,
    local_executor,
    reading,
    verdicts,
    words,
)
from ewan.extras.course.folder import Folder
from ewan.extras.course.runs import See
from ewan.extras.course.verdicts import QuestionVerdict
from ewan.labs.base import writing as files
from ewan.labs.base.errors import UserError
from ewan.labs.base.product import RESULTS
from ewan.labs.base.reporter import Reporter
from ewan.labs.base.wording import nearest
from ewan.labs.context import Context
from ewan.labs.record.experiment import DOCUMENT
from ewan.labs.runtime.base import LabError

COLUMNS = "110"
"""The width of the output of commands in a notebook."""
COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE")
"""Variables of the environment by which Jupyter asks programs for colours."""


@dataclass(frozen=True)
class CheckTable:
    """The verdicts of a check, which a notebook shows as a table."""

    title: str
    verdicts: Sequence[QuestionVerdict]
    language: str

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Question, answer, verdict and hint, in words."""
        own = words.of(self.language)
        return [(each.question, verdicts.short(each), own.states[each.state], each.say) for each in self.verdicts]

    @property
    def points(self) -> str:
        """`6 of 14 points; 2 more from the teacher`."""
        return verdicts.points_in_words(self.verdicts, words.of(self.language))

    def __repr__(self) -> str:
        width = max((len(row[0]) for row in self.rows()), default=0)
        lines = [f"{name:{width}}  {state}{': ' * bool(say)}{say}" for name, _, state, say in self.rows()]
        return "\n".join([self.title, *lines, self.points])

    def _repr_html_(self) -> str:
        left = 'style="text-align:left"'
        heads = "".join(f"<th {left}>{each}</th>" for each in words.of(self.language).columns)
        lines = ("".join(f"<td {left}>{html.escape(each)}</td>" for each in row) for row in self.rows())
        table = "".join(f"<tr>{cells}</tr>" for cells in (heads, *lines))
        return f"<b>{html.escape(self.title)}</b><table>{table}</table>{html.escape(self.points)}"


class Session:
    """A student's folder. `results`: reads an experiment's directory (analysis.api.Results); `root`: where labs are."""

    def __init__(
        self, path: Path, context: Context, see: See, results: Callable[[Path], Any], root: Path = reading.LABS
    ) -> None:
        self._context, self._see, self._results = replace(context, reporter=Reporter(plain=True)), see, results
        self._folder: Folder = _plain(lambda: folder.find(None, path, root))

    @property
    def parameters(self) -> dict[str, str]:
        """This student's, as they are written."""
        return dict(self._folder.drawing.texts)

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {text}" for name, text in self.parameters.items())
        return f"{self._folder.lab.course.title}, student {self._folder.drawing.student}: {values}"

    def run(self, commands: str) -> None:
        """Runs lines of a shell in the folder, and shows what they print; ValueError where one fails."""
        own = str(Path(sys.executable).parent)
        environment = {name: each for name, each in self._context.environment.items() if name not in COLOURS}
        environment |= {"COLUMNS": COLUMNS, "NO_COLOR": "1"}
        environment["PATH"] = f"{own}:{environment.get('PATH', '')}"
        with subprocess.Popen(
            ["/bin/sh", "-ec", commands],
            cwd=self._folder.path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    print(line, end="", flush=True)
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
                raise
        if process.returncode:
            raise ValueError(f"{commands.strip()}: ended with status {process.returncode}, see above")

    def results(self) -> Any:
        """The experiment in this folder that ended last, as `ewan.load` gives it."""
        found = list((self._folder.path / RESULTS).glob(f"*/{DOCUMENT}"))
        if not found:
            raise ValueError(f"{self._folder.path / RESULTS}: there is no experiment yet: run a scenario first")
        return self._results(max(found, key=lambda path: path.stat().st_mtime_ns).parent)

    def figure(self, line: str) -> Any:
        """A figure of that (docs/how-to/experiments/figures.md), as reports draw it."""
        return self.results().figure(line)

    def answer(self, name: str, text: str | None = None, **settings: str) -> None:
        """Writes an answer into answers.yaml: `lab.answer("pipe", "1.2MB")`, `lab.answer("tuned", buffer="30kB")`.
        What is empty is not written."""
        questions = self._folder.lab.questions
        if name not in questions:
            raise ValueError(f"{name}: unknown question, {nearest(name, questions)}")
        given: str | dict[str, str] = settings if text is None else str(text)
        if not given or (isinstance(given, dict) and not all(given.values())):
            return
        file = self._folder.answers

        def work() -> None:
            before = file.read_text() if file.exists() else ""
            files.write(file, answer_file.put(before, name, given, questions, str(file)))

        _plain(work)

    def check(self) -> CheckTable:
        """The verdict on each answer; noted in the folder as a check is."""
        found: CheckTable = _plain(self._check)
        return found

    def _check(self) -> CheckTable:
        mine = folder.load(self._folder.path, self._folder.lab.folder.parent)
        given = answers.load(mine.answers, mine.lab.questions)
        for line in given.strange:
            self._context.reporter.warn(line)
        recorded = verdicts.recorded_predictions(each.verdicts for each in history.read(mine.path))
        with local_executor.here(self._context, mine.path) as executor:
            found = answer_check.check(mine.lab, mine.drawing, given, executor, self._see, recorded)
        try:
            history.add(mine.path, verdicts.summary_of(found))
        except LabError as error:  # the verdicts are given all the same
            self._context.reporter.warn(str(error))
        return CheckTable(mine.lab.course.title, tuple(found), mine.lab.language)


def _plain(work: Callable[[], Any]) -> Any:
    """Call `work`; a UserError of a command is a ValueError here."""
    try:
        return work()
    except UserError as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from None


def opened(folder: str | os.PathLike[str] = ".") -> Session:
    """A lab of the course, for notebooks, in a folder that `ewan course start` made: `ewan.course().check()`."""
    from ewan.analysis.api import Results
    from ewan.analysis.one_run import SingleRun

    return Session(Path(folder), Context.of(os.environ), SingleRun, Results)
