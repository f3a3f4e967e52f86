// SPDX-License-Identifier: MIT
#include "tools/weft/topics/shown.h"

#include <variant>

#include "tools/weft/lines.h"
#include "weft/base/text/utf8.h"

namespace weft::cli {

namespace {

// The lines of a block, without its first one.
std::vector<std::string> header_lines(std::string_view block) {
  std::vector<std::string> lines;
  block.remove_prefix(std::min(block.size(), block.find('\n') + 1));
  while (!block.empty()) {
    std::string_view line = block.substr(0, block.find('\n'));
    block.remove_prefix(std::min(block.size(), line.size() + 1));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (!line.empty()) {
      lines.emplace_back(line);
    }
  }
  return lines;
}

std::string word_of(const Value& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) {
    return printable(*text);
  }
  const auto* const number = std::get_if<std::uint64_t>(&value);
  return number == nullptr ? std::string() : std::to_string(*number);
}

}  // namespace

void show(Console& console, const ShownOptions& options, const Record& fields, std::string_view body,
          std::string_view block) {
  if (options.raw) {
    console.print(body);
    return;
  }
  if (console.json) {
    Record record = fields;
    const bool hex = options.hex || !is_utf8(body);
    record.emplace_back(hex ? "hex" : "body", hex ? to_hex(body) : std::string(body));
    if (!block.empty()) {
      record.emplace_back("headers", header_lines(block));
    }
    console.record(record);
    return;
  }
  std::string line;
  for (const auto& [name, value] : fields) {
    line += word_of(value) + " ";
  }
  console.line(line + (options.hex ? to_hex(body) : printable(body)));
}

Headers headers_of(const std::vector<std::string>& arguments) {
  Headers headers;
  for (const std::string& argument : arguments) {
    const std::size_t colon = argument.find(':');
    const std::size_t value =
        std::min(argument.find_first_not_of(' ', std::min(argument.size(), colon + 1)), argument.size());
    if (colon == std::string::npos) {
      throw Usage("--header takes NAME:VALUE, not '" + printable(argument) + "'");
    }
    if (const auto added = headers.add(argument.substr(0, colon), argument.substr(value)); !added) {
      throw Usage("--header " + printable(argument) + ": " + added.error().message());
    }
  }
  return headers;
}

std::string value_of(const ValueOptions& options, const char* name) {
  if (options.words.size() + (options.file.empty() ? 0 : 1) != 1) {
    throw Usage(std::string("one ") + name + " is needed: an argument, - for standard input, or --file FILE");
  }
  if (!options.file.empty()) {
    return read_whole(options.file);
  }
  const std::string& word = options.words[0];
  return word == "-" ? read_whole(word) : options.hex ? from_hex(word) : word;
}

}  // namespace weft::cli
