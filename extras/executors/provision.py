"""Kernel and node binary are sent to workers that do not see them, also to those that come later."""

from __future__ import annotations

from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

from ewan.extras.executors import remote


class Provision(WorkerPlugin):  # type: ignore[misc]
    """Dask hands it to each worker once."""

    def __init__(self, contents: tuple[bytes, ...]) -> None:
        self._contents = contents

    def setup(self, worker: Any) -> None:
        """Runs on the worker."""
        remote.provide(self._contents)
