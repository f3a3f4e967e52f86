// SPDX-License-Identifier: MIT
// Errors whose text would end before they do.
#include "weft/base/result.h"

using namespace weft;

Result<void> whole(bool first) { return Error(Errc::closed, first ? StaticText("one") : StaticText("two")); }

// MISTAKE a text that is made at run time: 'text' is not a constant expression
Error wrong(const std::string& text) { return Error(Errc::closed, text.c_str()); }

// MISTAKE a text of the caller's: 'text' is not a constant expression
Error wrong(const char* text) { return {Errc::closed, text}; }

// MISTAKE a text of a domain's error: 'text' is not a constant expression
Error wrong(const std::string& text) { return Error(ErrorDomain("game"), 7, text.c_str()); }
