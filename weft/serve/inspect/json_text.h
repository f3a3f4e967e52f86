// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft::serve {

// JsonText: a JSON text, from its first character to its last.
//   JsonText json;
//   json.object([&] { json.member("cores", 2u); json.member("name", "a\"b"); });
// Owner: its user. Affinity: one thread. Cost: allocates; no hot path.
// Invariant: the text is well formed when the outermost call has returned: a string is escaped, bytes that are not
// UTF-8 become U+FFFD, and a string of more than kStringMax bytes is cut.
class JsonText {
 public:
  static constexpr std::size_t kStringMax = 1024;

  template <typename Fill>
  void object(const Fill& fill) {
    bracket('{', '}', fill);
  }
  template <typename Fill>
  void array(const Fill& fill) {
    bracket('[', ']', fill);
  }
  template <typename Fill>
  void object(std::string_view name, const Fill& fill) {
    key(name);
    bracket('{', '}', fill);
  }
  template <typename Fill>
  void array(std::string_view name, const Fill& fill) {
    key(name);
    bracket('[', ']', fill);
  }
  template <typename Value>
  void member(std::string_view name, const Value& of) {
    key(name);
    value(of);
  }
  template <typename Value>
  void value(const Value& of) {
    separate();
    if constexpr (std::same_as<Value, bool>) {
      text_ += of ? "true" : "false";
    } else if constexpr (std::unsigned_integral<Value>) {
      text_ += std::to_string(of);
    } else if constexpr (std::floating_point<Value>) {
      append_number(of);
    } else {
      append_string(of);
    }
  }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  template <typename Fill>
  void bracket(char open, char close, const Fill& fill) {
    separate();
    text_ += open;
    first_ = true;
    fill();
    text_ += close;
    first_ = false;
  }
  void key(std::string_view name);
  void separate();
  void append_string(std::string_view of);
  void append_number(double of);  // null for infinity, and for no number

  std::string text_;
  bool first_ = true;  // of the present object or array: no separator before the next value
};

}  // namespace weft::serve
