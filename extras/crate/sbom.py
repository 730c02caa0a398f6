"""The software that an experiment was made with, as an SPDX 2.3 bill of materials.

In: an experiment's record, the project's sources at its commit. Out: the JSON document of SPDX 2.3: ewan, its Python
packages by the lock, ewan-node with the SHA-256 that ran and the crates it is built of, and, in the virtual clock, the
kernel that ran with the source it was built of. Source: the SPDX Specification 2.3, spdx.github.io/spdx-spec/v2.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ewan.extras.crate.citation import Author
from ewan.extras.crate.sources import Sources, normalised
from ewan.labs.record.experiment import ExperimentDocument

FILE = "sbom.spdx.json"
SPDX_VERSION = "SPDX-2.3"
UNKNOWN = "NOASSERTION"
KERNEL_LICENCE = "GPL-2.0-only WITH Linux-syscall-note"
OWN_LICENCE = "Apache-2.0"
EWAN, NODE, KERNEL, KERNEL_SOURCE = (f"SPDXRef-{name}" for name in ("ewan", "ewan-node", "kernel", "kernel-source"))
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)")
_VIA = re.compile(r"^    #(?: via|  ) +([A-Za-z0-9._-]+)")


def bill(
    document: ExperimentDocument, sources: Sources, authors: Sequence[Author], created: str, digest: str
) -> dict[str, Any]:
    """The bill of materials of an experiment.

    `created`: this moment, YYYY-MM-DDThh:mm:ssZ; `digest`: SHA-256 of experiment.json, which makes its name unique.
    """
    packages = list(_packages(document, sources))
    links = [("SPDXRef-DOCUMENT", "DESCRIBES", EWAN), *_relationships(document, sources)]
    people = [f"Person: {each.name}" for each in authors]
    return {
        "spdxVersion": SPDX_VERSION,
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"software of the experiment {document.scenario}",
        "documentNamespace": f"https://spdx.org/spdxdocs/ewan-{document.scenario}-{digest}",
        "comment": _comment(sources),
        "creationInfo": {"created": created, "creators": [f"Tool: ewan-{sources.version}", *people]},
        "packages": packages,
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in links
        ],
    }


def _comment(sources: Sources) -> str:
    if sources.exact:
        beyond = ", which had changes beyond it" if sources.changed else ""
        return f"Versions are those of requirements.lock and Cargo.lock at commit {sources.commit}{beyond}."
    return (
        f"The sources at the experiment's commit ({sources.commit or 'not recorded'}) were not at hand: versions are "
        "those of the ewan that archived it."
    )


def _package(identifier: str, name: str, version: str, **more: Any) -> dict[str, Any]:
    return {
        "SPDXID": identifier,
        "name": name,
        "versionInfo": version,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": UNKNOWN,
        "copyrightText": UNKNOWN,
        **more,
    }


def _purl(locator: str) -> dict[str, Any]:
    reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}
    return {"externalRefs": [reference]}


def _sha256(digest: str | None) -> dict[str, Any]:
    return {"checksums": [{"algorithm": "SHA256", "checksumValue": digest}]} if digest else {}


def _packages(document: ExperimentDocument, sources: Sources) -> Iterator[dict[str, Any]]:
    commit = f"; commit {sources.commit}" if sources.commit else ""
    place = f"git+{sources.repository}@{sources.commit}" if sources.repository and sources.commit else UNKNOWN
    if "://" not in place:
        place = UNKNOWN  # SPDX has no form for addresses of ssh without a scheme
    own = {"licenseDeclared": OWN_LICENCE}
    yield _package(EWAN, "ewan", sources.version, downloadLocation=place, comment=f"the engine{commit}", **own)
    yield _package(
        NODE,
        "ewan-node",
        sources.version,
        comment="the program of every node; the checksum is that of the binary that ran",
        **own,
        **_sha256(document.binary_sha256),
    )
    if document.clock == "virtual":
        yield _package(
            KERNEL,
            "virtual kernel of ewan",
            sources.kernel_version,
            comment="User-Mode Linux with ewan's patches; the checksum is that of the program that ran",
            licenseDeclared=KERNEL_LICENCE,
            **_sha256(document.kernel_sha256),
        )
        yield _package(
            KERNEL_SOURCE,
            sources.kernel_package,
            sources.kernel_version,
            comment="the source that the virtual kernel is built of, a package of Debian",
            licenseDeclared=KERNEL_LICENCE,
            **_purl(f"pkg:deb/debian/{sources.kernel_package}@{sources.kernel_version}"),
        )
    for name, version in locked(sources.lock).items():
        yield _package(_python(name), name, version, **_purl(f"pkg:pypi/{name}@{version}"))
    for each in _linked(sources):
        name, version = each["name"], each["version"]
        yield _package(
            _crate(each), name, version, **_purl(f"pkg:cargo/{name}@{version}"), **_sha256(each.get("checksum"))
        )


def _relationships(document: ExperimentDocument, sources: Sources) -> Iterator[tuple[str, str, str]]:
    yield EWAN, "DEPENDS_ON", NODE
    if document.clock == "virtual":
        yield EWAN, "DEPENDS_ON", KERNEL
        yield KERNEL, "GENERATED_FROM", KERNEL_SOURCE
    needed = runtime(sources)
    for name in locked(sources.lock):
        if name in needed:
            yield EWAN, "DEPENDS_ON", _python(name)
        else:
            yield _python(name), "DEV_DEPENDENCY_OF", EWAN
    for each in _linked(sources):
        yield _crate(each), "BUILD_DEPENDENCY_OF", NODE


def _python(name: str) -> str:
    return f"SPDXRef-pypi-{name}"


def _crate(package: dict[str, Any]) -> str:
    return "SPDXRef-cargo-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{package['name']}-{package['version']}")


def _linked(sources: Sources) -> list[dict[str, Any]]:
    """Crates of a registry; those of the project itself have no source."""
    return [each for each in sources.crates if "source" in each]


def locked(lock: str) -> dict[str, str]:
    """Versions of a requirements.lock by the packages' names."""
    found = (_PINNED.match(line) for line in lock.splitlines())
    return {normalised(each[1]): each[2] for each in found if each}


def runtime(sources: Sources) -> set[str]:
    """Packages of the lock that ewan needs to run, by what its comments say who wanted which; the rest is for tests."""
    wanted_by: dict[str, set[str]] = {}
    name = ""
    for line in sources.lock.splitlines():
        if pinned := _PINNED.match(line):
            name = normalised(pinned[1])
        elif name and (via := _VIA.match(line)):
            wanted_by.setdefault(name, set()).add(normalised(via[1]))
    found = set(sources.runtime_packages)
    while more := {each for each, by in wanted_by.items() if by & found} - found:
        found |= more
    return found
