# SPDX-License-Identifier: MIT
"""For the tests of moved streams and buckets: hubs, the lines of exported files, and their checksums by the page's words."""

import base64
import contextlib
import json
import os
import random
import subprocess
import tempfile
from pathlib import Path

from weft_cli_support import LONG, PATIENCE, PROGRAM

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data: bytes, before: int) -> int:
    crc = before ^ 0xFFFFFFFF
    for each in data:
        crc = crc >> 8 ^ TABLE[(crc ^ each) & 0xFF]
    return crc ^ 0xFFFFFFFF


def sealed(lines: list[str]) -> bytes:
    """The file of these objects: `sum` is the CRC-32C of all lines so far without their sums."""
    file, crc = b"", 0
    for line in lines:
        text = line.removesuffix("}").encode()
        crc = crc32c(text, crc)
        file += text + b',"sum":"%08x"}\n' % crc
    return file


def unsealed(file: bytes) -> list[str]:
    """The objects of a file without their sums, which are checked."""
    lines = objects_of(file)
    assert sealed(lines) == file, "another checksum than the page says"
    return lines


def objects_of(file: bytes) -> list[str]:
    """The same, faster: no checksum is compared."""
    return [line[:-len(',"sum":"01234567"}')] + "}" for line in file.decode().splitlines()]


def message(line: str) -> tuple:
    """What a move keeps of a message."""
    each = json.loads(line)
    return (each.get("topic", each.get("key")), each.get("topic64"), each.get("id"), each.get("id64"), tuple(each.get("headers", ())),
            each.get("headers64"), base64.b64decode(each["body"], validate=True), each.get("erased", False))


class Place:
    """A hub or servers of NATS: `options` choose it."""

    def __init__(self, options: list[str], nats: bool):
        self.options = [*options, *LONG]
        self.nats = nats
        self.kept = ["--survives", "process"] if nats else []

    def run(self, *arguments: str, code: int = 0, text: str | bytes = b"") -> subprocess.CompletedProcess:
        done = subprocess.run([PROGRAM, *arguments, *self.options], input=text.encode() if isinstance(text, str) else text,
                              capture_output=True, timeout=3 * PATIENCE)
        assert done.returncode == code, (arguments, done.returncode, done.stdout[-500:], done.stderr[-2000:])
        return done

    def said(self, *arguments: str, code: int = 1, text: bytes = b"") -> str:
        return self.run(*arguments, code=code, text=text).stderr.decode()

    def info(self, name: str) -> dict:
        return json.loads(self.run("stream", "info", name, "--json").stdout)

    def has(self, name: str) -> bool:
        return name in [json.loads(line)["name"] for line in self.run("stream", "ls", "--json").stdout.splitlines()]

    def lines(self, name: str, kind: str = "stream") -> list[str]:
        return objects_of(self.run(kind, "export", name).stdout)

    def messages(self, name: str, kind: str = "stream") -> list[tuple]:
        return [message(line) for line in self.lines(name, kind)[1:-1]]

    def start(self, *arguments: str, **more) -> subprocess.Popen:
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen([PROGRAM, *arguments, *self.options], **more)


@contextlib.contextmanager
def hub():
    """A hub of its own."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o700)
        with subprocess.Popen([PROGRAM, "hub", "--directory", directory, "--store", f"{directory}/store"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                yield Place(["--directory", directory], False)
            finally:
                process.kill()


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def killed_at_random(process: subprocess.Popen, seconds: float) -> bool:
    """Kills the command at an instant within so long; false: it ended before."""
    try:
        process.wait(random.uniform(0, seconds))
        return False
    except subprocess.TimeoutExpired:
        process.kill()
        return True
    finally:
        process.communicate(timeout=PATIENCE)
