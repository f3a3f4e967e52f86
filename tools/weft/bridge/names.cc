// SPDX-License-Identifier: MIT
#include "tools/weft/bridge/names.h"

#include <algorithm>

#include "weft/base/bytes.h"
#include "weft/base/text/base64.h"

namespace weft::bridge {

namespace {

// The two characters of a pair take each other's place.
std::string swapped(std::string_view text, char separator) {
  std::string out(text);
  if (separator != kTopicSeparator) {
    for (char& c : out) {
      c = c == separator ? kTopicSeparator : c == kTopicSeparator ? separator : c;
    }
  }
  return out;
}

// Calls take(part) for each part between separators, until it returns false.
template <typename Take>
void split(std::string_view text, char separator, const Take& take) {
  for (;;) {
    const std::size_t end = text.find(separator);
    if (!take(text.substr(0, end)) || end == std::string_view::npos) {
      return;
    }
    text.remove_prefix(end + 1);
  }
}

}  // namespace

// --- Names ---

std::string Names::to_fleet(std::string_view topic) const { return prefix_ + swapped(topic, separator_); }

std::optional<std::string> Names::to_zmtp(std::string_view topic) const {
  if (!topic.starts_with(prefix_)) {
    return std::nullopt;
  }
  return swapped(topic.substr(prefix_.size()), separator_);
}

Result<Filter> Names::filter(std::string_view subscription) const { return Filter::prefix(to_fleet(subscription)); }

// --- parts ---

std::string encode_parts(std::span<const Message> parts) {
  std::string value = std::to_string(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    value += i == 0 ? ";" : ",";
    value += encode_base64(as_text(parts[i].bytes()));
  }
  return value;
}

std::optional<std::vector<std::string>> decode_parts(std::string_view value) {
  const std::size_t semicolon = value.find(';');
  if (semicolon == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view count = value.substr(0, semicolon);
  value.remove_prefix(semicolon + 1);
  std::vector<std::string> parts;
  bool good = true;
  split(value, ',', [&](std::string_view part) {
    good = parts.size() < kPartsMax && decode_base64(part, parts.emplace_back());
    return good;
  });
  return good && count == std::to_string(parts.size()) ? std::optional(std::move(parts)) : std::nullopt;
}

// --- Via ---

bool Via::has(std::string_view entry) const noexcept {
  bool found = false;
  split(text_, ',', [&](std::string_view each) { return !(found = each == entry); });
  return found && !entry.empty();
}

bool Via::full() const noexcept {
  return std::count(text_.begin(), text_.end(), ',') + 1 >= static_cast<std::ptrdiff_t>(kHopsMax);
}

bool Via::passed(std::string_view bridge) const noexcept {
  bool found = false;
  split(text_, ',', [&](std::string_view each) {
    return !(found = each.size() > bridge.size() && each.starts_with(bridge) && each[bridge.size()] == '/');
  });
  return found;
}

void Via::add(std::string_view entry) {
  if (!entry.empty() && !has(entry)) {
    text_ += text_.empty() ? "" : ",";
    text_ += entry;
  }
}

// The entries of a peer are cut to the bounds: a message with more of them is one in a loop.
void Via::add_all(std::string_view entries) {
  std::size_t taken = 0;
  split(entries, ',', [&](std::string_view each) {
    const bool clean = std::all_of(each.begin(), each.end(), [](char c) { return c > 0x20 && c < 0x7F; });
    if (each.size() <= kEntryMax && clean) {
      add(each);
    }
    return ++taken < kHopsMax;
  });
}

// --- headers ---

std::optional<Headers> passing_headers(std::string_view block) {
  Headers headers;
  if (block.empty()) {
    return headers;
  }
  if (!is_header_block(block)) {
    return std::nullopt;
  }
  block.remove_prefix(block.find('\n') + 1);
  bool good = true;
  split(block, '\n', [&](std::string_view line) {
    line = line.substr(0, line.find('\r'));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      return true;
    }
    const std::string_view name = line.substr(0, colon);
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    if (!name.starts_with("Weft-") && !name.starts_with("Nats-")) {
      good = good && headers.add(name, value).has_value();
    }
    return good;
  });
  return good ? std::optional(std::move(headers)) : std::nullopt;
}

}  // namespace weft::bridge
