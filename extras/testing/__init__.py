"""Tests of network programs without Python: `ewan test FILE.yaml`, and `ewan bisect`, for commits that changed one."""

from __future__ import annotations

import click

from ewan.extra import Extra


def _test() -> click.Command:
    from ewan.extras.testing.cli import test_command

    return test_command


def _bisect() -> click.Command:
    from ewan.extras.testing.bisect_cli import bisect_command

    return bisect_command


EXTRA = Extra(commands={"test": _test, "bisect": _bisect})
