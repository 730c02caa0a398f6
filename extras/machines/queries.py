"""Queries to machines of the cluster, and the decoding of their answers.

In: connections (`ewan.extras.machines.ssh`). Out: the output of programs there, or LabError that names the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from ewan.labs.base import codec
from ewan.labs.base.codec import Struct, field
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.requests import LinkRequest, answer_in

if TYPE_CHECKING:
    from ewan.extras.machines.ssh import CompletedProgram, ConnectedMachine, Fleet, RemoteProcess

SHARES = PurePosixPath("/run/ewan-shares")
ASK_S = 15.0
"""For an answer that is there."""
WORK_S = 300.0
"""For what a machine has to do first."""

Result = TypeVar("Result")
Answer = TypeVar("Answer")


def all_of(fleet: Fleet, function: Callable[[ConnectedMachine], Result], names: Sequence[str]) -> dict[str, Result]:
    """`function` for all machines side by side; the first one's error, if one fails."""
    found: dict[str, Result] = {}
    for name, told in fleet.each(function, names).items():
        if isinstance(told, LabError):
            raise told
        found[name] = told
    return found


def done(machine: str, told: CompletedProgram) -> None:
    """LabError, with its last words, for a program that failed."""
    if told.returncode != 0:
        raise LabError(f"machine {machine}: {told.said}")


def answer_of(kind: type[Result], machine: str, told: CompletedProgram) -> Result:
    """The document that a program printed; LabError where it failed, or printed another one."""
    done(machine, told)
    return said(kind, machine, told.stdout)


def said(kind: type[Result], machine: str, text: bytes) -> Result:
    """The document in a machine's answer; LabError for another text."""
    try:
        return codec.decode(kind, text, "")
    except ValueError as error:
        raise LabError(f"machine {machine} gave no whole answer: {error}") from None


class _SpinnerQuestion(Struct):
    spinner: int
    request: LinkRequest[Any]


class _Place(Struct):
    machine: str
    first_spinner: int


class _SamplesQuestion(Struct):
    samples: _Place


class _QueryAnswer(Struct, forbid_unknown_fields=False):
    """The part of an answer that the query adds to the spinner's own. `silent`: it did not answer."""

    ok: bool
    error: str | None = None
    silent: bool = False
    samples: dict[str, str] = field(default_factory=dict)


class Relays:
    """The spinners of a lab's machines, asked through one program on each, which is started when it is needed."""

    def __init__(self, fleet: Fleet, lab: str, binary: Mapping[str, str]) -> None:
        self._fleet, self._lab, self._binary = fleet, lab, binary
        self._running: dict[str, RemoteProcess] = {}

    def ask(self, machine: str, number: int, request: LinkRequest[Answer]) -> Answer:
        """One request to a machine's own spinner `number`; the answer. Raises LabError."""
        told, line = self._told(machine, _SpinnerQuestion(number, request))
        if told.silent:
            raise LabError(
                f"lab {self._lab}: spinner {number} of machine {machine} does not answer ({told.error}), its "
                f"links are dead: remove the lab with `ewan down {self._lab}` and bring it up again"
            )
        try:
            return answer_in(request, line, f"spinner {number} of machine {machine}")
        except ValueError as error:
            raise LabError(f"lab {self._lab}: machine {machine} gave no whole answer: {error}") from None

    def samples(self, machine: str, first_spinner: int) -> dict[str, str]:
        """The samples of a machine's links, in Prometheus' format: the lines of each family. `first_spinner`: the
        number in the whole lab of the machine's spinner 0. Raises LabError."""
        told, _ = self._told(machine, _SamplesQuestion(_Place(machine, first_spinner)))
        if not told.ok:
            raise LabError(f"machine {machine}: {told.error or 'it reported no samples'}")
        return told.samples

    def _told(self, machine: str, asked: Struct) -> tuple[_QueryAnswer, bytes]:
        try:
            relay = self._running.get(machine)
            if relay is None:
                command = [self._binary[machine], "relay", "--state", str(SHARES / self._lab)]
                relay = self._running[machine] = self._fleet[machine].start(command)
            relay.write(codec.line(asked))
            line = relay.readline(ASK_S)
            return codec.decode(_QueryAnswer, line, ""), line
        except (LabError, ValueError) as error:
            self._end(machine)
            said = f"{error}" if isinstance(error, LabError) else f"machine {machine} gave no whole answer"
            raise LabError(f"lab {self._lab}: {said}") from None

    def close(self) -> None:
        """Ends these programs."""
        for machine in list(self._running):
            self._end(machine)

    def _end(self, machine: str) -> None:
        relay = self._running.pop(machine, None)
        if relay is not None:
            with suppress(LabError):
                relay.close()
