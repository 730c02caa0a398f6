"""The SSH configuration, keys and name of the person who called sudo, when it runs this program.

In: the environment. Out: the same, changed for as long as connections are made."""

from __future__ import annotations

import contextlib
import pwd
from collections.abc import Iterator, Mapping, MutableMapping

from ewan.labs.base import ownership


def of_caller(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the caller that an environment made by sudo has changed; empty where there is no such caller."""
    user, _ = ownership.caller(environment) or (0, 0)
    if user == 0:
        return {}
    try:
        person = pwd.getpwuid(user)
    except KeyError:
        return {}
    return {"HOME": person.pw_dir, "LOGNAME": person.pw_name, "USER": person.pw_name}


@contextlib.contextmanager
def as_caller(environment: MutableMapping[str, str]) -> Iterator[None]:
    """The environment is the caller's meanwhile: of the whole process, for libraries read it where they like."""
    changes = of_caller(environment)
    before = {name: environment.get(name) for name in changes}
    environment.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
