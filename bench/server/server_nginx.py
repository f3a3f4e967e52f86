# SPDX-License-Identifier: MIT
"""nginx, with the command line and the control line of host.h: GET /5 and /1024 answer letters, /file/SIZE a file."""

import argparse
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PROGRAM = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "nginx"
START_S = 20
TEXTS = (5, 1024)  # a longer one does not fit into a line of the configuration

CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/pid;
error_log stderr error;
events {{ worker_connections 16384; }}
http {{
  access_log off;
  default_type text/plain;
  sendfile on;
  keepalive_requests 4000000000;
  keepalive_timeout 1h;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
{texts}
    location /file/ {{ alias {root}/; }}
    location = /status {{ stub_status; }}
  }}
}}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def letters(size):
    """
    >>> letters(28)
    'abcdefghijklmnopqrstuvwxyzab'
    """
    return "".join(chr(ord("a") + i % 26) for i in range(size))


def status_of(port):
    """The requests that nginx has counted, with this one."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{port}/status") as answer:
        return int(answer.read().decode().splitlines()[2].split()[2])


def first_status(nginx, port):
    """Waits until nginx answers; the number of requests for that."""
    end = time.monotonic() + START_S
    while nginx.poll() is None and time.monotonic() < end:
        try:
            return status_of(port)
        except OSError:
            time.sleep(0.01)
    sys.exit("nginx does not answer")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--root", default="/nonexistent")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weft-nginx-") as folder:
        port = free_port()
        texts = "\n".join(f'    location = /{size} {{ return 200 "{letters(size)}"; }}' for size in TEXTS)
        file = pathlib.Path(folder, "nginx.conf")
        file.write_text(CONFIGURATION.format(folder=folder, port=port, texts=texts, root=arguments.root), encoding="ascii")
        nginx = subprocess.Popen([PROGRAM, "-p", folder, "-e", "stderr", "-c", str(file)], stdin=subprocess.DEVNULL)
        try:
            asked = first_status(nginx, port)
            version = subprocess.run([PROGRAM, "-v"], capture_output=True, text=True, check=True).stderr
            print(json.dumps({"version": version.strip().removeprefix("nginx version: "), "path": "", "port": port,
                              "pid": nginx.pid}), flush=True)
            for line in sys.stdin:
                if line.strip() != "counts":
                    sys.exit(f"no command {line!r}")
                asked += 1
                print(json.dumps({"messages": status_of(port) - asked, "accepted": 0, "closed": 0, "refused": 0,
                                  "reasons": {}}), flush=True)
        finally:
            nginx.kill()
            nginx.wait()


if __name__ == "__main__":
    main()
