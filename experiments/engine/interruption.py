"""The end of work on an experiment for the person who asked for it, also where it ends early.

In: an experiment's directory, work that gives an exit status. Out: that status, or one line that names the results that
are kept and the way to go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ewan.experiments.engine import verification
from ewan.labs import rundir
from ewan.labs.commands.errors import Incomplete, Refused
from ewan.labs.context import Context


def status_of(
    context: Context, directory: Path, work: Callable[[], int], kept: str | None = None, again: str | None = None
) -> int:
    """The exit status of work in an experiment's directory; an early end is one line. `kept`: the place of finished
    results, `again`: the command that goes on; that directory and `ewan exp resume` if absent."""

    resume = again or f"ewan exp resume {directory} goes on"
    try:
        status = work()
    except KeyboardInterrupt:
        if not directory.exists():
            raise Refused("interrupted: nothing was run") from None
        raise Refused(f"interrupted: what has ended is in {kept or directory}: {resume}") from None
    except rundir.DiskFullError as error:
        if not directory.exists():
            raise
        raise Incomplete(f"{error}: what was measured is kept: {resume}") from None
    except verification.UnverifiedLabError as error:
        raise Incomplete(str(error)) from None
    finally:
        if directory.exists():
            rundir.give_back(directory)
    if status:
        context.reporter.tell(f"not complete: {again or resume + ' and runs what is missing once more'}")
    return status
