// SPDX-License-Identifier: MIT
#include <algorithm>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "tools/rules.h"

namespace tidy {
namespace {

// A bracket that is open at some place of the code.
struct Open {
  char bracket;
  bool condition;      // of if, while, for or switch
  bool of_new;         // holds the arguments of a new
  std::size_t inside;  // the place after the bracket
};

// The word that ends at `end`, spaces skipped; for `if constexpr (` the word before constexpr.
std::string_view word_before(std::string_view code, std::size_t end) {
  for (;;) {
    while (end > 0 && (code[end - 1] == ' ' || code[end - 1] == '\n')) {
      --end;
    }
    std::size_t begin = end;
    while (begin > 0 && is_word(code[begin - 1])) {
      --begin;
    }
    const std::string_view word = code.substr(begin, end - begin);
    if (word != "constexpr") {
      return word;
    }
    end = begin;
  }
}

// Is the bracket at `end` the one after the type of a new: `new T(`, `new (place) a::T<int, U>{`?
bool is_of_new(std::string_view code, std::size_t end) {
  int templates = 0;
  while (end > 0) {
    const char c = code[end - 1];
    templates += c == '>' ? 1 : c == '<' ? -1 : 0;
    if (!is_word(c) && c != ':' && c != '<' && c != '>' && templates == 0) {
      break;
    }
    --end;
  }
  while (end > 0 && code[end - 1] == ' ') {
    --end;
  }
  if (end > 0 && code[end - 1] == ')') {
    int brackets = 0;
    do {
      --end;
      brackets += code[end] == ')' ? 1 : code[end] == '(' ? -1 : 0;
    } while (end > 0 && brackets != 0);
  }
  return word_before(code, end) == "new";
}

bool is_condition(std::string_view word) {
  return word == "if" || word == "while" || word == "for" || word == "switch";
}

// `const auto name = ...`, `bool name = ...`, `auto [a, b] = ...`, `auto& name : ...`
bool declares(std::string_view text) {
  static const std::regex declaration(
      R"((^|[;(])\s*(const\s+)?[A-Za-z_][\w:]*(<[^;=]*>)?(\s*[&*]+\s*|\s+)(\w+|\[[\w\s,]+\])\s*(=(?!=)|:(?!:)|\{))");
  return std::regex_search(text.begin(), text.end(), declaration);
}

// GCC 12: in a coroutine that declares no variable, an await in a condition never resumes. A variable in the condition
// makes the code right, whatever the rest of the coroutine holds.
// WEFT_TRY returns from the middle of its expression: no compiler frees the memory of a new around the macro.
void check_file(const File& file, Report& report) {
  std::string code;
  for (const std::string& line : file.code) {
    (code += line) += '\n';
  }
  constexpr std::string_view kAwait = "co_await";
  // The test of the end of such coroutines.
  constexpr std::string_view kAwaitsInConditions = "weft/rt/task/task_condition_test.cc";
  constexpr std::string_view kTry = "WEFT_TRY";
  std::vector<Open> open;
  std::size_t line = 1;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const char c = code[at];
    line += c == '\n' ? 1 : 0;
    if (c == '(' || c == '{') {
      open.push_back({c, c == '(' && is_condition(word_before(code, at)), is_of_new(code, at), at + 1});
    } else if ((c == ')' || c == '}') && !open.empty()) {
      open.pop_back();
    } else if (code.compare(at, kAwait.size(), kAwait) == 0 && (at == 0 || !is_word(code[at - 1]))) {
      for (std::size_t i = open.size(); i > 0 && open[i - 1].bracket == '('; --i) {
        const Open& outer = open[i - 1];
        if (file.path != kAwaitsInConditions && outer.condition &&
            !declares(std::string_view(code).substr(outer.inside, at - outer.inside))) {
          report.error(file.path, line, "await-in-condition", "GCC 12 may never resume from this await",
                       "name the result: `if (const bool done = co_await f(); done)`");
          break;
        }
      }
    } else if (code.compare(at, kTry.size(), kTry) == 0 && (at == 0 || !is_word(code[at - 1]))) {
      if (std::any_of(open.begin(), open.end(), [](const Open& outer) { return outer.of_new; })) {
        report.error(file.path, line, "try-in-new", "the memory of the new leaks when WEFT_TRY returns",
                     "name the result of WEFT_TRY first, then make the object");
      }
    }
  }
}

}  // namespace

void check_expressions(const Files& files, Report& report) {
  for (const File& file : files) {
    if (is_cpp(file.path)) {
      check_file(file, report);
    }
  }
}

}  // namespace tidy
