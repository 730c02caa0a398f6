"""Labs that containerlab deployed by hand from a file of `ewan lab compile`: which can be adopted, and what they leave.

In: a topology file. Out: its plan and where its directory is; LabError, in a line, for what is no such file. A state
directory of an adopted lab has a manifest and the plan of its own, and leads to what its containers write into the
directory that they share. When the lab goes, so does what the deployment left beside the file; what `ewan lab compile`
wrote stays as it was written.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from ewan.labs import plan as plans
from ewan.labs.base.codec import OtherVersionError, replace
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.containers import Adopted, ContainersManifest

LAB = "/lab"
PLAN_LABEL = "ewan.plan"
LARGEST_BYTES = 64 << 20
SHARED = ("nodes", "hosts")
HOSTS = Path("/etc/hosts")
SSH = Path("/etc/ssh/ssh_config.d")
_BY_EWAN = "only labs of files that `ewan lab compile` wrote can be adopted"


@dataclass(frozen=True, slots=True)
class TopologyFile:
    """A topology file of ours: absolute path, text, plan, and the directory that its containers share."""

    file: Path
    text: str
    plan: Plan
    directory: Path

    @property
    def clab_directory(self) -> Path:
        """The directory that containerlab leaves beside the file."""
        return self.file.parent / f"clab-{self.plan.lab}"


def read(path: Path) -> TopologyFile:
    """The file with its plan; LabError for a file that is not ours, or of another version."""
    file = path.absolute()
    try:
        if not file.is_file() or file.stat().st_size > LARGEST_BYTES:
            raise LabError(f"{path} is no file of containerlab: {_BY_EWAN}")
        text = file.read_text()
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise LabError(f"{path} is no YAML: {_BY_EWAN}") from None
    try:
        defaults = document["topology"]["defaults"]
        digest, lab = str(defaults["labels"][PLAN_LABEL]), str(document["name"])
        (bound,) = [str(bind).partition(":")[0] for bind in defaults["binds"] if str(bind).endswith(f":{LAB}")]
    except (TypeError, KeyError, ValueError):
        raise LabError(f"{path} has no plan of ewan's ({PLAN_LABEL}): {_BY_EWAN}") from None
    directory = file.parent / bound
    again = "compile and deploy it again"
    try:
        plan = plans.from_json((directory / "plan.json").read_bytes())
    except OSError as error:
        raise LabError(f"{directory}/plan.json: {error.strerror}: it belongs beside {path}; {again}") from None
    except OtherVersionError as error:
        raise LabError(f"{path} was compiled by another version of ewan ({error}): {again}") from None
    except ValueError as error:
        raise LabError(f"{directory}/plan.json is no plan ({str(error).splitlines()[0]}): {again}") from None
    if plans.digest(plan) != digest or plan.lab != lab:
        raise LabError(f"{path} and {directory}/plan.json are of different plans: {again}")
    return TopologyFile(file, text, plan, directory)


def manifest_of(compiled: TopologyFile, made: ContainersManifest) -> ContainersManifest:
    """The manifest of a lab that `ewan` made, and where the rest of this one is."""
    return replace(made, adopted=Adopted(str(compiled.directory), str(compiled.clab_directory)))


def lead(compiled: TopologyFile, state: Path) -> None:
    """Has the state directory, whose manifest is there, show what the containers share. OSError where it cannot."""
    names = [*SHARED, *(f"spinner-{number}.sock" for number in range(len(compiled.plan.spinners)))]
    for name in names:
        (state / name).symlink_to(compiled.directory / name)
    (state / "plan.json").write_bytes(plans.to_json(compiled.plan))


def forget(manifest: ContainersManifest, places: Adopted) -> list[str]:
    """Removes what the deployment of an adopted lab left on the host, whose containers are gone; tells the paths.

    That is containerlab's directory, the sockets of links, and where containerlab wrote the lab's names into the host's
    own files, these lines.
    """
    lab = manifest.lab
    removed = []
    clab_directory, file = Path(places.clab_directory), Path(manifest.topology)
    if clab_directory.is_dir() and not clab_directory.is_symlink():
        shutil.rmtree(clab_directory)
        removed.append(str(clab_directory))
    # containerlab keeps the file that it read beside it.
    kept = file.with_name(f".{file.name}.bak")
    for path in [*sorted(Path(places.directory).glob("spinner-*")), *([kept] if kept.is_file() else [])]:
        path.unlink(missing_ok=True)
        removed.append(str(path))
    ssh = SSH / f"clab-{lab}.conf"
    if ssh.is_file():
        ssh.unlink()
        removed.append(str(ssh))
    _forget_names(lab)
    return removed


def _forget_names(lab: str) -> None:
    """Takes the lab's lines out of the host's names. The file may be a mount: it is written in place."""
    mark = re.escape(lab)
    block = re.compile(rf"^#+ CLAB-{mark}-START #+\n.*?^#+ CLAB-{mark}-END #+\n?", re.MULTILINE | re.DOTALL)
    with suppress(OSError):
        text = HOSTS.read_text()
        if (left := block.sub("", text)) != text:
            with HOSTS.open("r+") as file:
                file.write(left)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
