"""Sends bytes over a data channel of WebRTC: peer.py receive PORT, and peer.py send HOST PORT BYTES.

The two exchange their descriptions over TCP at PORT, a line each.
"""

import asyncio
import json
import sys

from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

CHUNK = 16_384
MOST_WAITING = 262_144


def line(description):
    """A description as a line of JSON."""
    return json.dumps({"type": description.type, "sdp": description.sdp}).encode() + b"\n"


def peer():
    """A peer that asks no server for its address."""
    return RTCPeerConnection(RTCConfiguration(iceServers=[]))


async def receive(port):
    """Answer one offer, and print the number of bytes that came before the channel was closed."""
    done = asyncio.get_running_loop().create_future()

    async def answer(reader, writer):
        connection = peer()
        received = 0

        @connection.on("datachannel")
        def opened(channel):
            @channel.on("message")
            def came(message):
                nonlocal received
                if message == "end":
                    channel.send(str(received))
                    print(received, flush=True)
                    asyncio.get_running_loop().call_later(1, done.set_result, None)
                else:
                    received += len(message)

        offer = json.loads(await reader.readline())
        await connection.setRemoteDescription(RTCSessionDescription(offer["sdp"], offer["type"]))
        await connection.setLocalDescription(await connection.createAnswer())
        writer.write(line(connection.localDescription))

    await asyncio.start_server(answer, "0.0.0.0", port, limit=1 << 20)
    await done


async def send(host, port, volume):
    """Send, and end when the other end says how much it has."""
    connection = peer()
    channel = connection.createDataChannel("bytes")
    answered, opened, room = (asyncio.get_running_loop().create_future() for _ in range(3))
    channel.on("open", lambda: opened.set_result(None))
    channel.on("message", answered.set_result)
    channel.bufferedAmountLowThreshold = MOST_WAITING // 2

    @channel.on("bufferedamountlow")
    def low():
        if not room.done():
            room.set_result(None)

    await connection.setLocalDescription(await connection.createOffer())
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    writer.write(line(connection.localDescription))
    answer = json.loads(await reader.readline())
    await connection.setRemoteDescription(RTCSessionDescription(answer["sdp"], answer["type"]))
    await opened
    for first in range(0, volume, CHUNK):
        channel.send(bytes(min(CHUNK, volume - first)))
        if channel.bufferedAmount > MOST_WAITING:
            room = asyncio.get_running_loop().create_future()
            await room
    channel.send("end")
    received = int(await answered)
    print(received)
    sys.exit(received != volume)


if sys.argv[1] == "receive":
    asyncio.run(receive(int(sys.argv[2])))
else:
    asyncio.run(send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
