"""Drivers of external emulators, and the command that tries one: GtrcNET, boxes with netem or Dummynet over SSH."""

from __future__ import annotations

from types import ModuleType

import click

from ewan.extra import Extra


def _driver() -> click.Command:
    from ewan.extras.devices.cli import driver_command

    return driver_command


def _gtrcnet() -> ModuleType:
    from ewan.extras.devices import gtrcnet

    return gtrcnet


def _ssh_dummynet() -> ModuleType:
    from ewan.extras.devices import ssh_dummynet

    return ssh_dummynet


def _ssh_netem() -> ModuleType:
    from ewan.extras.devices import ssh_netem

    return ssh_netem


EXTRA = Extra(
    commands={"driver": _driver}, drivers={"gtrcnet": _gtrcnet, "ssh-dummynet": _ssh_dummynet, "ssh-netem": _ssh_netem}
)
