"""The third stage: a certificate for each kind of lab that the runs use, before any of them is executed.

In: runs, and calibration's verification. Out: certificates/<first 12 digits of the plan's hash>.json, and in each run's
entry the name of its own. Plans that differ only by their seeds share one. In the virtual clock a certificate holds for
the same plan, kernel and node binary for ever, so an earlier one of the experiment is taken up again."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ewan.experiments.engine.deployment import Deployment
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Parts
from ewan.experiments.engine.progress import Board
from ewan.experiments.engine.stored_runs import ResultKeeper
from ewan.labs import record, routes
from ewan.labs.base import writing
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.record import CERTIFICATES_FOLDER, Certificate, Row
from ewan.labs.record.experiment import Entry, damage
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.run_directory import occupied
from ewan.labs.runtime.sweep import sweep

_DIGITS = 12
MOST_SHOWN = 3


class UnverifiedLabError(LabError):
    """A lab differs from its plan, or cannot be verified; no run was executed in it."""


@dataclass(frozen=True, slots=True)
class LabVerification:
    """A lab's certificate, with the first run that uses it."""

    entry: Entry
    """The run whose plan was verified."""
    certificate: Certificate


def kinds(entries: Sequence[Entry]) -> dict[str, Entry]:
    """Each family of plans with its first run."""
    result: dict[str, Entry] = {}
    for entry in entries:
        result.setdefault(entry.family, entry)
    return result


def certify(
    context: Context,
    experiment: Experiment,
    entries: Sequence[Entry],
    parts: Parts,
    deployment: Deployment | None,
    workers: int,
    keeping: ResultKeeper | None = None,
    *,
    may_measure: bool = True,
) -> list[LabVerification]:
    """Certificates for all that have none yet; all of them, in the order of the runs. `deployment`: live; `keeping`:
    virtual, certificates of labs that were verified before. Without `may_measure`, labs that were not verified before
    have none."""
    result: list[LabVerification] = []
    missing: list[Entry] = []
    for entry in kinds(entries).values():
        kept = _kept(experiment, entry)
        if kept is None:
            missing.append(entry)
        else:
            result.append(LabVerification(entry, kept))
    (experiment.directory / CERTIFICATES_FOLDER).mkdir(exist_ok=True)
    if deployment is None:
        known = [found for entry in missing if (found := _stored(experiment, entry, keeping))]
        there = {each.entry.number for each in known}
        left = [entry for entry in missing if entry.number not in there]
        result += known
        if may_measure:
            result += _in_virtual(context, experiment, left, parts, workers, keeping)
        elif left:
            context.reporter.tell(f"warning: {len(left)} labs have no certificate in the store")
    else:
        for entry in missing:
            plan = deployment.ensure(experiment.job(entry).plan)
            result.append(_one(context, experiment, entry, plan, parts, threading.Event(), virtual=False))
    by_family = {each.entry.family: each for each in result}
    for entry in entries:
        if (verified := by_family.get(entry.family)) is not None:
            entry.certificate = name(verified.entry)
            entry.verified = not refusal(verified.certificate)
    experiment.save()
    return sorted(result, key=lambda each: each.entry.number)


def name(entry: Entry) -> str:
    """The path of a run's certificate within the experiment's directory."""
    return f"{CERTIFICATES_FOLDER}/{entry.family[:_DIGITS]}.json"


def refusals(result: Sequence[LabVerification]) -> list[str]:
    """A line for each lab that differs from its plan, or that this host cannot verify."""
    return [
        f"lab {each.certificate.lab} of run {each.entry.number}: {why}"
        for each in result
        if (why := refusal(each.certificate))
    ]


def refusal(certificate: Certificate) -> str:
    """The reason why a lab cannot be trusted; empty: it can. A rate beyond the reach of this host's probes is beyond
    that of any load, too."""
    outside = [row for row in certificate.rows if row.verdict == "outside"]
    unknown = [row for row in certificate.rows if row.verdict == "not measured" and row.quantity == "rate"]
    if outside:
        busy = "; ".join(certificate.machine.disturbed or ())
        again = f"; the machine was busy ({busy}): close other programs and try again, or take --runtime virtual"
        return f"outside tolerance: {_listed(outside)}{again if busy else ''}"
    if unknown and certificate.clock == "live":
        return f"beyond what this host can measure: {_listed(unknown)} ({unknown[0].note}): --runtime virtual can"
    return ""


def _listed(rows: Sequence[Row]) -> str:
    shown = ", ".join(f"{row.link} {row.quantity}" for row in rows[:MOST_SHOWN])
    return shown + (f" and {len(rows) - MOST_SHOWN} more" if len(rows) > MOST_SHOWN else "")


def _kept(experiment: Experiment, entry: Entry) -> Certificate | None:
    """The certificate that an earlier attempt made and recorded, if it is whole."""
    if name(entry) not in experiment.files or damage(experiment.directory, name(entry), experiment.files):
        return None
    return record.from_json((experiment.directory / name(entry)).read_bytes())


def _stored(experiment: Experiment, entry: Entry, keeping: ResultKeeper | None) -> LabVerification | None:
    """The certificate that the store has of the same lab."""
    text = None if keeping is None else keeping.certificate(entry)
    if text is None:
        return None
    try:
        certificate = record.from_json(text)
    except ValueError:  # of another version of its format
        return None
    path = experiment.directory / name(entry)
    writing.write(path, text)
    experiment.record(path)
    return LabVerification(entry, certificate)


def forget(experiment: Experiment, entry: Entry) -> None:
    """Removes a certificate, so that the lab is verified again."""
    experiment.disown(name(entry))
    (experiment.directory / name(entry)).unlink(missing_ok=True)


def _in_virtual(
    context: Context,
    experiment: Experiment,
    missing: Sequence[Entry],
    parts: Parts,
    workers: int,
    keeping: ResultKeeper | None,
) -> list[LabVerification]:
    board = Board("configuration", len(missing), 0, workers)

    def job(entry: Entry) -> Callable[[threading.Event], LabVerification | None]:
        def run(stop: threading.Event) -> LabVerification | None:
            if stop.is_set():
                return None
            board.begin(entry.number, 0)
            try:
                plan = experiment.job(entry).plan
                verified = _one(context, experiment, entry, plan, parts, stop, virtual=True)
                if keeping is not None:
                    keeping.keep_certificate(entry, verified.certificate.lab, experiment.directory / name(entry))
                return verified
            finally:
                board.end(entry.number)

        return run

    if not missing:
        return []
    with board.shown(context.reporter):
        return [each for each in sweep([job(entry) for entry in missing], workers) if each is not None]


def _one(
    context: Context,
    experiment: Experiment,
    entry: Entry,
    plan: Plan,
    parts: Parts,
    stop: threading.Event,
    *,
    virtual: bool,
) -> LabVerification:
    scratch = experiment.directory / CERTIFICATES_FOLDER / f".{entry.family[:_DIGITS]}"
    if scratch.exists():  # of an engine that was killed
        with occupied(scratch):
            shutil.rmtree(scratch)
    try:
        certificate = parts.certify(context, plan, scratch, virtual, stop)
    except routes.NotConvergedError as error:
        raise UnverifiedLabError(f"lab {plan.lab} of run {entry.number}: {error}: nothing was run") from None
    except RuntimeError as error:
        raise LabError(f"lab {plan.lab}: {error}") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    path = experiment.directory / name(entry)
    writing.write(path, record.to_json(certificate))
    experiment.record(path)
    return LabVerification(entry, certificate)
