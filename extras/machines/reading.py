"""The file of machines, read: YAML in, a `Cluster` out; DescriptionError with the line of a mistake in it."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from ewan.extras.machines.fields import ClusterDescription
from ewan.extras.machines.file import Cluster, ClusterMachine
from ewan.labs import spec as specs
from ewan.labs.base.source import read_yaml
from ewan.labs.base.wording import nearest

PAGE = "docs/how-to/labs/machines.md"
LEAST = "machines: {one: {ssh: root@node-1, interface: eth1}}"


def load(file: Path) -> Cluster:
    """Read a file of machines; names in it are relative to it."""
    return parse(specs.text_of(file, "write the path of a file of machines (*.yaml)"), file)


def parse(text: str, file: Path) -> Cluster:
    """The machines in `text`, which was read from `file`."""
    raw, places = read_yaml(text, str(file), LEAST)
    if not isinstance(raw, dict):
        raise places.error((), f'a file of machines consists of keys: write at least "{LEAST}"')
    try:
        found = ClusterDescription.model_validate(raw)
    except ValidationError as error:
        raise specs.translate(error, places, ClusterDescription, PAGE) from None
    seen: dict[str, str] = {}
    for name, machine in found.machines.items():
        other = seen.setdefault(machine.ssh, name)
        if other != name:
            raise places.error(("machines", name, "ssh"), f"is {other}'s too: write each machine once")
        if machine.cpus is not None and (not machine.cpus or len(set(machine.cpus)) != len(machine.cpus)):
            raise places.error(("machines", name, "cpus"), 'write each CPU once, like "[2, 3]"')
    for pattern, where in found.placement.items():
        if where not in found.machines:
            message = f"there is no machine {where}: {nearest(where, list(found.machines))}"
            raise places.error(("placement", pattern), message)
    config = None if found.ssh_config is None else (file.parent / found.ssh_config).expanduser().absolute()
    if config is not None and not config.is_file():
        raise places.error(("ssh_config",), "there is no such file: write the path of an SSH configuration")
    machines = (
        ClusterMachine(name, each.ssh, each.interface, each.address, each.cpus, each.sudo)
        for name, each in found.machines.items()
    )
    return Cluster(tuple(machines), config, found.placement)
