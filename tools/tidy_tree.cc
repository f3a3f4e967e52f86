// SPDX-License-Identifier: MIT
#include "tools/tidy_tree.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <utility>

namespace tidy {
namespace {

namespace fs = std::filesystem;

// Parts a line into code and comment, without string and character literals, so that rules about code do not fire on
// prose. Raw strings count as ordinary ones: good enough for rules about keywords.
class CodeFilter {
 public:
  std::string filter(std::string_view line, std::string& comment) {
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string_view two = line.substr(i, 2);
      if (in_comment_) {
        if (two == "*/") {
          in_comment_ = false;
          ++i;
        } else {
          comment += line[i];
        }
      } else if (two == "//") {
        comment += line.substr(i + 2);
        break;
      } else if (two == "/*") {
        in_comment_ = true;
        ++i;
      } else if (line[i] == '"' || (line[i] == '\'' && (i == 0 || !is_word(line[i - 1])))) {
        i = skip_literal(line, i);
      } else {
        out += line[i];
      }
    }
    return out;
  }

 private:
  static std::size_t skip_literal(std::string_view line, std::size_t open) {
    std::size_t i = open + 1;
    while (i < line.size() && line[i] != line[open]) {
      i += line[i] == '\\' ? 2 : 1;
    }
    return i;
  }

  bool in_comment_ = false;
};

std::optional<File> read_text_file(const fs::path& root, const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (text.find('\0') != std::string::npos) {
    return std::nullopt;  // binary
  }
  File file{path.lexically_relative(root).generic_string(), {}, {}, {}};
  CodeFilter filter;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    file.lines.push_back(text.substr(at, end - at));
    if (is_cpp(file.path)) {
      std::string comment;
      file.code.push_back(filter.filter(file.lines.back(), comment));
      file.comments.push_back(std::move(comment));
    }
    at = end + 1;
  }
  return file;
}

}  // namespace

std::vector<File> read_tree(const fs::path& root) {
  static const std::set<std::string> skipped{".git", "build", ".venv", ".cache", "__pycache__"};
  std::vector<File> files;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    const std::string name = it->path().filename().string();
    if (skipped.contains(name)) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file() && !it->is_symlink() && !name.ends_with(".pyc")) {
      if (auto file = read_text_file(root, it->path())) {
        files.push_back(std::move(*file));
      }
    }
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

std::vector<Include> includes_of(const File& file) {
  static const std::regex pattern(R"rx(^\s*#\s*include\s*([<"])([^>"]+)[>"])rx");
  std::vector<Include> out;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    std::smatch match;
    if (std::regex_search(file.lines[i], match, pattern)) {
      out.push_back({match[2], i + 1, match[1] == "\""});
    }
  }
  return out;
}

}  // namespace tidy
