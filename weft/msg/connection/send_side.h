// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/filter.h"
#include "weft/msg/connection/connection_common.h"
#include "weft/msg/connection/flusher.h"
#include "weft/msg/queue/channel.h"
#include "weft/msg/wire/writer.h"
#include "weft/sync/baton.h"
#include "weft/sync/lock.h"
#include "weft/sync/spin.h"

namespace weft::msg {

// SendSide: the way out of a connection: a channel of parts, a batch of bytes, and the write baton.
// The holder of the baton moves parts into the batch and the batch to the kernel.
// Owner: the connection. Affinity: see each group of members. Cost: see Pipe.
// Each of the verbs append, queue, encode, flush and arm has one meaning: see the README.
// Invariants:
//   1. Parts leave in the order in which they were sent: a part is appended only while the channel is empty.
//   2. Bytes in the batch have a flusher other than a sender that may never return: see Flusher.
//   3. No thread waits for the baton.
//   4. A message of several parts enters the channel, or the batch, only when it is whole.
class SendSide {
 public:
  // Subscriptions and cancellations that wait for a peer that does not read them, besides those with which the
  // connection began. It is the bound on those that a publisher keeps of one peer.
  static constexpr std::uint64_t kSubscriptionBytesMax = std::uint64_t{32} << 20;
  // Of one flush of a long queue to a peer that reads as fast; the I/O thread flushes the rest in its next turns.
  static constexpr std::uint64_t kFlushMax = 4 * 1024 * 1024;

  explicit SendSide(ConnectionCommon& common);
  SendSide(const SendSide&) = delete;
  SendSide& operator=(const SendSide&) = delete;

  // --- under the socket's send lock (send_side.cc) ---
  // A message of one part; takes over its buffer. full: the high-water mark is reached.
  [[nodiscard]] Offered try_send(Outbound& part, bool wide) noexcept;
  // Returns false, and changes nothing, if there is no memory; so does the next one. `call`: the same as in
  // Pipe::send_parts(). With or without the baton, so clang cannot follow it.
  [[nodiscard]] bool send_parts(std::span<Cell> parts, bool wide, Outbound* call) noexcept WEFT_NOT_CHECKED;
  // `begins`: it belongs to the beginning of the connection. Any other one beyond kSubscriptionBytesMax is not queued,
  // and ends the connection; the next one begins with all subscriptions.
  [[nodiscard]] bool queue_subscription(bool subscribe, const FilterView& topic, bool begins) noexcept;
  // The socket empties its list of connections with a batch.
  void flush_listed() noexcept {
    flush_if_free();
    listed_place_ = kNotListed;
  }
  void leave_list() noexcept;  // idempotent
  [[nodiscard]] Channel& channel() noexcept { return channel_; }

  // --- any thread ---
  void queue_control(Bytes frame) noexcept;  // a PING or PONG; bounded, the rest is dropped
  [[nodiscard]] bool subscriptions_overflow() const noexcept { return overflow_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t sent_count() const noexcept { return writer_.sent(); }  // number of all messages
  [[nodiscard]] std::uint64_t queued_count() const noexcept { return channel_.queued() + writer_.pending_messages(); }

  // --- I/O thread (send_turn.cc) ---
  enum class FlushTurn : std::uint8_t { drop, keep, more, busy, await_room };
  // while armed. After await_room it is not armed, and flush_into_room() is next
  [[nodiscard]] FlushTurn flush_turn() noexcept;
  [[nodiscard]] bool flush_into_room() noexcept;  // the poller reports room. Returns true if no more of it is needed
  [[nodiscard]] bool flush_at_once() const noexcept { return flusher() == Flusher::at_once; }  // while armed
  // Returns true if the link holds the baton, and no sender writes until give_to_senders().
  [[nodiscard]] bool held_by_link() const noexcept { return flusher() == Flusher::link; }
  [[nodiscard]] bool try_take_for_link() noexcept WEFT_NOT_CHECKED;  // it keeps the baton beyond the call
  // The same after all bytes are flushed. Also returns the number of bytes that the kernel has taken so far.
  [[nodiscard]] bool try_take_when_flushed(std::uint64_t& flushed) noexcept WEFT_NOT_CHECKED;

  // --- the link, while it holds the baton (send_turn.cc) ---
  void connect(zmtp::Mechanism* cipher, zmtp::Framing framing, int peer_minor,
               bool peer_has_filters) noexcept;  // common.stream is there
  void give_to_senders() noexcept;               // requires connect(); flushes messages queued meanwhile
  // common.stream ends. Whole messages stay for the next connection, if any.
  void disconnect(bool comes_again) noexcept;
  [[nodiscard]] bool empty() noexcept { return channel_.empty() && writer_.empty(); }
  // Also with the send lock, after the last send: there will be no connection for the waiting messages.
  void abandon() noexcept;

 private:
  // --- any thread ---
  [[nodiscard]] Flusher flusher() const noexcept { return flusher_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t batch_age() const noexcept;  // in ticks; without the baton a hint
  void flush_if_free() noexcept;                           // otherwise the holder of the baton flushes
  void flush_for_nudges() noexcept;                        // without the baton

  // --- the producer, with or without the baton ---
  [[nodiscard]] Offered queue(Outbound& part) noexcept;
  [[nodiscard]] Offered queue_for_holder(Outbound& part) noexcept;  // without it

  // --- with the write baton ---
  void give_baton() noexcept WEFT_RELEASE(baton_) {
    if (baton_.release()) [[unlikely]] {
      flush_for_nudges();
    }
  }
  [[nodiscard]] Offered send_out_of_flow(Outbound& part, bool wide) noexcept WEFT_RELEASE(baton_);
  [[nodiscard]] bool send_directly(Outbound& part, bool wide) noexcept WEFT_REQUIRES(baton_);
  [[nodiscard]] bool send_big(std::uint8_t flags, Outbound& part) noexcept WEFT_REQUIRES(baton_);
  [[nodiscard]] bool append_part(std::uint8_t flags, Bytes body, mem::Buffer* buffer) noexcept WEFT_REQUIRES(baton_);
  [[nodiscard]] bool encode_cell(Cell& cell) noexcept WEFT_REQUIRES(baton_);
  void encode_channel() noexcept WEFT_REQUIRES(baton_);
  void encode_control() noexcept WEFT_REQUIRES(baton_);
  void flush_batch() noexcept WEFT_REQUIRES(baton_) {
    writer_.flush();
    batch_.flushed_at = sys::ticks();
    if (writer_.blocked()) {
      report_room();
    }
  }
  void report_room() noexcept;
  void flush_all() noexcept WEFT_REQUIRES(baton_);
  void flush_and_leave() noexcept WEFT_REQUIRES(baton_);
  void flush_if_due(std::uint64_t appended) noexcept WEFT_REQUIRES(baton_);
  void flush_or_arm(bool wide, bool now) noexcept WEFT_REQUIRES(baton_);
  void leave(bool soon) noexcept;
  void arm(bool soon) noexcept;
  void change(FlushEvent event) noexcept;
  [[nodiscard]] std::uint64_t await_end(Outbound& call) const noexcept;
  void await_room(std::size_t size, Outbound& call) noexcept WEFT_REQUIRES(baton_);
  [[nodiscard]] bool has_rest() noexcept { return !channel_.empty() && !writer_.blocked(); }  // after kFlushMax bytes
  [[nodiscard]] bool is_idle(bool wide) const noexcept;
  void note_batch_begin() noexcept;
  void list_at_socket() noexcept;  // and with the send lock
  void drop_front_message() noexcept;
  void drop_subscriptions() noexcept;
  void expect_connection() const noexcept { WEFT_ASSERT(!held_by_link() && writer_.is_open()); }

  // The I/O thread reads the atomics without the baton, as hints.
  struct Batch {
    std::atomic<std::uint64_t> began{0};  // ticks
    std::uint64_t flushed_at = 0;         // ticks
  };
  struct Turns {
    std::uint64_t appended_seen = 0;  // I/O thread: in the turn before
    std::uint32_t quiet = 0;          // in a row
  };
  struct Control {
    sync::StdMutex mutex;
    std::vector<std::uint8_t> frames WEFT_GUARDED_BY(mutex);  // to go between messages
    std::atomic<bool> waits{false};
  };

  ConnectionCommon& common_;
  SocketShare& share_;
  Channel channel_;
  sync::Baton baton_;
  MessageWriter writer_;
  Batch batch_;
  std::atomic<Flusher> flusher_{Flusher::link};
  static constexpr std::size_t kNotListed = ~std::size_t{0};
  std::size_t listed_place_ = kNotListed;  // send lock: in SocketShare::unflushed
  Turns turns_;
  std::uint32_t blocked_sends_ = 0;
  std::uint64_t begun_with_ = 0;       // send lock: bytes of the subscriptions with which the connection began
  std::atomic<bool> overflow_{false};  // a flag alone: no other data is published with it
  int peer_minor_ = 1;
  bool peer_has_filters_ = false;
  sync::SpinBudget room_spin_;
  Control control_;
};

}  // namespace weft::msg
