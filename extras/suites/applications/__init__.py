"""The applications of HSTTS, in the order of the poster: one module each, which holds its `APPLICATION`."""

from __future__ import annotations

from collections.abc import Mapping

from ewan.extras.suites.application import Application
from ewan.extras.suites.applications import bulk, parallel, peer, tuning, web

APPLICATIONS: Mapping[str, Application] = {
    module.APPLICATION.word: module.APPLICATION for module in (tuning, web, peer, bulk, parallel)
}
"""By the word of the command line."""
