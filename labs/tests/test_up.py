"""`ewan up` interrupted: nothing is left, and nothing of somebody else's is removed."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from ewan.labs import host
from ewan.labs.commands import up
from ewan.labs.compile import HostFacts
from ewan.labs.context import Context


class Interrupted:
    """A runtime during which Ctrl-C comes."""

    def __init__(self, during: str) -> None:
        self.during = during
        self.did: list[str] = []

    def up(self, plan: object) -> list[str]:
        self._do("up")
        return []

    def converge(self, name: str) -> None:
        self._do("converge")

    def down(self, name: str) -> None:
        self.did.append(f"down {name}")

    def _do(self, what: str) -> None:
        self.did.append(what)
        if what == self.during:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("during", "did"),
    [
        ("up", ["up"]),  # the runtime itself removes what it made; the name may be another lab's
        ("converge", ["up", "converge", "down stopped"]),
    ],
)
def test_ctrl_c_during_up_leaves_nothing(monkeypatch: pytest.MonkeyPatch, during: str, did: list[str]) -> None:
    runtime = Interrupted(during)
    monkeypatch.setattr(Context, "live", lambda *arguments, **options: runtime)
    monkeypatch.setattr(up, "as_root", lambda context: None)
    monkeypatch.setattr(host, "facts", lambda: HostFacts(cpus=(0, 1), networks=()))
    result = CliRunner().invoke(up.up_command, ["chain", "--routing", "ospf", "--name", "stopped"], obj=Context.of({}))
    assert result.exit_code == 130
    assert runtime.did == did
