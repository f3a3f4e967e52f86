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

// Parses the seven parts of a reply, the empty delimiter first. Returns nullptr, or the error as a text; then
// `reply.breach` names it, too.
[[nodiscard]] const char* parse_zap_reply(const std::vector<Message>& parts, std::string_view request_id,
                                          ZapReply& reply);

// I/O thread. Sends `question` to the authenticator at inproc://zeromq.zap.01, through a DEALER of its own.
// Null: no authenticator is bound there. An error: the question could not be sent.
[[nodiscard]] Result<std::unique_ptr<ZapRequest>> ask_zap(ContextCore& context, rt::Loop& loop,
                                                          const ZapQuestion& question, ZapRequest::Done done);

}  // namespace weft::msg
