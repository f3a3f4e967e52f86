// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/console.h"
#include "weft/topic/wire/headers.h"

// The messages that the commands of topics print, and the values of their arguments.
namespace weft::cli {

struct ShownOptions {
  bool hex = false;
  bool raw = false;  // the bodies as they are, with nothing between them
};

// Prints a message: the words and the body on a line, or an object of JSON with the fields, the body and the headers. A
// body that is not UTF-8 is `hex` in JSON. `block`: Headers::block().
void show(Console& console, const ShownOptions& options, const Record& fields, std::string_view body,
          std::string_view block);

// Of arguments "NAME:VALUE". Throws Usage.
[[nodiscard]] Headers headers_of(const std::vector<std::string>& arguments);

// The one value of a command: an argument, "-" for standard input, or a file. Throws Usage.
struct ValueOptions {
  std::vector<std::string> words{};  // at most one
  std::string file{};
  bool hex = false;
};
[[nodiscard]] std::string value_of(const ValueOptions& options, const char* name);

}  // namespace weft::cli
