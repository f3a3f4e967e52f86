// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.h"

namespace weft::interop {

// Which message it is: everything that its bytes depend on. payload.py says the same for Python.
struct MessageId {
  std::uint64_t stream = 0;    // who sends, and to whom
  std::uint64_t sequence = 0;  // from 0
};

// What a message looks like.
struct Shape {
  std::size_t size = 0;    // bytes of its main part
  bool multipart = false;  // [8 bytes][size][empty][size/4 + 1] instead of [size]
};

inline constexpr std::size_t kSizeMax = std::size_t{16} << 20;

// The parts that message `id` must have. `topic` stands at the front of the first part, cut to the size of that part.
[[nodiscard]] std::vector<Message> make_message(const Shape& shape, const MessageId& id, std::string_view topic = {});

// Compares every byte; an empty string when all are right, else what is wrong.
[[nodiscard]] std::string check_message(const Shape& shape, const MessageId& id, std::string_view topic,
                                        const std::vector<Message>& parts);

// Makes what the other functions share, once, so that a fork need not.
void prepare_payload();

}  // namespace weft::interop
