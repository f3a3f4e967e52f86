// SPDX-License-Identifier: MIT
#pragma once

#include <cctype>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// The text files of a checkout, as values: all that the rules read.
namespace tidy {

struct File {
  std::string path;  // relative to the root, with '/'
  std::vector<std::string> lines;
  // C++ only, as many as there are lines:
  std::vector<std::string> code;      // without comments and literals
  std::vector<std::string> comments;  // the text of the comment on each line, "" for none
};

struct Include {
  std::string target;  // the text between the brackets or quotes
  std::size_t line;
  bool quoted;
};

[[nodiscard]] inline bool is_header(std::string_view path) { return path.ends_with(".h"); }
[[nodiscard]] inline bool is_cpp(std::string_view path) { return path.ends_with(".cc") || is_header(path); }
[[nodiscard]] inline bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Every text file that a commit could hold, sorted by path: generated folders are left out by their names.
[[nodiscard]] std::vector<File> read_tree(const std::filesystem::path& root);

[[nodiscard]] std::vector<Include> includes_of(const File& file);

}  // namespace tidy
