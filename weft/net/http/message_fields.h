// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/net/http/field.h"
#include "weft/net/http/refusal.h"

namespace weft::net::http {

// Calls take(Field) for each line of a head after the first, until it refuses one. `rest` ends with the empty line of
// the head; `fields` becomes the lines without it.
template <typename Take>
[[nodiscard]] HttpRefusal take_fields(std::string_view rest, std::string_view& fields, Take take) noexcept {
  if (!rest.ends_with("\r\n")) {
    return HttpRefusal::malformed;
  }
  rest.remove_suffix(2);
  fields = rest;
  while (!rest.empty()) {
    const Field field = field_of(take_line(rest));
    const HttpRefusal why = field.name.empty() ? HttpRefusal::malformed : take(field);
    if (why != HttpRefusal::none) {
      return why;
    }
  }
  return HttpRefusal::none;
}

// MessageFields: the fields of a head that say where its body ends, and whether its connection stays open: the same
// rules for requests and answers. A value. Affinity: one thread at a time. Cost: a comparison of names a field.
// Invariants: (1) A head with two lengths, or with a length beside chunks, is refused.
class MessageFields {
 public:
  // Takes a field; any other name is ignored.
  [[nodiscard]] HttpRefusal take(const Field& field) noexcept {
    if (same_text(field.name, "content-length")) {
      return take_length(field.value);
    }
    if (same_text(field.name, "transfer-encoding")) {
      return take_coding(field.value);
    }
    if (same_text(field.name, "connection")) {
      any_element(field.value, [this](std::string_view option) {
        close_ = close_ || same_text(option, "close");
        keep_ = keep_ || same_text(option, "keep-alive");
        return false;
      });
    }
    return HttpRefusal::none;
  }
  // After the last field. `minor`: of the version of the message.
  [[nodiscard]] HttpRefusal check(unsigned minor) const noexcept {
    return chunked_ && (measured_ || minor == 0) ? HttpRefusal::framing : HttpRefusal::none;
  }

  [[nodiscard]] std::uint64_t content_length() const noexcept { return content_length_; }  // 0 without the field
  [[nodiscard]] bool has_length() const noexcept { return measured_; }
  [[nodiscard]] bool chunked() const noexcept { return chunked_; }
  [[nodiscard]] bool keep_alive(unsigned minor) const noexcept { return !close_ && (minor != 0 || keep_); }

 private:
  static constexpr std::size_t kDigitsMax = 19;  // of a length: fewer than 2^63 bytes

  [[nodiscard]] HttpRefusal take_length(std::string_view value) noexcept {
    if (measured_ || value.empty() || !std::all_of(value.begin(), value.end(), is_digit)) {
      return HttpRefusal::framing;
    }
    measured_ = true;
    if (value.size() > kDigitsMax) {
      return HttpRefusal::body_large;
    }
    for (const char digit : value) {
      content_length_ = content_length_ * 10 + static_cast<unsigned>(digit - '0');
    }
    return HttpRefusal::none;
  }
  [[nodiscard]] HttpRefusal take_coding(std::string_view value) noexcept {
    std::size_t codings = 0;
    bool last_chunks = false;
    bool other = false;
    any_element(value, [&](std::string_view coding) {
      ++codings;
      last_chunks = same_text(coding, "chunked");
      other = other || !last_chunks;
      return false;
    });
    if (chunked_ || !last_chunks || (codings > 1 && !other)) {
      return HttpRefusal::framing;
    }
    chunked_ = true;
    return other ? HttpRefusal::coding : HttpRefusal::none;
  }

  std::uint64_t content_length_ = 0;
  bool measured_ = false;
  bool chunked_ = false;
  bool close_ = false;
  bool keep_ = false;
};

}  // namespace weft::net::http
