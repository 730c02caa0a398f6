"""A class of twenty: `python -m tests.extras.course.twenty OUT [--lab bufferbloat]` makes what they hand in, and
grades it.

In: a lab that has a good student (`solutions/`). Out: OUT/handed-in/, OUT/students.csv, OUT/grades.csv and OUT/graded/
to look at by hand, and the table in lines, with each answer that is not right. Some students work with care, some are
careless, some write as one writes in German, some cheat, some are late. It takes a few minutes, and nothing is
asserted: what is fair is judged by who reads it.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from ewan.analysis.one_run import SingleRun
from ewan.extras.course import answer_check, answers, folder, hand_in, history, reading, submission, truths, verdicts
from ewan.extras.course.folder import Folder
from ewan.extras.course.reading import Lab
from ewan.extras.course.runs import Student
from ewan.labs.base.codec import replace
from ewan.labs.base.product import ROOT
from tests.extras.course import audit
from tests.extras.course.desk import Desk

SOLUTIONS = Path(__file__).parent / "solutions"
Answers = dict[str, Any]


@dataclasses.dataclass
class Maker:
    """`place`: where students' folders are; `out`: where they hand in."""

    lab: Lab
    place: Path
    out: Path

    def desk(self, student: str, language: str = "en") -> Desk:
        lab = reading.translated(self.lab, language) if language in self.lab.languages else self.lab
        return Desk.of(lab, student, self.place, self.place / "store")

    def solved(self, desk: Desk) -> Answers:
        """What a good student answers, who runs all that the text asks for."""
        file = SOLUTIONS / f"{self.lab.folder.name.replace('-', '_')}.py"
        spec = importlib.util.spec_from_file_location("solution", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        done = module.solve(desk)
        for command in desk.commands:
            if command.startswith("ewan run"):
                desk.run(command)
        return {
            name: f"{each} (Student {desk.folder.record.student}.)" if self.words(name) else each
            for name, each in done.items()
        }

    def words(self, name: str) -> bool:
        return self.lab.questions[name].answer == "words"

    def computed(self, desk: Desk) -> Answers:
        """The truths, as a student's own machine computes them, whose runs are nowhere in the folder."""
        with Student(desk.lab, desk.folder.drawing, desk.executor(self.place), SingleRun) as student:
            found = truths.of(student)
        told: Answers = {
            name: audit.answer_of(self.lab.questions[name], each) for name, each in found.items() if each.value
        }
        (bdp,) = [float(found["pipe"].value or 0)] if "pipe" in found else [0.0]
        return told | ({"tuned": {"buffer": f"{0.43 * bdp:.0f}B"}} if "tuned" in self.lab.questions else {})

    def write(self, mine: Folder, told: Mapping[str, Any]) -> None:
        lines = [
            f"{name}: {each}"
            if isinstance(each, str)
            else f"{name}: {{{', '.join(f'{k}: {v}' for k, v in each.items())}}}"
            for name, each in told.items()
        ]
        mine.answers.write_text("\n".join(lines) + "\n")

    def check(self, mine: Folder, desk: Desk, times: int) -> None:
        given = answers.load(mine.answers, mine.lab.questions)
        found = answer_check.check(mine.lab, mine.drawing, given, desk.executor(self.place), SingleRun, {})
        for _ in range(times):
            history.add(mine.path, verdicts.summary_of(found))

    def hand_in(
        self,
        mine: Folder,
        folder_name: str,
        change: Callable[[submission.Submission], submission.Submission] | None = None,
        name: str = "",
    ) -> None:
        made = hand_in.made(folder.load(mine.path, mine.lab.folder.parent))
        told = made.submission if change is None else change(made.submission)
        path = self.out / folder_name / (name or made.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(submission.packed(told))


def comma(told: Answers) -> Answers:
    """As one writes in German: 42,1 ms, 83,4 Pakete."""

    def one(text: str) -> str:
        return text.replace(".", ",").replace("packets", " Pakete").replace("ms", " msec").replace("kbit/s", " kBit/s")

    return {name: one(each) if isinstance(each, str) and each[:1].isdigit() else each for name, each in told.items()}


def two_digits(told: Answers) -> Answers:
    """Rounded more than the text asks for."""

    def one(text: str) -> str:
        number = next(text[:end] for end in range(len(text), 0, -1) if _is_number(text[:end]))
        rounded = f"{float(number):.2g}"
        plain = f"{float(rounded):f}".rstrip("0").rstrip(".")
        return plain + text[len(number) :]

    return {name: one(each) if isinstance(each, str) and each[:1].isdigit() else each for name, each in told.items()}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def made(maker: Maker) -> dict[str, str]:
    """What each student hands in; the kind of each, by number."""
    kinds: dict[str, str] = {}
    diligent: dict[str, tuple[Desk, Answers]] = {}

    def worked(number: str, kind: str, language: str = "en") -> tuple[Desk, Answers]:
        kinds[number] = kind
        desk = maker.desk(number, language)
        return desk, maker.solved(desk)

    def done(desk: Desk, told: Answers, checks: int = 3, **hand: Any) -> None:
        maker.write(desk.folder, told)
        maker.check(desk.folder, desk, checks)
        maker.hand_in(desk.folder, f"{desk.folder.record.student}_file", **hand)

    for number in ("5001", "5002", "5003", "5004"):
        diligent[number] = worked(number, "diligent")
        done(*diligent[number])
    desk, told = worked("5005", "diligent, German", "de")
    done(desk, comma(told))
    desk, told = worked("5006", "free text with all that YAML has a meaning for")
    told |= {name: "Solves: call. Not: pages [of others\n- {so\n> what" for name in told if maker.words(name)}
    done(desk, told)
    desk, told = worked("5007", "careless: two digits")
    done(desk, two_digits(told), 1)
    desk, told = worked("5008", "careless: bits for bytes, one way for both")
    done(desk, {**told, "pipe": told["pipe"].replace("B", "bit"), "full": "1ms"}, 1)
    desk, told = worked("5009", "careless: half of it broken by hand")
    first = next(iter(told))
    done(desk, {**told, first: "[1, 2"}, 0)
    desk, told = worked("5010", "incomplete")
    done(desk, dict(list(told.items())[: len(told) // 2]))
    desk, told = worked("5011", "many tries")
    done(desk, told, 40)
    for number, kind, checks in (
        ("5012", "cheats: computed, ran nothing", 1),
        ("5013", "cheats: computed, never checked", 0),
    ):
        kinds[number] = kind
        desk = maker.desk(number)
        done(desk, maker.computed(desk), checks)
    desk, told = worked("5014", "cheats: cut the journal")
    maker.write(desk.folder, told)
    maker.check(desk.folder, desk, 32)
    journal = desk.folder.path / history.FILE
    journal.write_text(journal.read_text().splitlines()[-1] + "\n")
    maker.hand_in(desk.folder, "5014_file")
    kinds["5015"] = "cheats: answers of 5001"
    desk = maker.desk("5015")
    done(desk, diligent["5001"][1])
    kinds["5016"] = "cheats: the file of 5002 under an own name"
    maker.hand_in(diligent["5002"][0].folder, "5016_file", name=f"{maker.lab.name}-5016.zip")
    kinds["5017"] = "cheats: the document of 5003 with an own number"
    maker.hand_in(
        diligent["5003"][0].folder,
        "5017_file",
        change=lambda told: replace(told, student="5017"),
        name=f"{maker.lab.name}-5017.zip",
    )
    desk, told = worked("5018", "late: half of it first, all of it later")
    maker.write(desk.folder, dict(list(told.items())[:4]))
    maker.check(desk.folder, desk, 2)
    maker.hand_in(desk.folder, "5018_first")
    done(desk, told)
    kinds["5019"] = "late: nothing yet"
    desk, told = worked("5020", "own work, words of 5004")
    done(desk, {**told, **{name: diligent["5004"][1][name] for name in told if maker.words(name)}})
    return kinds


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--lab", "name", default="bufferbloat", show_default=True)
def main(out: Path, name: str) -> None:
    """Make the class, grade it, and print the table."""
    out = out.absolute()
    (out / "work").mkdir(parents=True)
    kinds = made(Maker(reading.find(name), out / "work", out / "handed-in"))
    (out / "students.csv").write_text("student\n" + "\n".join(sorted(kinds)) + "\n")
    words = ["course", "grade", "handed-in", "--students", "students.csv", "--output", "graded", "--format", "students"]
    subprocess.run([sys.executable, str(ROOT / "ewan" / "cli.py"), *words, "--format", "json"], cwd=out, check=False)
    for row in csv.DictReader((out / "grades.csv").open()):
        keep = ("state", "points", "of", "right", "close", "wrong", "missing", "unreadable", "runs confirmed")
        told = " ".join(row[key] or "-" for key in (*keep, "runs not confirmed", "checks"))
        print(f"{row['student']} {kinds.get(row['student'], '')}: {told}; {row['why not']}; {row['to be looked at']}")
    told = json.loads((out / "graded/grades.json").read_text())
    for grade in told["grades"]:
        for each in grade.get("questions", ()):
            if each["verdict"] not in ("right", "teacher"):
                line = f"{each['answer']} is {each['verdict']}, true {each['truth']}: {each['say']}"
                print(f"  {grade['student']} {each['name']}: {line}")


if __name__ == "__main__":
    main()
