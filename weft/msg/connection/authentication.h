// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/zmtp/local_end.h"

namespace weft::msg {

// ZapQuestion: a request to the authenticator (RFC 27).
struct ZapQuestion {
  std::string_view domain;
  std::string_view address;  // of the peer, without a port
  std::string_view identity;
  std::string_view mechanism;
  const std::vector<std::string>& credentials;
};

// ZapBreach: the mistake in a reply, in libzmq's numbers of monitor events.
enum class ZapBreach : std::uint32_t {
  none = 0,
  malformed_reply = 0x20000001,
  bad_request_id = 0x20000002,
  bad_version = 0x20000003,
  invalid_status = 0x20000004,
  invalid_metadata = 0x20000005,
};

struct ZapReply {
  int status = 0;  // 200, 300, 400 or 500; 0: the reply was not ZAP
  ZapBreach breach = ZapBreach::none;
  std::string text;
  std::string user_id;
  zmtp::Metadata metadata;
};

// ZapRequest: one question to the authenticator, under way.
// Owner: the connection whose handshake waits for the answer; destruction takes the question back.
// Affinity: the I/O thread, which never waits: the answer comes as an event of the loop.
class ZapRequest {
 public:
  using Done = std::function<void(const ZapReply&)>;  // once; may destroy the request

  virtual ~ZapRequest() = default;
};

}  // namespace weft::msg
