# SPDX-License-Identifier: MIT
"""What a peer of ZMTP 3.0 sends (RFC 23), for peers by hand."""

import struct


def greeting(mechanism: bytes) -> bytes:
    return b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)


def command(name: bytes, body: bytes) -> bytes:
    return bytes([len(name)]) + name + body


def ready(padding: int = 0) -> bytes:
    body = b"\x0bSocket-Type" + struct.pack(">I", 4) + b"PUSH"
    if padding:
        body += b"\x05X-Pad" + struct.pack(">I", padding) + b"p" * padding
    return command(b"READY", body)


def framed(body: bytes, flags: int = 4) -> bytes:
    return bytes([flags, len(body)]) + body if len(body) < 256 else bytes([flags | 2]) + struct.pack(">Q", len(body)) + body
