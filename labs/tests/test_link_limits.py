"""The bounds of a link's settings are the same in a description and in the link that is told of a change.

`tests/golden/limits.json` has values at and beyond each bound, once as a description writes them and once as a change
that a link is told; emulator/model/src/check.rs reads the same file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.labs.base import codec
from ewan.labs.compile import HostFacts, compile
from ewan.labs.spec import DescriptionError, load

CASES = orjson.loads((Path(__file__).resolve().parents[2] / "tests/golden/limits.json").read_bytes())


@pytest.mark.parametrize("case", CASES, ids=lambda case: orjson.dumps(case["wan"]).decode())
def test_a_description_is_refused_for_what_a_link_refuses(tmp_path: Path, case: dict[str, Any]) -> None:
    file = tmp_path / "x.lab.yaml"
    file.write_bytes(orjson.dumps({"topology": "dumbbell", "wan": case["wan"]}))
    if case["allowed"]:
        compiled = compile(load(file), HostFacts((0, 1), ())).links[0].forward
        forward = codec.data_of(compiled)
        assert {key: forward[key] for key in case["change"]} == case["change"], "both say the same"
    else:
        with pytest.raises(DescriptionError):
            compile(load(file), HostFacts((0, 1), ()))
