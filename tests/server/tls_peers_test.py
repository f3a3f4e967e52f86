# SPDX-License-Identifier: MIT
"""tls_peers_test.py SIDE: a web server over TLS with the TLS of others at the far end: Python's ssl and openssl s_client.

Each refusal is checked with the text in the server's log.
"""

import http.client
import shutil
import ssl
import sys
import tempfile
import unittest
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1] / folder) for folder in ("interop", "support")]

from peers import PATIENCE, Peer  # noqa: E402
from tls_peers import (NOTHING_IN_COMMON, REFUSED_BY_CLIENT, REFUSED_BY_SERVER, SUITES, Certificates,  # noqa: E402
                       connect, reload_beside_clients)

PROGRAM = Path()  # main() sets both
CERTIFICATES: Certificates
PAGE = Path(__file__).resolve().parents[2] / "docs" / "tls.md"
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
CUT = "the stream ended without the end of its TLS"


class Side(Peer):
    """A server of ours."""

    def __init__(self, certificate: str, authorities: str = ""):
        files = [CERTIFICATES.path(authorities + ".crt")] if authorities else []
        super().__init__(PROGRAM, *CERTIFICATES.pair(certificate), *files)
        self.port = int(self.expect("endpoint").rpartition(":")[2])

    def refusal(self) -> str:
        """The reason and the text of the next connection that ended for its TLS."""
        while True:
            reason, _, text = self.expect("ended").partition(": ")
            if reason in ("refused tls", "peer failed") and text:
                return text


def read_answer(stream: ssl.SSLSocket) -> bytes:
    answer = http.client.HTTPResponse(stream)
    answer.begin()
    return answer.read()


class TlsPeers(unittest.TestCase):
    def serve(self, certificate: str = "good", authorities: str = "") -> Side:
        side = Side(certificate, authorities)
        self.addCleanup(side.kill)
        return side

    def expect_explained(self, text: str) -> None:
        """The page explains each text; of alerts it has an example."""
        self.assertTrue(" alert " in text or f"`{text}`" in PAGE.read_text(), text)

    def test_pythons_client_is_served(self):
        side = self.serve()
        client = http.client.HTTPSConnection("localhost", side.port, timeout=PATIENCE, context=CERTIFICATES.client_context())
        for _ in range(2):
            client.request("GET", "/")
            self.assertEqual(client.getresponse().read(), b"hello")
        self.assertEqual(client.sock.version(), "TLSv1.3")
        client.close()

    def test_a_client_of_an_older_version_is_refused(self):
        side = self.serve()
        with self.assertRaisesRegex(ssl.SSLError, "alert protocol version"):
            connect(side.port, CERTIFICATES.client_context(ssl.TLSVersion.TLSv1_2), PATIENCE)
        self.assertEqual(side.refusal(), "unsupported protocol")

    def test_a_clients_reason_to_refuse_our_certificate_is_logged(self):
        for certificate, name, theirs, ours in REFUSED_BY_CLIENT:
            with self.subTest(certificate=certificate, name=name):
                side = self.serve(certificate)
                with self.assertRaisesRegex(ssl.SSLCertVerificationError, theirs):
                    connect(side.port, CERTIFICATES.client_context(), PATIENCE, name)
                self.assertRegex(side.refusal(), ours + "$")

    def test_a_clients_certificate_is_verified(self):
        for certificate, ours in REFUSED_BY_SERVER:
            with self.subTest(certificate=certificate):
                side = self.serve(authorities="ca")
                with self.assertRaises((OSError, http.client.HTTPException)):
                    with connect(side.port, CERTIFICATES.client_context(certificate=certificate), PATIENCE) as stream:
                        stream.sendall(GET)
                        read_answer(stream)
                self.assertEqual(side.refusal(), ours)
                self.expect_explained(ours)

    def test_a_client_with_a_certificate_of_the_authority_is_served(self):
        side = self.serve(authorities="ca")
        with connect(side.port, CERTIFICATES.client_context(certificate="second"), PATIENCE) as stream:
            stream.sendall(GET)
            self.assertEqual(read_answer(stream), b"hello")

    def test_a_cut_stream_is_not_an_ended_one(self):
        side = self.serve()
        with connect(side.port, CERTIFICATES.client_context(), PATIENCE) as stream:
            stream.sendall(GET)
            self.assertEqual(read_answer(stream), b"hello")
        self.assertEqual(side.refusal(), CUT)  # Python closes without close_notify
        with connect(side.port, CERTIFICATES.client_context(), PATIENCE) as stream:
            stream.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            self.assertEqual(read_answer(stream), b"hello")
            self.assertEqual(stream.recv(1), b"", "our end announces its own")
            stream.unwrap().close()

    def test_certificates_are_reloaded_while_clients_come(self):
        CERTIFICATES.copy("good", "current")
        side = self.serve("current")
        with connect(side.port, CERTIFICATES.client_context(), PATIENCE) as early:
            reload_beside_clients(self, CERTIFICATES, side, lambda: connect(side.port, CERTIFICATES.client_context(), PATIENCE))
            early.sendall(GET)
            self.assertEqual(read_answer(early), b"hello")

    def test_s_client_agrees_on_each_suite(self):
        side = self.serve()
        for suite in SUITES:
            with self.subTest(suite=suite):
                text = CERTIFICATES.s_client(side.port, PATIENCE, "-ciphersuites", suite, "-verify_hostname", "localhost")
                self.assertIn(f"TLSv1.3, Cipher is {suite}", text)
                self.assertIn("Verify return code: 0 (ok)", text)

    def test_s_client_without_a_suite_or_version_of_ours_is_refused(self):
        side = self.serve()
        for options, ours in NOTHING_IN_COMMON:
            with self.subTest(options=options):
                self.assertIn("Cipher is (NONE)", CERTIFICATES.s_client(side.port, PATIENCE, *options))
                self.assertEqual(side.refusal(), ours)
                self.expect_explained(ours)


def main() -> int:
    global PROGRAM, CERTIFICATES
    PROGRAM = Path(sys.argv.pop(1))
    if shutil.which("openssl") is None:
        print("skipped: no openssl to make certificates")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        CERTIFICATES = Certificates(folder)
        result = unittest.main(exit=False).result
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
