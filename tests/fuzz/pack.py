#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pack.py FOLDER: merges what the fuzzers of build/dev/fuzz found into corpus/, one input a line, in hexadecimal."""

import pathlib
import subprocess
import sys
import tempfile

CORPUS = pathlib.Path(__file__).parent / "corpus"
INPUTS_MAX = 300
BYTES_MAX = 256


def pack(folder, name):
    file = CORPUS / f"{name}.txt"
    with tempfile.TemporaryDirectory() as old, tempfile.TemporaryDirectory() as merged:
        lines = file.read_text(encoding="ascii").split() if file.exists() else []
        for number, line in enumerate(lines):
            pathlib.Path(old, str(number)).write_bytes(bytes.fromhex(line))
        found = folder / "runs" / name / "corpus"
        found.mkdir(parents=True, exist_ok=True)
        subprocess.run([folder / name, "-merge=1", f"-max_len={BYTES_MAX}", merged, old, found], check=True,
                       capture_output=True)
        inputs = sorted((path.read_bytes() for path in pathlib.Path(merged).iterdir()), key=lambda data: (len(data), data))
    kept = sorted(data.hex() for data in inputs[:INPUTS_MAX] if data)
    file.write_text("".join(line + "\n" for line in kept), encoding="ascii")
    print(f"{name}: {len(kept)} inputs, {file.stat().st_size} bytes")


def main():
    folder = pathlib.Path(sys.argv[1])
    for program in sorted(folder.glob("*_fuzz")):
        pack(folder, program.name)


if __name__ == "__main__":
    main()
