"""Teaching labs that check themselves: parameters of each student, truths computed by running, verdicts and hints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ewan.extra import Extra


def _course() -> click.Command:
    from ewan.extras.course.cli import course_command

    return course_command


def _course_function() -> Callable[..., Any]:
    from ewan.extras.course.session import opened

    return opened


EXTRA = Extra(commands={"course": _course}, functions={"course": _course_function})
