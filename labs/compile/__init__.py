"""Description in, plan out: pure, deterministic, no I/O.

In: a spec, and facts of the host (CPUs, networks in use). Out: the plan, or an error with the place in the description.
Defaults are applied here, once, and paths are decided: each pair of the plan carries its path forward and its path
back, as links with directions.
"""

from ewan.labs.compile.compiler import compile
from ewan.labs.compile.facts import HostFacts

__all__ = ["HostFacts", "compile"]
