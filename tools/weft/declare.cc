// SPDX-License-Identifier: MIT
#include "tools/weft/declare.h"

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

namespace weft::cli {

namespace {

std::optional<std::uint64_t> whole_number(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size() ? std::optional(value) : std::nullopt;
}

// 64K, 512M, 2G.
std::optional<std::uint64_t> size_number(std::string_view text) {
  unsigned shift = 0;
  if (!text.empty()) {
    const char unit = text.back();
    shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
  }
  text.remove_suffix(shift == 0 ? 0 : 1);
  const auto number = whole_number(text);
  return number && *number <= (std::numeric_limits<std::uint64_t>::max() >> shift) ? std::optional(*number << shift)
                                                                                   : std::nullopt;
}

CLI::Option* exact(CLI::App& app, const char* name, std::uint64_t& into, const char* type, const char* help,
                   std::optional<std::uint64_t> (*read)(std::string_view), const char* form) {
  const CLI::Validator validator(
      [read, form](std::string& text) {
        const auto number = read(text);
        if (!number) {
          return "'" + text + "' is " + form;
        }
        text = std::to_string(*number);
        return std::string();
      },
      "");
  return app.add_option(name, into, help)->type_name(type)->transform(validator);
}

}  // namespace

const CLI::Validator& positive() {
  static const CLI::Validator validator(
      [](std::string& text) {
        double number = 0;
        return CLI::detail::lexical_cast(text, number) && number >= 0 && number <= 1e9
                   ? std::string()
                   : "'" + text + "' is no number from 0 to 1000000000";
      },
      "");
  return validator;
}

const CLI::Validator& unmarked() {
  static const CLI::Validator validator(
      [](std::string& text) {
        text.erase(0, text.starts_with(kListMark) ? 1 : 0);
        return std::string();
      },
      "");
  return validator;
}

CLI::Option* text(CLI::App& app, const char* name, std::string& into, const char* type, const char* help) {
  return app.add_option(name, into, help)->type_name(type)->transform(unmarked());
}

CLI::Option* texts(CLI::App& app, const char* name, std::vector<std::string>& into, const char* type,
                   const char* help) {
  return app.add_option(name, into, help)
      ->type_name(type)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->transform(unmarked());
}

CLI::Option* bytes(CLI::App& app, const char* name, std::uint64_t& into, const char* help) {
  return exact(app, name, into, "BYTES", help, size_number, "no number of bytes, such as 65536, 64K, 512M or 2G");
}

CLI::Option* sequence(CLI::App& app, const char* name, std::uint64_t& into, const char* help) {
  return exact(app, name, into, "N", help, whole_number, "no whole number");
}

void declare_source(CLI::App& app, SourceOptions& source) {
  texts(app, "-f,--file", source.files, "FILE", "FILE is one message, byte by byte; repeatable, - is standard input")
      ->group(kMessages);
  texts(app, "-l,--lines", source.lines, "FILE", "Each line of FILE is a message; repeatable, - is standard input")
      ->group(kMessages);
  number(app, "--rate", source.rate, "N", "Messages a second, at most")->group(kMessages);
  number(app, "--interval", source.interval, "SECONDS", "Between two messages")->group(kMessages);
}

}  // namespace weft::cli
