"""Tests of extras with labs, kernels, browsers or machines; those of their parts alone stand beside them."""
