"""The plugin of pytest: a fixture `ewan` that makes labs, a mark for seeds, records of what a failing test ran.

It imports the rest of the product only for a test that uses the fixture, so that other tests begin as quickly as
without it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ewan.experiments.api.testing import TestLabs

FIXTURE = "ewan"
_LABS = pytest.StashKey["TestLabs"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options `--ewan-record` and `--ewan-artifacts`."""
    group = parser.getgroup("ewan", "network emulation (ewan)")
    group.addoption(
        "--ewan-record",
        action="store_true",
        help="record the values of ewan.compare(...) beside the tests, in place of comparing with those recorded",
    )
    group.addoption(
        "--ewan-artifacts",
        metavar="DIR",
        help="directory for packets, figures and tables of failing tests (default: below each test's tmp_path)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and check the option."""
    place = config.getoption("--ewan-artifacts", None)
    if place and place != "".join(place.split()):
        raise pytest.UsageError(f'--ewan-artifacts "{place}": a run takes no directory with blanks: write another one')
    config.addinivalue_line("markers", "ewan(seeds=N): run the test once with each seed from 1 to N of its labs")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test with `@pytest.mark.ewan(seeds=N)` a run for each seed."""
    mark = metafunc.definition.get_closest_marker("ewan")
    if mark is None or FIXTURE not in metafunc.fixturenames:
        return
    seeds = mark.kwargs.get("seeds")
    if mark.args or set(mark.kwargs) != {"seeds"} or not isinstance(seeds, int) or seeds < 1:
        said = ", ".join([*map(repr, mark.args), *(f"{key}={value!r}" for key, value in mark.kwargs.items())])
        where = metafunc.definition.nodeid
        raise pytest.UsageError(f"{where}: ewan({said}): write the mark as @pytest.mark.ewan(seeds=20)")
    metafunc.parametrize(FIXTURE, range(1, seeds + 1), indirect=True, ids=lambda seed: f"seed{seed}")


@pytest.fixture
def ewan(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TestLabs]:
    """Labs for one test: `ewan.lab("dumbbell", rtt="100ms")`."""
    from ewan.experiments.api.testing import Records, TestLabs

    config = request.config
    wanted = config.getoption("--ewan-artifacts")
    name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in request.node.name)
    artifacts = Path(wanted).absolute() / request.path.stem / name if wanted else tmp_path / "artifacts"
    seed = getattr(request, "param", None)
    test = f"{request.path.name}::{request.node.name.replace(f'seed{seed}', 'seed')}"
    records = Records(request.path, test, record=config.getoption("--ewan-record"))
    labs = TestLabs(tmp_path, artifacts, records, seed)
    request.node.stash[_LABS] = labs
    yield labs
    records.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add to the report of a failing test what its labs left, and the command that repeats the last one."""
    labs = item.stash.get(_LABS, None)
    if call.excinfo is not None and labs is not None and call.excinfo.errisinstance((labs.UserError, ValueError)):
        _hide_product()
    report = yield
    if call.when == "call" and report.failed and labs is not None:  # type: ignore[attr-defined]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of libraries that read packets and draw figures
            lines = labs.left()
        if lines:
            report.sections.append(("ewan", "\n".join(lines)))  # type: ignore[attr-defined]
    return report


def _hide_product() -> None:
    """Leave the product's own functions out of tracebacks: a message and the line of the test say what is wrong."""
    for name, module in list(sys.modules.items()):
        if name.startswith("ewan."):
            vars(module)["__tracebackhide__"] = True
