"""The commands `kernel add`, `kernel list`, `kernel verify` and `kernel remove`: kernels of a user's own for the
virtual clock.

In: a tree of Linux's source, an archive, a version of Debian's, patches. Out: the library of added kernels, and tables.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ewan.calibration import kernels
from ewan.calibration.cli import drawn
from ewan.calibration.kernels import KernelVerification
from ewan.labs.base.codec import Struct
from ewan.labs.base.sheet import grid
from ewan.labs.base.units.shown import about
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import details_option, json_option, pass_context
from ewan.labs.congestion import library as controls
from ewan.labs.context import Context
from ewan.labs.kernels import adding, library
from ewan.labs.kernels.library import AddedKernel
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary


class ListedKernel(Struct):
    """A kernel of the library. `congestion`: the congestion controls that it says it has; `bytes`: of its files in the
    library. `error`: why it does not start."""

    kernel: AddedKernel
    congestion: tuple[str, ...]
    bytes: int
    error: str | None = None


class KernelsOutput(Struct):
    """The kernels of the virtual clock: those that the user added, and the congestion controls of the default one."""

    default: tuple[str, ...]
    added: dict[str, ListedKernel]


@click.command("add")
@click.argument("source", required=False, metavar="[TREE or ARCHIVE]", type=click.Path(path_type=Path))
@click.option("--name", required=True, metavar="NAME", help="the name by which labs take it")
@click.option("--debian", metavar="VERSION", help='a newer kernel of Debian\'s, "7.3", in place of TREE or ARCHIVE')
@click.option(
    "--patches",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="patches of your own: files *.patch, or those that a file `series` lists",
)
@guarded
@pass_context
def add_command(context: Context, source: Path | None, name: str, debian: str | None, patches: Path | None) -> None:
    """Add a Linux kernel of your own to the virtual clock.

    It is built from a tree of its source, from an archive of one, from a newer kernel of Debian's or, with --patches
    only, from the default kernel's source. The build runs in a sandbox without network, on a copy: a tree is not
    written to. Adding an edited tree again compiles what has changed. Patches of the product that do not apply are
    named, with what is lost; where exact time would be lost, the kernel is refused.

    \b
    ewan kernel add ../linux-bbr3 --name bbr3
    ewan kernel add --debian 7.3 --name debian-7.3
    ewan kernel add --patches my-series/ --name mine
    """
    if source is not None and debian:
        raise Refused(f"kernel add: {source} and --debian {debian} are two sources: leave one of them out")
    if source is None and not debian and patches is None:
        raise Refused(
            "kernel add: name what it is made of: a tree of Linux's source or an archive of one, --debian 7.3, or "
            "--patches DIR for patches on the default kernel"
        )
    if debian and not debian.replace(".", "").isdecimal():
        raise Refused(f'--debian "{debian}": write the version of a package linux-source-VERSION of Debian\'s, 7.3')
    wanted = adding.Wanted(name, source, debian or "", patches)
    with context.reporter.progress(f"building kernel {name}") as progress:

        def tell(line: str) -> None:
            progress.step(f"building kernel {name}: {line.removeprefix('kernel: ')}", log=line)

        kernel = adding.add(wanted, node_binary(context.binary), context.environment, tell)
    out = context.reporter.console
    out.print(
        f"kernel {name} added: Linux {kernel.version}, {len(kernel.congestion)} congestion controls, "
        f"in {kernel.seconds:.0f} s",
        soft_wrap=True,
    )
    for line in notes(kernel):
        out.print(line, soft_wrap=True, markup=False, highlight=False)
    out.print(f"check it: ewan kernel verify {name}", soft_wrap=True)
    out.print(f"try it: ewan transfer dumbbell --rtt 100ms --runtime virtual --kernel {name}", soft_wrap=True)


def notes(kernel: AddedKernel) -> list[str]:
    """Return the features that it lacks of the default kernel, a line each."""
    lines = [f"left out: {each.name} ({each.kind}): {each.lost}" for each in kernel.left_out()]
    lines += [f"left out: congestion control {name}: {why}" for name, why in kernel.controls_left_out.items()]
    if kernel.options_left_out:
        lines.append(f"options that it does not have: {', '.join(kernel.options_left_out)}")
    return lines


@click.command("list")
@json_option(lambda: KernelsOutput)
@guarded
@pass_context
def list_command(context: Context, as_json: bool) -> None:
    """List the kernels of the virtual clock, with the congestion controls that each says it has.

    Each of them is started.

    \b
    ewan kernel list
    """
    found: dict[str, ListedKernel] = {}
    with context.reporter.progress("starting kernels") as progress:
        default = controls.in_kernel(context.virtual(tell=progress.step), ())
        for name, kernel in library.added(context.environment).items():
            progress.step(f"starting kernel {name}")
            found[name] = listed(context, name, kernel)
    if as_json:
        context.reporter.emit(KernelsOutput(default, found))
        return
    rows = [[library.DEFAULT, "default", "", "", "", ", ".join(default)]]
    for name, each in found.items():
        kernel = each.kernel
        patches = ", ".join(patch.name[:4] for patch in kernel.left_out()) or "none"
        own = f"{kernel.source.kind} {kernel.source.what}"
        own += f" + {len(kernel.own_patches)} patches" if kernel.own_patches else ""
        rows.append(
            [name, kernel.version, own, patches, about(each.bytes, "size"), each.error or ", ".join(each.congestion)]
        )
    columns = ["kernel", "Linux", "source", "our patches left out", "size", "congestion controls, as it says"]
    context.reporter.console.print(grid("Kernels of the virtual clock", columns, rows))


def listed(context: Context, name: str, kernel: AddedKernel) -> ListedKernel:
    """A kernel, asked itself."""
    place = library.folder(context.environment)
    size = library.size(place / name) if place is not None else 0
    try:
        return ListedKernel(kernel, controls.in_kernel(context.virtual(kernel=name), ()), size)
    except LabError as error:
        return ListedKernel(kernel, (), size, str(error))


@click.command("verify")
@click.argument("name")
@details_option
@json_option(lambda: KernelVerification)
@guarded
@pass_context
def verify_command(context: Context, name: str, details: bool, as_json: bool) -> None:
    """Check a kernel of the virtual clock: exact times, and the same bytes from the same run.

    A lab is made in it twice, each link and pair is measured and compared with what it should be to the nanosecond, and
    transfers are sent over it. All results of the two runs are compared. The status is 1 where something differs.

    \b
    ewan kernel verify debian-7.3
    """
    try:
        with context.reporter.progress(f"verifying kernel {name}") as progress:
            runtime = context.virtual(kernel=name, tell=progress.step)
            found = kernels.verify(runtime, lambda text: progress.step(f"verifying kernel {name}: {text}"))
    except RuntimeError as error:
        raise Refused(f"kernel {name}: {error}") from None
    if as_json:
        context.reporter.emit(found)
    else:
        shown(context, name, found, details)
    sys.exit(0 if found.good else 1)


def shown(context: Context, name: str, found: KernelVerification, details: bool) -> None:
    """The verification as tables."""
    out = context.reporter.console
    drawn(context, found.certificate, None, False, details)
    rows = [[what, "the same" if same else "DIFFERENT"] for what, same in found.repeats.items()]
    out.print(grid(f"Two runs in kernel {name}, Linux {found.release}", ["results", "bytes"], rows))
    out.print(f"kernel {name}: {'exact and reproducible' if found.good else 'NOT exact and reproducible'}")


@click.command("remove")
@click.argument("name")
@guarded
@pass_context
def remove_command(context: Context, name: str) -> None:
    """Remove a kernel that you added, and its tree of objects; results of its runs stay.

    \b
    ewan kernel remove bbr3
    """
    freed = library.remove(name, context.environment)
    context.reporter.console.print(f"kernel {name} removed: {about(freed, 'size')} are free again", soft_wrap=True)
