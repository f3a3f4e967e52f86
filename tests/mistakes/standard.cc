// SPDX-License-Identifier: MIT
// An older standard of the language.

// MISTAKE C++17: Weft needs C++20
#include "weft/weft.h"
