# SPDX-License-Identifier: MIT
"""payload.h for Python: the bytes that every message must have."""

PERIOD = 65_521
SIZE_MAX = 16 << 20
MASK = (1 << 64) - 1


def _make_noise() -> bytes:
    state, words = 1, []
    for _ in range(0, PERIOD, 8):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        word = state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
        words.append((word ^ (word >> 31)).to_bytes(8, "little"))
    once = b"".join(words)[:PERIOD]
    return once * (SIZE_MAX // PERIOD + 2)


_NOISE = _make_noise()


class Shape:
    """The part sizes of a message: [size], or [8][size][0][size/4 + 1]."""

    def __init__(self, size: int, multipart: bool):
        self.size = size
        self.multipart = multipart
        self.sizes = [8, size, 0, size // 4 + 1] if multipart else [size]


def make_message(shape: Shape, stream: int, sequence: int, topic: bytes = b"") -> list[bytes]:
    parts = []
    for index, size in enumerate(shape.sizes):
        head = topic[:size] if index == 0 else b""
        offset = (stream * 7919 + sequence * 8191 + index * 131) % PERIOD
        parts.append(head + _NOISE[offset : offset + size - len(head)])
    return parts


def check_message(shape: Shape, stream: int, sequence: int, topic: bytes, parts: list[bytes]) -> None:
    """Raises ValueError unless every byte is right."""
    if parts != make_message(shape, stream, sequence, topic):
        sizes = [len(part) for part in parts]
        raise ValueError(f"message {sequence} of stream {stream}: wrong bytes (parts of {sizes}, not {shape.sizes})")
