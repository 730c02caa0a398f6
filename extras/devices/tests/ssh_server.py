"""A box's SSH server in this process: it runs commands with the shell here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import asyncssh

from ewan.extras.machines.loop import Loop


@contextmanager
def box(folder: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """SSH's configuration, in which the server is the host `box`; programs there get only this environment."""

    async def program(asked: asyncssh.SSHServerProcess[bytes]) -> None:
        assert asked.command is not None
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_shell(
            asked.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=environment,
            start_new_session=True,
        )
        assert process.stdout is not None and process.stderr is not None
        await asyncio.gather(copied(process.stdout, asked.stdout), copied(process.stderr, asked.stderr))
        asked.exit(await process.wait())

    async def copied(source: asyncio.StreamReader, sink: asyncssh.SSHWriter[bytes]) -> None:
        while part := await source.read(1 << 16):
            sink.write(part)

    async def served() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[host_key],
            authorized_client_keys=asyncssh.import_authorized_keys(user_key.export_public_key().decode()),
            process_factory=program,
            encoding=None,
        )

    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user_key.write_private_key(str(folder / "key"))
    loop = Loop()
    try:
        port = loop.call(served()).get_port()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key.export_public_key().decode()}")
        (folder / "config").write_text(
            f"Host box\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentityFile {folder}/key\n"
            f"  IdentityAgent none\n  UserKnownHostsFile {folder}/known_hosts\n"
        )
        yield folder / "config"
    finally:
        loop.close()
