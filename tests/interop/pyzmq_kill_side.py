# SPDX-License-Identifier: MIT
"""kill_side on pyzmq: a partner that sends and receives until it is killed."""

import sys

import zmq

KINDS = {"push": zmq.PUSH, "pull": zmq.PULL, "dealer": zmq.DEALER, "router": zmq.ROUTER}
IN_FLIGHT_MAX = 64


def make_note(generation: int, sequence: int) -> bytes:
    size = 200_000 if sequence % 50 == 49 else 64
    return generation.to_bytes(8, "big") + sequence.to_bytes(8, "big") + bytes([sequence & 0xFF]) * (size - 16)


def say(line: str) -> None:
    print(line, flush=True)


class Listener:
    def __init__(self) -> None:
        self.generation = -1

    def hear(self, note: bytes) -> None:
        generation, sequence = int.from_bytes(note[:8], "big"), int.from_bytes(note[8:16], "big")
        if note != make_note(generation, sequence):
            say(f"failed note {sequence} is damaged")
        if generation != self.generation:
            self.generation = generation
            say(f"from {generation}")


def main() -> None:
    role, how, endpoint, _, generation = sys.argv[1:]
    generation = int(generation)
    socket = zmq.Context.instance().socket(KINDS[role])
    (socket.bind if how == "--bind" else socket.connect)(endpoint)
    say(f"at {endpoint}")
    listener, sequence, in_flight = Listener(), 0, 0
    while True:
        if role == "push":
            socket.send(make_note(generation, sequence))
            sequence += 1
        elif role == "pull":
            listener.hear(socket.recv())
        elif role == "router":
            name, note = socket.recv_multipart()
            listener.hear(note)
            socket.send_multipart([name, make_note(generation, sequence)])
            sequence += 1
        else:
            while in_flight < IN_FLIGHT_MAX:
                socket.send(make_note(generation, sequence))
                sequence, in_flight = sequence + 1, in_flight + 1
            listener.hear(socket.recv())
            in_flight -= 1


if __name__ == "__main__":
    main()
