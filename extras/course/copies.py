"""Submissions that are not their students' own: found by holding all of them beside each other. Pure.

In: grades of all submissions. Out: the same, each with a line for what a teacher should look at. Students have
different parameters, so a wrong answer that is right for another student, and a run of another student's scenario, tell
where they come from: the line says so at the copy, and at the original what is found elsewhere. Where the two cannot be
distinguished, both have the same line. Of several submissions of a student the latest one counts, and the others say
which that is. Nothing here changes a point: a teacher judges.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from ewan.extras.course.grade import Grade, QuestionGrade
from ewan.labs.base.codec import replace

FEWEST_RIGHT = 2
"""So many answers that are wrong for one student and right for another are no accident."""
FEWEST_SAME = 3
"""So many wrong answers that two students share are none either."""
FEWEST_LETTERS = 60
"""The fewest letters of a text that two students do not write alike."""
DIGITS = 6


def looked_at(grades: Sequence[Grade]) -> list[Grade]:
    """The grades in their order, with notes on what two of them share."""
    notes: dict[int, list[str]] = defaultdict(list)
    by_lab: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(grades):
        if each.status == "graded":
            by_lab[each.lab].append(number)
    for number, line in _same_files(grades):
        notes[number].append(line)
    for numbers in by_lab.values():
        for find in (_twice, _answers, _words, _runs):
            for number, line in find(grades, numbers):
                notes[number].append(line)
    for number, each in enumerate(grades):
        if line := _misnamed(each):
            notes[number].append(line)
    later = {number: line for numbers in by_lab.values() for number, line in _replaced(grades, numbers)}
    return [replace(each.noted(*notes[number]), replaced=later.get(number, "")) for number, each in enumerate(grades)]


def _by_student(grades: Sequence[Grade], numbers: Sequence[int]) -> Iterator[list[int]]:
    """Yield the submissions of each student, the counting one last: it is not named for another student, and has the
    latest activity, or else the last name."""
    found: dict[str, list[int]] = defaultdict(list)
    for number in numbers:
        found[grades[number].student].append(number)
    for those in found.values():
        yield sorted(those, key=lambda number: _counts(grades[number]))


def _counts(each: Grade) -> tuple[bool, str, int, list[int | str]]:
    """A key that sorts the submissions of a student, the counting one last. Times have whole seconds, and the checks
    of a folder become more. Where nothing was done between two, numbers in their names say it: browsers and platforms
    call a second file `name (1).zip` or `name-1.zip`."""
    stem = re.sub(r"\.zip$", "", each.file, flags=re.IGNORECASE)
    natural = [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", stem)]
    return not _misnamed(each), each.latest, each.checks, natural


def _replaced(grades: Sequence[Grade], numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Submissions that do not count, each with the file of the submission that counts."""
    for *earlier, last in _by_student(grades, numbers):
        for number in earlier:
            yield number, grades[last].file


def _same_files(grades: Sequence[Grade]) -> Iterator[tuple[int, str]]:
    first: dict[str, int] = {}
    for number, each in enumerate(grades):
        if not each.sha256:
            continue
        if (other := first.setdefault(each.sha256, number)) != number:
            yield number, f"the same file as {grades[other].file}"
            yield other, f"the same file as {each.file}"


def _twice(grades: Sequence[Grade], numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Two submissions of one student: the teacher knows which of them counts."""
    for *earlier, last in _by_student(grades, numbers):
        others = [grades[number].file for number in earlier if grades[number].sha256 != grades[last].sha256]
        if others:
            yield last, f"{grades[last].student} handed in more than once: this one counts, not {_few(others)}"
        for number in earlier:
            yield number, f"does not count: {grades[last].file} does, of the same student"


def _answers(grades: Sequence[Grade], numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Answers that are wrong here and right for another student, or as wrong elsewhere.

    Where the same is true for both, the same mistake gives the same answer: that counts for nothing.
    """
    given: dict[tuple[str, str], list[tuple[int, QuestionGrade]]] = defaultdict(list)
    for number in numbers:
        for each in grades[number].questions:
            if each.quantity and each.value is not None and each.verdict in ("right", "wrong"):
                given[each.name, f"{each.value:.{DIGITS - 1}e}"].append((number, each))
    right, alike_wrong = defaultdict[tuple[int, int], set[str]](set), defaultdict[tuple[int, int], set[str]](set)
    for (name, _), those in given.items():
        for number, mine in those if len(those) > 1 else ():
            for other, theirs in those:
                own = grades[other].student == grades[number].student
                if mine.verdict == "wrong" and not own and mine.truth != theirs.truth:
                    (right if theirs.verdict == "right" else alike_wrong)[number, other].add(name)
    rightly, wrongly = _counted(right), _counted(alike_wrong)
    for found, fewest, words in (
        (rightly, FEWEST_RIGHT, "the right ones of"),
        (wrongly, FEWEST_SAME, "the same as those of"),
    ):
        alike: dict[tuple[int, int], list[str]] = defaultdict(list)
        for (number, other), count in sorted(found.items()):
            if count >= fewest:
                alike[number, count].append(grades[other].student)
        for (number, count), others in alike.items():
            yield number, f"{count} wrong answers are {words} {_few(others)}"
    taken: dict[tuple[int, int], list[str]] = defaultdict(list)
    for (number, other), count in sorted(rightly.items()):
        if count >= FEWEST_RIGHT:
            taken[other, count].append(grades[number].student)
    for (other, count), students in taken.items():
        yield other, f"{count} of its right answers are in the submission of {_few(students)} too, where they are wrong"


def _counted(found: Mapping[tuple[int, int], set[str]]) -> dict[tuple[int, int], int]:
    """Return the number of shared answers, by the two submissions. Whoever shares only a part of what another one
    explains has values in common with that one by chance."""
    by_first: dict[int, list[set[str]]] = defaultdict(list)
    for (number, _), names in found.items():
        by_first[number].append(names)
    return {
        pair: len(names) for pair, names in found.items() if not any(names < others for others in by_first[pair[0]])
    }


def _words(grades: Sequence[Grade], numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
    written: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number in numbers:
        for each in grades[number].questions:
            text = " ".join(re.findall(r"\w+", each.answer.casefold()))
            if each.kind == "words" and len(text) >= FEWEST_LETTERS:
                written[each.name, text].append(number)
    for (question, _), those in written.items():
        students = sorted({grades[number].student for number in those})
        for number in those if len(students) > 1 else ():
            others = [name for name in students if name != grades[number].student]
            yield number, f"the text of {question} is the same as that of {_few(others)}"


def _runs(grades: Sequence[Grade], numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Runs of another student's scenarios."""
    whose: dict[str, set[str]] = defaultdict(set)
    for number in numbers:
        for inputs in grades[number].own:
            whose[inputs].add(grades[number].student)
    for number in numbers:
        each = grades[number]
        foreign = Counter(
            student for run in each.runs if run.inputs not in each.own for student in sorted(whose.get(run.inputs, ()))
        )
        for student, count in sorted(foreign.items()):
            yield number, f"{count} of its runs are of the scenarios of {student}"
            for other in numbers:
                if grades[other].student == student:
                    yield other, f"{each.student} handed in {count} run{'s' * (count != 1)} of its scenarios"


def _misnamed(each: Grade) -> str:
    """`ewan course hand-in` names the file by lab and student: where the name says another student, one of the two is
    wrong. What people and browsers add behind the number, as in `_final` and ` (1)`, is no other student."""
    stem = PurePath(each.file).name.removesuffix(".zip")
    if each.status != "graded" or not stem.startswith(f"{each.lab}-"):
        return ""
    named = stem.removeprefix(f"{each.lab}-").lower()
    if re.fullmatch(rf"{re.escape(each.student)}(?:[^a-z0-9.@].*)?", named, re.DOTALL):
        return ""
    return f"the file is named for {named}, the submission is of {each.student}"


def _few(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} others" if len(names) > most else ""
    return ", ".join(names[:most]) + more
