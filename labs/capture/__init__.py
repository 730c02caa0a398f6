"""Packets of a lab that is up, or of a program: where they are captured, which of them, and a line for each.

`points`: from words to taps (pure); `bpf`: from a filter's text to the kernel's instructions; `lines`: from a frame to
a line (pure); `words`: the command line of `ewan-node capture`, which does it.
"""
