"""The commands that describe, make and use labs, one module each, and what they share with other parts' commands.

In: the command line. Out: tables for people, one JSON document with --json, and exit status 2 with one line for what
the user can put right. `ewan/commands.py` names every command's module and function.
"""
