// SPDX-License-Identifier: MIT
// ReceiveSide: decoding. Every function here runs with the read baton.
#include <new>
#include <utility>

#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/msg/connection/receive_side.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {
constexpr std::size_t kKeptParts = 1024;  // of the assembly, for the next message
}

// Decodes frames until one is for the caller, or the turn is spent. With `view` a message of one part is shown in
// place, otherwise it is queued.
ReceiveSide::Decoded ReceiveSide::decode(FrameView* view, Turn& turn) noexcept {
  for (;;) {
    MessageReader::Frame frame;
    const MessageReader::Step step = reader_.look(frame);
    has_partial_ = step == MessageReader::Step::header_only;
    switch (step) {
      case MessageReader::Step::need_more: return Decoded::need_more;
      case MessageReader::Step::malformed:
        end_input(Error(Errc::protocol_error, "malformed frame"));
        return Decoded::stopped;
      case MessageReader::Step::forged:
        end_input(Error(Errc::protocol_error, "a message that cannot be decrypted"), reader_.breach());
        return Decoded::stopped;
      case MessageReader::Step::header_only:
        partial_ = frame.header;
        if (!common_.local_end.admit(reader_.inner_header(frame.header))) {
          end_with_fault();
          return Decoded::stopped;
        }
        return Decoded::need_more;
      case MessageReader::Step::frame: break;
    }
    if (!common_.local_end.admit(frame.header)) {
      end_with_fault();
      return Decoded::stopped;
    }
    if ((frame.header.flags & zmtp::kCommand) != 0) {
      if (!handle_command(frame.body)) {
        return Decoded::stopped;
      }
      reader_.consume();
    } else if (const Decoded decoded = decode_message(frame, view); decoded != Decoded::consumed) {
      return decoded;
    }
    turn.count_frame();
    if (!turn.may_decode()) [[unlikely]] {
      return Decoded::spent;
    }
  }
}

ReceiveSide::Decoded ReceiveSide::decode_message(const MessageReader::Frame& frame, FrameView* view) noexcept {
  const bool more = (frame.header.flags & zmtp::kMore) != 0;
  // A message may begin with several subscriptions, as parts.
  if (share_.traits.takes_subscriptions && assembly_.parts.empty() && !assembly_.skipping) {
    const zmtp::Event event = common_.local_end.parse_legacy_subscription(frame.body, sys::now());
    if (common_.local_end.fault()) {
      end_with_fault();
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
    assembly_.skipping = more;
    if (!more) {
      drop_unexpected();
    }
    reader_.consume();
    return Decoded::consumed;
  }
  // A datagram that is not a message comes as a part alone. It takes no place of the mark, which is for messages.
  if (two_parts_ && !more && assembly_.parts.empty()) {
    drop_unexpected();
    reader_.consume();
    return Decoded::consumed;
  }
  if (more || !assembly_.parts.empty()) {
    if (!make_room(assembly_.parts)) {
      end_without_memory();
      return Decoded::stopped;
    }
    if (share_.traits.single_part && discard(more)) {
      reader_.consume();
      return Decoded::consumed;
    }
    if (!share_.traits.single_part && exceeds(frame.body.size())) [[unlikely]] {
      if (!skip_message(more)) {
        return Decoded::stopped;
      }
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
    if (asks_group_ && !common_.owner.takes_group(assembly_.parts.front().bytes())) {
      drop_assembly();
      drop_unexpected();
      return Decoded::consumed;
    }
    if (!channel_.push(assembly_.parts)) {
      drop_assembly();
      end_without_memory();
      return Decoded::stopped;
    }
    assembly_.parts.clear();
    assembly_.bytes = 0;
    if (assembly_.parts.capacity() > kKeptParts) {
      assembly_.parts.shrink_to_fit();
    }
    return Decoded::queued;
  }
  if (view != nullptr) {
    *view = {frame.body, false, frame.block, nullptr};
    return Decoded::view;
  }
  Cell* cell = channel_.claim();
  if (cell == nullptr || !make_input_cell(*cell, frame)) {
    end_without_memory();
    return Decoded::stopped;
  }
  channel_.push_claimed(*cell);
  reader_.consume();
  return Decoded::queued;
}

bool ReceiveSide::make_input_cell(Cell& cell, const MessageReader::Frame& frame) noexcept {
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

// RFC 37: a socket whose messages are of one part discards a message of more parts; with groups, of more than a group
// and a part. Until that message ends, an empty part stands in the assembly, so that its frames come here.
bool ReceiveSide::discard(bool more) noexcept {
  const std::size_t wanted = share_.traits.groups ? 2 : 1;
  if (!assembly_.skipping && assembly_.parts.size() + (more ? 2 : 1) <= wanted) {
    return false;
  }
  drop_assembly();
  assembly_.skipping = more;
  if (more) {
    assembly_.parts.push_back(Cell{});
  } else {
    drop_unexpected();
  }
  return true;
}

void ReceiveSide::end_without_memory() noexcept {
  count_past_channel(1);
  ++share_.drops.dropped_no_memory;
  end_input(kNoMemoryToReceive);
}

void ReceiveSide::drop_assembly() noexcept {
  for (Cell& cell : assembly_.parts) {
    cell.release();
  }
  assembly_.parts.clear();
  assembly_.bytes = 0;
}

// Whether the message exceeds its bounds with a part of `size` bytes, or did so before.
bool ReceiveSide::exceeds(std::size_t size) noexcept {
  const auto parts_max = static_cast<std::size_t>(common_.options->message_parts_max);
  return assembly_.skipping || (parts_max != 0 && assembly_.parts.size() >= parts_max + kEnvelopeMax) ||
         assembly_.bytes + size > kMultipartBytesMax;
}

// As in discard(), an empty part stands in the assembly until the message ends. Reports the first part in excess.
bool ReceiveSide::skip_message(bool more) noexcept {
  drop_assembly();
  if (!assembly_.skipping) {
    assembly_.parts.shrink_to_fit();
    report_excess(Error(Errc::message_too_large, "multipart message exceeds its limit"));
  }
  assembly_.skipping = more;
  if (!more) {
    count_past_channel(1);
    ++share_.drops.dropped_excess;
    return true;
  }
  if (!make_room(assembly_.parts)) {
    end_without_memory();
    return false;
  }
  assembly_.parts.push_back(Cell{});
  return true;
}

// The peer loses a subscription or a message, and nothing else. One event a connection, so that a peer cannot crowd the
// others out.
void ReceiveSide::report_excess(Error reason) noexcept {
  if (std::exchange(assembly_.excess_told, true)) {
    common_.owner.monitor().count_again(EventKind::bound_exceeded);
  } else {
    common_.owner.monitor().emit_made(EventKind::bound_exceeded, [&] {
      const Link& link = common_.connection.link();
      MonitorEvent event = link.describe(EventKind::bound_exceeded, reason);
      event.peer = link.peer() == nullptr ? 0 : link.peer()->id();
      return event;
    });
  }
}

bool ReceiveSide::assemble(const MessageReader::Frame& frame) noexcept {
  assembly_.bytes += frame.body.size();
  Cell cell;
  if (!make_input_cell(cell, frame)) {
    end_without_memory();
    return false;
  }
  assembly_.parts.push_back(cell);
  return true;
}

bool ReceiveSide::subscribe(const zmtp::Event& event) noexcept {
  using Kind = zmtp::Event::Kind;
  if (event.kind == Kind::excess) {
    report_excess(Error(Errc::message_too_large, "subscription exceeds its limit"));
    return true;
  }
  const bool on = event.kind == Kind::subscribe || event.kind == Kind::filter || event.kind == Kind::join;
  const FilterView topic{event.filter_kind, as_text(event.topic_or_context)};
  const Result<void> handled = common_.owner.handle_subscription(common_.connection, on, topic);
  if (!handled && handled.error() == Errc::message_too_large) {
    report_excess(handled.error());
    return true;
  }
  if (!handled) {
    end_input(handled.error());
  }
  return handled.has_value();
}

bool ReceiveSide::handle_command(Bytes body) noexcept {
  const zmtp::Event event = common_.local_end.handle_command(body, sys::now());
  if (common_.local_end.fault()) {
    end_with_fault();
    return false;
  }
  switch (event.kind) {
    case zmtp::Event::Kind::none:
    case zmtp::Event::Kind::pong: return true;
    case zmtp::Event::Kind::ping: {
      std::uint8_t pong[zmtp::kPongFrameMax];
      common_.connection.send_side().queue_control(Bytes(pong, zmtp::write_pong(pong, event.topic_or_context)));
      watch_time_to_live(event.ttl_deciseconds);
      return true;
    }
    case zmtp::Event::Kind::subscribe:
    case zmtp::Event::Kind::cancel:
    case zmtp::Event::Kind::excess: return !share_.traits.takes_subscriptions || subscribe(event);
    case zmtp::Event::Kind::filter:
    case zmtp::Event::Kind::unfilter:
    case zmtp::Event::Kind::join:
    case zmtp::Event::Kind::leave: return subscribe(event);
    case zmtp::Event::Kind::error:
      end_input(Error(Errc::connection_closed, "the peer reported an error"));
      return false;
  }
  return true;
}

// The peer sends the bound of its silence; only the I/O thread has timers.
void ReceiveSide::watch_time_to_live(std::uint16_t deciseconds) noexcept {
  if (std::exchange(time_to_live_, deciseconds) == deciseconds) {
    return;
  }
  common_.io.request(common_.connection.shared_from_this(), IoService::peer_time);
}

}  // namespace weft::msg
