// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/msg/connection/connection_common.h"
#include "weft/msg/connection/next_reader.h"
#include "weft/msg/queue/channel.h"
#include "weft/msg/wire/frame_run.h"
#include "weft/msg/wire/reader.h"
#include "weft/sync/baton.h"
#include "weft/sync/spin.h"

namespace weft::msg {

// ReceiveSide: the way in of a connection: the bytes that were read, a channel of parts, and the read baton.
// The holder of the baton reads from the kernel and decodes.
// Owner: the connection. Affinity: see each group of members.
// Cost: see Pipe. An idle connection holds no block.
// Invariants:
//   1. Messages arrive in order: a frame is shown in place only while the channel is empty, to its consumer.
//   2. No thread waits for the baton.
//   3. A message of several parts enters the channel only when it is whole.
class ReceiveSide {
 public:
  static constexpr std::size_t kEnvelopeMax = 64;  // parts that patterns add to those of the sender's application
  static constexpr std::size_t kMultipartBytesMax = std::size_t{1} << 31;  // of one multipart message, together

  explicit ReceiveSide(ConnectionCommon& common);
  ReceiveSide(const ReceiveSide&) = delete;
  ReceiveSide& operator=(const ReceiveSide&) = delete;
  ~ReceiveSide() { drop_assembly(); }

  // --- under the socket's receive lock (receive_side.cc) ---
  enum class Peek : std::uint8_t { nothing, stream, run, channel, spent };
  // The channel and `run` were found empty. stream: one part, in place, until pop() or unpeek(). spent: the socket's
  // turn is spent; there may be input.
  [[nodiscard]] Peek peek(FrameView& view, FrameRun& run) noexcept WEFT_NOT_CHECKED;  // a stream keeps the baton
  void pop() noexcept;
  void unpeek() noexcept;
  void collect() noexcept;  // reads the kernel's bytes into the channel; for a connection that conflates
  void set_readable() noexcept { next_.report(); }
  void handle_credit() noexcept;  // the consumer reported credit, or the mark has changed
  [[nodiscard]] Channel& channel() noexcept { return channel_; }

  // --- any thread ---
  // Messages that arrived, ever.
  [[nodiscard]] std::uint64_t arrived_count() const noexcept { return channel_.written() + past_channel_.load(); }

  // --- I/O thread (receive_side.cc) ---
  // Into the channel, up to its mark; nothing when another thread holds the baton.
  void read(Turn turn) noexcept;
  [[nodiscard]] bool held_by_link() const noexcept { return next_.holder() == NextReader::Holder::link; }
  [[nodiscard]] bool try_take_for_link() noexcept WEFT_NOT_CHECKED {  // it keeps the baton
    if (!held_by_link() && baton_.try_take()) {
      next_.link_takes();
    }
    return held_by_link();
  }
  void give_back() noexcept;  // after try_take_for_link(), for a moment; reads bytes that came meanwhile
  [[nodiscard]] Instant last_input() const noexcept {
    return Instant(Duration(last_input_.load(std::memory_order_relaxed)));
  }

  // --- the link, while it holds the baton (receive_side.cc) ---
  [[nodiscard]] MessageReader& reader() noexcept { return reader_; }
  void begin_handshake() noexcept;
  void connect(zmtp::Mechanism* cipher, zmtp::Framing framing) noexcept;
  // Reads the bytes that came already, then gives the baton to the application's threads. `notice`: queue_notice()
  // first.
  void begin_traffic(bool notice) noexcept;
  // Whatever the mark. Returns false if the turn is spent; then call it again. `queued`: something was queued; the next
  // two return it.
  [[nodiscard]] bool read_rest(bool& queued) noexcept;
  [[nodiscard]] bool queue_notice() noexcept;  // that the connection is there, or that it is lost
  [[nodiscard]] bool queue_last_message(const std::string& text) noexcept;
  void disconnect() noexcept;
  // The I/O thread stopped at the mark of the channel, or at the end of its turn.
  [[nodiscard]] bool stalled() const noexcept { return next_.pause() != NextReader::Pause::none; }
  // The link is in AppReaders::links from leave_to_app() to take_back(). The caller of take_back() then reads: the
  // application may have left bytes in the reader, which no event of the poller reports.
  void leave_to_app() noexcept { next_.leave_to_app(); }
  void take_back() noexcept { next_.take_back(); }
  void answer_rest() noexcept { next_.answer(); }  // then the link reads, or leaves the connection to the application
  [[nodiscard]] bool ended() const noexcept { return end_.reached; }
  [[nodiscard]] Error end_reason() const noexcept { return end_.reason; }
  [[nodiscard]] zmtp::Breach take_breach() noexcept { return std::exchange(end_.breach, zmtp::Breach::none); }
  void end_with_fault() noexcept;
  void end_with(Error reason) noexcept;

 private:
  enum class Decoded : std::uint8_t { view, queued, consumed, need_more, stopped, spent };

  // With the read baton (receive_side.cc).
  void give_baton() noexcept WEFT_RELEASE(baton_);
  [[nodiscard]] bool fill(Turn& turn) noexcept;
  [[nodiscard]] bool await_rest() noexcept;
  [[nodiscard]] bool may_stay(std::uint64_t& end) const noexcept;
  [[nodiscard]] Peek stop_spent() noexcept WEFT_RELEASE(baton_);
  void leave_rest() noexcept WEFT_RELEASE(baton_);
  void ask_for_rest() noexcept;
  [[nodiscard]] bool read_once(Turn& turn) noexcept;
  void resume_later() noexcept;
  void end_input(Error reason, zmtp::Breach breach = zmtp::Breach::none) noexcept;

  // With the read baton (receive_decode.cc).
  [[nodiscard]] Decoded decode(FrameView* view, Turn& turn) noexcept;
  [[nodiscard]] Decoded decode_message(const MessageReader::Frame& frame, FrameView* view) noexcept;
  [[nodiscard]] bool discard(bool more) noexcept;
  void end_without_memory() noexcept;
  void drop_assembly() noexcept;
  [[nodiscard]] bool exceeds(std::size_t size) noexcept;
  [[nodiscard]] bool skip_message(bool more) noexcept;  // false: no memory
  void report_excess(Error reason) noexcept;
  [[nodiscard]] bool assemble(const MessageReader::Frame& frame) noexcept;
  [[nodiscard]] bool make_input_cell(Cell& cell, const MessageReader::Frame& frame) noexcept;
  [[nodiscard]] bool handle_command(Bytes body) noexcept;
  [[nodiscard]] bool subscribe(const zmtp::Event& event) noexcept;
  void watch_time_to_live(std::uint16_t deciseconds) noexcept;

  // With the read baton, so no other thread changes the count. Relaxed, because the count orders nothing.
  void count_past_channel(std::size_t messages) noexcept {
    past_channel_.store(past_channel_.load(std::memory_order_relaxed) + messages, std::memory_order_relaxed);
  }
  void drop_unexpected() noexcept {
    count_past_channel(1);
    ++share_.drops.dropped_unexpected;
  }

  struct Assembly {
    std::vector<Cell> parts;  // of a message that is not whole yet
    std::size_t bytes = 0;
    bool skipping = false;     // in the middle of a message that this socket does not take
    bool excess_told = false;  // the monitor got bound_exceeded of this connection
  };
  struct End {
    bool reached = false;
    Error reason;
    zmtp::Breach breach = zmtp::Breach::none;
  };

  ConnectionCommon& common_;
  SocketShare& share_;
  Channel channel_;
  sync::Baton baton_;
  MessageReader reader_;
  bool plain_ = false;  // a frame that is not a command is a message for the application, and small ones are admitted
  bool two_parts_ = false;   // each message has at least two
  bool asks_group_ = false;  // the peer does not know the groups that the socket joined: datagrams
  Assembly assembly_;
  sync::SpinBudget rest_spin_;
  std::uint16_t time_to_live_ = 0;  // of the peer's last PING, in tenths of a second
  zmtp::ZmtpFrameHeader partial_;   // header of the first, incomplete frame
  bool has_partial_ = false;
  End end_;
  NextReader next_;
  std::atomic<std::int64_t> last_input_{0};     // Instant, nanoseconds
  std::atomic<std::uint64_t> past_channel_{0};  // messages that were shown in place, or dropped
};

}  // namespace weft::msg
