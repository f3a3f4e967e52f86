// SPDX-License-Identifier: MIT
#include "tools/class_members.h"

#include <algorithm>
#include <regex>
#include <set>
#include <string_view>
#include <utility>

namespace tidy {
namespace {

// Removes the parts that do not belong to a declaration's shape: attributes, also those of locks, alignment, template
// arguments, the initialiser.
std::string shape_of(std::string statement) {
  static const std::regex attribute(
      R"(\[\[[^\]]*\]\]|\b(alignas|decltype|WEFT_[A-Z_]+)\s*\([^()]*(\([^()]*\)[^()]*)*\))"
      R"(|\bWEFT_[A-Z_]+\b)");
  static const std::regex arguments(R"(<[^<>;]*>)");
  static const std::regex initialiser(R"(=[^=][^]*$)");
  statement = std::regex_replace(statement, attribute, " ");
  for (std::string before; before != statement;) {
    before = statement;
    statement = std::regex_replace(before, arguments, " ");
  }
  return std::regex_replace(statement, initialiser, "");
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

// "Name" for the text in front of a class's opening brace, "" for any other brace.
std::string class_head(const std::string& statement) {
  static const std::regex head(R"(^(template\b[^()=]*\s)?(class|struct|union)\b\s*((?:\w+::)*\w*)[^()=]*$)");
  std::smatch match;
  const std::string shape = trimmed(shape_of(statement));
  if (!std::regex_match(shape, match, head)) {
    return "";
  }
  return match[3].length() == 0 ? "(unnamed)" : match[3].str();
}

bool is_function(const std::string& shape) {
  static const std::regex pointer(R"(^[^(]*\(\s*(\w+::)*\*)");
  return shape.find('(') != std::string::npos && !std::regex_search(shape, pointer);
}

// How many data members the statement, which stands in a class, declares.
std::size_t members_in(const std::string& statement) {
  static const std::regex other(R"(^(using|typedef|friend|template|static_assert)\b|\bstatic\b|\boperator\b)"
                                R"(|^(class|struct|union|enum)\b[^{]*(\{\})?$)");
  const std::string shape = trimmed(shape_of(statement));
  if (shape.empty() || std::regex_search(shape, other) || is_function(shape)) {
    return 0;
  }
  return 1 + static_cast<std::size_t>(std::count(shape.begin(), shape.end(), ','));
}

struct Scope {
  std::string name;  // of a class; "" for a function, a namespace, an initialiser
  std::size_t line = 0;
  std::size_t members = 0;
  std::string statement;
};

class Scanner {
 public:
  std::vector<ClassSize> scan(const File& file) {
    for (line_ = 0; line_ < file.code.size(); ++line_) {
      const std::string& line = file.code[line_];
      if (const std::size_t first = line.find_first_not_of(' '); first == std::string::npos || line[first] == '#') {
        continue;
      }
      for (const char c : line) {
        take(c);
      }
      scopes_.back().statement += ' ';
    }
    return std::move(classes_);
  }

 private:
  void take(char c) {
    if (body_ended_ && c != ' ') {
      if (c != ',' && c != '{') {  // those two go on with a constructor's initialisers
        scopes_.back().statement.clear();
      }
      body_ended_ = false;
    }
    std::string& statement = scopes_.back().statement;
    if (c == '{') {
      std::string name = class_head(statement);
      statement += '{';
      scopes_.push_back({std::move(name), line_ + 1, 0, ""});
    } else if (c == '}') {
      close();
    } else if (c == ';') {
      if (!scopes_.back().name.empty()) {
        scopes_.back().members += members_in(statement);
      }
      statement.clear();
    } else {
      statement += c;
      static const std::set<std::string, std::less<>> access{"public:", "private:", "protected:"};
      if (c == ':' && access.contains(trimmed(statement))) {
        statement.clear();
      }
    }
  }

  void close() {
    if (scopes_.size() == 1) {
      return;  // braces that the preprocessor chooses between
    }
    const Scope ended = std::move(scopes_.back());
    scopes_.pop_back();
    scopes_.back().statement += '}';
    if (!ended.name.empty()) {
      classes_.push_back({ended.name, ended.line, ended.members});
    } else {
      const std::string shape = trimmed(shape_of(scopes_.back().statement));
      body_ended_ = is_function(shape) || shape.starts_with("namespace") || shape.starts_with("extern");
    }
  }

  std::vector<Scope> scopes_{Scope{}};
  std::vector<ClassSize> classes_;
  std::size_t line_ = 0;
  bool body_ended_ = false;  // of a function or a namespace: the next character may begin another statement
};

}  // namespace

std::vector<ClassSize> classes_of(const File& file) { return Scanner().scan(file); }

}  // namespace tidy
