"""Sending probes: what the node binary says comes through."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs.runtime.probes import send


def test_an_error_of_the_binary_is_one_line(tmp_path: Path) -> None:
    binary = tmp_path / "ewan-node"
    binary.write_text("#!/bin/sh\ncat > /dev/null\necho 'probe request: no' >&2\nexit 2\n")
    binary.chmod(0o755)
    with pytest.raises(RuntimeError, match=r"^ewan-node probe: probe request: no$"):
        send([], [0], binary, lambda text: None)


def test_progress_names_the_probe(tmp_path: Path) -> None:
    binary = tmp_path / "ewan-node"
    event = '{"event": "started", "probe": "delay", "index": 0, "of": 2, "longest_ns": 2500000000}'
    binary.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{event}' >&2\necho '{{\"results\": []}}'\n")
    binary.chmod(0o755)
    told: list[str] = []
    assert send([], [0], binary, told.append) == {"results": []}
    assert told == ["probe 1 of 2: delay (up to 2.5 s)"]
