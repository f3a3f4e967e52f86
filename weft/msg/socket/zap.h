// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
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

// The handshakes of a context that may wait for the authenticator at a time, and the questions in its queue that the
// authenticator has not received, of clients that left. A question is about 1 KiB.
inline constexpr std::size_t kZapQuestionsMax = 1024;

// I/O thread. Sends `question` to the authenticator at inproc://zeromq.zap.01, through a DEALER that all questions of
// the context share. Returns null if no authenticator is bound there. An error: the question could not be sent;
// resource_exhausted: kZapQuestionsMax questions are under way.
[[nodiscard]] Result<std::unique_ptr<ZapRequest>> ask_zap(ContextCore& context, rt::Loop& loop,
                                                          const ZapQuestion& question, ZapRequest::Done done);

}  // namespace weft::msg
