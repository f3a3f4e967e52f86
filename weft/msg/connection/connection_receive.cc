// SPDX-License-Identifier: MIT
// Connection, receiving side: everything here but peek's entry runs with the read baton.
#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/sys/call.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {
constexpr std::uint32_t kGatherUs = 4;  // between looks for more of a big frame
constexpr int kConflatedFills = 16;     // reads in one turn, of a connection that conflates
}  // namespace

Connection::Peek Connection::peek(FrameView& view, FrameRun& run) noexcept {
  if (!read_baton_.try_take()) {
    return Peek::nothing;  // the I/O thread is reading; it says so when it found something
  }
  for (std::uint64_t end = 0;;) {
    // The I/O thread may have queued something between the caller's look and our taking the baton.
    if (!incoming_.empty()) {
      give_read_baton();
      return Peek::channel;
    }
    if (plain_input_ && assembly_.empty() && reader_.take_run(run)) [[likely]] {
      if (reader_.empty()) {
        reader_.settle();
      }
      give_read_baton();
      return Peek::run;
    }
    const Decoded decoded = input_ended_ && reader_.empty() ? Decoded::stopped : decode(&view);
    if (decoded == Decoded::view) {
      return Peek::stream;  // with the baton, until pop() or unpeek()
    }
    if (decoded == Decoded::need_more && maybe_readable_.load(std::memory_order_relaxed) && !input_ended_) {
      share_.note_app_read();
      if (fill()) {
        continue;
      }
    }
    if (decoded == Decoded::need_more && reader_.inside_big() && share_.app_waits() && !input_ended_) [[unlikely]] {
      end = end == 0 ? await_end() : end;
      if (sys::ticks() < end && await_rest()) {
        continue;
      }
    }
    if (decoded == Decoded::need_more || decoded == Decoded::stopped) {
      reader_.settle();
      if (!read_baton_.release()) {
        return Peek::nothing;
      }
      // Nudged: the poller reported news while we held the baton.
      set_readable();
      if (!read_baton_.try_take_or_nudge()) {
        return Peek::nothing;
      }
    }
  }
}

// More of a big frame is on its way: to look for it takes less time than to sleep until its next bytes are here, and
// less of the sender's, who would wake us. The looks are apart, so that each finds much.
bool Connection::await_rest() noexcept {
  const std::size_t before = reader_.big_filled();
  const bool found = sync::spin_until(learnt_budget(rest_spin_), [&] {
    sync::spin_for(kGatherUs);
    return fill() || input_ended_;
  });
  rest_spin_.record(found && reader_.big_filled() - before >= kAwaitedMin);
  return found;
}

std::uint32_t Connection::learnt_budget(sync::SpinBudget& spin) const noexcept {
  const bool eco = share_.wait_mode == sync::WaitMode::eco;
  return spin.budget_us(eco ? sync::WaitMode::eco : sync::WaitMode::adaptive);
}

void Connection::collect() noexcept {
  if (!maybe_readable_.load(std::memory_order_relaxed) || !read_baton_.try_take()) {
    return;
  }
  share_.note_app_read();
  (void)run_reader_once();
  give_read_baton();
}

void Connection::pop() noexcept {
  reader_.consume();
  if (reader_.empty()) {
    reader_.settle();
  }
  give_read_baton();
}

void Connection::unpeek() noexcept { give_read_baton(); }

// The application's thread gives the baton back; what a nudge was about is left to the next look.
void Connection::give_read_baton() noexcept {
  if (read_baton_.release()) {
    set_readable();
    io_.resume_reading(shared_from_this());
  }
}

void Connection::handle_receive_credit() noexcept {
  // Relaxed: a stall that is missed here is found by the consumer when the channel runs empty.
  if (stalled_hint_.load(std::memory_order_relaxed) && !resume_posted_.exchange(true, std::memory_order_relaxed)) {
    io_.resume_reading(shared_from_this());
  }
}

bool Connection::fill() noexcept {
  bool drained = false;
  const sys::IoResult result = reader_.fill(*stream_, has_partial_ ? &partial_ : nullptr, drained);
  maybe_readable_.store(!drained, std::memory_order_relaxed);
  switch (result.status) {
    case sys::IoResult::Status::done:
      last_input_.store(sys::now().time_since_epoch().count(), std::memory_order_relaxed);
      return true;
    case sys::IoResult::Status::would_block: return false;
    case sys::IoResult::Status::end_of_stream: end_input(Errc::connection_closed); return false;
    case sys::IoResult::Status::failed: end_input(sys::make_error(result.os_errno, "read")); return false;
  }
  return false;
}

// Takes frames until one is for the caller. With `view`, a single-part message is shown in place; else it is queued.
Connection::Decoded Connection::decode(FrameView* view) noexcept {
  for (;;) {
    Reader::Frame frame;
    const Reader::Step step = reader_.look(frame);
    has_partial_ = step == Reader::Step::header_only;
    switch (step) {
      case Reader::Step::need_more: return Decoded::need_more;
      case Reader::Step::malformed: end_input(Error(Errc::protocol_error, "malformed frame")); return Decoded::stopped;
      case Reader::Step::forged:
        end_input(Error(Errc::protocol_error, "a message that cannot be decrypted"), reader_.breach());
        return Decoded::stopped;
      case Reader::Step::header_only:
        partial_ = frame.header;
        if (!local_end_.admit(reader_.inner_header(frame.header))) {
          end_input_with_fault();
          return Decoded::stopped;
        }
        return Decoded::need_more;
      case Reader::Step::frame: break;
    }
    if (!local_end_.admit(frame.header)) {
      end_input_with_fault();
      return Decoded::stopped;
    }
    if ((frame.header.flags & zmtp::kCommand) != 0) {
      if (!handle_command(frame.body)) {
        return Decoded::stopped;
      }
      reader_.consume();
      continue;
    }
    const Decoded decoded = decode_message(frame, view);
    if (decoded != Decoded::consumed) {
      return decoded;
    }
  }
}

Connection::Decoded Connection::decode_message(const Reader::Frame& frame, FrameView* view) noexcept {
  const bool more = (frame.header.flags & zmtp::kMore) != 0;
  if (share_.traits.takes_subscriptions && !more && assembly_.empty() && !skipping_) {
    const zmtp::Event event = local_end_.parse_legacy_subscription(frame.body);
    if (local_end_.fault()) {
      end_input_with_fault();
      return Decoded::stopped;
    }
    if (event.kind != zmtp::Event::Kind::none) {
      if (!subscribe(event)) {
        return Decoded::stopped;
      }
      reader_.consume();
      return Decoded::consumed;
    }
  }
  if (!share_.traits.receives) {
    skipping_ = more;
    reader_.consume();
    return Decoded::consumed;
  }
  if (more || !assembly_.empty()) {
    if (share_.traits.single_part && discard(more)) {
      reader_.consume();
      return Decoded::consumed;
    }
    if (!assemble(frame)) {
      return Decoded::stopped;
    }
    reader_.consume();
    if (more) {
      return Decoded::consumed;
    }
    const bool pushed = incoming_.push(assembly_);
    assembly_.clear();
    assembly_bytes_ = 0;
    if (!pushed) {
      end_input(Error(Errc::resource_exhausted, "no memory for a received message"));
      return Decoded::stopped;
    }
    return Decoded::queued;
  }
  if (view != nullptr) {
    *view = {frame.body, false, frame.block, nullptr};
    return Decoded::view;
  }
  Cell* cell = incoming_.claim();
  if (cell == nullptr || !make_input_cell(*cell, frame)) {
    end_input(Error(Errc::resource_exhausted, "no memory for a received message"));
    return Decoded::stopped;
  }
  incoming_.push_claimed(*cell);
  reader_.consume();
  return Decoded::queued;
}

bool Connection::make_input_cell(Cell& cell, const Reader::Frame& frame) noexcept {
  constexpr std::size_t kSliceMin = 4096;  // smaller ones are copied, so that they never pin a large block
  if (frame.body.size() >= kSliceMin && frame.block != nullptr) {
    frame.block->add_reference();
    cell.kind = Cell::Kind::large;
    cell.topic_is_large = false;
    cell.body.large = {frame.block, frame.body.data(), frame.body.size()};
  } else {
    Outbound part{frame.body, nullptr, false};
    if (!make_cell(cell, part)) {
      return false;
    }
  }
  cell.more = (frame.header.flags & zmtp::kMore) != 0;
  return true;
}

// RFC 37: a socket whose messages are of one part discards what is of more; with groups, of more than a group and a
// part. While that lasts, an empty part in the assembly says so.
bool Connection::discard(bool more) noexcept {
  const std::size_t wanted = share_.traits.groups ? 2 : 1;
  if (!skipping_ && assembly_.size() + (more ? 2 : 1) <= wanted) {
    return false;
  }
  drop_assembly();
  skipping_ = more;
  if (more) {
    assembly_.push_back(Cell{});
  } else {
    pipe_->discarded.store(pipe_->discarded.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  return true;
}

void Connection::drop_assembly() noexcept {
  for (Cell& cell : assembly_) {
    cell.release();
  }
  assembly_.clear();
  assembly_bytes_ = 0;
}

bool Connection::assemble(const Reader::Frame& frame) noexcept {
  assembly_bytes_ += frame.body.size();
  if (assembly_.size() >= kPartsMax || assembly_bytes_ > kMultipartBytesMax) {
    end_input(Error(Errc::message_too_large, "multipart message exceeds its limit"));
    return false;
  }
  Cell cell;
  if (!make_input_cell(cell, frame)) {
    end_input(Error(Errc::resource_exhausted, "no memory for a received message"));
    return false;
  }
  assembly_.push_back(cell);
  return true;
}

bool Connection::subscribe(const zmtp::Event& event) noexcept {
  const bool on = event.kind == zmtp::Event::Kind::subscribe || event.kind == zmtp::Event::Kind::join;
  if (owner_.handle_subscription(*this, on, event.topic_or_context)) {
    return true;
  }
  end_input(Error(Errc::protocol_error, "too many subscriptions"));
  return false;
}

bool Connection::handle_command(Bytes body) noexcept {
  const zmtp::Event event = local_end_.handle_command(body, sys::now());
  if (local_end_.fault()) {
    end_input_with_fault();
    return false;
  }
  switch (event.kind) {
    case zmtp::Event::Kind::none:
    case zmtp::Event::Kind::pong: return true;
    case zmtp::Event::Kind::ping: {
      std::uint8_t pong[zmtp::kPongFrameMax];
      send_control(Bytes(pong, zmtp::write_pong(pong, event.topic_or_context)));
      watch_time_to_live(event.ttl_deciseconds);
      return true;
    }
    case zmtp::Event::Kind::subscribe:
    case zmtp::Event::Kind::cancel: return !share_.traits.takes_subscriptions || subscribe(event);
    case zmtp::Event::Kind::join:
    case zmtp::Event::Kind::leave: return subscribe(event);
    case zmtp::Event::Kind::error:
      end_input(Error(Errc::connection_closed, "the peer reported an error"));
      return false;
  }
  return true;
}

// The peer says how long its silence may last; only the I/O thread has timers.
void Connection::watch_time_to_live(std::uint16_t deciseconds) noexcept {
  if (std::exchange(time_to_live_, deciseconds) == deciseconds) {
    return;
  }
  io_.loop().post([weak = weak_from_this()] {
    if (const auto self = weak.lock(); self != nullptr) {
      self->handle_peer_time();
    }
  });
}

void Connection::end_input_with_fault() noexcept {
  end_input(Error(local_end_.fault()->code, local_end_.fault()->text));
}

void Connection::end_input(Error reason, zmtp::Breach breach) noexcept {
  input_ended_ = true;
  end_reason_ = reason;
  end_breach_ = breach;
  if (reason.code() != Errc::connection_closed && reason.code() != Errc::connection_failed) {
    reader_.reset();  // nothing behind a fault is worth anything
  }
  maybe_readable_.store(false, std::memory_order_relaxed);
  io_.request_take_down(shared_from_this());
}

// Of a raw connection: the empty message that says that it is there, or that it is gone. Whatever the mark: a
// connection with a full channel is not read, so its end, and with it the next notice, waits for the application.
bool Connection::push_notice() noexcept {
  Outbound empty;
  return owner_.options_copy().stream_notify && incoming_.push(empty);
}

// The I/O thread reads: into the channel, up to its mark.
void Connection::run_reader() noexcept {
  if (!read_baton_.try_take_or_nudge()) {
    return;
  }
  bool queued = false;
  do {
    queued |= run_reader_once();
  } while (read_baton_.release() && read_baton_.try_take_or_nudge());
  if (queued) {
    share_.signal_input(*pipe_);
  }
}

bool Connection::run_reader_once() noexcept {
  bool queued = false;
  int fills = 0;
  stalled_hint_.store(false, std::memory_order_relaxed);
  resume_posted_.store(false, std::memory_order_relaxed);
  while (!input_ended_ || !reader_.empty()) {
    if (!input_ended_ && !incoming_.has_credit()) {
      stalled_hint_.store(true, std::memory_order_relaxed);
      return queued;
    }
    const Decoded decoded = decode(nullptr);
    if (decoded == Decoded::queued) {
      queued = true;
    } else if (incoming_.conflates() && ++fills > kConflatedFills) {
      io_.resume_reading(shared_from_this());  // there is no mark to stop at
      break;
    } else if (decoded != Decoded::need_more || input_ended_ || !fill()) {
      break;
    }
  }
  reader_.settle();
  return queued;
}

}  // namespace weft::msg
