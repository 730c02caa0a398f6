"""What a command says of what people wrote."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ewan.labs.base import codec
from ewan.labs.base.reporter import Reporter

LINE = "answers.yaml:3: [/red]pipe [bold]1[/bold] [1, 2 :smile: \\[x]"


@pytest.mark.parametrize("plain", [False, True])
def test_brackets_in_messages_are_brackets(plain: bool, capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(plain=plain)
    with reporter.progress(LINE) as progress:
        progress.step(LINE)
        progress.step("", LINE)
    for say in (reporter.note, reporter.warn, reporter.tell):
        say(LINE)
    reporter.console.print(LINE, soft_wrap=True)
    said = capsys.readouterr()
    assert said.err.splitlines() == [LINE, LINE, LINE, f"warning: {LINE}", LINE]
    assert said.out == f"{LINE}\n"


def test_brackets_in_progress_on_a_terminal_are_brackets() -> None:
    reporter = Reporter()
    reporter.messages = Console(file=io.StringIO(), force_terminal=True, width=200)
    with reporter.progress(LINE) as progress:
        for say in (progress.update, progress.step, progress.tick):
            say(LINE)


def test_values_of_the_codecs_types_are_written_as_json(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    class Pair(codec.Struct):
        left: str
        right: int

    Reporter().emit({"pairs": [Pair("a", 1)]})
    assert (
        capfdbinary.readouterr().out == b'{\n  "pairs": [\n    {\n      "left": "a",\n      "right": 1\n    }\n  ]\n}\n'
    )
