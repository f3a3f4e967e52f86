// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/result.h"
#include "weft/msg/message/message.h"
#include "weft/topic/node/topic_message.h"
#include "weft/topic/wire/headers.h"

// The forms of requests and replies: the frames of ZeroMQ, and the body and headers of a fleet. No I/O.
namespace weft::bridge {

inline constexpr std::size_t kEnvelopeMax = 17;  // frames, the empty one included
inline constexpr std::string_view kErrorFrame = "Weft-Error";

// Envelope: a request as a ROUTER gets it. A reply goes back with the same envelope.
struct Envelope {
  std::vector<Message> envelope{};  // routing ids, and the empty frame if the client sent one
  std::vector<Message> body{};
};

// The envelope ends with the first empty frame, as REQ and proxies send it. Without one among the first kEnvelopeMax
// frames, it is the routing id alone. Returns nothing if there is only a routing id.
[[nodiscard]] std::optional<Envelope> split_request(std::vector<Message> frames);

// An error as the frames of a body: "Weft-Error", the number of the error, its text.
[[nodiscard]] std::vector<Message> error_frames(const Error& error);
// Nothing: the frames are not of that form.
[[nodiscard]] std::optional<Error> read_error(const std::vector<Message>& body);

// Adds the frames after the first one as Weft-Parts, if there are any. Errors: message_too_large.
[[nodiscard]] Result<void> add_parts(Headers& headers, const std::vector<Message>& body);
// The frames of a body and its Weft-Parts. Nothing: the header is malformed.
[[nodiscard]] std::optional<std::vector<Message>> frames_of(Message body, std::string_view headers);
[[nodiscard]] std::optional<std::vector<Message>> body_of(TopicMessage message);

[[nodiscard]] std::size_t bytes_of(const std::vector<Message>& frames) noexcept;

// Room: the requests of a section that are under way, and their bytes, both bounded.
// Affinity: one thread. Invariant: the bytes are the sum of those that were taken and not given back.
class Room {
 public:
  Room(std::size_t requests_max, std::size_t bytes_max) noexcept : requests_max_(requests_max), bytes_max_(bytes_max) {}

  // Returns false, and takes nothing, if a bound would be exceeded. One request alone always fits.
  [[nodiscard]] bool take(std::size_t bytes) noexcept {
    if (requests_ >= requests_max_ || (requests_ != 0 && bytes > bytes_max_ - std::min(bytes_, bytes_max_))) {
      return false;
    }
    ++requests_;
    bytes_ += bytes;
    return true;
  }
  void give_back(std::size_t bytes) noexcept {
    --requests_;
    bytes_ -= bytes;
  }
  [[nodiscard]] std::size_t requests() const noexcept { return requests_; }

 private:
  std::size_t requests_max_;
  std::size_t bytes_max_;
  std::size_t requests_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace weft::bridge
