"""The keys of a file for --cluster, which names the cores that execute runs."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from ewan.labs.base.model import Model
from ewan.labs.base.values import Count, SizeText

MOST_JOBS = 10_000
MOST_CORES = 1024
_WALLTIME = re.compile(r"([0-9]{1,4}):([0-5][0-9]):([0-5][0-9])")


def _walltime(value: object) -> int:
    found = _WALLTIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError('write hours, minutes and seconds, like "01:30:00"')
    hours, minutes, seconds = map(int, found.groups())
    total = (hours * 60 + minutes) * 60 + seconds
    if total < 60:
        raise ValueError('is less than a minute: write what the scheduler grants, like "01:30:00"')
    return total


def _word(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable() or not value.strip() or value.startswith("-"):
        raise ValueError("write a word")
    if any(letter.isspace() for letter in value):
        raise ValueError("write it without blanks")
    return value


def _line(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable() or not value.strip():
        raise ValueError('write a line of text in quotes, like "--constraint=avx2"')
    return value


Walltime = Annotated[int, PlainValidator(_walltime), WithJsonSchema({"type": "string", "pattern": _WALLTIME.pattern})]
Word = Annotated[str, PlainValidator(_word), WithJsonSchema({"type": "string"})]
Line = Annotated[str, PlainValidator(_line), WithJsonSchema({"type": "string"})]


class WorkersDescription(Model):
    """A file for --cluster."""

    what: ClassVar[str] = "key of a file for --cluster"

    engine: Literal["local", "slurm", "oar", "pbs", "ssh", "dask"] = Field(
        description="who starts the workers: this machine, a batch scheduler, SSH; `dask`: they are there already"
    )
    jobs: Annotated[int, Count(1, MOST_JOBS)] | None = Field(
        default=None, description="batch jobs at once", examples=[20]
    )
    cores: Annotated[int, Count(1, MOST_CORES)] | None = Field(
        default=None, description="of a job, of a host, or of this machine: so many runs at once", examples=[4]
    )
    memory: SizeText | None = Field(
        default=None, description="of a job, of a host, or of this machine", examples=["16GB"]
    )
    walltime: Walltime | None = Field(
        default=None,
        description="of a batch job; no run is begun that would not end within it",
        examples=["01:30:00"],
    )
    queue: Word | None = Field(default=None, description="the partition or queue of batch jobs", examples=["cpu"])
    account: Word | None = Field(default=None, description="the account or project of batch jobs", examples=["netlab"])
    options: tuple[Line, ...] = Field(
        default=(), description="further options of the scheduler, each a line", examples=[["--constraint=avx2"]]
    )
    setup: tuple[Line, ...] = Field(
        default=(), description="shell commands before a worker in its job", examples=[["module load python/3.11"]]
    )
    interface: Word | None = Field(
        default=None, description="the network interface here to which workers connect", examples=["ib0"]
    )
    python: Word | None = Field(
        default=None,
        description="there: the Python of this project's .venv (default: the same path as here)",
        examples=["/home/me/ewan/.venv/bin/python"],
    )
    hosts: tuple[Word, ...] = Field(
        default=(), description="SSH targets: host, user@host, or a Host of SSH's configuration", examples=[["node-1"]]
    )
    ssh_config: Word | None = Field(
        default=None, description="SSH's configuration, in place of ~/.ssh/config; relative to this file"
    )
    address: Word | None = Field(
        default=None, description="of Dask's scheduler that is there", examples=["tls://10.0.0.1:8786"]
    )
    certificates: tuple[Word, Word, Word] | None = Field(
        default=None,
        description="for a tls:// address: the authority's certificate, one's own, its key; relative to this file",
        examples=[["ca.pem", "cert.pem", "key.pem"]],
    )
    shared: bool | None = Field(
        default=None,
        description="whether workers see this machine's files under the same paths, as over NFS; then kernel, binary "
        "and store are used there (default: yes, of `ssh` and `dask` no)",
    )
