// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "weft/base/time.h"
#include "weft/msg/message/part.h"
#include "weft/msg/queue/channel.h"
#include "weft/msg/wire/frame_run.h"

namespace weft::msg {

class Connection;
class SocketCore;

// InprocLink: what the two pipes of an inproc connection share: a channel each way and where each end's socket is.
struct InprocLink {
  Channel channel[2];                            // [i]: what end i sends
  std::atomic<SocketCore*> core[2] = {};         // null: not bound yet, or closed
  std::shared_ptr<SocketCore> keep[2];           // keeps `core` valid; set once, dropped when both ends are gone
  std::atomic<bool> closed[2] = {false, false};  // end i will send no more
  Instant expires = kNever;  // guarded by the context's inproc lock: until when it waits for somebody to bind
  std::mutex marks_mutex;
  struct Marks {
    int send = 0;
    int receive = 0;
    bool known = false;  // the end's socket is there
  };
  Marks marks[2];  // guarded by marks_mutex

  // Each direction holds what its sender may queue plus what its receiver may; 0 on either side means no mark.
  void set_marks(int end, int send, int receive);
};

// Pipe: a socket's view of one peer: somewhere to send, somewhere to receive from.
// Owner: the socket; a pipe of a connection also belongs to its connection.
// Affinity: send members under the socket's send lock, receive members under its receive lock.
// Cost: sending a small single-part message to an idle or batching connection encodes it straight into the batch;
// receiving one from an idle connection decodes it straight out of the read block, small ones a run at a time. The
// channels carry the rest.
class Pipe {
 public:
  explicit Pipe(SocketCore& owner) noexcept : owner_(owner) {}
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // --- send side ---
  [[nodiscard]] bool writable() noexcept { return tx_->has_credit(); }
  // A single-part message; takes over its buffer. False: the high-water mark is reached, nothing changed.
  [[nodiscard]] bool try_send(Outbound& part, bool wide) noexcept;
  // A whole message, whatever the mark; takes over the references. Empty messages count as sent. `waits` as in
  // Outbound.
  void send_parts(std::span<Cell> parts, bool wide, bool waits) noexcept;
  void send_subscription(bool subscribe, Bytes topic) noexcept;  // in order with messages, outside the mark
  // Ends the connection once all that was sent is out. Nothing that it brings is for the application any more.
  void end();
  [[nodiscard]] bool ending() const noexcept { return ending_.load(std::memory_order_relaxed); }  // any thread

  // --- receive side ---
  // The next part. The view is valid until pop() or unpeek(), one of which must follow.
  [[nodiscard]] bool peek(FrameView& view) noexcept {
    if (!run_.empty()) [[likely]] {
      view = {run_.front(), false, nullptr, nullptr, notes.origin};
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
  // After peek(): the part stays in front, and its view valid, also after unpeek().
  [[nodiscard]] bool peeked_in_place() const noexcept { return peeked_ != Peeked::stream; }
  // Whole messages that came through the channel so far: as its producer knows, and taken.
  [[nodiscard]] std::uint64_t arrived_count() const noexcept { return rx_->written(); }
  [[nodiscard]] std::uint64_t taken_count() const noexcept { return rx_->read(); }
  [[nodiscard]] bool has_queued() noexcept { return !rx_->empty(); }  // in the channel
  // Any thread: messages that wait to go out, and to be taken.
  [[nodiscard]] std::uint64_t queued_out() const noexcept { return tx_->queued(); }
  [[nodiscard]] std::uint64_t queued_in() const noexcept { return rx_->queued(); }
  // No more will come: the other end is gone and everything it sent was taken.
  [[nodiscard]] bool drained() noexcept;

  [[nodiscard]] SocketCore& owner() const noexcept { return owner_; }
  [[nodiscard]] Connection* connection() const noexcept { return connection_; }
  [[nodiscard]] bool connects() const noexcept;  // a connection that is made again when it is lost
  [[nodiscard]] const std::shared_ptr<InprocLink>& link() const noexcept { return link_; }
  [[nodiscard]] int link_end() const noexcept { return link_end_; }

  void attach_connection(Connection* connection, Channel* tx, Channel* rx) noexcept;
  void attach_link(std::shared_ptr<InprocLink> link, int end) noexcept;

  // Patterns' own notes. `ready`: the peer is known (send lock). The rest says which lock guards it.
  struct Notes {
    bool ready = false;             // send lock: handshake done
    bool attached = false;          // both locks: in the pattern's lists
    bool ended = false;             // receive lock: nothing more will come from the other end
    std::uint64_t sent_mark = 0;    // send lock: last publication that went here
    std::size_t queue_index = 0;    // receive lock: place in the fair queue
    std::size_t balance_index = 0;  // send lock: place in the load balancer
    Message::Origin origin;         // both locks to write, either to read
    std::string routing_id;         // both locks to write, either to read
    bool names_peer = false;        // both locks: routing_id was chosen here, whatever the peer calls itself
    bool gone = false;              // receive lock, both to set: STREAM: its connection ended by itself
    std::string other_end;          // both locks: endpoint at the other end of the connection, if it was asked for
    bool greeted = false;           // both locks: this connection got its hello
    bool probed = false;            // both locks: this connection got its probe
  };
  Notes notes;
  std::atomic<Pipe*> next_signal{nullptr};  // in the socket's list of pipes with news
  std::atomic<bool> signalled{false};
  std::uint64_t dropped = 0;                // send lock: messages that found the mark reached and were not for waiting
  std::atomic<std::uint64_t> discarded{0};  // by who receives: messages of more parts than the type takes

 private:
  [[nodiscard]] bool try_send_inproc(Outbound& part) noexcept;
  void wake_inproc_reader() noexcept;
  void credit_reported() noexcept;
  [[nodiscard]] bool peek_beyond_run(FrameView& view) noexcept;
  void pop_beyond_run() noexcept;

  enum class Peeked : std::uint8_t { nothing, run, cell, stream };

  SocketCore& owner_;
  Channel* tx_ = nullptr;
  Channel* rx_ = nullptr;
  Connection* connection_ = nullptr;
  std::shared_ptr<InprocLink> link_;
  int link_end_ = 0;
  std::atomic<bool> ending_{false};  // nothing is published with it
  FrameRun run_;                     // before what is in the channel
  Peeked peeked_ = Peeked::nothing;
  bool peeked_more_ = false;
  std::size_t peeked_bytes_ = 0;
};

}  // namespace weft::msg
