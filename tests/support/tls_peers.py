# SPDX-License-Identifier: MIT
"""Certificates for the tests whose peers have the TLS of others, and the ways in which such a peer and we refuse each other.

The texts are those of OpenSSL 3.
"""

import shlex
import shutil
import socket
import ssl
import subprocess
import threading
from pathlib import Path

SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"

# Our server's certificate, the name that the client expects, the reason of Python's ssl, and the error at our end.
REFUSED_BY_CLIENT = (
    ("elsewhere", "localhost", "Hostname mismatch", "alert bad certificate"),
    ("good", "elsewhere.example", "Hostname mismatch", "alert bad certificate"),
    ("expired", "localhost", "certificate has expired", "alert certificate expired"),
    ("alone", "localhost", "self-signed certificate", "alert unknown ca"),
    ("stranger", "localhost", "unable to get local issuer certificate", "alert unknown ca"),
    ("unchained", "localhost", "unable to get local issuer certificate", "alert unknown ca"))
# The certificate of a client where one is required, and our reason.
REFUSED_BY_SERVER = (
    ("", "peer did not return a certificate"),
    ("stranger", "unable to get local issuer certificate"),
    ("unchained", "unable to get local issuer certificate"),
    ("expired", "certificate has expired"),
    ("alone", "self-signed certificate"),
    ("for_servers", "unsuitable certificate purpose"))
# Options of s_client with which it has no suite or version of ours, and our reason.
NOTHING_IN_COMMON = (
    (("-ciphersuites", "TLS_AES_128_CCM_8_SHA256"), "no shared cipher"),
    (("-tls1_2",), "unsupported protocol"))


class Certificates:
    """PEM files in a folder: NAME.crt and NAME.key."""

    def __init__(self, folder: str):
        self.folder = folder
        self._make_authority("ca")
        self._make_authority("other")
        self._issue("good")
        self._issue("second")
        self._issue("stranger", "other")
        self._issue("elsewhere", more="subjectAltName=DNS:elsewhere.example,IP:192.0.2.1")
        self._issue("expired", days=-1)
        self._issue("between", more="basicConstraints=critical,CA:TRUE")
        self._issue("unchained", "between")  # and the one between is not sent
        self._issue("for_servers", more="extendedKeyUsage=serverAuth")
        self._openssl(f'req -x509 -newkey ed25519 -nodes -days 2 -subj "/CN=alone" -addext "{NAMES}" -keyout alone.key'
                      " -out alone.crt")

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def pair(self, name: str) -> tuple[str, str]:
        return self.path(name + ".crt"), self.path(name + ".key")

    def copy(self, name: str, to: str) -> None:
        for source, target in zip(self.pair(name), self.pair(to)):
            shutil.copy(source, target)

    def der(self, name: str) -> bytes:
        return ssl.PEM_cert_to_DER_cert(Path(self.pair(name)[0]).read_text())

    def client_context(self, version=None, certificate: str = "") -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.path("ca.crt"))
        context.maximum_version = version or ssl.TLSVersion.MAXIMUM_SUPPORTED
        if certificate:
            context.load_cert_chain(*self.pair(certificate))
        return context

    def s_client(self, port: int, patience: float, *options: str) -> str:
        """All that openssl s_client prints; its input is at its end."""
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", self.path("ca.crt"),
                               "-verify_return_error", *options], input=b"", capture_output=True, timeout=patience)
        return (done.stdout + done.stderr).decode(errors="replace")

    def _openssl(self, command: str) -> None:
        subprocess.run(["openssl", *shlex.split(command)], cwd=self.folder, check=True, capture_output=True)

    def _make_authority(self, name: str) -> None:
        self._openssl(f'req -x509 -newkey ed25519 -nodes -days 2 -subj "/CN={name}" -keyout {name}.key -out {name}.crt')

    def _issue(self, name: str, authority: str = "ca", more: str = NAMES, days: int = 1) -> None:
        self._openssl(f'req -newkey ed25519 -nodes -subj "/CN={name}" -addext "{more}" -keyout {name}.key -out {name}.csr')
        self._openssl(f"x509 -req -in {name}.csr -CA {authority}.crt -CAkey {authority}.key -days {days}"
                      f" -copy_extensions copy -out {name}.crt")


def connect(port: int, context: ssl.SSLContext, patience: float, name: str = "localhost") -> ssl.SSLSocket:
    raw = socket.create_connection(("127.0.0.1", port), patience)
    try:
        return context.wrap_socket(raw, server_hostname=name)
    except BaseException:
        raw.close()
        raise


def reload_beside_clients(test, certificates: Certificates, side, come) -> None:
    """Reloads the certificate `current` of the peer 20 times, while two threads connect by come(), which returns a stream.

    No connection fails, each gets one of the two certificates, and one after a reload gets the new one.
    """
    known = {name: certificates.der(name) for name in ("good", "second")}
    seen, wrong, enough = set(), [], threading.Event()

    def keep_coming() -> None:
        while not enough.is_set():
            try:
                with come() as stream:
                    seen.add(stream.getpeercert(binary_form=True))
            except OSError as error:
                wrong.append(error)
                return

    clients = [threading.Thread(target=keep_coming) for _ in range(2)]
    for client in clients:
        client.start()
    try:
        for number in range(20):
            name = "good" if number % 2 else "second"
            certificates.copy(name, "current")
            side.send("reload")
            line = side.read_line()
            while not line.startswith("reloaded"):
                line = side.read_line()
            test.assertEqual(line, "reloaded all")
            with come() as stream:
                test.assertEqual(stream.getpeercert(binary_form=True), known[name])
    finally:
        enough.set()
        for client in clients:
            client.join()
    test.assertEqual(wrong, [])
    test.assertLessEqual(seen, set(known.values()))
