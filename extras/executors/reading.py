"""A file for --cluster, read: YAML in, `Workers` out; DescriptionError with the line of a mistake in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pydantic import ValidationError

from ewan.extras.executors.fields import WorkersDescription
from ewan.extras.executors.file import BATCH, Workers
from ewan.labs import spec as specs
from ewan.labs.base.source import Places, read_yaml

PAGE = "docs/how-to/experiments/executors.md"
LEAST = "engine: local"
_NEEDED = {"slurm": ("walltime",), "oar": ("walltime",), "pbs": ("walltime",), "ssh": ("hosts",), "dask": ("address",)}
_BATCH_ONLY = ("jobs", "walltime", "queue", "account", "options", "setup")
_SAID_BY = {
    **dict.fromkeys(_BATCH_ONLY, BATCH),
    "hosts": ("ssh",),
    "ssh_config": ("ssh",),
    "address": ("dask",),
    "certificates": ("dask",),
    "cores": ("local", "ssh", *BATCH),
    "memory": ("local", "ssh", *BATCH),
    "python": ("ssh", *BATCH),
    "interface": ("ssh", *BATCH),
}
"""Keys that only some engines use."""


def load(file: Path) -> Workers:
    """Read a file; names in it are relative to it."""
    return parse(specs.text_of(file, "write the path of a file for --cluster (*.yaml)"), file)


def parse(text: str, file: Path) -> Workers:
    """Read the workers in `text`, which was read from `file`."""
    raw, places = read_yaml(text, str(file), LEAST)
    if not isinstance(raw, dict):
        raise places.error((), f'a file for --cluster consists of keys: write at least "{LEAST}"')
    try:
        said = WorkersDescription.model_validate(raw)
    except ValidationError as error:
        raise specs.translate(error, places, WorkersDescription, PAGE) from None
    _check(said, places)
    names = said.certificates
    return Workers(
        file=file,
        engine=said.engine,
        jobs=said.jobs or 1,
        cores=said.cores or (len(os.sched_getaffinity(0)) if said.engine == "local" else 1),
        memory_bytes=None if said.memory is None else said.memory.bytes,
        walltime_s=said.walltime,
        queue=said.queue,
        account=said.account,
        options=said.options,
        setup=said.setup,
        interface=said.interface,
        python=said.python or sys.executable,
        hosts=said.hosts,
        ssh_config=None if said.ssh_config is None else _file(said.ssh_config, file, places, ("ssh_config",)),
        address=said.address,
        certificates=None
        if names is None
        else (
            _file(names[0], file, places, ("certificates", 0)),
            _file(names[1], file, places, ("certificates", 1)),
            _file(names[2], file, places, ("certificates", 2)),
        ),
        shared=said.engine not in ("ssh", "dask") if said.shared is None else said.shared,
    )


def _check(said: WorkersDescription, places: Places) -> None:
    """Checks conditions between several keys."""
    for key, engines in _SAID_BY.items():
        if key in said.model_fields_set and said.engine not in engines:
            raise places.error((key,), f"means nothing to engine {said.engine}: leave it out")
    for key in _NEEDED.get(said.engine, ()):
        if not getattr(said, key):
            example = WorkersDescription.model_fields[key].examples or [""]
            raise places.error((), f"engine {said.engine} needs {key}: write it too, like {key}: {example[0]}")
    if said.engine in BATCH and said.memory is None:
        raise places.error((), f"engine {said.engine} needs memory: write it too, like memory: 4GB")
    if len(set(said.hosts)) != len(said.hosts):
        raise places.error(("hosts",), "write each host once")
    if said.address is not None and not said.address.startswith(("tcp://", "tls://")):
        raise places.error(("address",), 'write it as Dask\'s scheduler says it, like "tls://10.0.0.1:8786"')
    if said.certificates is not None and not (said.address or "").startswith("tls://"):
        raise places.error(("certificates",), "are for an address that begins with tls://")


def _file(name: str, beside: Path, places: Places, key: tuple[str | int, ...]) -> Path:
    path = (beside.parent / Path(name).expanduser()).absolute()
    if not path.is_file():
        raise places.error(key, "there is no such file")
    return path
