# SPDX-License-Identifier: MIT
"""The bytes of a client of ws and wss."""

import base64
import os
import struct


def web_frame(body: bytes, first: int = 0x82) -> bytes:
    """As a client: with a mask, which may be zero."""
    size = bytes([0x80 | len(body)]) if len(body) < 126 else b"\xfe" + struct.pack(">H", len(body))
    return bytes([first]) + size + bytes(4) + body


def upgrade_request(padding: int = 0) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    padded = f"X-Pad: {'p' * padding}\r\n" if padding else ""
    return (f"GET / HTTP/1.1\r\nHost: localhost\r\n{padded}Upgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ZWS2.0/NULL\r\n\r\n").encode()
