"""The command `studio`: the lab in a browser.

In: the command line. Out: a server on this machine until Ctrl-C, whose address, with this start's token, is printed.
"""

from __future__ import annotations

import importlib.util
import secrets
import socket
import sys
import webbrowser
from pathlib import Path

import click

from ewan.labs.base.product import INSTALLED, extra
from ewan.labs.base.product import STUDIO_PAGE as PAGE
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import pass_context
from ewan.labs.context import Context

STARTS = "" if INSTALLED else ", and starts it"
NEEDED = ("starlette", "uvicorn", "websockets")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
CLOSES_S = 2


@click.command("studio")
@click.option("--lab", metavar="FILE", type=click.Path(path_type=Path), help="the description that is opened first")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any that is free")
@click.option("--host", default="127.0.0.1", show_default=True, help="an address of this machine")
@click.option("--view", is_flag=True, help="show and change nothing, as for a projector")
@click.option("--open/--no-open", "opens", default=None, help="open a browser; where there is one, if absent")
@guarded
@pass_context
def studio_command(context: Context, lab: Path | None, port: int, host: str, view: bool, opens: bool | None) -> None:
    """Draw a lab, run it in either clock, watch its links, in a browser.

    Descriptions and results are those of the current directory. Whoever has the address that is printed may do what
    you may do with ewan.

    \b
    ewan studio
    ewan studio --lab my.lab.yaml --port 0
    ewan studio --view
    """
    if any(importlib.util.find_spec(name) is None for name in NEEDED) or not (PAGE / "index.html").exists():
        raise Refused(f"studio is not set up: {extra('studio', 'make studio')} does it{STARTS}")
    if lab is not None and (lab.parent.resolve() != Path.cwd() or not lab.name.endswith(".lab.yaml")):
        raise Refused(f"--lab {lab}: write the name of a file NAME.lab.yaml of the current directory")
    if lab is not None and not lab.is_file():
        raise Refused(f"--lab {lab}: there is no such file")
    import uvicorn

    from ewan.extras.studio.server import connections
    from ewan.extras.studio.server.app import make
    from ewan.extras.studio.server.guard import Access, names_of

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Connections of it inherit the protocol, without which asyncio leaves Nagle's algorithm on: 40 ms an answer.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()  # before the address is printed: who opens it at once waits
    except OSError as error:
        listening.close()
        raise Refused(f"{host}:{port}: {error.strerror or error}: write --port 0 for any that is free") from None
    port = listening.getsockname()[1]
    access = Access(names_of(host, port), port, view, secrets.token_urlsafe(24))
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/?token={access.token}"
    if host not in LOOPBACK:
        context.reporter.warn(f"{host} is not loopback: whoever reads the network's packets has the token")
    context.reporter.console.print(address, soft_wrap=True, highlight=False)
    context.reporter.tell("Ctrl-C ends it; labs that are up stay up, and so do runs that have begun")
    if opens or (opens is None and sys.stdout.isatty()):
        # All users of the machine can read the arguments of the browser: a code that is void after its first use.
        webbrowser.open(f"http://{shown}:{port}/?code={access.code()}")
    most = connections.most_connections()
    config = uvicorn.Config(
        make(context, Path.cwd(), PAGE, access, None if lab is None else lab.name),
        log_level="error",
        http=connections.protocol(most),
        backlog=connections.most_accepted(most),
        ws="websockets-sansio",
        ws_max_size=1 << 20,
        timeout_graceful_shutdown=CLOSES_S,
        server_header=False,
    )
    connections.bound_logs()
    uvicorn.Server(config).run(sockets=[listening])
