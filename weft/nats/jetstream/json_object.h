// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/text/json_string.h"
#include "weft/base/time.h"

namespace weft::nats::jetstream {

// JsonObject: writes a JSON object, member after member. Owner: the user. Affinity: a value. Cost: a string.
class JsonObject {
 public:
  JsonObject& text(std::string_view name, std::string_view value) {
    begin(name);
    append_json_string(value, text_);
    return *this;
  }
  JsonObject& flag(std::string_view name, bool value) {
    begin(name);
    text_ += value ? "true" : "false";
    return *this;
  }
  template <std::integral Number>
  JsonObject& number(std::string_view name, Number value) {
    begin(name);
    append_number(value);
    return *this;
  }
  JsonObject& number(std::string_view name, Duration value) { return number(name, value.count()); }
  JsonObject& texts(std::string_view name, const std::vector<std::string>& values) {
    begin(name);
    return list(values, [this](const std::string& each) { append_json_string(each, text_); });
  }
  JsonObject& numbers(std::string_view name, const std::vector<Duration>& values) {
    begin(name);
    return list(values, [this](Duration each) { append_number(each.count()); });
  }
  JsonObject& pairs(std::string_view name, const std::vector<std::pair<std::string, std::string>>& values) {
    open(name);
    for (const auto& [key, value] : values) {
      begin_text(key);
      append_json_string(value, text_);
    }
    return close();
  }
  // A member that is an object, whose members follow until close().
  JsonObject& open(std::string_view name) {
    begin(name);
    text_ += '{';
    return *this;
  }
  JsonObject& close() {
    text_ += '}';
    return *this;
  }
  // The whole object; "{}" without a member.
  [[nodiscard]] std::string take() && { return std::move(close().text_); }

 private:
  void separate() {
    if (text_.back() != '{') {
      text_ += ',';
    }
  }
  void begin(std::string_view name) {
    separate();
    text_.append(1, '"').append(name).append("\":");
  }
  void begin_text(std::string_view name) {
    separate();
    append_json_string(name, text_);
    text_ += ':';
  }
  template <std::integral Number>
  void append_number(Number value) {
    char digits[24];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  template <typename List, typename Append>
  JsonObject& list(const List& values, const Append& append) {
    text_ += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      text_ += i == 0 ? "" : ",";
      append(values[i]);
    }
    text_ += ']';
    return *this;
  }

  std::string text_ = "{";
};

}  // namespace weft::nats::jetstream
