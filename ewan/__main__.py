"""`python -m ewan …` is `ewan …`, and so is the script that pip installs."""

import runpy


def main() -> None:
    """The command line, as a program."""
    runpy.run_module("ewan.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
