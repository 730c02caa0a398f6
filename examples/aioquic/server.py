"""Sends as many bytes over a stream of QUIC as its peer asks for: server.py PORT CERTIFICATE KEY"""

import asyncio
import sys

from aioquic.asyncio import serve
from aioquic.quic.configuration import QuicConfiguration


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read a number, and write so many bytes."""
    writer.write(bytes(int(await reader.read())))
    writer.write_eof()


async def main() -> None:
    """Serve until the end of the run."""
    port, certificate, key = sys.argv[1:]
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["example"])
    configuration.load_cert_chain(certificate, key)

    def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.get_running_loop().create_task(answer(reader, writer)))

    tasks: list[asyncio.Task[None]] = []
    await serve("::", int(port), configuration=configuration, stream_handler=handler)
    await asyncio.Future()


asyncio.run(main())
