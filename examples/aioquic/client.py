"""Asks a server for bytes over QUIC, and prints how many came: client.py HOST PORT BYTES"""

import asyncio
import ssl
import sys

from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration


async def main() -> None:
    """Fetch, and end with status 1 where a byte is missing."""
    host, port, volume = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["example"], verify_mode=ssl.CERT_NONE)
    async with connect(host, port, configuration=configuration) as connection:
        reader, writer = await connection.create_stream()
        writer.write(volume.encode())
        writer.write_eof()
        received = len(await reader.read())
    print(received)
    sys.exit(received != int(volume))


asyncio.run(main())
