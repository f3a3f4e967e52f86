// SPDX-License-Identifier: MIT
#include "weft/topic/wire/headers.h"

namespace weft {

namespace {

constexpr std::string_view kFirstLine = "NATS/1.0";
constexpr std::string_view kLineEnd = "\r\n";

// Takes the next line off `rest`. Returns false if there is no whole line.
bool take_line(std::string_view& rest, std::string_view& line) noexcept {
  const std::size_t end = rest.find(kLineEnd);
  if (end == std::string_view::npos) {
    return false;
  }
  line = rest.substr(0, end);
  rest.remove_prefix(end + kLineEnd.size());
  return true;
}

// Calls visit(name, value) for each header until it returns true. Returns false if the block is malformed.
template <typename Visit>
bool scan(std::string_view block, Visit visit) noexcept {
  std::string_view line;
  if (!block.starts_with(kFirstLine) || !take_line(block, line)) {
    return false;
  }
  while (take_line(block, line)) {
    if (line.empty()) {
      return block.empty();
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) {
      return false;
    }
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ')) {
      value.remove_prefix(1);
    }
    if (visit(line.substr(0, colon), value)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<void> Headers::add(std::string_view name, std::string_view value) {
  for (const char c : name) {
    if (c < 0x21 || c > 0x7e || c == ':') {
      return Error(Errc::invalid_argument, "a header's name is printable and has no colon");
    }
  }
  if (name.empty() || value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
    return Error(Errc::invalid_argument, "a header has a name, and a value of one line");
  }
  const std::size_t before = block_.empty() ? kFirstLine.size() + 2 * kLineEnd.size() : block_.size();
  if (before + name.size() + value.size() + 2 + kLineEnd.size() > kBytesMax) {
    return Error(Errc::message_too_large, "the headers exceed 64 KiB");
  }
  if (block_.empty()) {
    block_.append(kFirstLine).append(kLineEnd);
  } else {
    block_.resize(block_.size() - kLineEnd.size());
  }
  block_.append(name).append(": ").append(value).append(kLineEnd).append(kLineEnd);
  return {};
}

std::string_view find_header(std::string_view block, std::string_view name) noexcept {
  std::string_view found;
  (void)scan(block, [&](std::string_view each, std::string_view value) {
    if (each == name) {
      found = value;
      return true;
    }
    return false;
  });
  return found;
}

bool is_header_block(std::string_view block) noexcept {
  return block.size() <= Headers::kBytesMax && scan(block, [](std::string_view, std::string_view) { return false; });
}

Result<std::string> topic::with_header(std::string_view headers, std::string_view name, std::string_view value) {
  Headers more;
  WEFT_TRY(more.add(name, value));
  if (headers.empty()) {
    return std::string(more.block());
  }
  const std::size_t first = headers.find(kLineEnd);
  if (!is_header_block(headers) || first == std::string_view::npos) {
    return Error(Errc::invalid_argument, "the headers are no block");
  }
  std::string all(more.block().substr(0, more.block().size() - kLineEnd.size()));
  all += headers.substr(first + kLineEnd.size());
  return all;
}

}  // namespace weft
