// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/connection/authentication.h"
#include "weft/msg/message/message.h"
#include "weft/rt/loop/loop.h"

namespace weft::msg {

class ContextCore;

// The seven parts of a reply, the empty delimiter first. nullptr or what is wrong with them.
[[nodiscard]] const char* parse_zap_reply(const std::vector<Message>& parts, std::string_view request_id,
                                          ZapReply& reply);

// Asks the authenticator that is bound at inproc://zeromq.zap.01, through a DEALER of the question's own.
// Null when none is bound there. An error: it cannot be asked. I/O thread.
[[nodiscard]] Result<std::unique_ptr<ZapRequest>> ask_zap(ContextCore& context, rt::Loop& loop,
                                                          const ZapQuestion& question, ZapRequest::Done done);

}  // namespace weft::msg
