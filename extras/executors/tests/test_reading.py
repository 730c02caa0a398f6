"""Files for --cluster: their values, and the line that each mistake gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.extras.executors import reading
from ewan.extras.executors.file import Workers
from ewan.labs.base.source import DescriptionError

SLURM = 'engine: slurm\nmemory: 8GB\nwalltime: "01:30:00"\n'


def read(text: str, place: Path = Path("/nowhere")) -> Workers:
    return reading.parse(text, place / "w.yaml")


def test_what_is_not_said_is_what_people_expect() -> None:
    slurm = read(SLURM + "cores: 4\n")
    assert (slurm.jobs, slurm.cores, slurm.walltime_s, slurm.memory_of_a_worker) == (1, 4, 5400, 2 * 10**9)
    assert slurm.shared and read("engine: local").shared
    assert (
        not read("engine: ssh\nhosts: [one]").shared and not read("engine: dask\naddress: tcp://10.0.0.1:8786").shared
    )


def test_names_of_files_are_relative_to_the_file(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).touch()
    text = "engine: dask\naddress: tls://10.0.0.1:8786\ncertificates: [ca, cert, key]\n"
    assert read(text, tmp_path).certificates == (tmp_path / "ca", tmp_path / "cert", tmp_path / "key")


@pytest.mark.parametrize("name", ["slurm", "oar", "ssh"])
def test_the_examples_are_read(name: str) -> None:
    file = Path(__file__).resolve().parents[3] / f"docs/how-to/experiments/executors/{name}.yaml"
    assert reading.load(file).engine == name


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("engine: kubernetes", 1, "engine"),
        ("", 1, "engine: local"),
        ("engine: slurm\nmemory: 8GB", 1, "needs walltime"),
        ('engine: slurm\nwalltime: "01:00:00"', 1, "needs memory"),
        ("engine: slurm\nmemory: 8GB\nwalltime: 90min", 3, "01:30:00"),
        ('engine: slurm\nmemory: 8GB\nwalltime: "00:00:30"', 3, "less than a minute"),
        ("engine: slurm\nmemory: 8\n", 2, "8"),
        (SLURM + "partition: cpu", 4, "partition"),
        (SLURM + "hosts: [one]", 4, "means nothing to engine slurm"),
        (SLURM + "jobs: 0", 4, "from 1"),
        (SLURM + 'options: [""]', 4, "line of text"),
        (SLURM + "queue: -x", 4, "word"),
        ("engine: local\njobs: 3", 2, "means nothing to engine local"),
        ("engine: ssh", 1, "needs hosts"),
        ("engine: ssh\nhosts: [one, one]", 2, "once"),
        ("engine: ssh\nhosts: [one]\nssh_config: nowhere", 3, "no such file"),
        ("engine: dask", 1, "needs address"),
        ("engine: dask\naddress: 10.0.0.1:8786", 2, "tls://"),
        ("engine: dask\naddress: tcp://a:1\ncertificates: [a, b, c]", 3, "tls://"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(text: str, line: int, why: str) -> None:
    with pytest.raises(DescriptionError) as error:
        read(text)
    said = str(error.value)
    assert said.startswith(f"/nowhere/w.yaml:{line}") and why in said and "\n" not in said
