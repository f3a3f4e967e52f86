#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# each_alone.sh INCLUDE COMPILER [OTHER...]: compiles each header below INCLUDE alone with the compiler, as a strict user
# would: no other header before it, no header from elsewhere than INCLUDE and the system, warnings are errors. Nothing
# is generated, and as many compilers run at a time as there are processors. The other compilers have the same standard
# library: they compile all headers together, once.
set -euo pipefail
include=$1
shift
cd "$include"
options=(-std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Wpedantic -Wnon-virtual-dtor -Wextra-semi -Wundef
  -Wuseless-cast -Wno-unknown-warning-option -Werror -I.)
headers() { find weft -name '*.h' | sort; }
failed=0
headers | xargs -P "$(nproc)" -I{} "$1" "${options[@]}" -include {} -x c++ /dev/null || failed=1
shift
for compiler in "$@"; do
  headers | sed 's/.*/#include "&"/' | "$compiler" "${options[@]}" -x c++ - || failed=1
done
exit "$failed"
