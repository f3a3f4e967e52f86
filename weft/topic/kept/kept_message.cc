// SPDX-License-Identifier: MIT
#include "weft/topic/kept/kept_message.h"

#include <limits>

namespace weft {

Result<KeptMessage> KeptMessage::of(Message&& op, const topic::Names& names, std::uint64_t instance) {
  KeptMessage message;
  message.instance_ = instance;
  message.bytes_ = std::move(op);
  message.bytes_.set_more(false);
  const topic::Op parsed = WEFT_TRY(topic::parse_op(message.bytes_.bytes()));
  message.sequence_ = parsed.number;
  message.time_ = WallTime(Duration(static_cast<Duration::rep>(parsed.second)));
  message.topic_at_ = static_cast<std::uint32_t>(topic::kOpHeaderSize + parsed.name.size());
  message.topic_size_ = static_cast<std::uint8_t>(parsed.key.size());
  message.id_size_ = static_cast<std::uint8_t>(parsed.message_id.size());
  message.headers_size_ = static_cast<std::uint32_t>(parsed.headers.size());
  message.body_at_ = message.topic_at_ + message.topic_size_ + message.id_size_ + message.headers_size_;
  message.tries_ = parsed.kind == topic::OpKind::delivery ? parsed.code : std::uint16_t{0};
  message.erased_ = parsed.has(topic::OpFlags::erased);
  if (!names.identity()) {
    message.name_ = names.decode(parsed.key);
    message.named_ = true;
  }
  return message;
}

}  // namespace weft
