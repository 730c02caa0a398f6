"""`ewan new`: the files that a metric, an extra or a scenario begins with. They pass their tests as written."""

from __future__ import annotations

import re
import string
from pathlib import Path

import click

from ewan.labs.base import writing
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import pass_context
from ewan.labs.context import Context

SKELETONS = Path(__file__).resolve().parent / "skeletons"
FILES = {
    "extra": {
        "package/pyproject.toml": "pyproject.toml",
        "extra/package.py": "${package}/__init__.py",
        "extra/command.py": "${package}/command.py",
        "extra/test.py": "tests/test_${package}.py",
    },
    "metric": {
        "package/pyproject.toml": "pyproject.toml",
        "metric/package.py": "${package}/__init__.py",
        "metric/metric.py": "${package}/metric.py",
        "metric/test.py": "tests/test_${package}.py",
    },
    "scenario": {"scenario/scenario.yaml": "${name}.scenario.yaml"},
}
"""The templates of each kind, and which file each becomes: in a new folder NAME, a scenario in this directory."""
NEXT = {
    "extra": "install it: .venv/bin/pip install --no-build-isolation --no-deps -e {place}; then: ewan {name} dumbbell",
    "metric": "install it: .venv/bin/pip install --no-build-isolation --no-deps -e {place}; then a scenario may have "
    '"metrics: [{words}]"',
    "scenario": "run it: ewan run {name} --runtime virtual",
}
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@click.command("new")
@click.argument("kind", type=click.Choice(list(FILES)))
@click.argument("name")
@guarded
@pass_context
def new_command(context: Context, /, kind: str, name: str) -> None:
    """Write the first files of a metric, an extra or a scenario.

    \b
    ewan new scenario two-controls
    ewan new extra hello
    ewan new metric largest-share
    """
    if NAME.fullmatch(name) is None:
        raise Refused(f'"{name}": write small letters, digits and hyphens, beginning with a letter, like two-controls')
    place = Path() if kind == "scenario" else Path(name)
    words = {"name": name, "package": f"ewan_{name.replace('-', '_')}", "words": name.replace("-", " ")}
    made: dict[Path, bytes | str] = {
        place / string.Template(target).substitute(words): string.Template(
            (SKELETONS / f"{template}.in").read_text()
        ).substitute(words)
        for template, target in FILES[kind].items()
    }
    for there in [place] if kind != "scenario" else made:
        if there.exists():
            raise Refused(f"{there} is there already: write another name, or remove it")
    try:
        writing.write_all(made)
    except OSError as error:
        raise Refused(writing.trouble(error, place, "go to a directory where you may write")) from None
    for path in made:
        context.reporter.console.print(str(path), soft_wrap=True, markup=False)
    context.reporter.note(NEXT[kind].format(place=place, **words))
