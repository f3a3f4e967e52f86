// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/console.h"
#include "weft/base/bytes.h"
#include "weft/zmtp/frame_v1.h"
#include "weft/zmtp/greeting.h"

namespace weft::cli {

// One item of a peer's traffic.
struct Said {
  std::string kind;  // greeting, identity, command, subscribe, cancel, message, encrypted, foreign, malformed
  std::string text;  // for people, printable
  Record details;    // the same for programs
};

// Conversation: the ZMTP traffic of two peers, from the bytes of both directions.
// Affinity: one thread. Cost: it holds at most kCommandMax bytes of each direction, and of a message kPartsMax parts
// with `bodies` bytes each. The result does not depend on the cuts of the stream.
// Invariants:
// 1. No byte of a peer makes it fail: after bytes that are not ZMTP a direction is not decoded any more.
// 2. Passwords and encrypted bodies are not in its output.
class Conversation {
 public:
  static constexpr std::size_t kCommandMax = 65'536;  // bytes of a command; of a longer one only the front is decoded
  static constexpr std::size_t kPartsMax = 64;        // of a message; of further ones only sizes are summed

  using Listener = std::function<void(int direction, Said said)>;

  Conversation(std::size_t bodies, Listener listener) : bodies_(bodies), listener_(std::move(listener)) {}
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  void feed(int direction, Bytes bytes);  // direction: 0 or 1
  // Whether the direction's bytes end inside a greeting, a frame or a message.
  [[nodiscard]] bool cut_short(int direction) const noexcept;

 private:
  enum class Phase : std::uint8_t { greeting, header, body, opaque };
  struct Part {
    std::uint64_t size = 0;
    std::string front;
  };
  struct Side {
    Phase phase = Phase::greeting;
    zmtp::Version version = zmtp::Version::unknown;
    zmtp::Framing framing = zmtp::Framing::v3;
    std::string pending;  // of a greeting or a frame's header
    bool identity_due = false;
    bool subscribes = false;  // it announces itself as a SUB or XSUB
    zmtp::ZmtpFrameHeader frame;
    std::uint64_t left = 0;  // bytes of the body
    std::string front;       // of the body
    std::vector<Part> parts;
    std::uint64_t part_count = 0;
    std::uint64_t message_size = 0;
  };

  [[nodiscard]] bool sealed() const noexcept {
    return !mechanism_.empty() && mechanism_ != "NULL" && mechanism_ != "PLAIN";
  }
  void say(int direction, Said said) { listener_(direction, std::move(said)); }
  void greet(int direction);
  void take_new_greeting(int direction);
  void take_old_greeting(int direction, zmtp::Version version);
  void take_frames(int direction, Bytes bytes);
  bool take_header(int direction, Bytes& bytes);
  void give_up(int direction, const std::string& kind, const std::string& why);
  void end_frame(int direction);
  void end_sealed(int direction);
  void end_command(int direction);
  void end_part(int direction);
  void end_message(int direction);

  const std::size_t bodies_;
  Listener listener_;
  std::array<Side, 2> sides_;
  std::string mechanism_;
};

}  // namespace weft::cli
