"""Finds the description that a word of the command line names, and its plan.

In: the name of a template, of a ready description or of a file, and overrides. Out: a spec, or a plan for this machine
or for the virtual clock. DescriptionError, in one line, where there is none or where it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ewan.labs import host, trust
from ewan.labs.base import reading
from ewan.labs.base.reporter import Tell
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.spec import DescriptionError, Spec, from_template, load, names, override
from ewan.labs.spec.fields import Topology


def describe(topology: str, overrides: Mapping[str, str | None], note: Tell) -> Spec:
    """A template, or the description that a name or path means (`ewan.labs.spec.names`); then the overrides that are
    given.

    The name of a template always means the template, so that it is the same lab in every directory; `note` receives a
    line if a file has that name too.
    """
    given = {key: str(value) for key, value in overrides.items() if value is not None}
    file = names.find(topology, names.LAB)
    # A graph has no default shape: its ready lab stands for it.
    if topology in Topology.words() and topology != "graph":
        if file is not None and not file.is_absolute():
            note(f"note: {topology} is the template of that name: to take the file, write ./{file}")
        return from_template(topology, given)
    if file is None:
        every = dict.fromkeys([*Topology.words(), *names.known(names.LAB)])
        raise DescriptionError(f'TOPO "{topology}": unknown topology, {names.near(topology, every, names.LAB)}')
    return override(load(file), given)


def plan_of(
    topology: str,
    overrides: Mapping[str, str | None],
    note: Tell,
    *,
    virtual: bool,
    facts: Callable[[], HostFacts] = host.facts,
) -> Plan:
    """The plan for this machine, or for the virtual clock's, which is the same everywhere; `facts`: of others."""
    spec = describe(topology, overrides, note)
    return compile_spec(spec, host.virtual_facts() if virtual else facts())


def trusted_plan_of(
    context: Context,
    topology: str,
    overrides: Mapping[str, str | None],
    *,
    virtual: bool,
    facts: Callable[[], HostFacts] = host.facts,
) -> Plan:
    """The same of a lab that is to be brought up; LabError if it is another user's and the user has not trusted it."""
    with reading.noted() as files:
        plan = plan_of(topology, overrides, context.reporter.note, virtual=virtual, facts=facts)
    trust.ask_for_lab(context, files, plan, virtual=virtual)
    return plan
