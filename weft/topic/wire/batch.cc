// SPDX-License-Identifier: MIT
#include "weft/topic/wire/batch.h"

#include "weft/base/endian.h"

namespace weft::topic {
namespace {

constexpr std::size_t kSizeSize = 4;
constexpr std::uint16_t kBatchFlags = OpFlags::expect_last | OpFlags::expires;
constexpr Error kNoBatch(Errc::protocol_error, "the body is not a batch of messages");

}  // namespace

Result<void> add_to_batch(const Op& append, std::size_t before, std::vector<std::uint8_t>& body) {
  WEFT_TRY(check_op(append));
  if (before >= kBatchMessagesMax) {
    return Error(Errc::invalid_argument, "a batch has 1 to 1,000 messages");
  }
  const std::size_t size = encoded_size(append);
  if (body.size() + kSizeSize + size > kOpBodyMax) {
    return Error(Errc::message_too_large, "a batch beyond 1 MiB");
  }
  const std::size_t at = body.size();
  body.resize(at + kSizeSize + size);
  store_big_endian(body.data() + at, static_cast<std::uint32_t>(size));
  encode_op(append, MutableBytes(body).subspan(at + kSizeSize));
  return {};
}

Result<std::vector<Op>> parse_batch(Bytes body) {
  std::vector<Op> messages;
  while (!body.empty()) {
    const std::size_t size = body.size() < kSizeSize ? body.size() : load_big_endian<std::uint32_t>(body.data());
    if (body.size() < kSizeSize || size > body.size() - kSizeSize || messages.size() >= kBatchMessagesMax) {
      return kNoBatch;
    }
    const auto op = parse_op(body.subspan(kSizeSize, size));
    if (!op || op->kind != OpKind::append || !op->name.empty() || (op->flags & ~kBatchFlags) != 0) {
      return kNoBatch;
    }
    messages.push_back(*op);
    body = body.subspan(kSizeSize + size);
  }
  return messages.empty() ? Result<std::vector<Op>>(kNoBatch) : Result<std::vector<Op>>(std::move(messages));
}

}  // namespace weft::topic
