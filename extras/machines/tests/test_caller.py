"""Under sudo, SSH uses the caller's configuration."""

from __future__ import annotations

import os
import pwd

import pytest

from ewan.extras.machines.caller import as_caller


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_the_callers_home_and_name_are_there_meanwhile(root: None) -> None:
    person = next(person for person in pwd.getpwall() if person.pw_uid != 0)
    environment = {"SUDO_UID": str(person.pw_uid), "SUDO_GID": str(person.pw_gid), "HOME": "/root", "LOGNAME": "root"}
    before = dict(environment)
    with as_caller(environment):
        assert environment == {
            **before,
            "HOME": person.pw_dir,
            "LOGNAME": person.pw_name,
            "USER": person.pw_name,
        }
    assert environment == before


@pytest.mark.parametrize(
    "user",
    [
        {},
        {"SUDO_UID": "0", "SUDO_GID": "0"},
        {"SUDO_UID": "x", "SUDO_GID": "0"},
        {"SUDO_UID": "4123456789", "SUDO_GID": "0"},
    ],
)
def test_else_nothing_changes(root: None, user: dict[str, str]) -> None:
    environment = {"HOME": "/root", **user}
    with as_caller(environment):
        assert environment == {"HOME": "/root", **user}
