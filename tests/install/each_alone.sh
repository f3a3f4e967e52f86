#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# each_alone.sh INCLUDE COMPILER HEADER...: compiles each header below INCLUDE alone with the compiler, as a strict user
# would: no other header before it, no header from elsewhere than INCLUDE and the system, warnings are errors. Nothing
# is generated, and as many compilers run at a time as there are processors. At last all headers of INCLUDE are compiled
# together.
set -euo pipefail
include=$1 compiler=$2
shift 2
cd "$include"
options=(-std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Wpedantic -Wnon-virtual-dtor -Wextra-semi -Wundef
  -Wuseless-cast -Wno-unknown-warning-option -Werror -I.)
failed=0
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} "$compiler" "${options[@]}" -include {} -x c++ /dev/null || failed=1
find weft -name '*.h' | sort | sed 's/.*/#include "&"/' | "$compiler" "${options[@]}" -x c++ - || failed=1
exit "$failed"
