// SPDX-License-Identifier: MIT
#include "tools/english_phrases.h"

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>
#include <utility>

namespace tidy {
namespace {

constexpr std::size_t kNear = 40;  // characters on each side in which the words of an exception stand

// A row of the table "English" in HACKING.md, as far as a pattern finds it.
struct Rule {
  std::vector<std::string_view> words;  // a paragraph without any of them is not searched: that is most of them
  std::regex pattern;
  std::regex allowed;  // near the phrase; empty: never
  bool has_allowed;
  bool may_ask;  // a question may have it
  const char* fix;
};

Rule rule(std::vector<std::string_view> words, const char* pattern, const char* allowed, const char* fix,
          bool may_ask = false) {
  return {std::move(words), std::regex(pattern), std::regex(allowed), *allowed != '\0', may_ask, fix};
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      rule({"behind"}, R"(\bbehind\b)",
           R"((leav|left|stay|lag|fall|fell|remain|stand)\w*( \w+){0,3} behind)"
           R"(|behind( \w+){0,2} (locks?|mutex|prox(y|ies)|balancers?|NAT|firewall|ROUTER|pointers?|interface|names)\b)"
           R"(|behind( \w+){0,2} (ids|figures|back|barrier|hash|figure|number of)\b)",
           "say \"after\" or \"before\" of time and order; \"behind\" is for places"),
      rule({" no "}, R"(\b(is|are|was|were|be) no\b)",
           R"([Tt]here( \w+)? (is|are|was|were|be) no\b|\bno (longer|more|less|later|earlier|other|better|worse)\b)",
           "deny with \"not a\", \"does not\" or \"without\""),
      rule({" none"}, R"(\b(is|are|was|were|be) none\b)", R"([Tt]here (is|are|was|were) none)",
           "deny with \"not one\" or \"without\""),
      rule({"as the "}, R"((^|[,;] )as the (next|others?|former)( (one|two|three|four|five|six))?(?=[.,;:)]|$))", "",
           "compare with \"like\""),
      rule(
          {"says", "said", "tells", "told", "hears", "heard", "wants", "knows", "knew", "thinks", "believe"},
          R"(\b(says|said|tells|told|hears|heard|wants|knows|knew|thinks|believes|believed)\b)",
          R"((RFC|docs|\.h|\.md|\.txt|[Tt]able|[Pp]age|[Cc]omment|[Hh]eader|standard|[Mm]anual|document|README)[^.;:]*)"
          R"( (says|said)|([Tt]ext|sentence|report|paper|rule|law|section)`?[^.;:]* (says|said)|told apart)",
          "code returns, reports, receives, has and needs; it does not speak, hear, know or want"),
      rule({"body"}, R"(\b([Nn]obody|[Ss]omebody|[Aa]nybody|[Ee]verybody)\b)", "",
           "name the subject: no thread, no peer, every handle"),
      rule({" but"}, R"(\b([Aa]ll|[Ee]very|[Ee]ach|[Aa]ny|[Nn]one|[Ee]verything)( [\w-]+){0,3} but\b)",
           R"(but (not|only|no|with|in|at|is|are|it) |[Aa]ll but\b)", "an exception is \"except\""),
      rule({"of use", "of no use"}, R"(\b(is|are|be) of (no )?use\b)", "", "say \"useful\" or \"useless\""),
      rule({"what"}, R"(\bwhat(?= ))", "", "name the object with a noun: \"the lost messages\", not a clause with what",
           true),
      rule({": "}, R"((^|[.:] )((True|False): |(Null|None|Nothing): (no memory|there is none|memory ran out)))", "",
           "a return value is a sentence: \"Returns null if ...\""),
      rule({"else"}, R"(\b(and|or) else\b|[,;] else\b)", "", "say \"otherwise\""),
      rule({"all the same"}, R"(\ball the same\b)", "", "say \"nevertheless\" or \"still\""),
      rule({"want of"}, R"(\bfor want of\b)", "", "say \"for lack of\""),
  };
  return all;
}

// The paragraph with other characters in the place of `code` and "quotes".
std::string without_quotes(const std::string& paragraph) {
  std::string out = paragraph;
  for (const char mark : {'`', '"'}) {
    for (std::size_t at = out.find(mark); at != std::string::npos;) {
      const std::size_t end = out.find(mark, at + 1);
      if (end == std::string::npos) {
        break;
      }
      std::fill(out.begin() + static_cast<std::ptrdiff_t>(at), out.begin() + static_cast<std::ptrdiff_t>(end) + 1, '_');
      at = out.find(mark, end + 1);
    }
  }
  return out;
}

bool is_question(const std::string& text, std::size_t from) {
  const std::size_t end = text.find_first_of(".?!", from);
  return end != std::string::npos && text[end] == '?';
}

}  // namespace

std::vector<Phrase> phrases_in(const std::string& paragraph) {
  std::vector<Phrase> out;
  const std::string text = without_quotes(paragraph);
  for (const Rule& each : rules()) {
    const auto found = [&](std::string_view word) { return text.find(word) != std::string::npos; };
    if (std::none_of(each.words.begin(), each.words.end(), found)) {
      continue;
    }
    for (std::sregex_iterator it(text.begin(), text.end(), each.pattern), end; it != end; ++it) {
      const auto offset = static_cast<std::size_t>(it->position());
      const std::size_t from = offset - std::min(offset, kNear);
      const std::string near = paragraph.substr(from, offset - from + it->str().size() + kNear);
      if ((each.has_allowed && std::regex_search(near, each.allowed)) || (each.may_ask && is_question(text, offset))) {
        continue;
      }
      const std::string phrase = it->str();
      const std::size_t word = std::min(phrase.find_first_not_of(" .:,;"), phrase.size());  // not the sentence before
      out.push_back({offset + word, phrase.substr(word), each.fix});
    }
  }
  return out;
}

}  // namespace tidy
