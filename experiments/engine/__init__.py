"""Experiments: a scenario's runs from reservation to archive, in either clock; resumed, repeated, compared.

In: scenarios. Out: directories below results/; experiment.json names what is there.

The stages are those of NXE, each restartable. What the engine calls of calibration and analysis is one value (`Parts`),
which tests replace: producing a run never depends on how it is judged. experiment.json is replaced in one step at each
stage and holds the SHA-256 of every file that is read again; the outcome of a run is a line of experiment.journal until
then. A file for which neither vouches is made anew by `ewan exp resume`, and a file whose bytes differ is named by its
readers. The processes of a virtual lab hold a lock on its directory, so that whoever resumes waits for those of a
killed command. The engine holds one too: an experiment that is written as running without it was killed.
"""
