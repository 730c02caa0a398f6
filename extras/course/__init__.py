"""Teaching labs that check themselves: parameters of each student, truths computed by running, verdicts and hints.

A lab is a directory of data (`reading.py`, `fields.py`). A student's values are drawn by hash (`parameters.py`) and put
into its files (`rendering.py`). Expressions are a closed vocabulary (`expressions.py`) of measures of runs
(`measures`); the runs that they need are read off them first, so that `truths.py` has all executed at once, through the
store (`runs.py`, `local_executor.py`). `verdicts.py` is pure, and never tells the truth. The command, the notebook
(`session.py`) and the grader check by `answer_check.py`. A submission is data of strangers (`archive.py`,
`submission.py`): only lab and student decide what is executed (`grading.py`, each in a process of its own, `pool.py`).
"""

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
