// SPDX-License-Identifier: MIT
#include "weft/topic/wire/name.h"

#include <utility>

namespace weft::topic {

Result<Names> Names::make(std::string_view space, char separator) {
  const auto byte = static_cast<unsigned char>(separator);
  const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
  if (byte <= 0x20 || byte > 0x7e || letter ||
      std::string_view("*>=?[]^\\").find(separator) != std::string_view::npos) {
    return Error(Errc::invalid_argument, "this byte cannot separate tokens");
  }
  Names names;
  names.separator_ = separator;
  if (!space.empty()) {
    if (space.find_first_of(".?[]\\*>") != std::string_view::npos) {
      return Error(Errc::invalid_argument, "a space is one token, without wildcards");
    }
    WEFT_TRY(check_topic(space));
    names.space_ = std::string(space) + '.';
  }
  return names;
}

std::string Names::translate(std::string_view name) const {
  std::string wire = space_;
  wire.reserve(space_.size() + name.size());
  if (separator_ == '.') {
    return wire.append(name);
  }
  for (const char c : name) {
    if (c == separator_) {
      wire += '.';
    } else if (c == '.') {
      wire += "=2E";
    } else if (c == '=') {
      wire += "=3D";
    } else {
      wire += c;
    }
  }
  return wire;
}

Result<std::string> Names::encode(std::string_view name) const {
  std::string wire = translate(name);
  WEFT_TRY(check_topic(wire));
  if (WEFT_TRY(Filter::parse(wire)).kind() != FilterKind::exact) {
    return Error(Errc::invalid_argument, "a topic has no wildcards");
  }
  return wire;
}

Result<Filter> Names::encode(const Filter& filter) const {
  if (identity()) {
    return filter;
  }
  return Filter::make(filter.kind(), translate(filter.text()));
}

Result<Filter> Names::filter(std::string_view text) const {
  return identity() ? Filter::parse(text) : Filter::parse(translate(text));
}

std::string Names::decode(std::string_view wire) const {
  if (!space_.empty() && wire.starts_with(space_)) {
    wire.remove_prefix(space_.size());
  }
  if (separator_ == '.') {
    return std::string(wire);
  }
  std::string name;
  name.reserve(wire.size());
  for (std::size_t i = 0; i < wire.size(); ++i) {
    const std::string_view three = wire.substr(i, 3);
    if (three == "=2E" || three == "=3D") {
      name += three == "=2E" ? '.' : '=';
      i += 2;
    } else {
      name += wire[i] == '.' ? separator_ : wire[i];
    }
  }
  return name;
}

}  // namespace weft::topic
