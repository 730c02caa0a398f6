"""An experiment as a research object that others can check: RO-Crate 1.3, with what repeats and compares it.

In: an experiment's directory. Out: a directory or a .zip with all of it, its description (ro-crate-metadata.json), a
bill of materials (SPDX), how to cite it (CITATION.cff), checksums, and reproduce.sh.
"""
