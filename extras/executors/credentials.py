"""Keys by which Dask's scheduler and its workers authenticate each other: without one, no connection is made.

Whoever reaches a scheduler of Dask can have its workers execute any code, as the user who owns them. So each fleet of
workers has a certificate of its own for both ends (TLS), in files that only this user may read, for as long as the
fleet exists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ewan.extras.executors.file import Workers

if TYPE_CHECKING:
    from distributed.security import Security

NAMES = {"tls_ca_file": "ca.pem", "tls_worker_cert": "cert.pem", "tls_worker_key": "key.pem"}


def new(directory: Path) -> Security:
    """Make a new certificate, in files in a directory of this user's own."""
    from distributed.security import Security

    made = Security.temporary()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for key, name in NAMES.items():
        path = directory / name
        path.touch(mode=0o600)
        path.write_text(getattr(made, key))
    return _of(
        directory / NAMES["tls_ca_file"], directory / NAMES["tls_worker_cert"], directory / NAMES["tls_worker_key"]
    )


def given(workers: Workers) -> Security | None:
    """The credentials for a scheduler that runs already."""
    return None if workers.certificates is None else _of(*workers.certificates)


def _of(authority: Path, certificate: Path, key: Path) -> Security:
    from distributed.security import Security

    ends = {
        f"tls_{role}_{what}": str(path)
        for role in ("client", "scheduler", "worker")
        for what, path in (("cert", certificate), ("key", key))
    }
    return Security(tls_ca_file=str(authority), require_encryption=True, **ends)
