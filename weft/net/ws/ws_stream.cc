// SPDX-License-Identifier: MIT
#include "weft/net/ws/ws_stream.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/endian.h"
#include "weft/base/text/base64.h"
#include "weft/mem/buffer.h"
#include "weft/net/admit/token_bucket.h"
#include "weft/net/ws/inbound.h"
#include "weft/net/ws/outbound.h"
#include "weft/net/ws/upgrade.h"
#include "weft/sys/clock.h"

namespace weft::net::ws {
namespace {

using sys::IoResult;
using Status = IoResult::Status;

constexpr std::size_t kStreamBlock = 64 * 1024;  // of one read or write below
constexpr int kReadsMax = 8;                // of the stream below in one read: a peer may send frames without content
constexpr std::size_t kUpgradeRead = 1024;  // bytes of one read before admit()
constexpr std::size_t kControlsMax = 4 * 1024;  // control frames that wait; past this a PING gets no PONG
constexpr std::size_t kJoinedFirst = kUnadmittedMax - kUpgradeRead - kControlsMax;  // of fragments, before admit()
constexpr RateLimit kIdleFrames{.per_second = 10'000, .burst = 10'000};  // control frames and empty fragments
constexpr std::string_view kBare = "ZWS2.0";
constexpr Error kJoinedTooMuch(Errc::message_too_large, "a WebSocket message in fragments exceeds its limit");
constexpr Error kIdleTooMuch(Errc::protocol_error, "more WebSocket control frames and empty fragments than the limit");
constexpr Error kNoMemoryForStream(Errc::resource_exhausted, "no memory for a WebSocket");

std::vector<std::string> protocols_for(const std::string& mechanism) {
  std::vector<std::string> protocols{"ZWS2.0/" + mechanism};
  if (mechanism == "NULL") {
    protocols.emplace_back(kBare);
  }
  return protocols;
}

// A block from the pool, for the time of one call or until it is empty.
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { drop(); }

  [[nodiscard]] bool make(std::size_t size) noexcept {
    if (buffer_ == nullptr) {
      buffer_ = mem::Buffer::make(size);
      begin = end = 0;
    }
    return buffer_ != nullptr;
  }
  void drop() noexcept {
    if (buffer_ != nullptr) {
      std::exchange(buffer_, nullptr)->release();
    }
    begin = end = 0;
  }
  [[nodiscard]] Bytes bytes() const noexcept {
    return buffer_ == nullptr ? Bytes() : Bytes(buffer_->data() + begin, end - begin);
  }
  [[nodiscard]] MutableBytes room() const noexcept { return {buffer_->data() + end, buffer_->capacity() - end}; }
  [[nodiscard]] bool empty() const noexcept { return begin == end; }

  std::size_t begin = 0;
  std::size_t end = 0;

 private:
  mem::Buffer* buffer_ = nullptr;
};

class ZwsStream final : public ByteStream {
 public:
  ZwsStream(std::unique_ptr<ByteStream> below, ZwsOptions options, std::unique_ptr<Masks> masks, Upgrade upgrade)
      : below_(std::move(below)),
        options_(std::move(options)),
        masks_(std::move(masks)),
        upgrade_(std::move(upgrade)) {}
  void begin();

  [[nodiscard]] int fd() const override { return below_->fd(); }
  [[nodiscard]] IoResult read(std::span<MutableBytes> into) override;
  [[nodiscard]] IoResult write(std::span<const Bytes> from) override;
  void shutdown_write() override;
  void break_off() noexcept override { below_->break_off(); }
  void admit() noexcept override;
  [[nodiscard]] std::string peer_address() const override { return below_->peer_address(); }
  [[nodiscard]] StreamState state() const noexcept override;
  [[nodiscard]] bool ping() noexcept override;
  [[nodiscard]] const ByteStream* below() const noexcept override { return below_.get(); }

 private:
  // reading
  [[nodiscard]] bool read_upgrade();
  void begin_frames(Bytes behind);
  void read_frames(std::span<MutableBytes> into, std::size_t& total);
  [[nodiscard]] bool read_into(MutableBytes& room, std::size_t& total);
  [[nodiscard]] bool fill(MutableBytes& room, std::size_t& total);
  [[nodiscard]] IoResult read_below(std::span<MutableBytes> into);
  void handle_control();
  void end_with(Error error, CloseStatus status);
  [[nodiscard]] IoResult outcome(std::size_t total) const noexcept;

  // writing
  [[nodiscard]] IoResult write_parts(std::span<const Bytes> from);
  [[nodiscard]] bool write_part(Bytes part, std::size_t& total);
  [[nodiscard]] bool write_uncopied(Bytes& rest, std::size_t& total);
  void queue_control(Opcode opcode, Bytes body);
  bool push();

  const std::unique_ptr<ByteStream> below_;
  const ZwsOptions options_;
  std::unique_ptr<Masks> masks_;    // until established; null: we are the server
  std::optional<Upgrade> upgrade_;  // the same
  Error failure_;                   // ok: not failed

  WsInbound in_;
  TokenBucket idle_frames_;
  Block staged_;  // bytes from below that were not translated
  Status below_status_ = Status::done;
  int below_errno_ = 0;
  int reads_ = 0;         // of the stream below, in this read
  bool drained_ = false;  // in this read: the stream below has no more bytes for now
  bool heard_ = false;    // in this read: a control frame came
  bool rests_ = false;    // the last read stopped with bytes unread, to give others a turn: IoResult::cut
  bool closed_ = false;   // the peer's CLOSE came
  bool admitted_ = false;

  WsOutbound out_;
  Block held_;            // the bytes that the stream below has to take next
  std::string controls_;  // whole control frames that wait for the end of a frame; of an upgrade, its head
  int write_errno_ = 0;
  bool close_sent_ = false;
  bool write_ended_ = false;
};

void ZwsStream::begin() {
  controls_ = upgrade_->take_output();
  (void)push();
}

StreamState ZwsStream::state() const noexcept {
  const StreamState below = below_->state();
  const bool ended = closed_ || failure_ != Errc::ok || write_errno_ != 0 || below_status_ == Status::end_of_stream ||
                     below_status_ == Status::failed || below.ended;
  const bool waits = !controls_.empty() && (upgrade_ || out_.between_frames());
  const bool own = failure_ != Errc::ok;
  return {!upgrade_,
          ended,
          !held_.empty() || waits || below.unsent,
          own ? failure_ : below.failure,
          false,
          !own && below.failed_in_tls};
}

void ZwsStream::admit() noexcept {
  admitted_ = true;
  in_.admit();
  below_->admit();
}

// --- reading ---

IoResult ZwsStream::read(std::span<MutableBytes> into) {
  if (failure_ != Errc::ok || closed_) {
    return outcome(0);
  }
  heard_ = rests_ = false;
  reads_ = 0;
  std::size_t total = 0;
  try {
    if (in_.waits()) {  // the caller has the bytes before it, and its handshake goes on
      end_with(kJoinedTooMuch, CloseStatus::size);
      return outcome(0);
    }
    do {  // a read below may end inside a frame, and would_block is for an empty socket only
      drained_ = false;
      below_status_ = Status::done;
      if (!upgrade_ || read_upgrade()) {
        read_frames(into, total);
      }
    } while (total == 0 && drained_ && !rests_ && below_status_ == Status::done && failure_ == Errc::ok && !closed_ &&
             !in_.waits());
    if (heard_) {
      (void)push();
    }
  } catch (const std::bad_alloc&) {
    failure_ = kNoMemoryForStream;
    return {Status::failed, 0, ENOMEM};
  }
  return outcome(total);
}

IoResult ZwsStream::outcome(std::size_t total) const noexcept {
  if (total != 0) {
    return {.status = Status::done, .bytes = total, .cut = rests_};
  }
  if (failure_ != Errc::ok) {
    return {Status::failed, 0, EPROTO};
  }
  if (closed_) {
    return {Status::end_of_stream, 0, 0};
  }
  if (write_errno_ != 0 && below_status_ == Status::would_block) {
    return {Status::failed, 0, write_errno_};  // no event would say it
  }
  return {heard_ || rests_ ? Status::done : below_status_, 0, below_errno_, rests_};
}

// The stream below has nothing more for now when a read took less than its room.
IoResult ZwsStream::read_below(std::span<MutableBytes> into) {
  const IoResult result = below_->read(into);
  rests_ = ++reads_ == kReadsMax || result.cut;
  std::size_t room = 0;
  for (const MutableBytes part : into) {
    room += part.size();
  }
  below_status_ = result.status;
  below_errno_ = result.os_errno;
  drained_ = result.status != Status::done || (result.bytes < room && !result.cut);
  return result;
}

// Returns true if the upgrade is over.
bool ZwsStream::read_upgrade() {
  while (upgrade_ && !drained_ && !rests_) {
    std::uint8_t bytes[kUpgradeRead];
    MutableBytes into(bytes);
    const Bytes got(bytes, read_below({&into, 1}).bytes);
    const std::size_t taken = upgrade_->handle_input(got);
    controls_ += upgrade_->take_output();
    if (upgrade_->fault()) {
      failure_ = *upgrade_->fault();
      (void)push();  // the refusal
      return false;
    }
    if (upgrade_->done()) {
      begin_frames(got.subspan(taken));
    }
  }
  return !upgrade_;
}

// `behind`: bytes that came after the upgrade.
void ZwsStream::begin_frames(Bytes behind) {
  if (!staged_.make(kUpgradeRead)) {
    throw std::bad_alloc();
  }
  copy_bytes(staged_.room().data(), behind);
  staged_.end = behind.size();
  const bool bare = upgrade_->protocol() == kBare;
  const bool maybe_bare = options_.client && options_.mechanism == "NULL";
  in_.start({!options_.client, bare, maybe_bare, options_.mechanism, options_.socket_type, options_.message_max,
             admitted_ ? SIZE_MAX : kJoinedFirst});
  out_.start(std::move(masks_), bare);
  (void)push();
  upgrade_.reset();
}

void ZwsStream::read_frames(std::span<MutableBytes> into, std::size_t& total) {
  bool more = true;
  for (std::size_t i = 0; i < std::min(into.size(), sys::kMaxReadVector) && more; ++i) {
    MutableBytes room = into[i];
    more = read_into(room, total);
  }
  if (staged_.empty()) {
    staged_.drop();
  }
}

// Returns true if `room` is full, and there may be more.
bool ZwsStream::read_into(MutableBytes& room, std::size_t& total) {
  while (!room.empty()) {
    if (!staged_.empty() || in_.has_output()) {
      const WsInbound::Moved moved = in_.translate(staged_.bytes(), room);
      staged_.begin += moved.taken;
      room = room.subspan(moved.made);
      total += moved.made;
      if (in_.fault()) {
        end_with(in_.fault()->error, in_.fault()->status);
        return false;
      }
      const std::uint32_t idle = in_.take_idle_frames();
      if (idle != 0 && !idle_frames_.try_take(kIdleFrames, sys::now(), idle)) [[unlikely]] {
        end_with(kIdleTooMuch, CloseStatus::policy);
        return false;
      }
      handle_control();
      if (closed_ || in_.waits()) {
        return false;
      }
    } else if (drained_ || rests_ || !fill(room, total)) {
      return false;
    }
  }
  return true;
}

// One read below: the rest of a body goes straight to its place.
bool ZwsStream::fill(MutableBytes& room, std::size_t& total) {
  if (!staged_.make(admitted_ ? kStreamBlock : kUpgradeRead)) {
    throw std::bad_alloc();
  }
  staged_.begin = staged_.end = 0;
  const std::size_t direct = std::min(in_.body_rest(), room.size());
  MutableBytes into[2] = {room.first(direct), staged_.room()};
  const bool both = direct != 0 && direct == in_.body_rest();  // otherwise the next bytes belong to the body
  const std::span<MutableBytes> asked = direct == 0 ? std::span(into).subspan(1) : std::span(into).first(both ? 2 : 1);
  const IoResult result = read_below(asked);
  if (result.status != Status::done) {
    return false;
  }
  const std::size_t passed = std::min(result.bytes, direct);
  if (passed != 0) {
    in_.pass(room.first(passed));
    room = room.subspan(passed);
    total += passed;
  }
  staged_.end = result.bytes - passed;
  return true;
}

void ZwsStream::handle_control() {
  switch (in_.control()) {
    case WsInbound::Control::none: return;
    case WsInbound::Control::pong: heard_ = true; return;
    case WsInbound::Control::ping:
      heard_ = true;
      if (controls_.size() < kControlsMax) {
        queue_control(Opcode::pong, in_.control_body());
      }
      return;
    case WsInbound::Control::close:
      closed_ = true;
      queue_control(Opcode::close, in_.control_body().first(std::min<std::size_t>(in_.control_body().size(), 2)));
      (void)push();
      return;
  }
}

void ZwsStream::end_with(Error error, CloseStatus status) {
  failure_ = error;
  std::uint8_t body[2];
  store_big_endian(body, static_cast<std::uint16_t>(status));
  queue_control(Opcode::close, body);
  (void)push();
}

// --- writing ---

IoResult ZwsStream::write(std::span<const Bytes> from) {
  try {
    return write_parts(from);
  } catch (const std::bad_alloc&) {
    return {Status::failed, 0, ENOMEM};
  }
}

// Gives held bytes to the stream below, then control frames, if they may stand there. Returns true if a byte was taken.
bool ZwsStream::push() {
  bool moved = false;
  if (held_.empty() && below_->state().unsent) {  // of TLS: a record that the socket did not take whole
    const IoResult result = below_->write({});
    write_errno_ = result.status == Status::failed ? result.os_errno : write_errno_;
  }
  while (write_errno_ == 0) {
    if (held_.empty()) {
      held_.drop();
      if (controls_.empty() || !(upgrade_ || out_.between_frames())) {
        break;
      }
      if (!held_.make(controls_.size())) {
        throw std::bad_alloc();
      }
      copy_bytes(held_.room().data(), as_bytes(controls_));
      held_.end = controls_.size();
      controls_ = {};
    }
    const Bytes from = held_.bytes();
    const IoResult result = below_->write({&from, 1});
    if (result.status == Status::failed) {
      write_errno_ = result.os_errno;
    }
    held_.begin += result.bytes;
    moved = moved || result.bytes != 0;
    if (!held_.empty()) {
      break;
    }
  }
  if (write_ended_ && held_.empty()) {
    below_->shutdown_write();
  }
  return moved;
}

IoResult ZwsStream::write_parts(std::span<const Bytes> from) {
  const bool moved = push();
  std::size_t total = 0;
  bool room = held_.empty() && !upgrade_ && !close_sent_ && !write_ended_;
  const std::span<const Bytes> parts = from.first(std::min(from.size(), sys::kMaxWriteVector));
  const bool any = std::any_of(parts.begin(), parts.end(), [](Bytes part) { return !part.empty(); });
  for (std::size_t i = 0; i < parts.size() && room && write_errno_ == 0; ++i) {
    room = write_part(parts[i], total);
  }
  if (room) {
    (void)push();
  }
  if (total == 0 && (write_errno_ != 0 || (any && (close_sent_ || write_ended_)))) {
    return {Status::failed, 0, write_errno_ != 0 ? write_errno_ : EPIPE};
  }
  return {total != 0 || moved || (!any && held_.empty()) ? Status::done : Status::would_block, total, 0};
}

// Translates into held_, and pushes that whenever it is full. Returns false if the stream below takes no more for now.
bool ZwsStream::write_part(Bytes part, std::size_t& total) {
  while (!part.empty()) {
    if (out_.may_lend(part.size())) {
      if (!write_uncopied(part, total)) {
        return false;
      }
      continue;
    }
    if (!held_.make(kStreamBlock)) {
      throw std::bad_alloc();
    }
    const WsOutbound::Moved moved = out_.translate(part, held_.room());
    held_.end += moved.made;
    total += moved.taken;
    part = part.subspan(moved.taken);
    if (!controls_.empty() || (!part.empty() && !out_.may_lend(part.size()))) {
      (void)push();
      if (!held_.empty() || write_errno_ != 0) {
        return false;
      }
    }
  }
  return true;
}

// The bytes of a body go from their place, after the held bytes.
bool ZwsStream::write_uncopied(Bytes& rest, std::size_t& total) {
  const Bytes body = rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), out_.body_rest())));
  const Bytes parts[2] = {held_.bytes(), body};
  const std::span<const Bytes> from = held_.empty() ? std::span(parts).subspan(1) : std::span(parts);
  const IoResult result = below_->write(from);
  if (result.status == Status::failed) {
    write_errno_ = result.os_errno;
    return false;
  }
  const std::size_t of_held = std::min(result.bytes, held_.bytes().size());
  const std::size_t of_body = result.bytes - of_held;
  held_.begin += of_held;
  if (held_.empty()) {
    held_.drop();
  }
  out_.pass(of_body);
  total += of_body;
  rest = rest.subspan(of_body);
  return of_body == body.size();
}

void ZwsStream::queue_control(Opcode opcode, Bytes body) {
  if (close_sent_ || write_ended_) {
    return;
  }
  std::uint8_t frame[kHeaderMax + kControlBodyMax];
  controls_.append(as_text(Bytes(frame, out_.write_control(frame, opcode, body))));
  close_sent_ = opcode == Opcode::close;
}

void ZwsStream::shutdown_write() {
  if (write_ended_) {
    return;
  }
  try {
    if (!upgrade_) {
      std::uint8_t body[2];
      store_big_endian(body, static_cast<std::uint16_t>(CloseStatus::normal));
      queue_control(Opcode::close, body);
    }
    write_ended_ = true;
    (void)push();
  } catch (const std::bad_alloc&) {
    write_ended_ = true;
    below_->shutdown_write();
  }
}

bool ZwsStream::ping() noexcept {
  try {
    if (!upgrade_ && controls_.empty()) {  // one that waits is enough
      queue_control(Opcode::ping, {});
      (void)push();
    }
  } catch (const std::bad_alloc&) {
    return true;  // the silence that follows ends the connection
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<ByteStream>> make_zws_stream(std::unique_ptr<ByteStream> below, const ZwsOptions& options) {
  try {
    std::random_device device;
    std::uint8_t nonce[16];
    for (std::size_t i = 0; i < sizeof nonce; i += 4) {
      store_big_endian<std::uint32_t>(nonce + i, device());
    }
    auto masks = options.client ? std::make_unique<Masks>() : nullptr;
    auto upgrade = options.client ? Upgrade::as_client(options.host, options.path, protocols_for(options.mechanism),
                                                       encode_base64(as_text(nonce)))
                                  : Upgrade::as_server(protocols_for(options.mechanism));
    auto stream = std::make_unique<ZwsStream>(std::move(below), options, std::move(masks), std::move(upgrade));
    stream->begin();
    return std::unique_ptr<ByteStream>(std::move(stream));
  } catch (const std::exception&) {  // no memory, or no source of random numbers
    return kNoMemoryForStream;
  }
}

}  // namespace weft::net::ws
