"""Two checkouts of the product are compared by what their commands write: plans, runs, tables, certificates, reports.

`python -m tests.equal corpus CORPUS` writes the input, which is the same for every checkout.
`python -m tests.equal produce CHECKOUT CORPUS OUT` has the commands of a checkout work on it.
`python -m tests.equal compare BEFORE AFTER` compares two such folders byte for byte, but for `allowed.py`.
"""
