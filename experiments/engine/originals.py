"""A stored experiment, wherever it is: its directory, its archive (.tar.zst), or a crate of it (a directory or .zip).

In: a path. Out: the `Experiment`, unpacked for as long as it is looked at, and whether its files are those that were
written.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ewan.experiments.engine import archive, sums
from ewan.experiments.engine.experiment import Experiment
from ewan.labs.record.experiment import DOCUMENT
from ewan.labs.runtime.base import LabError


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Experiment]:
    """The experiment in a directory, or in an archive or crate, which is unpacked for as long as it is looked at."""
    if path.is_dir():
        yield Experiment.load(path)
        return
    with tempfile.TemporaryDirectory(prefix="ewan-rerun-") as place:
        yield Experiment.load(archive.unpack(path, Path(place)), shown=path)


def intact(before: Experiment, original: Path) -> None:
    """LabError where files of the original, or of the crate that holds it, are not those that were written."""
    sums.check(before.directory, original)
    try:
        before.check()
    except LabError as error:
        if original.is_dir():
            raise
        name = str(error).removeprefix(f"{before.directory}/").partition(":")[0]
        raise LabError(
            f"{original}: {name} in it is damaged or missing, it is not what {DOCUMENT} records: take another copy"
        ) from None
