"""Kernels of the virtual clock that a user has added."""
