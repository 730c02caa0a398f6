"""The software that an experiment was made with, as an SPDX 2.3 bill of materials.

In: an experiment's record, the project's sources at its commit. Out: the JSON document of SPDX 2.3: ewan, its Python
packages by the lock, ewan-node with the SHA-256 that ran and the crates it is built of, and, in the virtual clock, the
kernel that ran with the source it was built of. Source: the SPDX Specification 2.3, spdx.github.io/spdx-spec/v2.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import UNSET, UnsetType

from ewan.extras.crate.citation import Author
from ewan.extras.crate.sources import LockedCrate, ProjectSources, normalised
from ewan.labs.base.codec import Struct, field
from ewan.labs.record.experiment import ExperimentDocument

FILE = "sbom.spdx.json"
SPDX_VERSION = "SPDX-2.3"
UNKNOWN = "NOASSERTION"
KERNEL_LICENCE = "GPL-2.0-only WITH Linux-syscall-note"
OWN_LICENCE = "Apache-2.0"
EWAN, NODE, KERNEL, KERNEL_SOURCE = (f"SPDXRef-{name}" for name in ("ewan", "ewan-node", "kernel", "kernel-source"))
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)")
_VIA = re.compile(r"^    #(?: via|  ) +([A-Za-z0-9._-]+)")


class SpdxReference(Struct, rename="camel"):
    """The place of a package, as a package URL."""

    reference_category: str
    reference_type: str
    reference_locator: str


class SpdxChecksum(Struct, rename="camel"):
    """The checksum of a package's file."""

    algorithm: str
    checksum_value: str


class SpdxPackage(Struct, rename="camel", kw_only=True, omit_defaults=False):
    """A package. `comment`, `external_refs` and `checksums`: where there are any."""

    identifier: str = field(name="SPDXID")
    name: str
    version_info: str
    download_location: str = UNKNOWN
    files_analyzed: bool = False
    license_concluded: str = UNKNOWN
    license_declared: str = UNKNOWN
    copyright_text: str = UNKNOWN
    comment: str | UnsetType = UNSET
    external_refs: tuple[SpdxReference, ...] | UnsetType = UNSET
    checksums: tuple[SpdxChecksum, ...] | UnsetType = UNSET


class SpdxRelationship(Struct, rename="camel"):
    """A relation between two packages."""

    spdx_element_id: str
    relationship_type: str
    related_spdx_element: str


class SpdxCreation(Struct):
    """The moment when the document was made, and its creators."""

    created: str
    creators: tuple[str, ...]


class SpdxDocument(Struct, rename="camel", kw_only=True):
    """The bill of materials, in the words of SPDX."""

    spdx_version: str
    data_license: str
    identifier: str = field(name="SPDXID")
    name: str
    document_namespace: str
    comment: str
    creation_info: SpdxCreation
    packages: tuple[SpdxPackage, ...]
    relationships: tuple[SpdxRelationship, ...]


def bill(
    document: ExperimentDocument, sources: ProjectSources, authors: Sequence[Author], created: str, digest: str
) -> SpdxDocument:
    """The bill of materials of an experiment.

    `created`: this moment, YYYY-MM-DDThh:mm:ssZ; `digest`: SHA-256 of experiment.json, which makes its name unique.
    """
    links = [("SPDXRef-DOCUMENT", "DESCRIBES", EWAN), *_relationships(document, sources)]
    people = [f"Person: {each.name}" for each in authors]
    return SpdxDocument(
        spdx_version=SPDX_VERSION,
        data_license="CC0-1.0",
        identifier="SPDXRef-DOCUMENT",
        name=f"software of the experiment {document.scenario}",
        document_namespace=f"https://spdx.org/spdxdocs/ewan-{document.scenario}-{digest}",
        comment=_comment(sources),
        creation_info=SpdxCreation(created, (f"Tool: ewan-{sources.version}", *people)),
        packages=tuple(_packages(document, sources)),
        relationships=tuple(SpdxRelationship(*each) for each in links),
    )


def _comment(sources: ProjectSources) -> str:
    if sources.exact:
        beyond = ", which had changes beyond it" if sources.changed else ""
        return f"Versions are those of requirements.lock and Cargo.lock at commit {sources.commit}{beyond}."
    return (
        f"The sources at the experiment's commit ({sources.commit or 'not recorded'}) were not at hand: versions are "
        "those of the ewan that archived it."
    )


def _purl(locator: str) -> tuple[SpdxReference, ...]:
    return (SpdxReference("PACKAGE-MANAGER", "purl", locator),)


def _sha256(digest: str | None) -> tuple[SpdxChecksum, ...] | UnsetType:
    return (SpdxChecksum("SHA256", digest),) if digest else UNSET


def _packages(document: ExperimentDocument, sources: ProjectSources) -> Iterator[SpdxPackage]:
    commit = f"; commit {sources.commit}" if sources.commit else ""
    place = f"git+{sources.repository}@{sources.commit}" if sources.repository and sources.commit else UNKNOWN
    if "://" not in place:
        place = UNKNOWN  # SPDX has no form for addresses of ssh without a scheme
    yield SpdxPackage(
        identifier=EWAN,
        name="ewan",
        version_info=sources.version,
        download_location=place,
        license_declared=OWN_LICENCE,
        comment=f"the engine{commit}",
    )
    yield SpdxPackage(
        identifier=NODE,
        name="ewan-node",
        version_info=sources.version,
        license_declared=OWN_LICENCE,
        comment="the program of every node; the checksum is that of the binary that ran",
        checksums=_sha256(document.binary_sha256),
    )
    if document.clock == "virtual":
        yield SpdxPackage(
            identifier=KERNEL,
            name="virtual kernel of ewan",
            version_info=sources.kernel_version,
            license_declared=KERNEL_LICENCE,
            comment="User-Mode Linux with ewan's patches; the checksum is that of the program that ran",
            checksums=_sha256(document.kernel_sha256),
        )
        yield SpdxPackage(
            identifier=KERNEL_SOURCE,
            name=sources.kernel_package,
            version_info=sources.kernel_version,
            license_declared=KERNEL_LICENCE,
            comment="the source that the virtual kernel is built of, a package of Debian",
            external_refs=_purl(f"pkg:deb/debian/{sources.kernel_package}@{sources.kernel_version}"),
        )
    for name, version in locked(sources.lock).items():
        reference = _purl(f"pkg:pypi/{name}@{version}")
        yield SpdxPackage(identifier=_python(name), name=name, version_info=version, external_refs=reference)
    for each in sources.crates:
        yield SpdxPackage(
            identifier=_crate(each),
            name=each.name,
            version_info=each.version,
            external_refs=_purl(f"pkg:cargo/{each.name}@{each.version}"),
            checksums=_sha256(each.checksum),
        )


def _relationships(document: ExperimentDocument, sources: ProjectSources) -> Iterator[tuple[str, str, str]]:
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
    for each in sources.crates:
        yield _crate(each), "BUILD_DEPENDENCY_OF", NODE


def _python(name: str) -> str:
    return f"SPDXRef-pypi-{name}"


def _crate(package: LockedCrate) -> str:
    return "SPDXRef-cargo-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{package.name}-{package.version}")


def locked(lock: str) -> dict[str, str]:
    """Versions of a requirements.lock by the packages' names."""
    found = (_PINNED.match(line) for line in lock.splitlines())
    return {normalised(each[1]): each[2] for each in found if each}


def runtime(sources: ProjectSources) -> set[str]:
    """The packages of the lock that ewan needs to run, by the comments that name who needs each; the rest is for
    tests."""
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
