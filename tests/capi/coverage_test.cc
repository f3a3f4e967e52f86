// SPDX-License-Identifier: MIT
// Checks coverage.txt, the list of options and functions with their tests, against the interface and the tests.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::capi {
namespace {

using Words = std::vector<std::string>;
const std::filesystem::path kRoot = WEFT_SOURCE_DIR;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text between `first` and `last` in a file.
std::string section(const std::filesystem::path& path, const std::string& first, const std::string& last) {
  const std::string text = read(path);
  const std::size_t begin = text.find(first);
  const std::size_t end = begin == std::string::npos ? begin : text.find(last, begin);
  EXPECT_NE(end, std::string::npos) << path << " has no " << first;
  return end == std::string::npos ? "" : text.substr(begin, end - begin);
}

bool is_name(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

// Every whole name in `text` that begins so.
std::set<std::string> names(const std::string& text, const std::string& beginning) {
  std::set<std::string> found;
  for (std::size_t at = 0; (at = text.find(beginning, at)) != std::string::npos;) {
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
    const std::string name(begin, std::find_if_not(begin, text.end(), is_name));
    if (at == 0 || !is_name(text[at - 1])) {
      found.insert(name);
    }
    at += name.size();
  }
  return found;
}

Words split(const std::string& text, char separator) {
  Words parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find(separator, begin), text.size());
    const std::size_t first = std::min(text.find_first_not_of(' ', begin), end);
    const std::size_t last = end == first ? first : text.find_last_not_of(' ', end - 1) + 1;
    if (separator != ' ' || last > first) {
      parts.push_back(text.substr(first, last - first));
    }
  }
  return parts;
}

class Coverage : public testing::Test {
 protected:
  Coverage() {
    for (const std::string& line : split(read(kRoot / "tests/capi/coverage.txt"), '\n')) {
      if (line.empty() || line[0] == '#') {
        continue;
      }
      if (const std::size_t equals = line.find(" = "); equals != std::string::npos) {
        groups_[line.substr(0, equals)] = split(line.substr(equals + 3), ' ');
        continue;
      }
      Words cells = split(line, '|');
      const std::string name = cells[0];
      cells.erase(cells.begin());
      EXPECT_TRUE(rows_.emplace(name, cells).second) << name << " has two rows";
    }
    for (const char* folder : {"tests/capi", "tests/conformance"}) {
      for (const auto& entry : std::filesystem::directory_iterator(kRoot / folder)) {
        read_tests(entry.path());
      }
    }
  }

  // Reads for each test its own text and the text of its file before the first test, where tables are.
  void read_tests(const std::filesystem::path& path) {
    if (path.extension() == ".c") {
      tests_[path.filename()] = read(path);
    }
    if (path.extension() != ".cc") {
      return;
    }
    const std::string text = read(path);
    const std::string before = text.substr(0, text.find("\nTEST"));
    for (std::size_t at = 0; (at = text.find("\nTEST", at)) != std::string::npos;) {
      const std::size_t end = std::min(text.find("\nTEST", at + 1), text.size());
      const std::size_t open = text.find('(', at) + 1;
      Words name = split(text.substr(open, text.find(')', open) - open), ',');
      tests_[name.at(0) + "." + name.at(1)] = before + text.substr(at, end - at);
      at = end;
    }
  }

  // Expects that the text of each test in the cell has all these names.
  void expect_tests(const std::string& cell, const Words& subjects) {
    if (cell.rfind("none: ", 0) == 0) {
      return;
    }
    Words wanted;
    for (const std::string& word : split(cell, ' ')) {
      const auto group = groups_.find(word);
      const Words several = group == groups_.end() ? Words{word} : group->second;
      wanted.insert(wanted.end(), several.begin(), several.end());
    }
    EXPECT_FALSE(wanted.empty());
    for (const std::string& test : wanted) {
      const auto found = tests_.find(test);
      ASSERT_NE(found, tests_.end()) << "there is no test " << test;
      for (const std::string& subject : subjects) {
        EXPECT_EQ(names(found->second, subject).count(subject), 1u) << test << " does not speak of " << subject;
      }
    }
  }

  // Expects that each name in `found` has a row, and that each row of this kind is in `found`.
  void expect_rows(const std::set<std::string>& found, const std::string& kind, const std::string& beginning) {
    EXPECT_FALSE(found.empty());
    for (const std::string& name : found) {
      EXPECT_EQ(rows_.count(kind + name), 1u) << kind << name << " has no row in coverage.txt";
    }
    for (const auto& [name, cells] : rows_) {
      if (name.rfind(kind + beginning, 0) == 0) {
        EXPECT_EQ(found.count(name.substr(kind.size())), 1u) << name << " is not there";
      }
    }
  }

  std::map<std::string, Words> rows_;
  std::map<std::string, Words> groups_;
  std::map<std::string, std::string> tests_;
};

TEST_F(Coverage, EverySocketOptionHasARow) {
  std::set<std::string> found = names(section(kRoot / "capi/options.cc", "kStored[] = {", "\n};"), "ZMQ_");
  found.merge(names(section(kRoot / "capi/options.cc", "OptionRow kOptions[] = {", "\n};"), "ZMQ_"));
  found.merge(names(section(kRoot / "capi/zmq.h", "#define ZMQ_AFFINITY", "/* older names */"), "ZMQ_"));
  for (const char* type : {"ZMQ_SUB", "ZMQ_XSUB", "ZMQ_XPUB", "ZMQ_RADIO", "ZMQ_DEALER", "ZMQ_REQ", "ZMQ_STREAM"}) {
    found.erase(type);  // the table says which types an option is for
  }
  expect_rows(found, "", "ZMQ_");
  expect_rows(names(section(kRoot / "capi/zmq.h", "/* --- Weft's own --- */", "#endif"), "WEFT_"), "", "WEFT_");
}

TEST_F(Coverage, EveryContextOptionHasARow) {
  expect_rows(names(section(kRoot / "capi/context.cc", "ContextOption kContextOptions[] = {", "\n};"), "ZMQ_"),
              "context ", "ZMQ_");
}

TEST_F(Coverage, EveryMessagePropertyHasARow) {
  expect_rows(names(section(kRoot / "capi/message.cc", "int zmq_msg_get(", "\n}"), "ZMQ_"), "message ", "ZMQ_");
}

TEST_F(Coverage, EveryFunctionHasARow) {
  const std::string exports = read(kRoot / "tests/capi/exports.txt");
  std::set<std::string> found;
  for (const std::string& line : split(exports, '\n')) {
    if (!line.empty() && line[0] != '#') {
      found.insert(line);
    }
  }
  expect_rows(found, "", "zmq_");
  EXPECT_EQ(rows_.count("weft_version"), 1u);
}

TEST_F(Coverage, EveryNamedTestIsThereAndSpeaksOfWhatItIsNamedFor) {
  for (const auto& [name, cells] : rows_) {
    SCOPED_TRACE(name);
    if (name.rfind("zmq_", 0) != 0 && name.rfind("weft_", 0) != 0) {
      EXPECT_EQ(cells.size(), 3u) << "default, refusals, effect";
      for (const std::string& cell : cells) {
        expect_tests(cell, {name.substr(name.rfind(' ') + 1)});
      }
      continue;
    }
    EXPECT_FALSE(cells.empty());
    for (const std::string& cell : cells) {
      const std::size_t colon = cell.find(": ");
      ASSERT_NE(colon, std::string::npos) << cell;
      for (const std::string& number : split(cell.substr(0, colon), ' ')) {
        if (number != "none") {
          expect_tests(cell.substr(colon + 2), {name, number});
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::capi
