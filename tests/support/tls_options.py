# SPDX-License-Identifier: MIT
"""tls+tcp from pyzmq on our library: certificates by the commands of docs/tls.md, and options that pyzmq has no name for."""

import ctypes
import shlex
import subprocess

CERTIFICATE, KEY, AUTHORITIES, CLIENT_REQUIRED, SERVER_NAME, VERIFY, RELOAD = range(1010, 1017)


def set_text(socket, option: int, text: bytes) -> None:
    """pyzmq takes every option that it does not know for an int."""
    setsockopt = ctypes.CDLL("libzmq.so.5").zmq_setsockopt
    if setsockopt(ctypes.c_void_p(socket.underlying), option, text, ctypes.c_size_t(len(text))) != 0:
        raise OSError(option, text)


def make_certificates(folder: str) -> None:
    for command in (
            'req -x509 -newkey ed25519 -nodes -days 2 -subj "/CN=our authority" -keyout ca.key -out ca.crt',
            'req -newkey ed25519 -nodes -subj "/CN=worker 7" -addext "subjectAltName=DNS:localhost,IP:127.0.0.1"'
            " -keyout peer.key -out peer.csr",
            "x509 -req -in peer.csr -CA ca.crt -CAkey ca.key -days 1 -copy_extensions copy -out peer.crt"):
        subprocess.run(["openssl", *shlex.split(command)], cwd=folder, check=True, capture_output=True)


def secure(socket, folder: str) -> None:
    """The socket has the certificate of make_certificates(folder), and demands one of its authority."""
    for option, name in ((CERTIFICATE, "peer.crt"), (KEY, "peer.key"), (AUTHORITIES, "ca.crt")):
        set_text(socket, option, f"{folder}/{name}".encode())
