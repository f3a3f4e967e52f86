// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.h"

namespace weft::interop {

// MessageId: names a message; its bytes depend on nothing else. payload.py has the same for Python.
struct MessageId {
  std::uint64_t stream = 0;    // the sender and the receiver
  std::uint64_t sequence = 0;  // from 0
};

// Shape: the parts of a message and their sizes.
struct Shape {
  std::size_t size = 0;    // bytes of its main part
  bool multipart = false;  // [8 bytes][size][empty][size/4 + 1] instead of [size]
};

inline constexpr std::size_t kSizeMax = std::size_t{16} << 20;

// The parts that message `id` must have. `topic` stands at the front of the first part, cut to the size of that part.
[[nodiscard]] std::vector<Message> make_message(const Shape& shape, const MessageId& id, std::string_view topic = {});

// Compares every byte. Returns an empty string when all are right, otherwise a description of the first difference.
[[nodiscard]] std::string check_message(const Shape& shape, const MessageId& id, std::string_view topic,
                                        const std::vector<Message>& parts);

// Makes the table that the other functions share, once, so that forked children need not.
void prepare_payload();

}  // namespace weft::interop
