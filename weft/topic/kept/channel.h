// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/store/settings.h"
#include "weft/sync/atomic_counted.h"
#include "weft/topic/kept/call.h"
#include "weft/topic/kept/kept_message.h"
#include "weft/topic/wire/ops.h"

namespace weft::topic {

// InstanceText: the number of a stream's life as ops have it; empty for 0. Valid to the end of the expression.
class InstanceText {
 public:
  explicit InstanceText(std::uint64_t instance) noexcept {
    if (instance != 0) {
      size_ = static_cast<std::size_t>(std::to_chars(text_.data(), text_.data() + text_.size(), instance).ptr -
                                       text_.data());
    }
  }
  operator std::string_view() const noexcept { return {text_.data(), size_}; }  // NOLINT(google-explicit-constructor)

 private:
  std::array<char, 20> text_;
  std::size_t size_ = 0;
};

// KeptChannel: deliveries of the hub to one consumer or reader of this handle.
// Owner: its references: the link's table, the consumer or reader, and its deliveries. Affinity: guarded by the link's
// lock, except const members.
// Invariants:
//   1. The hub may send at most `credit` more deliveries; one beyond is dropped and counted.
//   2. queue.size() + credit <= window. With more than bytes_max in the queue the channel gives no credit.
//   3. A reader's sequences grow. After a change of the hub it begins after the last one that came.
//   4. A consumer's queue lives as long as its connection: the hub gives messages that no program has received to any
//      member. A delivery begins when a program gets the message, and with tries_max the hub has counted it before
//      that.
class KeptChannel : public sync::AtomicCounted<KeptChannel> {
 public:
  enum class State : std::uint8_t { opening, open, ended };
  static constexpr std::uint32_t kWindowMax = 65'536;
  static constexpr std::size_t kAcksMax = 512;  // of one op

  KeptChannel(std::string on_stream, std::string of_consumer, ConsumerSettings with, std::uint32_t messages,
              std::size_t bytes, bool changes = false, std::optional<std::uint8_t> with_priority = std::nullopt)
      : stream(std::move(on_stream)),
        consumer(std::move(of_consumer)),
        settings(std::move(with)),
        window(messages),
        bytes_max(bytes),
        redeclares(changes),
        priority(with_priority) {}

  const std::string stream;    // in the hub's form
  const std::string consumer;  // empty: a reader
  const ConsumerSettings settings;
  const std::uint32_t window;
  const std::size_t bytes_max;
  const bool redeclares;  // for the first open
  const std::optional<std::uint8_t> priority;
  [[nodiscard]] bool reads() const noexcept { return consumer.empty(); }
  [[nodiscard]] bool counted() const noexcept { return !reads() && settings.tries_max != 0; }

  std::uint32_t id = 0;
  State state = State::opening;
  Error end;
  std::deque<KeptMessage> queue;
  std::size_t queue_bytes = 0;
  std::size_t size_hint = 4096;  // bytes of the largest recent delivery: the possible cost of a credit
  std::uint32_t credit = 0;
  bool opened = false;                // at least once
  Instant open_until = kNever;        // the deadline of the open
  std::uint64_t instance = 0;         // of the stream, from its hub; 0: unknown
  IntrusivePtr<SeenInstance> seen{};  // gets the instance of each message that the program gets; may be null
  std::uint64_t next = 0;             // reader: the sequence to begin with after a change of the hub; 0: unknown
  bool closing = false;  // the member closed; messages on their way return, until the hub has ended the channel
  bool caught_up = false;
  std::size_t stored = 0;  // messages in the queue that came before `caught_up`
  // The sequences, of messages of `instance`, that no op has taken to the hub yet, and another report.
  struct Unsent {
    std::vector<std::uint64_t> begins;  // begun deliveries
    std::vector<std::uint64_t> acks;
    bool posted = false;  // the work that sends both
    // The queue gave messages back, and the hub does not know yet that the program asked for its next one.
    bool next = false;
  };
  Unsent unsent;
  // The first message of the queue of a consumer with tries_max.
  struct Head {
    bool asked = false;    // `begin` was sent
    bool counted = false;  // the hub has counted the delivery
    Instant at{};          // the time of that
  };
  Head head;
  ChangeEvent changed;

  [[nodiscard]] bool live() const noexcept { return caught_up && stored == 0; }
  // The number of deliveries that the hub may still send. It is at least half of the window, or 0.
  [[nodiscard]] std::uint32_t credit_due() const noexcept;
  // Returns false if it is unasked, out of order, or a double; it is not queued.
  [[nodiscard]] bool take(KeptMessage&& message);
  void drop_queue() noexcept {
    queue.clear();
    queue_bytes = stored = 0;
    head = {};
  }
  // Takes the last message of the queue out, unless the hub has its begin. Returns nullopt if there is no other one.
  [[nodiscard]] std::optional<std::uint64_t> take_last() noexcept;
  [[nodiscard]] Result<KeptMessage> pop();  // fails with would_block, or with the error of the channel's end
  // The op that opens the channel: from its beginning, or at the position of the former hub. The texts hold the strings
  // that the op refers to.
  struct OpenTexts {
    std::string settings;
    std::string instance;
  };
  [[nodiscard]] Op open_op(OpenTexts& texts);
  // Called when the hub has opened the channel, on this life of the stream.
  void handle_open(const Op& answer) noexcept;
};

}  // namespace weft::topic
