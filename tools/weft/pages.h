// SPDX-License-Identifier: MIT
#pragma once

#include <string>

// Pages that are made from the table: completion for shells, and manual pages.
namespace weft::cli {

[[nodiscard]] std::string completion(const std::string& shell);  // bash or zsh; throws Usage
// In the form of man(7): of one command, or of weft when it is empty. Throws Usage.
[[nodiscard]] std::string manual(const std::string& command);

}  // namespace weft::cli
