# SPDX-License-Identifier: MIT
"""Sockets over TLS with the TLS of others at the far end: Python's ssl, openssl s_client and openssl s_server.

Each refusal is checked with the event of the socket and the text that its user reads. Texts are those of OpenSSL 3.
"""

import argparse
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))

from peers import PATIENCE, Peer, PeerError
from tls_peers import NOTHING_IN_COMMON, REFUSED_BY_CLIENT, REFUSED_BY_SERVER, SUITES, Certificates
from tls_peers import connect as connect_to
from tls_peers import reload_beside_clients
from web_bytes import upgrade_request, web_frame
from zmtp_bytes import framed, greeting, ready

PROGRAM = Path()  # main() sets both
CERTIFICATES: Certificates
PAGE = Path(__file__).resolve().parents[2] / "docs" / "tls.md"
REFUSALS = set()  # all texts that a test has read
NOBODY = "closed during the handshake"  # of a peer that ends after a handshake of TLS without a greeting of ZMTP


# --- the ends ---

class Side(Peer):
    """A socket of ours."""

    def __init__(self, role: str, endpoint: str, certificate: str = "", authorities: str = "", server_name: str = ""):
        files = CERTIFICATES.pair(certificate) if certificate else ("", "")
        options = {"tls_certificate": files[0], "tls_key": files[1], "tls_server_name": server_name,
                   "tls_authorities": authorities and CERTIFICATES.path(authorities + ".crt")}
        super().__init__(PROGRAM, role, endpoint, *(f"{name}={value}" for name, value in options.items() if value))
        self.port = int(self.expect("endpoint").rpartition(":")[2].rstrip("/")) if role == "bind" else 0

    def refusal(self) -> str:
        """The text of the next event handshake failed."""
        while True:
            line = self.read_line()
            if line.startswith("event handshake failed"):
                text = line.removeprefix("event handshake failed").strip()
                REFUSALS.add(text)
                return text

    def message(self) -> str:
        while True:
            line = self.read_line()
            if line.startswith("message "):
                return line.removeprefix("message ")
            if line.startswith("event handshake failed"):
                raise PeerError(line)


def connect(side: Side, context: ssl.SSLContext, name: str = "localhost") -> ssl.SSLSocket:
    return connect_to(side.port, context, PATIENCE, name)


def client_context(*arguments, **more) -> ssl.SSLContext:
    return CERTIFICATES.client_context(*arguments, **more)


def read_exactly(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        some = stream.recv(size - len(data))
        if not some:
            raise PeerError(f"{len(data)} bytes of {size}, and the end")
        data += some
    return data


def push(stream: socket.socket, text: bytes) -> None:
    """The handshake of a PUSH, and its message."""
    stream.sendall(greeting(b"NULL"))
    read_exactly(stream, 64)
    stream.sendall(framed(ready()) + framed(text, 0))


class Server:
    """A server of Python's ssl, for the connections of one socket of ours."""

    def __init__(self, certificate: str, version=None, authorities: str = ""):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*CERTIFICATES.pair(certificate))
        self.context.maximum_version = version or ssl.TLSVersion.MAXIMUM_SUPPORTED
        self.names = []
        self.context.sni_callback = lambda stream, name, context: self.names.append(name)
        if authorities:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(CERTIFICATES.path(authorities + ".crt"))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE)
        self.port = self.listener.getsockname()[1]

    def accept(self) -> ssl.SSLSocket:
        """OSError: the handshake failed."""
        raw, _ = self.listener.accept()
        raw.settimeout(PATIENCE)
        try:
            return self.context.wrap_socket(raw, server_side=True)
        except BaseException:
            raw.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class TlsPeers(unittest.TestCase):
    @classmethod
    def tearDownClass(cls):
        """The page explains each text; of alerts it has an example."""
        page = PAGE.read_text()
        missing = [text for text in REFUSALS if f"`{text}`" not in page and " alert " not in text]
        if missing:
            raise AssertionError(f"docs/tls.md does not have {missing}")

    def side(self, *arguments, **more) -> Side:
        side = Side(*arguments, **more)
        self.addCleanup(side.kill)
        return side

    def serve(self, certificate: str = "good", authorities: str = "", scheme: str = "tls+tcp") -> Side:
        return self.side("bind", scheme + "://127.0.0.1:*", certificate, authorities)

    def dial(self, server: Server, host: str = "localhost", **more) -> Side:
        return self.side("connect", f"tls+tcp://{host}:{server.port}", **{"authorities": "ca", **more})

    # --- Python's client ---

    def test_a_message_of_pythons_client_arrives(self):
        side = self.serve()
        with connect(side, client_context()) as stream:
            self.assertEqual(stream.version(), "TLSv1.3")
            push(stream, b"from Python")
            self.assertEqual(side.message(), "from Python")

    def test_a_message_of_pythons_client_arrives_over_wss(self):
        side = self.serve(scheme="wss")
        with connect(side, client_context()) as stream:
            stream.sendall(upgrade_request())
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += read_exactly(stream, 1)
            self.assertIn(b" 101 ", head)
            stream.sendall(web_frame(b"\2" + ready()) + web_frame(b"\0from Python"))
            self.assertEqual(side.message(), "from Python")

    def test_a_client_of_an_older_version_is_refused(self):
        for scheme in ("tls+tcp", "wss"):
            with self.subTest(scheme=scheme):
                side = self.serve(scheme=scheme)
                with self.assertRaisesRegex(ssl.SSLError, "alert protocol version"):
                    connect(side, client_context(ssl.TLSVersion.TLSv1_2))
                self.assertEqual(side.refusal(), "unsupported protocol")

    def test_a_clients_reason_to_refuse_our_certificate_is_told(self):
        for certificate, name, theirs, ours in REFUSED_BY_CLIENT:
            with self.subTest(certificate=certificate, name=name):
                side = self.serve(certificate)
                with self.assertRaisesRegex(ssl.SSLCertVerificationError, theirs):
                    connect(side, client_context(), name)
                self.assertRegex(side.refusal(), ours + "$")

    def test_a_clients_certificate_is_verified(self):
        for certificate, ours in REFUSED_BY_SERVER:
            with self.subTest(certificate=certificate):
                side = self.serve(authorities="ca")
                context = client_context(certificate=certificate)
                with self.assertRaises((OSError, PeerError)):  # with TLS 1.3 after the client's own handshake
                    with connect(side, context) as stream:
                        push(stream, b"never")
                        read_exactly(stream, 1)
                self.assertEqual(side.refusal(), ours)

    def test_a_client_with_a_certificate_of_the_authority_is_served(self):
        side = self.serve(authorities="ca")
        with connect(side, client_context(certificate="second")) as stream:
            push(stream, b"known")
            self.assertEqual(side.message(), "known")

    def test_certificates_are_reloaded_while_clients_come(self):
        CERTIFICATES.copy("good", "current")
        side = self.serve("current")
        with connect(side, client_context()) as early:
            early.sendall(greeting(b"NULL"))
            read_exactly(early, 64)
            early.sendall(framed(ready()))
            reload_beside_clients(self, CERTIFICATES, side, lambda: connect(side, client_context()))
            early.sendall(framed(b"still here", 0))
            line = side.read_line()
            while line != "message still here":
                line = side.read_line()

    # --- Python's server ---

    def test_a_message_arrives_at_pythons_server_with_the_servers_name(self):
        for host, name, sent in (("localhost", "", "localhost"), ("127.0.0.1", "", None), ("127.0.0.1", "localhost", "localhost")):
            with self.subTest(host=host, name=name), Server("good") as server:
                self.dial(server, host, server_name=name)
                with server.accept() as stream:
                    self.assertEqual(stream.version(), "TLSv1.3")
                    stream.sendall(greeting(b"NULL"))
                    read_exactly(stream, 64)
                    stream.sendall(framed(ready().replace(b"PUSH", b"PULL")))
                    flags, size = read_exactly(stream, 2)
                    self.assertIn(b"READY", read_exactly(stream, size))
                    self.assertEqual(read_exactly(stream, 7), framed(b"hello", 0))
                    self.assertEqual((flags, server.names), (4, [sent]))

    def test_a_server_that_is_not_what_it_should_be_is_refused(self):
        for certificate, host, version, ours in (
                ("good", "localhost", ssl.TLSVersion.TLSv1_2, "tlsv1 alert protocol version"),
                ("elsewhere", "localhost", None, "hostname mismatch"),
                ("elsewhere", "127.0.0.1", None, "IP address mismatch"),
                ("expired", "localhost", None, "certificate has expired"),
                ("alone", "localhost", None, "self-signed certificate"),
                ("stranger", "localhost", None, "unable to get local issuer certificate"),
                ("unchained", "localhost", None, "unable to get local issuer certificate")):
            with self.subTest(certificate=certificate, host=host, version=version), Server(certificate, version) as server:
                side = self.dial(server, host)
                with self.assertRaises(OSError):
                    server.accept()
                self.assertEqual(side.refusal(), ours)

    def test_a_servers_reason_to_refuse_our_certificate_is_told(self):
        for certificate, ours in (("", "alert certificate required"), ("stranger", "alert unknown ca"),
                                  ("expired", "alert certificate expired")):
            with self.subTest(certificate=certificate), Server("good", authorities="ca") as server:
                side = self.dial(server, certificate=certificate)
                with self.assertRaises(OSError):
                    server.accept()
                self.assertRegex(side.refusal(), ours + "$")

    # --- openssl s_client ---

    def s_client(self, side: Side, *options: str) -> str:
        return CERTIFICATES.s_client(side.port, PATIENCE, *options)

    def test_s_client_agrees_on_each_suite(self):
        side = self.serve()
        for suite in SUITES:
            with self.subTest(suite=suite):
                text = self.s_client(side, "-ciphersuites", suite, "-verify_hostname", "localhost")
                self.assertIn(f"TLSv1.3, Cipher is {suite}", text)
                self.assertIn("Verify return code: 0 (ok)", text)
                self.assertEqual(side.refusal(), NOBODY)

    def test_s_client_without_a_suite_or_version_of_ours_is_refused(self):
        side = self.serve()
        for options, ours in NOTHING_IN_COMMON:
            with self.subTest(options=options):
                self.assertIn("Cipher is (NONE)", self.s_client(side, *options))
                self.assertEqual(side.refusal(), ours)

    # --- openssl s_server ---

    def s_server(self, *options: str) -> tuple[subprocess.Popen, int]:
        certificate, key = CERTIFICATES.pair("good")
        server = subprocess.Popen(["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", certificate, "-key", key,
                                   *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(server.stdin.close)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        for line in server.stdout:
            found = re.match(rb"ACCEPT .*:(\d+)", line)
            if found:
                return server, int(found.group(1))
        raise PeerError("openssl s_server ended")

    def test_our_client_agrees_with_s_server_on_each_suite(self):
        for suite in SUITES:
            with self.subTest(suite=suite):
                server, port = self.s_server("-ciphersuites", suite)
                self.side("connect", f"tls+tcp://localhost:{port}", authorities="ca")
                for line in server.stdout:
                    if line.startswith(b"CIPHER is"):
                        self.assertIn(suite.encode(), line)
                        break
                else:
                    self.fail("openssl s_server ended")

    def test_our_client_is_refused_by_s_server_without_a_version_of_ours(self):
        _, port = self.s_server("-tls1_2")
        self.assertEqual(self.side("connect", f"tls+tcp://localhost:{port}", authorities="ca").refusal(),
                         "tlsv1 alert protocol version")


def main() -> int:
    global PROGRAM, CERTIFICATES
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build_dir", type=Path)
    arguments, rest = parser.parse_known_args()
    if shutil.which("openssl") is None:
        print("skipped: no openssl to make certificates")
        return 77
    PROGRAM = arguments.build_dir / "tests" / "interop" / "tls_side"
    with tempfile.TemporaryDirectory() as folder:
        CERTIFICATES = Certificates(folder)
        os.environ.pop("SSL_CERT_FILE", None)
        result = unittest.main(argv=[sys.argv[0], *rest], exit=False).result
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
