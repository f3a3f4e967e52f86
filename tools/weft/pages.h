// SPDX-License-Identifier: MIT
#pragma once

#include <string>

// Pages that are made from the table: completion for shells, and manual pages.
namespace weft::cli {

[[nodiscard]] std::string completion(const std::string& shell);  // bash, zsh or fish; throws Usage
// In the form of man(7): of one command ("kv get"), or of weft when it is empty. Throws Usage.
[[nodiscard]] std::string manual(const std::string& command);
// Writes the page of weft and of each command into the directory: weft.1, weft-kv-get.1. Throws Failure.
void write_manuals(const std::string& directory);

}  // namespace weft::cli
