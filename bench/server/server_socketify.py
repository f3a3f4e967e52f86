# SPDX-License-Identifier: MIT
"""uWebSockets through the package socketify, with the command line and the control line of host.h. The handlers are in
Python, so a row of it is about uWebSockets with a call of Python for each message."""

import argparse
import json
import os
import sys
import threading

from socketify import App, AppListenOptions, CompressOptions

BODY_MAX = 16 * 1024 * 1024
counts = {"messages": 0, "accepted": 0, "closed": 0, "refused": 0, "reasons": {}}
texts = {}


def letters(size):
    if size not in texts:
        texts[size] = bytes(ord("a") + i % 26 for i in range(size))
    return texts[size]


def answer(response, request):
    counts["messages"] += 1
    response.write_header("Content-Type", "text/plain")
    response.end(letters(int(request.get_parameter(0))), request.get_header("connection") == "close")


def echo(socket, message, opcode):
    counts["messages"] += 1
    socket.send(message, opcode)


def control():
    for line in sys.stdin:
        if line.strip() != "counts":
            break
        print(json.dumps(counts), flush=True)
    os._exit(0)  # the loop of the server runs in the other thread


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--root")
    parser.parse_args()
    app = App()

    def publish(_, message, opcode):
        counts["messages"] += 1
        app.publish("all", message, opcode)

    limits = {"compression": CompressOptions.DISABLED, "max_payload_length": BODY_MAX, "idle_timeout": 0}
    app.get("/:size", answer)
    app.ws("/", {**limits, "message": echo})
    app.ws("/publish", {**limits, "open": lambda socket: socket.subscribe("all"), "message": publish})
    app.listen(AppListenOptions(port=0, host="127.0.0.1"), lambda config: print(json.dumps(
        {"version": "uWebSockets by socketify", "path": "", "port": config.port, "pid": os.getpid()}), flush=True))
    threading.Thread(target=control, daemon=True).start()
    app.run()


if __name__ == "__main__":
    main()
