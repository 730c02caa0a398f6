"""A lab's files with a student's parameters in them. Pure.

In: a lab, a student's parameters. Out: scenarios whose `parameters:` have the student's values, comments and all else
as written; the text and files that end in `.j2`, which are Jinja2 templates of the same values; others as they are.
What cannot be rendered is a DescriptionError that names the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jinja2
import yaml

from ewan.extras.course import axes, markdown, words
from ewan.extras.course.fields import Question
from ewan.extras.course.measures.base import Value
from ewan.extras.course.parameters import StudentParameters
from ewan.extras.course.reading import TEMPLATE, Lab
from ewan.generator.scenario.parameters import marked
from ewan.labs.spec import DescriptionError, names

TemplateValues = Mapping[str, str | Mapping[str, Value]]
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%/-+")


def files(lab: Lab, drawing: StudentParameters, kept: bool = False) -> dict[str, bytes]:
    """All files of a lab but its text, for a student, by name; `kept`: also those that only truths are run with."""
    found = {}
    for raw, content in {**lab.files, **(lab.kept if kept else {})}.items():
        name, file = raw.removesuffix(TEMPLATE), str(lab.folder / raw)
        if name != raw:
            content = template(content.decode(), file, shown(lab, drawing)).encode()
        if name.endswith(names.SCENARIO):
            content = scenario(content.decode(), file, drawing.texts).encode()
        found[name] = content
    return found


def shown(lab: Lab, drawing: StudentParameters) -> TemplateValues:
    """Return the values that templates know: parameters as they are written, in `numbers` in SI base units, and the
    student."""
    return {**drawing.texts, "numbers": drawing.numbers, "student": drawing.student, "lab": lab.name}


def scenario(text: str, file: str, values: Mapping[str, str]) -> str:
    """A scenario whose own `parameters:` have these values, as far as it has them; all else of it is the same."""
    begin, end = marked("${x}")[0], marked("${x}")[-1]
    plain = marked(text)
    try:
        root = yaml.compose(plain, Loader=_LOADER)
    except yaml.YAMLError:
        raise DescriptionError(f"{file}: is no YAML: write a scenario") from None
    changes: list[tuple[int, int, str]] = []
    if isinstance(root, yaml.MappingNode):
        for key, group in root.value:
            if key.value == "parameters" and isinstance(group, yaml.MappingNode):
                changes = [
                    (each.start_mark.index, each.end_mark.index, _scalar(values[name.value]))
                    for name, each in group.value
                    if name.value in values
                ]
    for first, last, value in sorted(changes, reverse=True):
        plain = plain[:first] + value + plain[last:]
    return plain.replace(begin, "${").replace(end, "}")


def _scalar(text: str) -> str:
    """A value as YAML that stays text."""
    return text if set(text) <= _PLAIN else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def template(text: str, file: str, values: TemplateValues, ask: Callable[[str], str] | None = None) -> str:
    """A text with a student's values in place of `{{ name }}`; `ask` writes what `{{ question(…) }}` stands for."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)
    functions = {} if ask is None else {"question": ask}
    try:
        return environment.from_string(text).render({**values, **functions})
    except jinja2.TemplateSyntaxError as error:
        raise DescriptionError(f"{file}:{error.lineno}: {error.message}") from None
    except jinja2.UndefinedError as error:
        raise DescriptionError(f"{file}: {error.message}: write a parameter of course.yaml") from None


def asked(
    questions: Mapping[str, Question], file: str, seen: list[str], write: Callable[[Question], str]
) -> Callable[[str], str]:
    """Return the function `question("name")` of a text; `seen` gets the names in order."""

    def ask(name: str) -> str:
        if name not in questions:
            raise DescriptionError(f'{file}: question("{name}"): there is none of this name in course.yaml')
        if name in seen:
            raise DescriptionError(f'{file}: question("{name}"): is asked twice: ask it once')
        seen.append(name)
        return write(questions[name])

    return ask


def text(lab: Lab, drawing: StudentParameters, write: Callable[[Question], str]) -> str:
    """The lab's text for a student, each question as `write` has it; DescriptionError where one is not asked."""
    file, seen = str(lab.folder / "text.md"), []  # type: tuple[str, list[str]]
    result = template(lab.text, file, shown(lab, drawing), asked(lab.questions, file, seen, write))
    if missing := [name for name in lab.questions if name not in seen]:
        raise DescriptionError(f'{file}: lacks {{{{ question("{missing[0]}") }}}}: ask each question where it comes up')
    for block in markdown.blocks(result):
        if block.kind == "axes":
            try:
                axes.read(block.text)
            except ValueError as error:
                raise DescriptionError(f"{file}: {error}") from None
    for name, question in lab.questions.items():
        if question.predicts is not None and seen.index(name) > seen.index(question.predicts):
            raise DescriptionError(f'{file}: question("{name}"): predicts "{question.predicts}": ask it before that')
    return markdown.headed(result, markdown.head(lab.course, lab.before, words.of(lab.language)))
