#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# each_alone.sh INCLUDE SOURCE COMPILER [OTHER...]: compiles each header below INCLUDE alone with the compiler, as a strict
# user would: no other header before it, no header from elsewhere than INCLUDE and the system, warnings are errors. Nothing
# is generated, and as many compilers run at a time as there are processors. The other compilers have the same standard
# library: they compile all headers together, once. The headers of the foundations, also those that are not installed,
# compile alone with every compiler; SOURCE has them.
set -euo pipefail
include=$1
source=$2
shift 2
cd "$include"
options=(-std=c++20 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Wpedantic -Wnon-virtual-dtor -Wextra-semi -Wundef
  -Wuseless-cast -Wno-unknown-warning-option -Werror -I.)
headers() { find weft -name '*.h' | sort; }
foundations() { (cd "$source" && find weft/base weft/sync weft/mem weft/rt -name '*.h' ! -name 'test_*') | sort; }
alone() { xargs -P "$(nproc)" -I{} "$@" "${options[@]}" -include {} -x c++ /dev/null; }
failed=0
headers | alone "$1" || failed=1
comm -13 <(headers) <(foundations) | alone "$1" -I"$source" || failed=1
shift
for compiler in "$@"; do
  headers | sed 's/.*/#include "&"/' | "$compiler" "${options[@]}" -x c++ - || failed=1
  foundations | alone "$compiler" -I"$source" || failed=1
done
exit "$failed"
