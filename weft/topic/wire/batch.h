// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/topic/wire/ops.h"

namespace weft::topic {

// The body of an `append_all`: the messages of a batch, each an encoded `append` without a name after its size in 4
// bytes.
inline constexpr std::size_t kBatchMessagesMax = 1000;  // that of servers of NATS

// Errors: those of check_op(); invalid_argument (more than kBatchMessagesMax); message_too_large (the body exceeds
// kOpBodyMax). Throws std::bad_alloc.
[[nodiscard]] Result<void> add_to_batch(const Op& append, std::size_t before, std::vector<std::uint8_t>& body);
// The views point into `body`. Fails with protocol_error if it is not such a body, or has no messages. Throws
// std::bad_alloc.
[[nodiscard]] Result<std::vector<Op>> parse_batch(Bytes body);

}  // namespace weft::topic
