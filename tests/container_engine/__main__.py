"""`python -m tests.container_engine start|stop|status`: the tests' container engine, by hand."""

from __future__ import annotations

import sys

from tests.container_engine.docker import DockerEngine, EngineError


def main(words: list[str]) -> int:
    engine = DockerEngine()
    if words not in (["start"], ["stop"], ["status"]):
        print("usage: python -m tests.container_engine start|stop|status", file=sys.stderr)
        return 2
    try:
        if words == ["start"]:
            engine.start()
            engine.kept.touch()
        elif words == ["stop"]:
            engine.stop()
    except EngineError as error:
        print(f"engine: {error}", file=sys.stderr)
        return 2
    process = engine.process()
    print(f"export DOCKER_HOST={engine.host}  # process {process}" if process else "engine: not running")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
