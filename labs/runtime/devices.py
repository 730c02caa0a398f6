"""The devices of a lab: each has a keeper (`ewan.labs.runtime.keeper`), which is asked over its socket.

In: a lab's state directory and plan. Out: answers; LabError with the message of the device, its driver or its keeper.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ewan.labs.base.product import IMPORTED_FROM
from ewan.labs.hardware import catalogue
from ewan.labs.hardware.device_answers import DeviceStatus
from ewan.labs.hardware.settings import differences
from ewan.labs.plan import Plan
from ewan.labs.runtime import control
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.requests import DeviceRequest, LinkRequest
from ewan.labs.runtime.words import last_words

Answer = TypeVar("Answer")

STARTS_S = 60.0
POLL_S = 0.02
ANSWERS_S = 45.0
"""A driver may take 30 s to open a device, and the answer to another request comes first."""


def check(plan: Plan) -> None:
    """LabError for a driver that cannot be run here."""
    for each in plan.hardware:
        if catalogue.is_path(each.driver):
            if not os.access(each.driver, os.X_OK):
                raise LabError(f"link {each.link}: driver {each.driver}: there is no program that can be run")
        elif each.driver not in catalogue.names():
            raise LabError(f"link {each.link}: there is no driver {each.driver}: compile the description again")


def start(directory: Path, binary: Path, identity: str, plan: Plan, check: Callable[[], None]) -> list[str]:
    """Starts a keeper for each device, which sets it as the plan says; gives what the devices made of it.

    `check` is called while waiting, and raises when there is a reason to stop. After an error all are ended.
    """
    with control.starting(signal.SIGTERM) as processes:
        for each in plan.hardware:
            processes.append(_start(directory, binary, identity, each.link))
        deadline = time.monotonic() + STARTS_S
        for each, process in zip(plan.hardware, processes, strict=True):
            while not socket_of(directory, each.link).exists():
                check()
                if process.poll() is not None:
                    raise LabError(
                        last_words(log(directory, each.link)) or f"link {each.link}: its keeper ended at once"
                    )
                if time.monotonic() > deadline:
                    raise LabError(f"link {each.link}: its device is not there after {STARTS_S:.0f} s")
                time.sleep(POLL_S)
    return [words for each in plan.hardware for words in _made_of(ask(directory, each.link, DeviceRequest()))]


def _made_of(told: DeviceStatus) -> list[str]:
    """The differences between a device's settings and those that the plan asks for, in words."""
    found = []
    for heading, asked in told.requested.items():
        for key, (wanted, has) in differences(asked, told.says[heading]).items():
            found.append(f"{told.link} {heading}: {key} {wanted} is {has} on the device ({told.device})")
    return found


def _start(directory: Path, binary: Path, identity: str, link: str) -> subprocess.Popen[bytes]:
    words = ["--state", str(directory), "--link", link, "--id", identity, "--node-binary", str(binary)]
    command = [sys.executable, "-m", "ewan.labs.runtime.keeper", *words]
    return control.start(command, log(directory, link), IMPORTED_FROM)


def ask(directory: Path, link: str, request: LinkRequest[Answer], longest_s: float = ANSWERS_S) -> Answer:
    """One request, one answer; LabError when no process answers, or when the answer is a refusal."""
    who = f"link {link}: the keeper of its device"
    try:
        return control.ask(socket_of(directory, link), request, longest_s, who)
    except OSError as error:
        why = error.strerror or str(error)
        raise LabError(f"{who} does not answer ({why}); its log is {log(directory, link)}") from None


def socket_of(directory: Path, link: str) -> Path:
    """The socket on which the keeper of a link's device listens."""
    return directory / f"device-{link}.sock"


def log(directory: Path, link: str) -> Path:
    """The file that the keeper's and the driver's output goes to."""
    return directory / f"device-{link}.log"
