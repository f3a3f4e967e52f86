// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/message/message.h"
#include "weft/rt/loop/loop.h"
#include "weft/zmtp/local_end.h"

namespace weft::msg {

class ContextCore;
class SocketCore;

// What an authenticator is asked (RFC 27).
struct ZapQuestion {
  std::string_view domain;
  std::string_view address;  // of the peer, without a port
  std::string_view identity;
  std::string_view mechanism;
  const std::vector<std::string>& credentials;
};

// What is wrong with a reply, in libzmq's numbers of monitor events.
enum class ZapBreach : std::uint32_t {
  none = 0,
  malformed_reply = 0x20000001,
  bad_request_id = 0x20000002,
  bad_version = 0x20000003,
  invalid_status = 0x20000004,
  invalid_metadata = 0x20000005,
};

struct ZapReply {
  int status = 0;  // 200, 300, 400 or 500; 0: the reply was no ZAP
  ZapBreach breach = ZapBreach::none;
  std::string text;
  std::string user_id;
  zmtp::Metadata metadata;
};

// The seven parts of a reply, the empty delimiter first. nullptr or what is wrong with them.
[[nodiscard]] const char* parse_zap_reply(const std::vector<Message>& parts, std::string_view request_id,
                                          ZapReply& reply);

// ZapRequest: one question to the authenticator that is bound at inproc://zeromq.zap.01, through a DEALER of its own.
// Owner: the connection whose handshake waits for the answer; destruction takes the question back.
// Affinity: the I/O thread, which never waits: the answer comes as an event of the loop.
class ZapRequest final : private rt::Watcher {
 public:
  using Done = std::function<void(const ZapReply&)>;  // once; may destroy the request

  // Null when nobody is bound there. An error: it cannot be asked.
  static Result<std::unique_ptr<ZapRequest>> ask(ContextCore& context, rt::Loop& loop, const ZapQuestion& question,
                                                 Done done);
  ~ZapRequest();

 private:
  ZapRequest(rt::Loop& loop, std::shared_ptr<SocketCore> socket, Done done);
  [[nodiscard]] Result<void> begin(const ZapQuestion& question);
  void handle_event(const sys::PollEvent& event) override;

  rt::Loop& loop_;
  const std::shared_ptr<SocketCore> socket_;
  Done done_;
  rt::Loop::WatchId watch_ = 0;
  std::vector<Message> parts_;
};

}  // namespace weft::msg
