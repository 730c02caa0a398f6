"""The experiments of papers as targets: the results of each paper, the runs that find them again, and the verdict.

A target is a file: experiments, published numbers with tolerances, and shapes of curves as sentences (`shapes.py`).
`verdicts.py` is pure: it reads only summaries. An interrupted call goes on from `ledger.py`'s file."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _paper() -> click.Command:
    from ewan.extras.papers.cli import paper_command

    return paper_command


def _figures() -> click.Command:
    from ewan.extras.papers.paper_figures import figures_command

    return figures_command


EXTRA = Extra(commands={"suite papers": _paper, "suite figures": _figures})
