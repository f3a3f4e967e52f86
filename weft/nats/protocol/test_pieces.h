// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/assert.h"
#include "weft/nats/protocol/codec.h"

// For tests and fuzzers: a stream of a server, decoded as a session decodes it.
namespace weft::nats::test {

struct Operation {
  Op op = Op::ping;
  std::string subject{};
  std::string reply{};
  std::uint64_t sid = 0;
  std::size_t headers_size = 0;
  std::string body{};

  friend bool operator==(const Operation&, const Operation&) = default;
};

struct Story {
  std::vector<Operation> operations;
  std::string error;     // empty: the stream was taken to its end
  std::size_t rest = 0;  // bytes of an operation that began

  friend bool operator==(const Story&, const Story&) = default;
};

// Each call of `cut` returns the size of the next piece, which is at least 1. The input of decode() is a block of its
// own, so that AddressSanitizer sees a read beyond it.
template <typename Cut>
Story decode_in_pieces(Codec codec, std::string_view stream, Cut cut) {
  Story story;
  std::vector<std::uint8_t> held;
  std::size_t least = 1;
  while (!stream.empty()) {
    const std::size_t size = std::min(stream.size(), std::max<std::size_t>(cut(), 1));
    held.insert(held.end(), stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(size));
    stream.remove_prefix(size);
    while (!held.empty() && held.size() >= least) {
      const std::vector<std::uint8_t> input(held.begin(), held.end());
      const auto decoded = codec.decode(input);
      if (decoded.failed()) {
        story.error = decoded.error.text();
        return story;
      }
      if (!decoded.complete()) {
        WEFT_ASSERT(decoded.least > held.size());
        least = decoded.least;
        break;
      }
      WEFT_ASSERT(decoded.size <= held.size());
      const auto& [head, body] = decoded.frame;
      story.operations.push_back({head.op, std::string(head.subject), std::string(head.reply), head.sid,
                                  head.headers_size, std::string(as_text(body))});
      held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(decoded.size));
      least = 1;
    }
  }
  story.rest = held.size();
  return story;
}

inline Story decode_whole(const Codec& codec, std::string_view stream) {
  return decode_in_pieces(codec, stream, [&stream] { return stream.size(); });
}

}  // namespace weft::nats::test
