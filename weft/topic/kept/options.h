// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/time.h"
#include "weft/store/settings.h"

namespace weft {

// StreamOptions: a stream as a program declares it. Topics and filters are in the program's form, with its separator.
struct StreamOptions {
  std::string name;                   // a topic name; the stream's name has the handle's space before it
  std::vector<std::string> topics{};  // filters of the topics that it takes, at most 64; empty: every topic
  Keep keep = Keep::log;
  // machine: only of a fleet on NATS with three servers. Servers of NATS do not keep `power`: it is refused there, and
  // so is a stream without `topics` (docs/fleet.md).
  Survives survives = Survives::power;
  Duration age_max{0};                   // 0: any age
  std::uint64_t bytes_max = 1ULL << 30;  // of all its messages; at least 64 KiB
  std::optional<Discard> when_full{};    // empty: a log drops its oldest messages, work and latest refuse the new one
  // The time for which the stream remembers the id of a message. A publish waits for its answer for at most half of it.
  Duration same_id_window = std::chrono::minutes(2);
  bool redeclare = false;  // change the settings of another declaration instead of failing with conflict
};

// The order of the messages that one publisher publishes to one topic.
enum class Order : std::uint8_t {
  pipelined,  // many messages are under way
  // one message of a topic is under way, with the sequence of the message before it: it fences other publishers
  strict,
};

// PublishOptions: trivial, so that a co_await expression may contain it.
struct PublishOptions {
  std::string_view id{};       // of the message, at most 255 bytes; empty: a unique one
  std::string_view headers{};  // Headers::block()
  // The publish fails with conflict unless the topic's last message has this sequence. 0: the topic has no message.
  std::optional<std::uint64_t> expect_last{};
  // The life of the stream that counts `expect_last`: stream_instance() of the message. The publish fails with conflict
  // if the stream has another life. 0: the life of the last message, answer or declaration that the stream's object
  // returned.
  std::uint64_t expect_instance = 0;
  // The message is readable for so long after it was stored: 1 s to 100 years, in whole seconds, rounded up. 0: as long
  // as the stream keeps it. not_supported: servers of NATS before 2.11.3, and a hub of a revision without it.
  Duration time_to_live{0};
  // The message is readable so long after the hub got it: 0 to 100 years. The stream keeps it meanwhile. Its sequence
  // and its time to live begin when it is readable: `Published::sequence` is 0. A purge leaves it. Errors:
  // invalid_argument (also with expect_last or a strict order); resource_exhausted (1,000,000 of them, or the bytes of
  // the stream, with `oldest` half); not_supported (a fleet on NATS, and a hub of a revision without it).
  Duration delay{0};
  Order order = Order::pipelined;
  Instant deadline = kNever;  // at the latest half of the stream's same_id_window; kNever: 30 s
};

// BatchMessage: a message of Stream::publish_all(). Its members are those of a publish and of PublishOptions.
struct BatchMessage {
  std::string_view topic{};
  Bytes body{};
  std::string_view id{};  // empty: none
  std::string_view headers{};
  // Compares with the topic before the batch: no earlier message of the batch may have the topic.
  std::optional<std::uint64_t> expect_last{};
  Duration time_to_live{0};
};
struct BatchOptions {
  std::uint64_t expect_instance = 0;  // of each expect_last; PublishOptions::expect_instance
  Instant deadline = kNever;
};

// PutOptions: of a new value of a key. Trivial, like PublishOptions.
struct PutOptions {
  // The key has this value for so long; then it has none, and watches receive its erasure. Bounds: those of
  // PublishOptions::time_to_live. not_supported: also a bucket with a history on NATS.
  Duration time_to_live{0};
};

// Published: the hub's answer. The stream keeps the message, as its `survives` promises.
struct Published {
  std::uint64_t sequence = 0;  // 0: of a message with a delay
  bool duplicate = false;      // a message of this id was stored before; `sequence` is its sequence
  std::uint64_t instance = 0;  // the life of the stream that counts the sequence; 0: unknown
};

// ConsumerOptions: how the members of a consumer, on any handle, share the messages of a stream.
struct ConsumerOptions {
  std::string filter{};  // of topics; empty: every topic of the stream
  From from{};
  // delivered and not acknowledged; the hub stops delivering at this number. At most 65,536
  std::uint32_t unacked_max = 1000;
  Duration ack_wait = std::chrono::seconds(30);  // from next() on; after it the hub delivers the message again
  // Begun deliveries of one message. 0: any number. With a bound, next() returns after the hub has counted the
  // delivery, which takes a round trip.
  std::uint32_t tries_max = 0;
  std::vector<Duration> retry_waits{};     // after each refused delivery; the last one holds for all others
  std::string dead_letters{};              // the topic for messages beyond tries_max; empty: the hub drops them
  std::uint32_t queue_messages_max = 256;  // that wait in this handle; at most 65,536
  // Bytes of these messages. The hub may exceed the bound by the messages that it was permitted to send before their
  // size was known.
  std::size_t queue_bytes_max = std::size_t{8} << 20;
  // Of this member: 0 (first) to 9. A message, also one that comes again, goes to a member with the lowest number that
  // has room in its queue. A member whose program takes no message from its queue for ack_wait is the last of all until
  // the program takes one, and other members get its queue. Empty: 0, also on an engine without priorities.
  // not_supported: servers of NATS before 2.12, and a hub of a revision without it. conflict: a consumer on NATS whose
  // first member named no priority; `redeclare` changes that.
  std::optional<std::uint32_t> priority{};
  // Change the settings of another declaration, except the filter, instead of failing with conflict. Another `from`
  // moves the consumer there, and the hub forgets the deliveries without an acknowledgement. Members may still get the
  // messages in their queues.
  bool redeclare = false;
};

struct ReadOptions {
  std::string filter{};  // of topics; empty: every topic of the stream
  From from{};
  std::uint32_t queue_messages_max = 256;
  std::size_t queue_bytes_max = std::size_t{8} << 20;
};

struct KeyValueOptions {
  std::uint32_t history = 1;  // values that are kept of each key; 1 to 64
  Survives survives = Survives::power;
  std::uint64_t bytes_max = 1ULL << 30;
  Duration age_max{0};  // 0: any age
  // Refuse: a key gets no new value while the bucket is full, but a program can erase one. Oldest: the bucket erases
  // the keys with the oldest values, and watches receive the erasures.
  Discard when_full = Discard::refuse;
  bool redeclare = false;  // change the settings of another declaration instead of failing with conflict
};

// StreamInfo: the hub's report on a stream.
struct StreamInfo {
  struct Consumer {
    std::string name;
    std::uint64_t floor = 0;    // every message below it was acknowledged, or does not belong to the consumer
    std::uint64_t waiting = 0;  // delivered and not acknowledged
  };
  std::string name;            // with the handle's space
  StreamSettings settings;     // topics in the form of the hub
  std::uint64_t first = 0;     // sequence of the oldest message
  std::uint64_t next = 0;      // of the next message; equal to `first`: the stream is empty
  std::uint64_t bytes = 0;     // of all its messages
  std::uint64_t delayed = 0;   // messages that are not readable yet; `bytes` counts them
  std::uint64_t instance = 0;  // the life of the stream that counts its sequences; 0: unknown
  // Counts since the hub opened the stream. `evicted`: messages that `when_full = oldest` dropped; of a work stream
  // only those that were not acknowledged, of a stream that keeps the latest only those that were the newest of their
  // topics. `dropped_unread`: messages that this policy or their age dropped before their consumers acknowledged them.
  std::uint64_t evicted = 0;
  std::uint64_t dropped_unread = 0;
  std::uint64_t damaged = 0;  // the same: blocks of messages that were read and do not match their checksum
  std::vector<Consumer> consumers{};
};

}  // namespace weft
