"""A box that is reached by SSH: the system's own client, one connection, commands as words.

In: where the box is, and words. Out: what a command printed. The client's configuration, keys and known hosts hold: an
unknown box is refused, and nobody is asked. A word reaches the box's shell quoted, so that no value is ever its text.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ewan.extras.devices.serve import RefusedError
from ewan.labs.base.reading import one_line

_ADDRESS = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}@)?[A-Za-z0-9][A-Za-z0-9.:-]{0,253}")
_CARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")
OPTIONS = ("first", "second", "config", "sudo")
"""Of every driver of a box with two cards."""
_END = "ewan-end"
OPENS_S = 25
ANSWERS_S = 8.0
MOST = 1 << 20  # bytes that a command may print


class CommandError(RefusedError):
    """A command of the box ended with another status than 0."""


class Remote:
    """A shell on the box, which gets a command a line."""

    def __init__(self, address: str, config: str | None = None, sudo: bool = False) -> None:
        """RefusedError where there is no such box, or no key for it."""
        if not _ADDRESS.fullmatch(address):
            raise RefusedError("address is the box's name for ssh, like root@box")
        words = ["ssh", "-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={OPENS_S - 5}"]
        words += ["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"]
        words += ["-F", config] if config is not None else []
        self._sudo = sudo
        try:
            self._process = subprocess.Popen(
                [*words, "--", address, "exec /bin/sh"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except FileNotFoundError:
            raise RefusedError("there is no ssh here: apt install openssh-client") from None
        self._rest = b""
        self.run(["true"], OPENS_S, plain=True)

    def run(self, words: Sequence[str], longest_s: float = ANSWERS_S, *, plain: bool = False) -> str:
        """What the command printed; CommandError where its status is not 0. `plain`: without sudo."""
        every = ["sudo", "-n", *words] if self._sudo and not plain else list(words)
        line = f"{shlex.join(every)} </dev/null 2>&1; printf '\\n%s %d\\n' {_END} $?\n"
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode())
        except OSError:
            raise self._gone() from None
        printed, status = self._answer(time.monotonic() + longest_s, words[0])
        if status:
            raise CommandError(f"the box refuses {' '.join(words)}: {one_line(printed, 200) or f'status {status}'}")
        return printed

    def _answer(self, deadline: float, what: str) -> tuple[str, int]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        ending = re.compile(rb"\n%s (\d+)\n" % _END.encode())
        while (found := ending.search(self._rest)) is None:
            if len(self._rest) > MOST:
                raise RefusedError(f"the box answers {what} with more than {MOST} bytes")
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.close()
                raise RefusedError(f"the box does not answer {what} in time")
            part = os.read(descriptor, 1 << 16)
            if not part:
                raise self._gone()
            self._rest += part
        printed = self._rest[: found.start()].decode(errors="replace")
        self._rest = self._rest[found.end() :]
        return printed, int(found[1])

    def _gone(self) -> RefusedError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        assert self._process.stderr is not None
        said = b""
        while select.select([self._process.stderr], [], [], 0.1)[0] and (
            part := os.read(self._process.stderr.fileno(), 4096)
        ):
            said += part
        lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
        return RefusedError(f"ssh ended: {one_line(lines[-1], 200) if lines else 'it said nothing'}")

    def close(self) -> None:
        """The connection ends."""
        self._process.kill()
        self._process.wait()


def two_cards(options: Mapping[str, str], example: str, more: Sequence[str] = ()) -> tuple[str, str]:
    """The first and the second card of a box; RefusedError for options that are none of it, or none of `more`."""
    known = (*OPTIONS, *more)
    if unknown := sorted(options.keys() - set(known)):
        raise RefusedError(f"option {unknown[0]}: there are {', '.join(known)}")
    first, second = options.get("first", ""), options.get("second", "")
    if not _CARD.fullmatch(first) or not _CARD.fullmatch(second) or first == second:
        raise RefusedError(f"options first and second name the box's two cards, like {example}")
    return first, second


def opened(address: str, options: Mapping[str, str]) -> Remote:
    """The box at an address, as the options `config` and `sudo` say."""
    if options.get("sudo", "no") not in ("yes", "no"):
        raise RefusedError("option sudo is yes or no")
    return Remote(address, options.get("config"), options.get("sudo") == "yes")
