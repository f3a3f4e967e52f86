#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# each_alone.sh INCLUDE COMPILER...: compiles each header below INCLUDE alone with each compiler, as a strict user
# would: no other header before it, no header from elsewhere than INCLUDE and the system, warnings are errors. Nothing
# is generated, and as many compilers run at a time as there are processors.
set -euo pipefail
include=$1
shift
cd "$include"
failed=0
for compiler in "$@"; do
  find weft -name '*.h' | sort | xargs -P "$(nproc)" -I{} "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra \
    -Wconversion -Wshadow -Wpedantic -Wnon-virtual-dtor -Wextra-semi -Wundef -Wuseless-cast -Wno-unknown-warning-option \
    -Werror -I. -include {} -x c++ /dev/null || failed=1
done
exit "$failed"
