// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/credentials.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "weft/nats/protocol/limits.h"

namespace weft::nats {

namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kDashesMin = 3;

[[nodiscard]] std::string_view trimmed_line(std::string_view line) noexcept {
  const std::size_t begin = line.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view()
                                         : line.substr(begin, line.find_last_not_of(kBlanks) - begin + 1);
}

[[nodiscard]] bool is_fence(std::string_view line) noexcept {
  return line.size() > kDashesMin && line.substr(0, kDashesMin) == "---" && line.ends_with("---");
}

// Three parts of base64, with a dot between two.
[[nodiscard]] bool is_jwt(std::string_view text) noexcept {
  std::size_t dots = 0;
  for (const char c : text) {
    const bool digit =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
    dots += c == '.' ? 1 : 0;
    if (!digit && c != '.') {
      return false;
    }
  }
  return dots == 2 && text.front() != '.' && text.back() != '.';
}

}  // namespace

Result<UserCredentials> read_credentials(std::string_view text) {
  if (text.size() > kCredentialsMax) {
    return Error(Errc::invalid_argument, "the file of credentials is too large");
  }
  UserCredentials read;
  Secret* into = nullptr;  // of the block that has begun
  bool inside = false;     // a block
  std::string_view found;  // the line inside the block
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed_line(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (is_fence(line)) {
      if (!inside) {
        into = line.find("JWT") != std::string_view::npos    ? &read.jwt
               : line.find("SEED") != std::string_view::npos ? &read.seed
                                                             : nullptr;
        found = {};
      } else if (into != nullptr) {
        if (found.empty() || !into->text().empty()) {
          return Error(Errc::invalid_argument, "a block of the credentials is empty, or is there twice");
        }
        *into = Secret(std::string(found));
      }
      inside = !inside;
    } else if (inside && into != nullptr && !line.empty()) {
      if (!found.empty()) {
        return Error(Errc::invalid_argument, "a block of the credentials has more than one line");
      }
      found = line;
    }
  }
  if (inside || read.jwt.text().empty() || read.seed.text().empty() || !is_jwt(read.jwt.text())) {
    return Error(Errc::invalid_argument, "the credentials have no JWT of a user, or no seed");
  }
  return read;
}

}  // namespace weft::nats
