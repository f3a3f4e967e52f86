// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"

namespace weft::topic {

// Control: the messages between handles, besides those of topics. It goes from the XSUB of one handle to the XPUB of
// every other, on the connection that also carries the sender's subscriptions: a handle that has received a control
// message has every subscription that the sender made before.
// On the wire, one part: 02 57 54 01, the kind, three numbers and one more of 8 bytes, the count of texts in 2 bytes,
// then each text after its size in 2 bytes. Numbers are in network byte order.
struct Control {
  enum class Kind : std::uint8_t {
    roster = 1,     // id: its revision, number: the lease in ns; texts: see Roster
    roster_wanted,  // id: of the request; a roster answers it
    leaving,
    probe,         // id: of the probe, number: how long it stands, in ns, 0: it ended; text: the topic
    ready,         // id: of the probe, number: the matching subscriptions
    claim,         // id: of the claim, number: the epoch; text: the topic
    claim_answer,  // id: of the claim, number: the epoch of the objector; 0: no objection
  };

  Kind kind = Kind::roster;
  std::uint64_t from = 0;  // the sender's instance
  std::uint64_t to = 0;    // 0: every handle
  std::uint64_t id = 0;
  std::uint64_t number = 0;
  std::vector<std::string> texts{};
};

inline constexpr std::size_t kControlTextsMax = 8192;
inline constexpr std::size_t kControlTextMax = 4096;  // bytes
inline constexpr std::size_t kControlBytesMax = std::size_t{1} << 20;
inline constexpr std::uint64_t kEpochMax = std::uint64_t{1} << 62;  // of an owner
// Epochs follow the time. The handle takes a peer's epoch up to this far ahead of its own, in us: otherwise one message
// would use them up.
inline constexpr std::uint64_t kEpochAhead = 365ULL * 24 * 3600 * 1'000'000;

// Fails with message_too_large beyond those bounds.
[[nodiscard]] Result<std::string> encode_control(const Control& control);
// Fails with protocol_error if it is malformed, or beyond those bounds. Throws std::bad_alloc.
[[nodiscard]] Result<Control> decode_control(Bytes bytes);
// The receiver of the message, read without the rest. 0: every handle, or malformed.
[[nodiscard]] std::uint64_t control_addressee(Bytes bytes) noexcept;

// Roster: one handle's report on itself to all others.
struct Roster {
  static constexpr std::size_t kServicesMax = 1024;
  static constexpr std::size_t kOwnedMax = 1024;
  static constexpr std::size_t kPeersMax = 1024;
  static constexpr std::size_t kNameMax = 255;      // bytes of a topic, a group, a handle's name
  static constexpr std::size_t kEndpointMax = 512;  // bytes

  struct Service {
    std::string topic;
    std::string group;
    friend auto operator<=>(const Service&, const Service&) = default;
  };
  struct Owned {
    std::string topic;
    std::uint64_t epoch = 0;
  };
  struct Peer {
    std::uint64_t instance = 0;
    std::string endpoint;
  };

  struct Heard {
    std::uint64_t instance = 0;
    std::uint64_t ask = 0;
  };

  std::string node;
  std::string endpoint;  // to which peers connect; empty: none
  std::vector<Service> services;
  std::vector<Owned> owned;
  std::vector<Peer> peers;   // tcp: the handles that this one is connected to
  std::uint64_t ask = 0;     // the handle's own last roster_wanted
  std::vector<Heard> heard;  // the handles with a known roster, and the last roster_wanted of each, by its id
  // The handles with a known roster whose connection ended, also after their return.
  std::vector<std::uint64_t> parted;
};

[[nodiscard]] std::vector<std::string> roster_texts(const Roster& roster);
// Fails with protocol_error if it is malformed, or beyond Roster's bounds. Throws std::bad_alloc.
[[nodiscard]] Result<Roster> parse_roster(const std::vector<std::string>& texts);

[[nodiscard]] std::string instance_text(std::uint64_t instance);             // 16 hexadecimal digits
[[nodiscard]] std::uint64_t parse_instance(std::string_view text) noexcept;  // 0: malformed

}  // namespace weft::topic
