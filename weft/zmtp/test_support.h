// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/assert.h"
#include "weft/base/time.h"
#include "weft/zmtp/local_end.h"

// Helpers for the tests and the fuzzer of this folder.
namespace weft::zmtp::test {

using Buffer = std::vector<std::uint8_t>;

inline constexpr Instant kStart{std::chrono::hours(1)};

// "04 05 'READY' 0B" -> bytes: pairs of hex digits, and text in single quotes.
inline Buffer wire(std::string_view text) {
  Buffer out;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'A' + 10; };
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      ++i;
    } else if (text[i] == '\'') {
      for (++i; text[i] != '\''; ++i) {
        out.push_back(static_cast<std::uint8_t>(text[i]));
      }
      ++i;
    } else {
      WEFT_ASSERT(i + 1 < text.size());
      out.push_back(static_cast<std::uint8_t>(digit(text[i]) * 16 + digit(text[i + 1])));
      i += 2;
    }
  }
  return out;
}

inline Buffer operator+(Buffer a, const Buffer& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Buffer copy_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

// A greeting in the RFC's layout, independent of write_greeting.
inline Buffer greeting_bytes(std::uint8_t major, std::uint8_t minor, std::string_view mechanism = "NULL") {
  Buffer out = wire("FF 00 00 00 00 00 00 00 01 7F");
  out.push_back(major);
  out.push_back(minor);
  out.insert(out.end(), mechanism.begin(), mechanism.end());
  out.resize(64);
  return out;
}

inline Buffer command_frame(const Buffer& body) {
  Buffer out;
  append_command_frame(out, body);
  return out;
}

// READY with a Socket-Type, followed by the encoded properties `more`.
inline Buffer ready_frame(std::string_view socket_type, const Buffer& more = {}) {
  Buffer body;
  append_command_name(body, "READY");
  append_property(body, "Socket-Type", as_bytes(socket_type));
  return command_frame(body + more);
}

// Everything visible of a LocalEnd that was fed a byte stream.
struct Outcome {
  std::string log;  // one line per event and message frame, then the end
  Buffer output;
  std::size_t taken = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Writes the end of the stream into the log.
inline void conclude(Outcome& outcome, const LocalEnd& peer) {
  if (peer.fault()) {
    outcome.log += "fault " + std::to_string(static_cast<int>(peer.fault()->code)) + " " + peer.fault()->text.c_str();
  } else {
    outcome.log += peer.ready() ? "ready" : "waiting";
  }
  outcome.log += " minor " + std::to_string(peer.minor_version()) + " identity ";
  outcome.log += as_text(peer.peer_identity());
  for (const auto& [name, value] : peer.peer_metadata()) {
    outcome.log += " " + name + "=" + value;
  }
  outcome.output = copy_of(peer.pending_output());
}

// Takes one frame of traffic off the front of `input`, as a connection would. Returns its size, 0 when it
// cannot continue.
inline std::size_t take_frame(LocalEnd& peer, Bytes input, std::string& log) {
  ZmtpFrameHeader header;
  const ParseStatus status =
      peer.framing() == Framing::v1 ? parse_frame_header_v1(input, header) : parse_frame_header(input, header);
  if (status == ParseStatus::malformed) {
    log += "bad frame\n";
  }
  if (status != ParseStatus::complete || !peer.admit(header) || header.body_size > input.size() - header.header_size) {
    return 0;
  }
  const Bytes body = input.subspan(header.header_size, header.body_size);
  const bool command = (header.flags & kCommand) != 0;
  const Event event = command ? peer.handle_command(body, kStart) : peer.parse_legacy_subscription(body, kStart);
  if (!event.topic_or_context.empty()) {
    const std::less_equal<const std::uint8_t*> not_after;
    WEFT_ASSERT(not_after(body.data(), event.topic_or_context.data()));
    WEFT_ASSERT(not_after(event.topic_or_context.data() + event.topic_or_context.size(), body.data() + body.size()));
  }
  log += std::to_string(static_cast<int>(event.kind)) + " " + std::to_string(event.ttl_deciseconds) + " ";
  log += as_text(event.topic_or_context);
  log += command ? "\n" : " message " + std::to_string(body.size()) + "\n";
  return header.header_size + header.body_size;
}

// Runs a started LocalEnd over `stream`, which becomes visible in pieces of the sizes that `next_piece`
// returns.
inline Outcome run(LocalEnd& peer, Bytes stream, const std::function<std::size_t()>& next_piece) {
  Outcome outcome;
  for (std::size_t visible = 0; visible < stream.size() && !peer.fault();) {
    const std::size_t piece = next_piece();
    WEFT_ASSERT(piece > 0);
    visible += piece < stream.size() - visible ? piece : stream.size() - visible;
    if (!peer.ready()) {
      const std::size_t taken = peer.handle_input(stream.subspan(outcome.taken, visible - outcome.taken), kStart);
      WEFT_ASSERT(taken <= visible - outcome.taken);
      outcome.taken += taken;
    }
    for (std::size_t taken = 1; peer.ready() && !peer.fault() && taken > 0; outcome.taken += taken) {
      std::string line;
      taken = take_frame(peer, stream.subspan(outcome.taken, visible - outcome.taken), line);
      if (line == "bad frame\n") {
        outcome.log += line;
        conclude(outcome, peer);
        return outcome;
      }
      outcome.log += line;
    }
  }
  conclude(outcome, peer);
  return outcome;
}

inline Outcome run_whole(LocalEnd& peer, Bytes stream) {
  return run(peer, stream, [&stream] { return stream.size(); });
}

// The configuration of a LocalEnd of this type. A test may change it before started() makes and starts the
// LocalEnd.
inline LocalEndConfig config_of(WireType type) {
  LocalEndConfig config;
  config.socket_type = type;
  return config;
}

inline LocalEnd started(LocalEndConfig config, Instant now = kStart, Opening opening = Opening::whole) {
  LocalEnd peer(std::move(config));
  peer.start(now, opening);
  return peer;
}

// A LocalEnd that has finished its handshake with a peer of type `theirs`, its output drained.
inline LocalEnd ready_peer(LocalEndConfig config, std::string_view theirs, Instant now = kStart) {
  LocalEnd peer = started(std::move(config), now);
  const Buffer input = greeting_bytes(3, 1) + ready_frame(theirs);
  WEFT_ASSERT(peer.handle_input(input, now) == input.size() && peer.ready());
  peer.consume_output(peer.pending_output().size());
  return peer;
}

}  // namespace weft::zmtp::test
