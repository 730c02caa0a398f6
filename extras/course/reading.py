"""Labs of the course: a directory each, `extras/course/labs/NN-name/`, with course.yaml, text.md, a lab and scenarios.

In: a lab's name, or the path of its directory; a language. Out: a `Lab`, with all of its files in memory. What is wrong
is a DescriptionError with its line. Adding a lab is adding a directory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import TypeVar

from pydantic import ValidationError

from ewan.extras.course import expressions
from ewan.extras.course.choices import differ
from ewan.extras.course.fields import LAB, Course, DrawnParameter, Overlay, Question
from ewan.labs.base.model import Model
from ewan.labs.base.reading import read_bytes, read_text
from ewan.labs.base.source import Path, Places, read_yaml
from ewan.labs.base.wording import nearest
from ewan.labs.spec import DescriptionError, names, text_of, translate

LABS = File(__file__).resolve().parent / "labs"
COURSE, TEXT, TEACHER = "course.yaml", "text.md", "teacher.md"
TEMPLATE = ".j2"
"""At the end of a file's name: it is a template of the student's parameters."""
KEPT = "kept"
"""The directory of what only truths are run with."""
PAGE = "docs/contribute/adding/course-lab.md"
ENGLISH = "en"
MOST_FILE = 4 << 20
_FOLDER = re.compile(r"(?P<number>[0-9]{2})-(?P<name>[a-z][a-z0-9-]*)")
_LANGUAGE = re.compile(r"(?:text|course)\.(?P<language>[a-z]{2})\.(?:md|yaml)")
_Kind = TypeVar("_Kind", bound=Model)


@dataclass(frozen=True)
class Lab:
    """A lab in one language. `files`: what a student's folder is made of, by name, `kept`: what only truths are run
    with; both as they are in the lab, before a student's parameters are put in. `places`: lines of course.yaml."""

    name: str
    number: int
    folder: File
    course: Course
    places: Places
    text: str
    files: Mapping[str, bytes]
    kept: Mapping[str, bytes]
    languages: tuple[str, ...]
    before: Mapping[str, int]
    """The number of each lab that is a prerequisite, by its name."""
    language: str = ENGLISH

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The names of its scenarios, those that only truths are run with last."""
        plain = [name.removesuffix(TEMPLATE) for name in (*self.files, *self.kept)]
        return tuple(name.removesuffix(names.SCENARIO) for name in plain if name.endswith(names.SCENARIO))

    @property
    def questions(self) -> dict[str, Question]:
        """By name, in order."""
        return {each.name: each for each in self.course.questions}

    @property
    def content(self) -> str:
        """SHA-256 of what decides questions and results: not of texts for people."""
        result = hashlib.sha256()
        own = {COURSE: read_bytes(self.folder / COURSE, MOST_FILE), **self.files}
        for name, content in sorted({**own, **{f"{KEPT}/{name}": each for name, each in self.kept.items()}}.items()):
            result.update(f"{name} {len(content)}\n".encode())
            result.update(content)
        return result.hexdigest()

    def scenario_of(self, question: Question) -> str:
        """The scenario that settings are of; the lab's own one where the question names none."""
        return question.of or self.scenarios[0]


def known(root: File = LABS) -> dict[str, File]:
    """The directory of each lab, by name, in order."""
    found = {}
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if (match := _FOLDER.fullmatch(folder.name)) and (folder / COURSE).is_file():
            found[match["name"]] = folder
    return found


def every(language: str = ENGLISH, root: File = LABS) -> Iterator[Lab]:
    """All labs in order; in English where one is not translated."""
    for folder in known(root).values():
        lab = read(folder)
        yield translated(lab, language) if language in lab.languages else lab


def find(word: str, language: str = ENGLISH, root: File = LABS) -> Lab:
    """A lab by its name, with its number or without; DescriptionError for an unknown one, or one that is not in this
    language."""
    there = known(root)
    match = _FOLDER.fullmatch(word)
    name = match["name"] if match else word
    if name not in there or (match and there[name].name != word):
        raise DescriptionError(f"{word}: there is no such lab, {nearest(word, there)}")
    return translated(read(there[name]), language)


def translated(lab: Lab, language: str) -> Lab:
    """The lab in another language; DescriptionError where it is in others."""
    if language == lab.language:
        return lab
    if language not in lab.languages:
        raise DescriptionError(
            f'{lab.name} is not in the language "{language}": write one of {", ".join(lab.languages)}'
        )
    text = _text(lab.folder / f"text.{language}.md")
    file = lab.folder / f"course.{language}.yaml"
    overlay, places = _model(file, Overlay, "title: …")
    mine = lab.questions
    for key, own_list, other_list in (
        ("prerequisites", lab.course.prerequisites, overlay.prerequisites),
        ("goals", lab.course.goals, overlay.goals),
    ):
        if len(own_list) != len(other_list):
            raise places.error((key,), f"has {len(other_list)} in its list: write {len(own_list)}")
    for number, (mine_said, said) in enumerate(zip(lab.course.prerequisites, overlay.prerequisites, strict=True)):
        if mine_said in lab.before and said != mine_said:
            raise places.error(("prerequisites", number), f'is the name of a lab: write "{mine_said}"')
    for name, words in overlay.questions.items():
        if name not in mine:
            raise places.error(("questions", name), f"unknown question, {nearest(name, mine)}")
        for key, own, other in (
            ("hints", mine[name].hints, words.hints),
            ("else", mine[name].holds or (), words.otherwise),
            ("choices", (mine[name].choices or ()) if words.choices else (), words.choices),
        ):
            if len(own) != len(other):
                raise places.error(("questions", name, key), f"has {len(other)} in its list: write {len(own)}")
        if words.choices and not differ(words.choices):
            raise places.error(("questions", name, "choices"), "write choices that differ in letters, digits or signs")
    if missing := [name for name in mine if name not in overlay.questions]:
        raise places.error(("questions",), f'lacks "{missing[0]}": write it too')
    questions = tuple(_overlaid(each, overlay) for each in lab.course.questions)
    told = {key: getattr(overlay, key) for key in ("title", "about", "prerequisites", "goals")}
    course = lab.course.model_copy(update={**told, "questions": questions})
    return replace(lab, course=course, text=text, language=language)


def _overlaid(question: Question, overlay: Overlay) -> Question:
    words = overlay.questions[question.name]
    hints = tuple(hint.model_copy(update={"say": say}) for hint, say in zip(question.hints, words.hints, strict=True))
    holds = question.holds and tuple(
        held.model_copy(update={"otherwise": say}) for held, say in zip(question.holds, words.otherwise, strict=True)
    )
    return question.in_words(words.choices or None, words.ask, hints, holds)


def read(folder: File) -> Lab:
    """A lab in English from its directory; DescriptionError for what is wrong in it."""
    match = _FOLDER.fullmatch(folder.resolve().name)
    if match is None:
        raise DescriptionError(f'{folder}: call the directory of a lab by its number and name, like "02-bufferbloat"')
    course, places = _model(folder / COURSE, Course, "title: …")
    files, kept = _files(folder), _files(folder / KEPT)
    if twice := {name.removesuffix(TEMPLATE) for name in files} & {name.removesuffix(TEMPLATE) for name in kept}:
        raise DescriptionError(f"{folder / KEPT / sorted(twice)[0]}: is in {folder} too: call one of them otherwise")
    languages = {found["language"] for each in folder.iterdir() if (found := _LANGUAGE.fullmatch(each.name))}
    lab = Lab(
        name=match["name"],
        number=int(match["number"]),
        folder=folder,
        course=course,
        places=places,
        text=_text(folder / TEXT),
        files=files,
        kept=kept,
        languages=(ENGLISH, *sorted(languages)),
        before=_before(course, places, folder.resolve()),
    )
    if not lab.scenarios:
        raise DescriptionError(f"{folder}: has no scenario: write one, *{names.SCENARIO}")
    _check(lab)
    return lab


def _before(course: Course, places: Places, folder: File) -> dict[str, int]:
    """The numbers of the labs that are prerequisites, by name: labs of the course, or those before it in its place."""
    beside = {name: each for name, each in known(folder.parent).items() if each.name < folder.name}
    course_labs = known() if folder.parent != LABS else {}
    there = {name: int(each.name[:2]) for name, each in {**course_labs, **beside}.items()}
    wanted = {word: place for place, word in enumerate(course.prerequisites) if LAB.fullmatch(word)}
    for word, place in wanted.items():
        if word not in there:
            near = nearest(word, there) if there else "and this is the first one"
            error = f"no lab of this name comes before this one, {near}; write several words for what is no lab"
            raise places.error(("prerequisites", place), error)
    return {word: there[word] for word in wanted}


def _files(folder: File) -> dict[str, bytes]:
    """Return the files that a student's folder is made of; none where the directory is not there."""
    found = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        own = path.name in (COURSE, TEXT, TEACHER) or _LANGUAGE.fullmatch(path.name) or path.name.startswith(".")
        if own or not path.is_file():
            continue
        try:
            found[path.name] = read_bytes(path, MOST_FILE)
        except OSError as error:
            raise DescriptionError(f"{path}: {error.strerror}") from None
    return found


def _text(file: File) -> str:
    try:
        return read_text(file)
    except OSError as error:
        raise DescriptionError(f"{file}: {error.strerror}: a lab has its text there") from None


def _model(file: File, kind: type[_Kind], least: str) -> tuple[_Kind, Places]:
    raw, places = read_yaml(text_of(file, f"write {file.name}"), str(file), least)
    if not isinstance(raw, dict):
        raise places.error((), f'consists of keys: write "{least}" and so on')
    try:
        return kind.model_validate(raw), places
    except ValidationError as error:
        raise translate(error, places, kind, PAGE) from None


def _check(lab: Lab) -> None:
    """Each name is written once and known where it is used, and each expression is one."""
    seen: set[str] = set()
    known_names = set(lab.course.parameters)
    for name, text in lab.course.values.items():
        if name in known_names:
            raise lab.places.error(("values", name), "there is a parameter or value of this name: write another")
        _expression(lab, text, known_names, ("values", name))
        known_names.add(name)
    for name in lab.course.parameters:
        _drawn(lab, name, lab.course.parameters[name])
    for index, question in enumerate(lab.course.questions):
        at: Path = ("questions", index)
        if question.name in seen:
            raise lab.places.error((*at, "name"), "there is a question of this name: write another")
        seen.add(question.name)
        if question.of is not None and question.of not in lab.scenarios:
            raise lab.places.error((*at, "of"), f"there is no such scenario, {nearest(question.of, lab.scenarios)}")
        if question.predicts is not None:
            later = [each.name for each in lab.course.questions[index + 1 :] if each.predicts is None]
            if question.predicts not in later:
                near = nearest(question.predicts, later) if later else "leave the prediction out"
                raise lab.places.error((*at, "predicts"), f"no question of this name comes later, {near}")
            other = next(each.answer for each in lab.course.questions if each.name == question.predicts)
            if question.answer not in (other, "choice"):
                said = f"a prediction of an answer that is a {other} is a {other} or a choice: write another kind"
                raise lab.places.error((*at, "answer"), said)
        for key in ("truth", "closed"):
            if (text := getattr(question, key)) is not None:
                _expression(lab, text, known_names, (*at, key))
        for number, hint in enumerate(question.hints):
            if hint.given is not None:
                _expression(lab, hint.given, known_names, (*at, "hints", number, "if"))
        for key, setting in (question.settings or {}).items():
            if setting.bdp is not None:
                _expression(lab, setting.bdp, set(lab.course.parameters), (*at, "settings", key, "bdp"))
        for number, held in enumerate(question.holds or ()):
            _expression(lab, held.that, known_names, (*at, "holds", number, "that"), set(question.settings or ()))


def _drawn(lab: Lab, name: str, drawn: DrawnParameter) -> None:
    if len(set(drawn.values)) < 2:
        raise lab.places.error(("parameters", name), "has one value for all: write it into the scenario")


def _expression(lab: Lab, text: str, known_names: set[str], path: Path, settings: set[str] | None = None) -> None:
    try:
        expressions.check(text, known_names, settings or ())
        for call in expressions.calls(text):
            scenario = call.keywords.get("of")
            if "of" in call.keywords and scenario is not None and scenario not in lab.scenarios:
                raise ValueError(f'there is no scenario "{scenario}": {nearest(str(scenario), lab.scenarios)}')
            if "of" not in call.keywords and len(lab.scenarios) > 1 and settings is None:
                raise ValueError(f'of which scenario? write {call.name}(…, of="{lab.scenarios[0]}")')
    except ValueError as error:
        raise lab.places.error(path, str(error)) from None
