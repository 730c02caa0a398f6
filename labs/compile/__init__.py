"""Description in, plan out: pure, deterministic, no I/O."""

from labs.compile.compiler import HostFacts, compile

__all__ = ["HostFacts", "compile"]
