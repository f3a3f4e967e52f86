// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/base/time.h"
#include "weft/net/admit/token_bucket.h"

namespace weft::serve {

// SlowConsumer: the fate of a frame when `write_budget` bytes are queued already.
enum class SlowConsumer : std::uint8_t {
  disconnect,   // the session ends. From half the budget on, it reads no more requests from its peer
  drop_newest,  // send() refuses the frame: resource_exhausted
  drop_oldest,  // the session drops its oldest frames to make room
  conflate,     // the session drops every queued frame and keeps the newest one
  // The session drops the queued frames that were sent as state without a key (frame_kind.h). If the queue is full of
  // others nevertheless, a frame of state is refused, and any other one ends the session: no event is lost unnoticed.
  conflate_state,
};

// PeerLeft: the fate of handlers that run when their peer ends its stream. An end does not say whether the peer still
// reads: close() and shutdown(SHUT_WR) look the same.
enum class PeerLeft : std::uint8_t {
  cancel,  // they are cancelled, and the session ends; it drops the frames after theirs
  answer,  // they answer first: for peers that end their stream and read on
};

// ReplyOrder: whether a session handles frames while a reply is owed to an earlier one (begin_reply()).
enum class ReplyOrder : std::uint8_t {
  of_frames,  // not with a codec without request numbers: its peers take the next reply for that of the oldest request
  any,        // the session does: for frames that are not requests, and replies that name their request
};

// Bounds of a session. A negative duration: none.
struct SessionLimits {
  std::size_t write_budget = 1024 * 1024;  // bytes; a frame of any size is taken while fewer are queued
  SlowConsumer slow_consumer = SlowConsumer::disconnect;
  // From accept to the first whole frame, TLS included. Negative, for clients that only listen: TLS alone has 10 s.
  Duration handshake_timeout = std::chrono::seconds(10);
  // From a frame's first byte to its last. The time in which the session does not read does not count.
  Duration frame_timeout = std::chrono::minutes(1);
  // From a frame's head to its last byte, for a codec that separates the parts of a frame (HTTP): then frame_timeout is
  // that of the head, and handshake_timeout ends with the first head. Negative: they are those of whole frames.
  Duration body_timeout{-1};
  std::size_t input_max = std::size_t{64} << 20;  // bytes of a half-received frame, if the codec allows more
  // Without a byte that the peer sent, or whose receipt its system acknowledged, and no reply owed.
  Duration idle_timeout = std::chrono::minutes(5);
  Duration reply_timeout = std::chrono::hours(1);    // the same, while a reply is owed
  Duration close_timeout = std::chrono::seconds(5);  // from close() until all that is queued is written
  // Without a byte from the peer while the session reads, whatever is written: for peers that give signs of life. None
  // by default, because a peer may only listen.
  Duration silence_timeout{-1};
  PeerLeft peer_left = PeerLeft::cancel;
  ReplyOrder reply_order = ReplyOrder::of_frames;
  net::RateLimit message_rate{};   // frames of one session; the session reads frames above it later
  std::size_t groups_max = 64;     // groups that the session is in at a time
  std::uint32_t handlers_max = 1;  // coroutines that handle its frames at a time; above 1 answers overtake
  std::size_t tasks_max = 8;       // other coroutines, from spawn(); the session refuses more
  std::size_t waits_max = 64;      // tasks of the core that wait for room in its queue; more are refused
};

}  // namespace weft::serve
