"""The conformance test tells a right driver from wrong ones: the example of docs/how-to/labs/hardware.md, and damaged
copies."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ewan.extras.devices.conformance import ConformanceCheck, checks
from ewan.labs.base.product import ROOT
from ewan.labs.hardware.driver import Driver

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs/how-to/labs/hardware.md"


def example() -> str:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return str(text)


def tried(folder: Path, text: str) -> list[ConformanceCheck]:
    program = folder / "driver"
    program.write_text(text)
    program.chmod(0o755)
    return list(checks(lambda: Driver([str(program)], environment=os.environ), "memory", None, {}))


def test_the_example_of_the_page_is_right(tmp_path: Path) -> None:
    found = tried(tmp_path, example())
    assert [each for each in found if not each.holds] == []
    assert len(found) > 25


def test_the_example_is_short() -> None:
    assert len(example().splitlines()) <= 65


@pytest.mark.parametrize(
    ("right", "wrong", "what"),
    [
        ('{"protocol": 1, "model"', '{"protocol": 2, "model"', "describe is well-formed"),
        ('"apart": True, ', "", "describe is well-formed"),
        ('"least": 0, "most": 100_000_000', '"least": 9, "most": 1', "describe is well-formed"),
        ("    if not isinstance(value, int) or not", "    if False and not", "rate_bps: 1001000000 is refused"),
        (
            "        return self.now\n",
            "        return {'forward': DEFAULTS, 'backward': DEFAULTS}\n",
            "rate_bps: least",
        ),
        (
            'assert direction in self.now and asked == DEFAULTS, "',
            'assert direction in self.now, "',
            "settings with an",
        ),
        ("self.now[direction] = {", "self.now['backward'] = self.now['forward'] = {", "the directions are apart"),
        ("    def reset(self):\n", "    def reset(self):\n        if hasattr(self, 'now'): return\n", "reset brings"),
        ('assert protocol == 1, "', 'assert protocol, "', "protocol 99 is refused"),
        ("for line in sys.stdin.buffer:\n", "import time\nfor line in sys.stdin.buffer:\n", None),
        ("    print(json.dumps(answer), flush=True)", "    print(answer, flush=True)", "describe is well-formed"),
        (
            '        answer = {"ok": False, "error": " "',
            '        raise\n        answer = {"ok": False, "error": " "',
            "rate_bps: 1001000000 is refused",
        ),
    ],
)
def test_what_is_wrong_is_found(tmp_path: Path, right: str, wrong: str, what: str | None) -> None:
    text = example()
    assert right in text
    failed = [each.what for each in tried(tmp_path, text.replace(right, wrong)) if not each.holds]
    if what is None:
        assert failed == []
    else:
        assert any(each.startswith(what) for each in failed), failed


def test_a_program_that_stays_is_found_and_ended(tmp_path: Path) -> None:
    text = example() + "\nimport time\ntime.sleep(60)\n"
    failed = [each for each in tried(tmp_path, text) if not each.holds]
    assert [each.what for each in failed] == ["the program ends with its input"]


def test_what_is_no_program_is_one_line(tmp_path: Path) -> None:
    found = list(checks(lambda: Driver([str(tmp_path / "none")], environment=os.environ), "", None, {}))
    assert [each.holds for each in found] == [False] and "No such file" in found[0].found
