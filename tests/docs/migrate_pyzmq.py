# SPDX-License-Identifier: MIT
"""The Python of docs/migrate-from-libzmq.md. Arguments: `weft` or `libzmq`, whichever pyzmq must run on here."""

import sys

try:
    import zmq
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def on_weft():
    """Whether the functions that pyzmq calls are Weft's: only Weft has option 1001, WEFT_CONNECTIONS_MAX."""
    with zmq.Context() as context, context.socket(zmq.PULL) as socket:
        try:
            return socket.get(1001) == 0
        except zmq.ZMQError:
            return False


def bounded(context):
    socket = context.socket(zmq.PULL)
    if on_weft():
        socket.set(1002, 100)  # WEFT_ADDRESS_CONNECTIONS_MAX: connections of one address
    return socket


def main():
    expected = sys.argv[1] == "weft"
    with zmq.Context() as context, bounded(context) as socket:
        if on_weft() != expected or (expected and socket.get(1002) != 100):
            sys.exit(f"pyzmq does not run on {sys.argv[1]}: {zmq.__file__}")


if __name__ == "__main__":
    main()
