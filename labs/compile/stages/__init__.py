"""From a description to the stages of a link's direction: one module a stage, with its defaults and its checks.

Comes in: what was written for the direction (`Settings`) and where the direction is (`LinkContext`). Goes out: the
types of `ewan.labs.stages`, or a DescriptionError. `obstacle` of a module says what the kernel's own parts cannot do.
"""
