// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "weft/base/filter.h"
#include "weft/base/slot_pool.h"
#include "weft/msg/connection/connection_owner.h"
#include "weft/msg/connection/frozen_options.h"
#include "weft/msg/message/part.h"
#include "weft/msg/message/peer_properties.h"
#include "weft/msg/pattern/inproc_link.h"
#include "weft/msg/queue/channel.h"
#include "weft/msg/wire/frame_run.h"

namespace weft::msg {

class Connection;

// Pipe: a socket's view of one peer: one way to send and one way to receive.
// Owner: the socket, which keeps the connection of a pipe for as long as the pipe.
// Affinity: send members under the socket's send lock, receive members under its receive lock.
// Cost: a small one-part message is appended to the connection's batch, without the channel. A received message is
// decoded in place in the read block, small ones a run at a time. The channels carry all other messages.
class Pipe final : public PipeShare {
 public:
  Pipe(ConnectionOwner& owner, Connection& connection) noexcept;
  Pipe(ConnectionOwner& owner, std::shared_ptr<InprocLink> link, int end) noexcept;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // --- send side ---
  [[nodiscard]] bool writable() noexcept { return tx_.has_credit(); }
  // Sends a one-part message; takes over its buffer. Fails with full if the pipe is at its high-water mark.
  [[nodiscard]] Offered try_send(Outbound& part, bool wide) noexcept;
  // Sends a whole message, whatever the mark; takes over the references. Empty messages count as sent. `call`: the
  // caller's last part; null: the call does not wait. Returns false, and changes nothing, if there is no memory; then
  // the caller keeps the references.
  [[nodiscard]] bool send_parts(std::span<Cell> parts, bool wide, Outbound* call) noexcept;
  // In order with messages, outside the mark. Throws std::bad_alloc; then nothing was sent.
  void send_subscription(bool subscribe, const FilterView& topic);
  // The other end takes FILTER; send lock, while notes.ready.
  [[nodiscard]] bool takes_filters() const noexcept { return connection_ == nullptr || notes.takes_filters; }
  // Ends the connection after the kernel has taken all sent bytes. The application receives no more from it.
  void end() noexcept;
  [[nodiscard]] bool ending() const noexcept { return ending_.load(std::memory_order_relaxed); }  // any thread

  // --- receive side ---
  // The next part. The view is valid until pop() or unpeek(), one of which must follow.
  [[nodiscard]] bool peek(FrameView& view) noexcept {
    if (!run_.empty()) [[likely]] {
      view = {run_.front(), run_.more(), nullptr, nullptr, notes.origin};
      peeked_ = Peeked::run;
      return true;
    }
    return peek_beyond_run(view);
  }
  void pop() noexcept {
    if (peeked_ == Peeked::run) [[likely]] {
      run_.pop();
      return;
    }
    pop_beyond_run();
  }
  void unpeek() noexcept;
  // After peek() found nothing: the socket's turn is spent, and there may be input.
  [[nodiscard]] bool stopped() const noexcept { return peeked_ == Peeked::spent; }
  // After peek(). Returns true if the part stays in front and its view stays valid, also after unpeek().
  [[nodiscard]] bool peeked_in_place() const noexcept { return peeked_ != Peeked::stream; }
  // Whole messages that the producer has put into the channel so far, and that the consumer has taken out.
  [[nodiscard]] std::uint64_t arrived_count() const noexcept { return rx_.written(); }
  [[nodiscard]] std::uint64_t taken_count() const noexcept { return rx_.read(); }
  [[nodiscard]] bool has_queued() noexcept { return !rx_.empty(); }  // in the channel
  // Receive lock. Adds the pipe's share in the balance of its socket.
  void add_counts(Statistics& into) const noexcept;
  [[nodiscard]] MessageDrops& drops() const noexcept { return owner_.share().drops; }
  // Messages that wait to be sent, including those in the batch; and to be received, with the receive lock.
  [[nodiscard]] std::uint64_t queued_out() const noexcept;
  [[nodiscard]] std::uint64_t queued_in() const noexcept { return rx_.queued() + run_.count(); }
  // The other end has gone, and the application has taken all of its messages.
  [[nodiscard]] bool drained() noexcept;
  // The memory of the messages that an ended pipe still holds.
  [[nodiscard]] std::uint64_t unread_bytes() const noexcept { return rx_.unread_bytes(); }

  // The owner's options of the bind or connect that made this pipe.
  [[nodiscard]] FrozenOptions options() const noexcept;
  [[nodiscard]] ConnectionOwner& owner() const noexcept { return owner_; }
  [[nodiscard]] Connection* connection() const noexcept { return connection_; }
  [[nodiscard]] bool connects() const noexcept;  // this end dials: the I/O thread reconnects after a loss
  [[nodiscard]] const std::shared_ptr<InprocLink>& link() const noexcept { return link_; }
  [[nodiscard]] int link_end() const noexcept { return link_end_; }

  // Notes of the pattern and of the socket. Each names the locks that guard it.
  struct Notes {
    bool ready = false;                     // send lock: handshake done
    bool takes_filters = false;             // both locks: the peer of this connection announced filters
    bool attached = false;                  // both locks: in the pattern's lists
    std::uint64_t order = 0;                // both locks: pipes of a socket were attached in this order
    bool left = false;                      // both locks: disconnected or unbound: never attached again
    bool ended = false;                     // receive lock: the other end sends no more
    SlotId subscriber;                      // send lock: PUB, XPUB, RADIO: the peer's subscriptions
    std::size_t queue_index = 0;            // receive lock: place in the fair queue
    std::size_t balance_index = 0;          // send lock: place in the pattern's PipeList
    std::size_t ended_index = 0;            // receive lock, once `ended`: place in the socket's list of ended pipes
    std::uint64_t unread = 0;               // receive lock: its share of the socket's unread memory (EndedPipes)
    Message::Origin origin;                 // both locks to write, either to read
    std::shared_ptr<const KnownPeer> peer;  // both locks: the peer of `origin`, for the messages in this pipe
    std::string routing_id;                 // both locks to write, either to read
    bool names_peer = false;                // both locks: this socket chose routing_id, whatever the peer calls itself
    bool datagrams = false;                 // both locks: the other end joins no groups
    bool gone = false;                      // receive lock, both to set: STREAM: the connection ended by itself
    std::string other_end;                  // both locks: address of the other end; empty if no monitor watched
    bool hello_sent = false;                // both locks: this connection got its hello message
    bool probed = false;                    // both locks: this connection got its probe
  };
  Notes notes;

 private:
  [[nodiscard]] Offered try_send_inproc(Outbound& part) noexcept;
  void wake_inproc_reader() noexcept;
  void credit_reported() noexcept;
  [[nodiscard]] bool peek_beyond_run(FrameView& view) noexcept;
  void pop_beyond_run() noexcept;

  enum class Peeked : std::uint8_t { nothing, run, cell, stream, spent };

  [[nodiscard]] ConnectionOwner* other_owner() const noexcept;

  ConnectionOwner& owner_;
  Connection* const connection_ = nullptr;
  const std::shared_ptr<InprocLink> link_;
  const int link_end_ = 0;
  Channel& tx_;
  Channel& rx_;
  std::atomic<bool> ending_{false};  // a flag alone: no other data is published with it
  FrameRun run_;                     // messages before those in the channel
  Peeked peeked_ = Peeked::nothing;
  bool peeked_more_ = false;
  std::size_t peeked_bytes_ = 0;
};

}  // namespace weft::msg
