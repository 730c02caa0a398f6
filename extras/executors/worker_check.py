"""A check whether a worker can execute runs at all, before it is given one: it may be of another installation.

The function goes to the worker as code, not by its name, and names what is missing there."""

from __future__ import annotations


def missing() -> str:
    """The parts of this project that the worker lacks; empty where it has all."""
    import os
    import sys

    try:
        import ewan.extras.executors.remote  # noqa: F401
    except ImportError as error:
        return f"{os.uname().nodename}: {sys.executable} does not have this project ({error})"
    return ""
