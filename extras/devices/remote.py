"""A box that is reached by SSH: one connection of `ewan.extras.machines.ssh`, commands as words.

In: the address of the box, and words. Out: the output of a command. SSH's own configuration, keys and known hosts hold:
an unknown box is refused without a question. A word reaches the box's shell quoted, so that no value is ever its
text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ewan.extras.devices.serve import DeviceRefusedError
from ewan.extras.machines.file import ClusterMachine
from ewan.extras.machines.ssh import Fleet
from ewan.labs.base.reading import one_line
from ewan.labs.runtime.base import LabError

_CARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")
OPTIONS = ("first", "second", "config", "sudo")
"""Options of every driver of a box with two cards."""
OPENS_S = 20.0
ANSWERS_S = 8.0
MOST = 1 << 20  # bytes that a command may print


class CommandError(DeviceRefusedError):
    """A command of the box ended with another status than 0."""


class ConnectedBox:
    """A box that is connected."""

    def __init__(self, address: str, config: str | None = None, sudo: bool = False) -> None:
        """RefusedError where there is no such box, or no key for it."""
        # A user who may call the driver's commands by sudo need not be allowed others, so that each one says sudo.
        self._sudo = sudo
        box = ClusterMachine("box", address, interface="", address=None, cpus=None, sudo=False)
        self._fleet = Fleet([box], None if config is None else Path(config), connect_s=OPENS_S)
        try:
            self._box = self._fleet.__enter__()["box"]
        except LabError as error:
            raise _refused(error) from None

    def run(self, words: Sequence[str], *, plain: bool = False) -> str:
        """Return the output of the command; CommandError where its status is not 0. `plain`: without sudo."""
        every = ["sudo", "-n", *words] if self._sudo and not plain else list(words)
        try:
            done = self._box.run(every, longest_s=ANSWERS_S, most_bytes=MOST)
        except LabError as error:
            raise _refused(error) from None
        if done.returncode:
            said = one_line((done.stdout + done.stderr).decode(errors="replace"), 200) or f"status {done.returncode}"
            raise CommandError(f"the box refuses {' '.join(words)}: {said}")
        return done.stdout.decode(errors="replace")

    def close(self) -> None:
        """The connection ends."""
        self._fleet.__exit__()


def _refused(error: LabError) -> DeviceRefusedError:
    return DeviceRefusedError(str(error).removeprefix("machine "))


def two_cards(options: Mapping[str, str], example: str, more: Sequence[str] = ()) -> tuple[str, str]:
    """The first and the second card of a box; RefusedError for options that are none of it, or none of `more`."""
    known = (*OPTIONS, *more)
    if unknown := sorted(options.keys() - set(known)):
        raise DeviceRefusedError(f"option {unknown[0]}: there are {', '.join(known)}")
    first, second = options.get("first", ""), options.get("second", "")
    if not _CARD.fullmatch(first) or not _CARD.fullmatch(second) or first == second:
        raise DeviceRefusedError(f"options first and second name the box's two cards, like {example}")
    return first, second


def opened(address: str, options: Mapping[str, str]) -> ConnectedBox:
    """The box at an address, reached by the options `config` and `sudo`."""
    if options.get("sudo", "no") not in ("yes", "no"):
        raise DeviceRefusedError("option sudo is yes or no")
    return ConnectedBox(address, options.get("config"), options.get("sudo") == "yes")
