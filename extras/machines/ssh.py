"""The machines of a cluster, reached over SSH: programs and files there, for callers that wait.

In: machines of a cluster file, SSH's own configuration. Out: results, and `LabError` in one line that names the machine
and the remedy. All machines are connected side by side, one connection each; one that dies is an error of only that
machine. A server allows ten programs at once on one connection (MaxSessions of sshd)."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ewan.extras.machines.caller import as_caller
from ewan.extras.machines.file import ClusterMachine
from ewan.extras.machines.results import CompletedProgram
from ewan.labs.base import optional
from ewan.labs.runtime.base import LabError

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

    from ewan.extras.machines.loop import Loop
    from ewan.extras.machines.processes import Fed, RemoteCommand, RemoteProgram

__all__ = ["CompletedProgram", "ConnectedMachine", "Fleet", "RemoteProcess"]

Result = TypeVar("Result")

CONNECT_S = 15.0
KEEPALIVE_S = 5.0
KEEPALIVES = 3
"""A machine that no longer answers is dead after four times KEEPALIVE_S."""
LONGEST_S = 60.0
PACKED_BYTES = 1 << 20

_PUT = """
set -e
umask 077
path=$1 mode=$2 size=$3 new=
case $path in "~/"*) path=$HOME/${path#"~/"} ;; esac
if [ -d "$path" ]; then echo "$path is a directory" >&2; exit 1; fi
if [ "$4" = look ]; then
    if [ -f "$path" ] && [ "$(wc -c <"$path")" -eq "$size" ]; then printf "ewan:path:%s\\n" "$path"; fi
    exit 0
fi
mkdir -p -- "${path%/*}"
new=$path.new.$$
trap 'rm -f -- "$new"' EXIT
trap 'exit 1' HUP INT TERM
if [ "$4" = unpack ]; then gzip -dc >"$new"; else cat >"$new"; fi
if [ "$(wc -c <"$new")" -ne "$size" ]; then echo "only a part of $path arrived" >&2; exit 1; fi
chmod "$mode" "$new"
sync -- "$new" 2>/dev/null || sync
mv -f -- "$new" "$path"
printf "ewan:path:%s\\n" "$path"
"""


class RemoteProcess:
    """A program on a machine, while it runs; `ConnectedMachine.start` makes it. All methods raise LabError."""

    def __init__(self, loop: Loop, running: RemoteProgram) -> None:
        self._loop, self._running = loop, running

    def write(self, data: bytes) -> None:
        """Gives it more on standard input; waits while it reads slower."""
        self._loop.call(self._running.write(data))

    def read(self) -> bytes:
        """Read the next bytes of its standard output; empty at its end."""
        return self._loop.call(self._running.read())

    def readline(self, longest_s: float | None = None) -> bytes:
        """The next line of its standard output, with its end; empty when there is none any more."""
        return self._loop.call(self._running.line(longest_s))

    def __iter__(self) -> Iterator[bytes]:
        """The lines of its standard output as they come, until it ends."""
        while line := self.readline():
            yield line

    def wait(self, longest_s: float | None = None) -> CompletedProgram:
        """Wait for its end; output that was not read yet is in the result."""
        return self._loop.call(self._running.wait(longest_s))

    def send_signal(self, number: int) -> None:
        """Sends it, and its children, a signal, if it still runs."""
        self._loop.call(self._running.send_signal(number))

    def close(self) -> None:
        """Ends it, if it still runs, with SIGTERM; its end is not waited for."""
        self._loop.call(self._running.close())

    def __enter__(self) -> RemoteProcess:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class ConnectedMachine:
    """A machine that is connected; `Fleet` makes it. All methods raise LabError, and may be called from any thread."""

    def __init__(self, machine: ClusterMachine, loop: Loop, connection: SSHClientConnection) -> None:
        self.machine, self.name = machine, machine.name
        self.user: str = connection.get_extra_info("username")
        """The user who is logged in there."""
        self._loop, self._connection = loop, connection
        self._running: list[RemoteProgram] = []
        self._who = f"machine {machine.name}"

    @property
    def dead(self) -> bool:
        """Return whether the connection has ended."""
        return self._connection.is_closed()

    @property
    def through_sudo(self) -> bool:
        """Return whether programs are started by sudo."""
        return self.machine.sudo and self.user != "root"

    def run(
        self,
        argv: Sequence[str],
        input: bytes = b"",
        longest_s: float | None = LONGEST_S,
        sudo: bool | None = None,
        fed: Fed = lambda share: None,
        most_bytes: int | None = None,
    ) -> CompletedProgram:
        """Runs a program to its end; the caller checks its exit status. `sudo` False: as the user there. `fed` is
        called with the share of the input that has gone, in another thread. More output than `most_bytes` is an
        error."""
        from ewan.extras.machines.processes import run

        command = self._command(argv, sudo)
        return self._loop.call(run(self._who, self._connection, command, input, longest_s, fed, most_bytes))

    def start(self, argv: Sequence[str]) -> RemoteProcess:
        """Starts a program that runs on, until the fleet ends. One whose machine is lost ends when its input does."""
        from ewan.extras.machines.processes import started

        running = self._loop.call(started(self._who, self._connection, self._command(argv)))
        self._running.append(running)
        return RemoteProcess(self._loop, running)

    def save(self, argv: Sequence[str], path: Path) -> None:
        """Run a program to its end and write its output, of any length, into a file."""
        from ewan.extras.machines.processes import save

        with path.open("wb") as file:
            self._loop.call(save(self._who, self._connection, self._command(argv), file))

    def give_up(self) -> None:
        """Treats the machine as dead: every later request fails at once."""
        self._loop.soon(self._connection.abort)

    def put(
        self,
        data: bytes,
        path: str,
        mode: int = 0o600,
        named_by_content: bool = False,
        longest_s: float = LONGEST_S,
        fed: Fed = lambda share: None,
    ) -> str:
        """Writes a file, whole or not at all, with its directories; gives its absolute path. A large one goes packed.

        `path` is absolute, or begins with `~/`: in the user's home, and then the user's own. `named_by_content`: a file
        of this name and size is the same, and nothing is sent.
        """
        sudo = False if path.startswith("~/") else None
        if not path.startswith(("~/", "/")):
            raise ValueError(f"{path}: an absolute path, or ~/…")

        def script(what: str, packed: bytes = b"") -> str:
            words = ["sh", "-c", _PUT, "put", path, f"{mode:o}", str(len(data)), what]
            done = self.run(words, packed, longest_s, sudo, fed)
            if done.returncode != 0:
                raise LabError(f"{self._who}: {path} could not be written: {done.said}")
            # The shell there may say something of its own before.
            return done.stdout.decode(errors="replace").partition("ewan:path:")[2].removesuffix("\n")

        if named_by_content and (there := script("look")):
            return there
        return script("unpack", gzip.compress(data, 1)) if len(data) > PACKED_BYTES else script("write", data)

    def terminal(self, argv: Sequence[str]) -> int:
        """Run a program on this terminal, or on our standard streams; return its exit status, or 128 + signal."""
        from ewan.extras.machines.terminal import attached

        return attached(self._who, self._loop, self._connection, self._command(argv))

    def _command(self, argv: Sequence[str], sudo: bool | None = None) -> RemoteCommand:
        from ewan.extras.machines.processes import RemoteCommand

        return RemoteCommand(argv, ("sudo", "-n", "--") if self.through_sudo and sudo is not False else ())


class Fleet:
    """Connections to all machines, for as long as the context lasts.

    `all_needed`: a machine that cannot be reached is an error at once; else it is one of `absent`, and the error of
    whatever is asked of it.
    """

    def __init__(
        self,
        machines: Sequence[ClusterMachine],
        ssh_config: Path | None,
        *,
        all_needed: bool = True,
        connect_s: float = CONNECT_S,
        keepalive_s: float = KEEPALIVE_S,
    ) -> None:
        self.machines = {machine.name: machine for machine in machines}
        self.absent: dict[str, LabError] = {}
        """Machines that were not reached, and why."""
        self._config = ssh_config
        self._all_needed = all_needed
        self._connect_s, self._keepalive_s = connect_s, keepalive_s
        self._remotes: dict[str, ConnectedMachine] = {}

    def __enter__(self) -> Fleet:
        # These take a tenth of a second to import.
        with optional.wanted("labs over several machines need", "containers"):
            from ewan.extras.machines import connections, loop

        settings = connections.SshSettings(self._config, self._connect_s, self._keepalive_s, KEEPALIVES)
        self._loop = loop.Loop()
        try:
            with as_caller(os.environ):
                made = self._loop.call(connections.connect_all(tuple(self.machines.values()), settings))
            for name, result in made.items():
                if isinstance(result, LabError):
                    self.absent[name] = result
                else:
                    self._remotes[name] = ConnectedMachine(self.machines[name], self._loop, result)
            refused = self.each(_may_sudo, list(self._remotes))
            self.absent |= {name: error for name, error in refused.items() if error is not None}
            if self._all_needed and self.absent:
                raise several(list(self.absent.values()))
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self._close()

    def _close(self) -> None:
        from ewan.extras.machines.connections import disconnect

        self._loop.stop(stopped=False)
        remotes = self._remotes.values()
        running = [running for remote in remotes for running in remote._running]
        self._loop.call(disconnect([remote._connection for remote in remotes], running))
        self._loop.close()

    def __getitem__(self, name: str) -> ConnectedMachine:
        """A machine by its name; LabError when it was not reached."""
        if name in self.absent:
            raise LabError(str(self.absent[name]))
        return self._remotes[name]

    @property
    def names(self) -> list[str]:
        """All machines, also those that are absent."""
        return list(self.machines)

    def each(
        self, function: Callable[[ConnectedMachine], Result], names: Iterable[str] | None = None
    ) -> dict[str, Result | LabError]:
        """Calls it for all of these machines side by side, and waits for all; a machine's LabError is its result."""
        asked = list(self.names if names is None else names)

        def one(name: str) -> Result | LabError:
            try:
                return function(self[name])
            except LabError as error:
                return error

        with ThreadPoolExecutor(max(1, len(asked)), "ewan-machine") as pool:
            futures = {name: pool.submit(one, name) for name in asked}
            try:
                return {name: future.result() for name, future in futures.items()}
            except BaseException:
                # Ctrl-C, or a fault in the function: what the others wait for ends, and with it they do.
                self._loop.stop()
                pool.shutdown(cancel_futures=True)
                self._loop.stop(stopped=False)
                raise


def several(errors: Sequence[LabError]) -> LabError:
    """One line of several: the first, and how many more there are."""
    more = len(errors) - 1
    others = f" (and {more} more machine{'s' if more > 1 else ''})" if more else ""
    return LabError(f"{errors[0]}{others}")


def _may_sudo(remote: ConnectedMachine) -> None:
    if not remote.through_sudo:
        return
    done = remote.run(["true"])
    if done.returncode != 0:
        raise LabError(
            f"machine {remote.name}: sudo does not let {remote.user} in without a password ({done.said}): write "
            f'"{remote.user} ALL=(ALL) NOPASSWD: ALL" into /etc/sudoers.d/ewan there, or log in as root'
        )
