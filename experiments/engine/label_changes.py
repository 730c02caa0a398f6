"""Changes to the labels of an experiment that has ended: its name, tags and note.

In: an experiment's directory, what to add and what to take away. Out: its experiment.json, replaced in one step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ewan.experiments.engine.experiment import Experiment
from ewan.labs import rundir
from ewan.labs.base.errors import UserError
from ewan.labs.base.writing import trouble
from ewan.labs.record import labels
from ewan.labs.record.experiment import ExperimentDocument


class LabelError(UserError):
    """Words that cannot be taken, or a record that cannot be written."""


def relabel(
    directory: Path, changes: Sequence[str] = (), name: str | None = None, note: str | None = None
) -> ExperimentDocument:
    """`changes`: `+TAG`, `-TAG`; a name and a note that are None stay. Without a change, the document as it is.

    UserError where it cannot be: LabelError, or that of an experiment which another process writes.
    """
    if changes or name is not None or note is not None:
        with Experiment.load(directory).locked():
            _change(Experiment.load(directory), changes, name, note)  # as it is under the lock
        rundir.give_back(directory)
    return Experiment.load(directory).document


def _change(experiment: Experiment, changes: Sequence[str], name: str | None, note: str | None) -> None:
    document = experiment.document
    try:
        if name is not None:
            document.name = labels.name_of(name)
        if note is not None:
            document.note = labels.note_of(note)
        if changes:
            document.tags = labels.changed(document.tags, changes)
        experiment.save()
    except ValueError as error:
        raise LabelError(str(error)) from None
    except OSError as error:
        raise LabelError(trouble(error, experiment.directory, "run it as who may write there")) from None
