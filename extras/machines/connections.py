"""SSH connections as SSH's own configuration has them: hosts, users, keys, agent, jump hosts, known hosts.

In: a machine and the configuration's file. Out: a connection of asyncssh, or one line that says what is wrong and what
to do. Host keys are always checked, whatever the configuration says, and no password is asked for. Everything that
imports asyncssh is imported when connections are made, not before: it takes a tenth of a second.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import shlex
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import asyncssh

from ewan.extras.machines.file import ClusterMachine
from ewan.extras.machines.processes import RemoteProgram
from ewan.extras.machines.targets import SshTarget, target
from ewan.labs.runtime.base import LabError

# Failures are reported as errors.
logging.getLogger("asyncssh").setLevel(logging.CRITICAL)
logging.getLogger("asyncio").setLevel(logging.ERROR)

SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
SYSTEM_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
USER_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
COMMON_KEYS = ("ssh-ed25519", *(f"ecdsa-sha2-nistp{bits}" for bits in (256, 384, 521)), "rsa-sha2-512", "rsa-sha2-256")
"""Asked for where no key is known: Dropbear ends the connection where all that asyncssh has are named, without a word
about a key."""
SSH_PORT = 22
CLOSE_S = 1.0


@dataclass(frozen=True)
class SshSettings:
    """The common settings of all connections; `config` in place of ~/.ssh/config and the system's."""

    config: Path | None
    connect_s: float
    """Within which a connection is there, log-in included."""
    keepalive_s: float
    keepalives: int
    """A connection ends when so many requests, so far apart, and the time after the last one, saw no answer."""


class _Client(asyncssh.SSHClient):
    """Notes why a host key was refused and why the connection ended."""

    def __init__(self) -> None:
        self.changed = False
        self.known = asyncssh.SSHKnownHosts()

    def knows(self, host: str, addr: str, port: int) -> bool:
        """Return whether anything is known of the host's key."""
        keys, authorities, revoked, *_ = self.known.match(host, addr, None if port == SSH_PORT else port)
        return bool(keys or authorities or revoked)

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.changed = self.knows(host, addr, port)
        return False


async def connect(machine: ClusterMachine, settings: SshSettings) -> asyncssh.SSHClientConnection:
    """Connects and logs in, through the jump hosts of the configuration; LabError names the machine."""
    end = asyncio.get_running_loop().time() + settings.connect_s
    return await _reach(f"machine {machine.name}", _target(f"machine {machine.name}", machine.ssh), settings, end, [])


async def connect_all(
    machines: Sequence[ClusterMachine], settings: SshSettings
) -> dict[str, asyncssh.SSHClientConnection | LabError]:
    """Connects to all side by side; a machine's LabError is its result."""

    async def one(machine: ClusterMachine) -> asyncssh.SSHClientConnection | LabError:
        try:
            return await connect(machine, settings)
        except LabError as error:
            return error

    tasks = {machine.name: asyncio.create_task(one(machine)) for machine in machines}
    try:
        await asyncio.gather(*tasks.values())
    except BaseException:
        for task in tasks.values():
            if task.done() and not task.cancelled() and not isinstance(made := task.result(), LabError):
                made.abort()
        raise
    return {name: task.result() for name, task in tasks.items()}


async def disconnect(connections: Sequence[asyncssh.SSHClientConnection], running: Sequence[RemoteProgram]) -> None:
    """Ends the running programs, then all connections; those of machines that no longer answer after CLOSE_S."""
    await asyncio.gather(*(one.close() for one in running))
    for connection in connections:
        connection.close()
    closing = [asyncio.create_task(connection.wait_closed()) for connection in connections]
    if closing:
        await asyncio.wait(closing, timeout=CLOSE_S)
    for connection in connections:
        connection.abort()


def _target(who: str, text: str) -> SshTarget:
    try:
        return target(text)
    except ValueError as error:
        raise LabError(f"{who}: {error}") from None


async def _reach(
    who: str, where: SshTarget, settings: SshSettings, end: float, through: list[SshTarget]
) -> asyncssh.SSHClientConnection:
    """Connects to a host, first to those that lead to it; `through`: the hosts for which this one is needed."""
    jumps = _options(who, where, settings).tunnel
    last: asyncssh.SSHClientConnection | None = None
    try:
        for number, jump in enumerate(jumps.split(",") if isinstance(jumps, str) else []):
            hop = _target(who, jump.removeprefix("ssh://"))
            if hop in through or hop == where:
                raise LabError(f"{who}: SSH's configuration: {hop.host} is a jump host of itself")
            said = f"{who}, through {hop.host}"
            # The first one may have jump hosts of its own, as `ssh` sees it; to the next one leads the one before.
            last = await (
                _one(said, hop, settings, end, last) if number else _reach(said, hop, settings, end, [*through, where])
            )
        return await _one(who, where, settings, end, last)
    except BaseException:
        if last is not None:
            last.abort()
        raise


async def _one(
    who: str, where: SshTarget, settings: SshSettings, end: float, tunnel: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    client = _Client()
    options = _options(who, where, settings, tunnel)
    client.known = _known_hosts(who, options)
    algorithms = () if client.knows(options.host_key_alias or options.host, "", options.port) else COMMON_KEYS
    try:
        async with asyncio.timeout_at(end):
            connection = await asyncssh.connect(
                **_place(where),
                config=_configs(settings),
                options=options,
                tunnel=tunnel,
                known_hosts=client.known,
                server_host_key_algs=algorithms,
                client_factory=lambda: client,
            )
    except Exception as error:
        raise LabError(f"{who}: {_refusal(error, where, settings, options, client)}") from error
    if tunnel is not None:
        # It ends with the connection that goes through it.
        connection.set_tunnel(tunnel)
    return connection


def _place(where: SshTarget) -> dict[str, str | int]:
    given = {"host": where.host, "port": where.port, "username": where.user}
    return {key: value for key, value in given.items() if value is not None}


def _configs(settings: SshSettings) -> list[str]:
    if settings.config is not None:
        return [str(settings.config)]
    return [str(path) for path in (Path("~/.ssh/config").expanduser(), SYSTEM_CONFIG) if path.is_file()]


def _options(
    who: str, where: SshTarget, settings: SshSettings, tunnel: asyncssh.SSHClientConnection | None = None
) -> asyncssh.SSHClientConnectionOptions:
    """The options that the configuration has for a host, without any that would ask a person."""
    options = functools.partial(
        asyncssh.SSHClientConnectionOptions,
        config=_configs(settings),
        **_place(where),
        **({} if tunnel is None else {"tunnel": tunnel}),
        connect_timeout=settings.connect_s,
        login_timeout=settings.connect_s,
        keepalive_interval=settings.keepalive_s,
        keepalive_count_max=settings.keepalives,
        password_auth=False,
        kbdint_auth=False,
        ignore_encrypted=True,
        agent_forwarding=False,
        x11_forwarding=False,
    )
    try:
        said = options(client_keys=None, agent_identities=None).config
        return options(**_identities(said))
    except OSError as error:
        raise LabError(f"{who}: SSH's configuration: {error.strerror}: {error.filename}") from error
    except (ValueError, asyncssh.Error) as error:
        raise LabError(
            f"{who}: SSH's configuration: {error} (asyncssh reads most of what ssh does: name a file with less as "
            "ssh_config)"
        ) from error


def _identities(said: asyncssh.config.SSHConfig) -> dict[str, list[str]]:
    """The keys that a configuration names, as `ssh` takes them.

    One that is not there is left out. One that has a passphrase may be in the agent, which knows it by its public half.
    """
    files = [Path(name).expanduser() for name in cast("Sequence[str]", said.get("IdentityFile", ()))]
    if not files:
        return {}
    given = {"client_keys": [str(path) for path in files if path.suffix != ".pub" and path.is_file()]}
    if said.get("IdentitiesOnly"):
        halves = [path if path.suffix == ".pub" else path.with_name(f"{path.name}.pub") for path in files]
        given["agent_identities"] = [str(path) for path in halves if path.is_file()]
    return given


def _known_hosts(who: str, options: asyncssh.SSHClientConnectionOptions) -> asyncssh.SSHKnownHosts:
    """The host keys of the files that `ssh` would read."""
    of_user = cast("list[str]", options.config.get("UserKnownHostsFile", list(USER_KNOWN_HOSTS)))
    of_system = cast("list[str]", options.config.get("GlobalKnownHostsFile", list(SYSTEM_KNOWN_HOSTS)))
    known = asyncssh.SSHKnownHosts()
    for path in (Path(name).expanduser() for name in (*of_user, *of_system)):
        try:
            known.load(path.read_text(errors="replace"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise LabError(f"{who}: {path} cannot be read: {error}") from error
    return known


def _refusal(
    error: Exception,
    where: SshTarget,
    settings: SshSettings,
    options: asyncssh.SSHClientConnectionOptions,
    client: _Client,
) -> str:
    """The error of a connection in words, and the remedy."""
    server = f"{options.host} port {options.port}"
    ssh = f"ssh {where}" if settings.config is None else f"ssh -F {shlex.quote(str(settings.config))} {where}"
    match error:
        case socket.gaierror():
            return (
                f'"{options.host}" has no address ({error.strerror}): write its name in the network, its address, '
                "or a Host of SSH's configuration"
            )
        case ConnectionRefusedError():
            return f"{server} refuses connections: start sshd there, or write the port that it listens at"
        case TimeoutError():
            return (
                f"{server} gave no answer in {settings.connect_s:g} s: is the machine up, and does a firewall let SSH "
                "through?"
            )
        case asyncssh.HostKeyNotVerifiable() if client.changed:
            return (
                f"{server} has another host key than the known one: if the machine is new, forget the old key "
                f"(ssh-keygen -R), then log in once, and compare the key: {ssh}"
            )
        case asyncssh.HostKeyNotVerifiable():
            return f"the host key of {server} is not known: log in once, and compare the key: {ssh}"
        case asyncssh.PermissionDenied():
            return (
                f"{server} takes none of your keys for the user {options.username}: put one there (ssh-copy-id), and "
                f"load it into your agent (ssh-add) if it has a passphrase; no password is asked for; try: {ssh}"
            )
        case asyncssh.ChannelOpenError():
            return f"{server} is not reached from the jump host: {error.reason}"
        case asyncssh.KeyExchangeFailed():
            return f"{server} has no algorithms in common with us: {error.reason}"
        case asyncssh.Error():
            return f"{server} ended the connection while logging in ({error.reason}): try: {ssh}"
        case OSError():
            return f"{server} is not reached ({error.strerror or error}): try: {ssh}"
        case _:
            return f"{server}: {type(error).__name__}: {error}: try: {ssh}"
