"""Experiments of NXE, the Network eXperiment Engine: its XML becomes a scenario, and a scenario its XML.

A file's elements, with their lines and columns (`tree.py`), are held against the schema (`vocabulary.py`) and become a
scenario whose errors point into the XML (`builder.py`). `writer.py` goes the other way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ewan.extra import Export, Extra


def _read() -> Callable[..., Any]:
    from ewan.extras.nxe.reader import load

    return load


def _write() -> Callable[..., str]:
    from ewan.extras.nxe.writer import experiment

    return experiment


EXTRA = Extra(scenario_readers={".xml": _read}, exports={"nxe": Export(".xml", "the experiment in NXE's XML", _write)})
