// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include "tools/english_phrases.h"
#include "tools/rules.h"

namespace tidy {
namespace {

// A bare subject, a weak phrase and a phrase of english_phrases.cc are errors. A long sentence is not: --numbers counts
// them.
constexpr bool kBareSubjectsAreErrors = true;
constexpr std::size_t kMaxWords = 40;

enum class Kind { bare_subject, weak_phrase, phrase, long_sentence };

struct Finding {
  Kind kind;
  const File* file;
  std::size_t line;
  std::string what;
  const char* fix = nullptr;  // of a phrase
};

// Lines of prose that belong together, as one text; `at` has for each line its first character's place in the text.
class Paragraph {
 public:
  void add(std::size_t line, std::string_view text) {
    if (!text_.empty()) {
      text_ += ' ';
    }
    starts_.emplace_back(text_.size(), line);
    text_ += text;
  }
  void clear() {
    text_.clear();
    starts_.clear();
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] std::size_t line_at(std::size_t offset) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), std::pair(offset, ~std::size_t{0}));
    return after == starts_.begin() ? 1 : std::prev(after)->second;
  }

 private:
  std::string text_;
  std::vector<std::pair<std::size_t, std::size_t>> starts_;  // place in the text, line
};

std::size_t words_in(std::string_view sentence) {
  std::size_t words = 0;
  bool in_word = false;
  for (const char c : sentence) {
    const bool blank = c == ' ';
    words += !blank && !in_word ? 1 : 0;
    in_word = !blank;
  }
  return words;
}

// The end of a sentence is a full stop, a question or exclamation mark, then a blank and no lower-case letter.
std::size_t sentence_end(const std::string& text, std::size_t from) {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] != '.' && text[i] != '!' && text[i] != '?') {
      continue;
    }
    const std::size_t next = text.find_first_not_of(")\"*`", i + 1);
    if (next == std::string::npos) {
      return text.size();
    }
    const std::string_view before = std::string_view(text).substr(0, i + 1);
    const std::size_t begin = text.find_first_not_of(" (\"`*[", next);
    if (text[next] == ' ' && !before.ends_with("e.g.") && !before.ends_with("i.e.") && begin != std::string::npos &&
        std::islower(static_cast<unsigned char>(text[begin])) == 0) {
      return next;
    }
  }
  return text.size();
}

void check_sentence(const File& file, std::size_t line, const std::string& sentence, std::vector<Finding>& out) {
  static const std::regex bare(R"rx(^[("]*(Who|What) [a-z])rx");
  static const std::regex question(R"rx(\?[)"*]*$)rx");
  if (std::regex_search(sentence, bare) && !std::regex_search(sentence, question)) {
    out.push_back({Kind::bare_subject, &file, line, "a sentence begins with `" + sentence.substr(0, 24) + "...`"});
  }
  if (const std::size_t words = words_in(sentence); words > kMaxWords) {
    out.push_back({Kind::long_sentence, &file, line, std::to_string(words) + " words in one sentence"});
  }
}

void check_paragraph(const File& file, const Paragraph& paragraph, std::vector<Finding>& out) {
  static const std::regex weak(
      R"(\b(told apart|comes? to nothing|goes on while|is looked (at|for)|by two looks|looks away)"
      R"(|is nothing any more)\b)");
  const std::string& text = paragraph.text();
  for (std::sregex_iterator it(text.begin(), text.end(), weak), end; it != end; ++it) {
    out.push_back(
        {Kind::weak_phrase, &file, paragraph.line_at(static_cast<std::size_t>(it->position())), "`" + it->str() + "`"});
  }
  for (const Phrase& phrase : phrases_in(text)) {
    out.push_back({Kind::phrase, &file, paragraph.line_at(phrase.offset), "`" + phrase.text + "`", phrase.fix});
  }
  for (std::size_t at = text.find_first_not_of(' '); at < text.size();) {
    const std::size_t end = sentence_end(text, at);
    check_sentence(file, paragraph.line_at(at), text.substr(at, end - at), out);
    at = text.find_first_not_of(' ', end);
  }
}

// Runs of comment lines; an empty line, an indented one or the number of an invariant begins another paragraph.
void read_comments(const File& file, const std::vector<std::string>& comments, std::vector<Finding>& out) {
  static const std::regex item(R"(^ *(\d+\.|[-*]) )");
  Paragraph paragraph;
  for (std::size_t i = 0; i <= comments.size(); ++i) {
    const std::string text = i < comments.size() ? comments[i] : "";
    const bool blank = text.find_first_not_of(" /") == std::string::npos;
    if (blank || text.starts_with("  ") || std::regex_search(text, item)) {
      check_paragraph(file, paragraph, out);
      paragraph.clear();
    }
    if (!blank && !text.starts_with(" SPDX")) {
      paragraph.add(i + 1, std::regex_replace(text.substr(text.find_first_not_of(' ')), item, ""));
    }
  }
}

// A row of a table in Markdown. The table of the rules in HACKING.md has the forbidden phrases.
void check_phrases(const File& file, std::size_t line, const std::string& text, std::vector<Finding>& out) {
  for (const Phrase& phrase : phrases_in(text)) {
    out.push_back({Kind::phrase, &file, line, "`" + phrase.text + "`", phrase.fix});
  }
}

// Of Markdown: no code and no headings; an item of a list is a paragraph, and rows of tables are phrases alone.
void read_markdown(const File& file, std::vector<Finding>& out) {
  std::vector<std::string> prose;
  bool in_code = false;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    const bool fence = line.find("```") < 4;
    in_code = in_code != fence;
    if (!in_code && line.starts_with("|") && file.path != "HACKING.md") {
      check_phrases(file, i + 1, line, out);
    }
    const bool none = in_code || fence || line.starts_with("#") || line.starts_with("|") || line.starts_with("    ") ||
                      line.starts_with("<!--");
    prose.push_back(none ? "" : line.substr(std::min(line.find_first_not_of(' '), line.size())));
  }
  read_comments(file, prose, out);
}

// Lines that are a comment of Python, CMake or a shell.
void read_hash_comments(const File& file, std::vector<Finding>& out) {
  std::vector<std::string> comments;
  for (const std::string& line : file.lines) {
    const std::size_t begin = line.find_first_not_of(' ');
    comments.push_back(begin != std::string::npos && line.compare(begin, 2, "# ") == 0 ? line.substr(begin + 1) : "");
  }
  read_comments(file, comments, out);
}

bool has_hash_comments(const std::string& path) {
  static const std::regex names(R"((\.(py|cmake|sh|txt)|(^|/)dev)$)");
  return std::regex_search(path, names);
}

std::vector<Finding> findings_of(const Files& files) {
  std::vector<Finding> out;
  for (const File& file : files) {
    if (is_cpp(file.path)) {
      read_comments(file, file.comments, out);
    } else if (file.path.ends_with(".md") && file.path != "CHANGELOG.md") {
      read_markdown(file, out);
    } else if (has_hash_comments(file.path)) {
      read_hash_comments(file, out);
    }
  }
  return out;
}

const char* fix_for(const Finding& finding) {
  switch (finding.kind) {
    case Kind::bare_subject: return "name the thing: the sender, the I/O thread, the caller";
    case Kind::weak_phrase: return "use the mechanism's own verb: spin, park, flush, copy, retry, close, fail";
    case Kind::phrase: return finding.fix;
    case Kind::long_sentence: return "one fact a sentence";
  }
  return "";
}

const char* rule_of(Kind kind) {
  switch (kind) {
    case Kind::bare_subject: return "bare-subject";
    case Kind::weak_phrase: return "weak-phrase";
    case Kind::phrase: return "english";
    case Kind::long_sentence: return "long-sentence";
  }
  return "";
}

}  // namespace

void check_english(const Files& files, Report& report) {
  if constexpr (kBareSubjectsAreErrors) {
    for (const Finding& finding : findings_of(files)) {
      if (finding.kind != Kind::long_sentence) {
        report.error(finding.file->path, finding.line, rule_of(finding.kind), finding.what, fix_for(finding));
      }
    }
  }
}

void print_english_counts(const Files& files) {
  std::map<std::string, std::map<Kind, std::size_t>> folders;
  for (const Finding& finding : findings_of(files)) {
    const std::string folder = std::filesystem::path(finding.file->path).parent_path().generic_string();
    ++folders[folder.empty() ? "." : folder][finding.kind];
    ++folders["all"][finding.kind];
  }
  std::printf("\n%-24s %12s %11s %13s\n", "sentences to rewrite", "bare subject", "weak phrase", "over 40 words");
  for (auto& [folder, counts] : folders) {
    std::printf("%-24s %12zu %11zu %13zu\n", folder.c_str(), counts[Kind::bare_subject],
                counts[Kind::weak_phrase] + counts[Kind::phrase], counts[Kind::long_sentence]);
  }
  std::printf("\n");
}

void print_english_findings(const Files& files) {
  for (const Finding& finding : findings_of(files)) {
    std::printf("%s:%zu: [%s] %s; fix: %s\n", finding.file->path.c_str(), finding.line, rule_of(finding.kind),
                finding.what.c_str(), fix_for(finding));
  }
}

}  // namespace tidy
