// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weft/msg/connection/authentication.h"
#include "weft/msg/connection/connection_owner.h"
#include "weft/msg/connection/connector.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/message/options.h"
#include "weft/msg/message/peer_properties.h"
#include "weft/msg/queue/channel.h"
#include "weft/msg/wire/reader.h"
#include "weft/msg/wire/writer.h"
#include "weft/net/stream.h"
#include "weft/rt/loop/loop.h"
#include "weft/sync/baton.h"
#include "weft/sync/call_list.h"
#include "weft/sync/spin.h"
#include "weft/sys/clock.h"
#include "weft/zmtp/local_end.h"

namespace weft::msg {

class IoService;

// Connection: one connection of a socket: a net::Stream and a zmtp::LocalEnd, and the two ends of a pipe's channels.
// Owner: the socket's table of connections, until the connection is finished and its input was taken.
// Affinity: whoever holds the write baton runs the sending side, whoever holds the read baton the receiving side. The
// I/O thread holds both while there is no connection; it alone connects, shakes hands, keeps time and takes connections
// down. Cost: see Pipe. An idle connection holds no block. Invariants:
//   (1) Messages leave in the order in which they were sent: a part is encoded directly only while the channel is
//   empty. (2) Messages arrive in order: a frame is decoded directly only while the channel is empty, by its consumer.
//   (3) Bytes that were not flushed are known to the I/O thread (armed), which flushes them: see IoService.
//   (4) Nobody waits for a baton.
//   (5) Multipart messages enter a channel, or the wire, only when they are whole.
class Connection final : public rt::Watcher, public std::enable_shared_from_this<Connection> {
 public:
  static constexpr std::size_t kPartsMax = 65'536;                         // of one multipart message
  static constexpr std::size_t kMultipartBytesMax = std::size_t{1} << 31;  // of one multipart message, together

  // Connecting: `endpoint` is dialled, if need be through a proxy, again whenever the connection is lost. Accepted:
  // lives as long as `stream`.
  Connection(std::shared_ptr<ConnectionOwner> owner, IoService& io, const net::Endpoint& endpoint,
             std::optional<net::Socks5Proxy> proxy);
  Connection(std::shared_ptr<ConnectionOwner> owner, IoService& io, std::unique_ptr<net::Stream> stream,
             std::string local_endpoint);
  ~Connection();

  // The pipe over this connection: once, before start().
  void attach(PipeShare& pipe) noexcept { pipe_ = &pipe; }
  [[nodiscard]] PipeShare& pipe() noexcept { return *pipe_; }
  [[nodiscard]] Channel& outgoing() noexcept { return outgoing_; }
  [[nodiscard]] Channel& incoming() noexcept { return incoming_; }
  [[nodiscard]] PeerId peer_id() const noexcept { return peer_id_; }  // I/O thread
  [[nodiscard]] bool connecting() const noexcept { return connector_ != nullptr; }
  [[nodiscard]] const std::string& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] const std::string& other_end() const noexcept { return other_end_; }  // I/O thread

  // --- under the socket's send lock (connection_send.cc) ---
  [[nodiscard]] bool try_send(Outbound& part, bool wide) noexcept;
  void send_parts(std::span<Cell> parts, bool wide, bool waits) noexcept;
  void send_subscription(bool subscribe, Bytes topic) noexcept;
  void flush_now() noexcept;  // what was batched goes out; also frees a blocked writer if the kernel lets it
  bool unflushed = false;     // in the socket's list of connections to flush before it waits

  // --- under the socket's receive lock (connection_receive.cc) ---
  enum class Peek : std::uint8_t { nothing, stream, run, channel };
  // The channel and `run` were found empty. stream: one part, in place, until pop() or unpeek().
  [[nodiscard]] Peek peek(FrameView& view, FrameRun& run) noexcept;
  void pop() noexcept;
  void unpeek() noexcept;
  void collect() noexcept;  // reads into the channel what the kernel holds; for one that conflates
  void apply_marks(const Options& options) noexcept;  // any thread
  void set_readable() noexcept { maybe_readable_.store(true, std::memory_order_relaxed); }
  void handle_receive_credit() noexcept;
  std::uint64_t poll_token = 0;  // receive lock: place in the socket's set of descriptors; 0: none

  // --- on the I/O thread (connection_link.cc, connection_end.cc) ---
  void start();
  void close(Instant deadline);  // delivers what was queued until then, then ends
  void close_when_sent();        // any thread: the same for as long as the peer takes some of it
  void handle_event(const sys::PollEvent& event) override;
  enum class FlushTurn : std::uint8_t { drop, keep, busy };
  [[nodiscard]] FlushTurn flush_turn(Instant now) noexcept;
  // While armed: for a batch that just began and that nothing hinders, so that its sender may soon have sent it all.
  [[nodiscard]] bool begins_batch() const noexcept { return begins_batch_; }
  [[nodiscard]] bool watch_turn() noexcept;  // true: the application reads for itself; ask again
  void handle_dial(const Result<net::Progress>& progress);
  void take_down();
  void resume_reading() noexcept;
  [[nodiscard]] net::Stream& stream() noexcept { return *stream_; }  // while there is a connection
  std::atomic<Connection*> next_armed{nullptr};
  sync::CallList<std::shared_ptr<Connection>>::Entry resume_entry;  // the I/O service's

 private:
  enum class Phase : std::uint8_t { idle, dialling, handshake, traffic, draining, finished };
  enum class Decoded : std::uint8_t { view, queued, consumed, need_more, stopped };

  // connection_send.cc; all with the write baton
  [[nodiscard]] bool send_directly(Outbound& part, bool wide) noexcept;
  [[nodiscard]] bool queue_part(Outbound& part) noexcept;        // the producer, with or without the baton
  [[nodiscard]] bool queue_for_holder(Outbound& part) noexcept;  // the producer without the baton
  bool encode_part(std::uint8_t flags, Bytes body, mem::Buffer* buffer) noexcept;
  bool encode_cell(Cell& cell) noexcept;
  void append_control() noexcept;
  void encode_channel() noexcept;
  void run_writer() noexcept;
  void write_out() noexcept;
  void leave_rest(bool soon) noexcept;
  void run_writer_if_free() noexcept;
  void give_write_baton() noexcept {
    if (write_baton_.release()) [[unlikely]] {
      answer_nudges();
    }
  }
  void answer_nudges() noexcept;  // without the baton
  [[nodiscard]] bool send_out_of_flow(Outbound& part, bool wide) noexcept;
  [[nodiscard]] bool send_big(std::uint8_t flags, Outbound& part) noexcept;
  void await_room(std::size_t size) noexcept;
  [[nodiscard]] bool idle_now(bool wide) const noexcept;
  void batch_or_write(bool wide, bool now) noexcept;
  void note_batch_begin() noexcept;
  std::uint32_t count_batched() noexcept {
    const std::uint32_t batched = batched_.load(std::memory_order_relaxed) + 1;  // written with the baton only
    batched_.store(batched, std::memory_order_relaxed);
    return batched;
  }
  void flush_if_due(std::uint32_t batched) noexcept;
  void arm(bool begins_batch = false) noexcept;
  [[nodiscard]] std::uint64_t batch_age() const noexcept;
  void list_unflushed() noexcept;
  void send_control(Bytes frame) noexcept;  // any thread; bounded

  // connection_receive.cc; all with the read baton
  [[nodiscard]] Decoded decode(FrameView* view) noexcept;
  [[nodiscard]] Decoded decode_message(const Reader::Frame& frame, FrameView* view) noexcept;
  [[nodiscard]] bool discard(bool more) noexcept;
  void drop_assembly() noexcept;
  [[nodiscard]] bool assemble(const Reader::Frame& frame) noexcept;
  [[nodiscard]] bool make_input_cell(Cell& cell, const Reader::Frame& frame) noexcept;
  [[nodiscard]] bool handle_command(Bytes body) noexcept;
  [[nodiscard]] bool subscribe(const zmtp::Event& event) noexcept;
  [[nodiscard]] bool fill() noexcept;
  [[nodiscard]] bool await_rest() noexcept;
  void end_input(Error reason, zmtp::Breach breach = zmtp::Breach::none) noexcept;
  void watch_time_to_live(std::uint16_t deciseconds) noexcept;
  void end_input_with_fault() noexcept;
  void run_reader() noexcept;
  bool run_reader_once() noexcept;
  bool push_notice() noexcept;
  void give_read_baton() noexcept;

  // An application's thread holds a baton for microseconds, or while large parts move at full speed (await_room(),
  // await_rest()), but not beyond this, in ticks. Who must have it asks again after kBatonRetry.
  [[nodiscard]] static std::uint64_t await_end() noexcept {
    return sys::ticks() +
           static_cast<std::uint64_t>(kAwaitLongest / std::chrono::microseconds(1)) * sys::ticks_per_us();
  }
  // Learnt in every mode but eco: a peer may never read, or dribble.
  [[nodiscard]] std::uint32_t learnt_budget(sync::SpinBudget& spin) const noexcept;
  static constexpr std::size_t kAwaitedMin = 8 * 1024;  // a wait that brought less did not pay
  static constexpr Duration kBatonRetry = std::chrono::microseconds(200);

  // connection_link.cc; all on the I/O thread, but for the first
  void prepare_channels();
  void dial();
  // Why there is no connection: a bit of the option reconnect_stop, or 0.
  enum Cause : std::uint8_t { lost = 0, refused = 1, handshake_failed = 2, closing = 4, misgreeted = 8 };
  void retry_later(Cause cause);
  void handle_connect_time();
  void begin_handshake(std::unique_ptr<net::Stream> stream);
  void handle_handshake();
  [[nodiscard]] bool write_handshake(int& os_errno);
  void await_leaving();
  void fail_handshake(Error reason, std::uint32_t detail = 0);
  [[nodiscard]] bool ends_for_good(const Error& reason) const;
  void choose_opening() noexcept;
  void answer_question();
  void handle_zap_reply(const ZapReply& reply);
  void enter_traffic();
  void remember_peer();
  [[nodiscard]] std::string find_other_end() const;
  [[nodiscard]] MonitorEvent describe(EventKind kind, Error reason = {}, int fd = -1) const;
  void handle_traffic(const sys::PollEvent& event);
  void set_interest(sys::Interest interest);
  using Task = void (Connection::*)();
  template <Task kTask>
  void schedule(rt::TimerId& timer, Instant deadline) {
    schedule(timer, deadline, [](void* self) { (static_cast<Connection*>(self)->*kTask)(); });
  }
  void schedule(rt::TimerId& timer, Instant deadline, void (*fire)(void*));
  void handle_peer_time();
  void schedule_peer_time();
  [[nodiscard]] bool app_has_read() noexcept;

  // connection_end.cc; all on the I/O thread
  [[nodiscard]] bool take_both_batons() noexcept;
  void return_read_baton() noexcept;
  void finish_take_down();
  [[nodiscard]] bool queue_farewell();
  void drop_stream() noexcept;
  void drop_begun_message() noexcept;
  void begin_close(Instant deadline);
  void linger();
  void drain();
  void handle_close_time();
  void finish();

  ConnectionOwner& owner_;
  SocketShare& share_;                           // owner_'s
  std::shared_ptr<ConnectionOwner> keep_owner_;  // until finished
  IoService& io_;
  const std::string endpoint_;
  PipeShare* pipe_ = nullptr;
  Channel outgoing_;
  Channel incoming_;

  // Write baton.
  sync::Baton write_baton_;
  Writer writer_;
  std::atomic<std::uint64_t> batch_began_{0};  // ticks; the I/O thread peeks, as at the next
  std::atomic<std::uint32_t> batched_{0};      // sends, so far
  std::uint64_t last_write_ = 0;               // ticks
  std::uint32_t batched_seen_ = 0;             // at the last flush turn
  std::uint32_t blocked_sends_ = 0;
  std::uint32_t quiet_turns_ = 0;
  int peer_minor_ = 1;
  sync::SpinBudget room_spin_;
  bool room_wanted_ = false;   // the I/O thread watches for room
  bool begins_batch_ = false;  // written before it is armed, the I/O thread's while it is
  std::atomic<bool> armed_{false};
  std::mutex control_mutex_;
  std::vector<std::uint8_t> control_;  // guarded by control_mutex_: frames to go between messages
  std::atomic<bool> has_control_{false};

  // Read baton.
  sync::Baton read_baton_;
  Reader reader_;
  sync::SpinBudget rest_spin_;
  std::vector<Cell> assembly_;  // parts of a message that is not whole yet
  bool skipping_ = false;       // in the middle of a message that this socket type does not take
  bool plain_input_ = false;    // what is not a command is a message for the application, and small ones are admitted
  std::size_t assembly_bytes_ = 0;
  std::uint16_t time_to_live_ = 0;  // of the peer's last PING, in tenths of a second
  zmtp::FrameHeader partial_;       // header of the first, incomplete frame
  bool has_partial_ = false;
  bool input_ended_ = false;
  std::atomic<bool> stalled_hint_{false};  // decoding stopped at the receive high-water mark
  Error end_reason_;
  zmtp::Breach end_breach_ = zmtp::Breach::none;
  std::atomic<bool> maybe_readable_{true};   // the kernel may have bytes for us; only a hint
  std::atomic<std::int64_t> last_input_{0};  // Instant, nanoseconds
  std::atomic<bool> resume_posted_{false};

  // Both batons, or the I/O thread while it holds them.
  std::unique_ptr<net::Stream> stream_;
  zmtp::LocalEnd local_end_;

  // I/O thread.
  Phase phase_ = Phase::idle;
  std::unique_ptr<Connector> connector_;
  rt::Loop::WatchId watch_ = 0;
  sys::Interest interest_ = sys::Interest::none;
  bool app_reads_ = false;
  bool holds_read_ = true;   // read_baton_ is this thread's, as there is no connection
  bool holds_write_ = true;  // the same for write_baton_
  bool raw_ = false;         // this connection is bytes, not frames
  bool closing_ = false;
  bool refused_for_now_ = false;       // the handshake does not go on
  bool patient_ = false;               // close_deadline_ moves while the peer takes bytes
  std::uint64_t written_at_look_ = 0;  // writer_.written() when it last moved
  Instant close_deadline_ = kNever;
  bool gave_up_ = false;  // never connects again
  rt::TimerId retry_timer_;
  rt::TimerId connect_timer_;
  rt::TimerId peer_timer_;
  rt::TimerId close_timer_;
  rt::TimerId take_down_timer_;
  std::uint64_t app_reads_seen_ = 0;
  std::uint32_t app_idle_turns_ = 0;
  zmtp::Opening opening_ = zmtp::Opening::signature;  // of the next handshake
  bool proxied_ = false;
  int dialled_fd_ = -1;              // of the attempt under way or just failed; for events only
  std::string other_end_;            // MonitorEvent::other; empty when nobody watched as the connection began
  PeerId peer_id_ = 0;               // while there is a connection past its handshake
  zmtp::Metadata authenticated_;     // what the authenticator said of the peer
  std::unique_ptr<ZapRequest> zap_;  // the question that the handshake waits for
};

}  // namespace weft::msg
