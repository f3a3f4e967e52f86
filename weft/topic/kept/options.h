// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/time.h"
#include "weft/store/settings.h"

namespace weft {

// StreamOptions: a stream as a program declares it. Its text is the program's: topics and filters with its separator.
struct StreamOptions {
  std::string name;                   // a topic name; the handle's space stands in front
  std::vector<std::string> topics{};  // filters of the topics that it takes, at most 64; none: every topic
  Keep keep = Keep::log;
  Survives survives = Survives::power;
  Duration age_max{0};                   // 0: any age
  std::uint64_t bytes_max = 1ULL << 30;  // of all its messages; at least 64 KiB
  std::optional<Discard> when_full{};    // none: a log drops its oldest messages, work and latest refuse the new one
  // For how long the id of a message is remembered. Half of it is the longest time that a publish waits for its answer.
  Duration same_id_window = std::chrono::minutes(2);
  bool redeclare = false;  // change what another declaration said, instead of `conflict`
};

// The order of what one publisher publishes to one topic.
enum class Order : std::uint8_t {
  pipelined,  // many messages are under way
  strict,     // one message of a topic is under way, with the sequence of the one before it: it fences other publishers
};

// PublishOptions: trivial, so that it may stand inside of a co_await expression.
struct PublishOptions {
  std::string_view id{};       // of the message, at most 255 bytes; empty: one that no other message has
  std::string_view headers{};  // Headers::block()
  // The sequence of the topic's last message must be this one, or the publish fails with conflict. 0: it has none.
  std::optional<std::uint64_t> expect_last{};
  // The life of the stream that counts `expect_last`: stream_instance() of the message. Of another life it is a
  // conflict. 0: the life of the last message, answer or declaration that came through the stream's object.
  std::uint64_t expect_instance = 0;
  Order order = Order::pipelined;
  Instant deadline = kNever;  // at the latest half of the stream's same_id_window; without one 30 s
};

// Published: the hub's answer: the message is kept, as `survives` of its stream says.
struct Published {
  std::uint64_t sequence = 0;
  bool duplicate = false;      // a message of this id was stored before; the sequence is that one's
  std::uint64_t instance = 0;  // the life of the stream that counts the sequence; 0: not known
};

// ConsumerOptions: how the members of a consumer, on any handle, share the messages of a stream.
struct ConsumerOptions {
  std::string filter{};  // of topics; empty: every topic of the stream
  From from{};
  std::uint32_t unacked_max = 1000;              // delivered and not acknowledged; delivery stops there. At most 65,536
  Duration ack_wait = std::chrono::seconds(30);  // from next() on; then the message is delivered again
  // Deliveries of one message that began: a program got it. 0: any number. With a number next() returns when the hub
  // has counted the delivery, which takes a round trip.
  std::uint32_t tries_max = 0;
  std::vector<Duration> retry_waits{};     // after each refusal of a delivery; the last one holds for all others
  std::string dead_letters{};              // the topic for messages beyond tries_max; empty: they are dropped
  std::uint32_t queue_messages_max = 256;  // that wait in this handle; at most 65,536
  // Of them. The hub may go beyond it by the messages that it was permitted before their size was known.
  std::size_t queue_bytes_max = std::size_t{8} << 20;
  bool redeclare = false;  // change what another declaration said, except filter and from, instead of `conflict`
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
  // Refuse: a key gets no new value while the bucket is full, but one can be erased. Oldest: the keys whose values are
  // oldest are erased, and watches are told.
  Discard when_full = Discard::refuse;
  bool redeclare = false;  // change what another declaration said, instead of `conflict`
};

// StreamInfo: what the hub says of a stream.
struct StreamInfo {
  struct Consumer {
    std::string name;
    std::uint64_t floor = 0;    // every message below it was acknowledged, or is none of the consumer's
    std::uint64_t waiting = 0;  // delivered and not acknowledged
  };
  std::string name;         // with the handle's space
  StreamSettings settings;  // topics as the hub knows them
  std::uint64_t first = 0;  // sequence of the oldest message
  std::uint64_t next = 0;   // of the next message; equal to `first`: the stream is empty
  std::uint64_t bytes = 0;
  std::uint64_t instance = 0;  // the life of the stream that counts its sequences; 0: not known
  // Since the hub opened the stream: messages that `when_full = oldest` dropped, of a work stream those that were not
  // acknowledged, of the latest those that were the newest of their topics; and messages that consumers had not
  // acknowledged when they were dropped, by that or by their age.
  std::uint64_t evicted = 0;
  std::uint64_t dropped_unread = 0;
  std::uint64_t damaged = 0;  // the same: blocks of messages that were met and do not match their checksum
  std::vector<Consumer> consumers{};
};

}  // namespace weft
