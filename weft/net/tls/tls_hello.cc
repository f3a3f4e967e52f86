// SPDX-License-Identifier: MIT
#include "weft/net/tls/tls_hello.h"

#include <algorithm>

namespace weft::net {
namespace {
// RFC 8446, 5.1.
constexpr std::uint8_t kHandshake = 22;
}  // namespace

bool HelloBound::check(Bytes records) noexcept {
  while (!records.empty()) {
    if (record_rest_ == 0) {
      record_[record_have_++] = records[0];
      records = records.subspan(1);
      if (record_have_ == record_.size()) {
        record_have_ = 0;
        record_rest_ = std::size_t{record_[3]} << 8U | record_[4];
      }
      continue;
    }
    const Bytes part = records.first(std::min(records.size(), record_rest_));
    records = records.subspan(part.size());
    record_rest_ -= part.size();
    if (record_[0] == kHandshake && !check_messages(part)) {
      return false;
    }
  }
  return true;
}

bool HelloBound::check_messages(Bytes part) noexcept {
  while (!part.empty()) {
    if (message_rest_ != 0) {
      const std::size_t size = std::min(part.size(), message_rest_);
      message_rest_ -= size;
      part = part.subspan(size);
      continue;
    }
    message_[message_have_++] = part[0];
    part = part.subspan(1);
    if (message_have_ == message_.size()) {
      message_have_ = 0;
      message_rest_ = std::size_t{message_[1]} << 16U | std::size_t{message_[2]} << 8U | message_[3];
      if (message_rest_ > kHelloMax) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace weft::net
