// SPDX-License-Identifier: MIT
#include "weft/msg/proxy.h"

#include <array>
#include <cstring>
#include <utility>

#include "weft/msg/poll.h"
#include "weft/msg/socket/socket_core.h"

namespace weft {

namespace {

constexpr std::size_t kBurst = 256;                           // messages one way before the other way has its turn
constexpr Duration kHeldLook = std::chrono::milliseconds(2);  // until the proxy sends a held message again
constexpr Error kSocketClosed(Errc::closed, "a proxy's socket is closed");

// One of the sockets, its place among the polled items, and the counts of its parts and bytes.
struct Side {
  msg::SocketCore* core = nullptr;  // null: there is none
  PollItem* item = nullptr;
  std::uint64_t parts_in = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t parts_out = 0;
  std::uint64_t bytes_out = 0;
};

// One way through the proxy.
struct Direction {
  Side* from = nullptr;
  Side* to = nullptr;
  Side* full = nullptr;  // the side that the direction waits for room at; null: it waits for input
  Message held;          // the first part of a taken message for which send() had no room, although `to` reported room
  bool holds = false;
};

bool is_nothing(const Error& error) noexcept {
  return error == Errc::would_block || error == Errc::invalid_state || error == Errc::not_supported;
}
bool ends_proxy(const Error& error) noexcept { return error == Errc::terminated || error == Errc::closed; }

// Proxy: one call of proxy().
// Owner: that call. Affinity: its thread.
// Invariants:
// 1. The proxy takes a message only when the sockets that get it have room.
// 2. It sends every taken message before the call returns, unless a socket refuses it for good.
class Proxy {
 public:
  Proxy(Socket& frontend, Socket& backend, Socket* capture, Socket* control) {
    add(frontend_, &frontend);
    if (frontend.core() != backend.core()) {
      add(backend_, &backend);
    }
    add(capture_, capture);
    add(control_, control);
    const bool one = backend_.core == nullptr;
    directions_[0].from = directions_[1].to = &frontend_;
    directions_[0].to = one ? &frontend_ : &backend_;
    directions_[1].from = &backend_;
    direction_count_ = one ? 1 : 2;
  }

  Result<void> run() {
    while (!ended_) {
      WEFT_TRY(wait());
      if (control_.core != nullptr && control_.item->input) {
        WEFT_TRY(take_orders());
      }
      for (Direction& direction : ways()) {
        if (!paused_ && !ended_ && has_news(direction)) {
          WEFT_TRY(move_burst(direction));
        }
      }
    }
    return {};
  }

 private:
  void add(Side& side, Socket* socket) {
    if (socket != nullptr) {
      side.core = socket->core().get();
      side.item = &items_[item_count_++];
      side.item->socket = socket;
    }
  }
  std::span<Direction> ways() { return {directions_.data(), direction_count_}; }

  static bool has_news(const Direction& direction) {
    return direction.holds || (direction.full != nullptr ? direction.full->item->output : direction.from->item->input);
  }

  Result<void> wait() {
    const std::span<PollItem> items(items_.data(), item_count_);
    for (PollItem& item : items) {
      item.want_input = item.want_output = false;
    }
    bool holds = false;
    for (const Direction& direction : ways()) {
      holds |= direction.holds;
      if (paused_ || direction.holds) {
        continue;
      }
      (direction.full != nullptr ? direction.full->item->want_output : direction.from->item->want_input) = true;
    }
    if (control_.core != nullptr) {
      control_.item->want_input = true;
    }
    const auto ready = poll(items, holds && !paused_ ? kHeldLook : Duration(-1));
    if (!ready && !(holds && ready.error() == Errc::interrupted)) {
      return ready.error();
    }
    return {};
  }

  Result<void> move_burst(Direction& direction) {
    for (std::size_t i = 0; i < kBurst; ++i) {
      if (!WEFT_TRY(move_message(direction))) {
        break;
      }
    }
    return {};
  }

  // Returns false if there is no message, or no room for one.
  Result<bool> move_message(Direction& direction) {
    if (!direction.holds && !WEFT_TRY(take_first(direction))) {
      return false;
    }
    msg::Outbound first{direction.held.bytes(), &direction.held, direction.held.more()};
    first.relayed = true;
    bool more = direction.held.more();
    std::uint64_t parts = 1;
    std::uint64_t bytes = direction.held.size();
    auto sent = direction.to->core->send(first, msg::Timeout::none());
    direction.holds = !sent && sent.error() == Errc::would_block;
    if (direction.holds) {
      return false;
    }
    // When the first part is there, all parts are. When the first part found room, the others do too.
    while (more) {
      Message part;
      msg::Inbound in{&part, {}};
      WEFT_TRY(direction.from->core->recv(in, msg::Timeout::none()));
      more = part.more();
      ++parts;
      bytes += part.size();
      capture(part);
      if (sent) {
        msg::Outbound out{part.bytes(), &part, more};
        out.relayed = true;
        sent = direction.to->core->send(out, msg::Timeout::none());
      }
    }
    direction.held = Message();
    direction.from->parts_in += parts;
    direction.from->bytes_in += bytes;
    if (sent) {
      direction.to->parts_out += parts;
      direction.to->bytes_out += bytes;
    } else if (ends_proxy(sent.error())) {
      return sent.error();
    }
    return true;
  }

  Result<bool> take_first(Direction& direction) {
    direction.full = nullptr;
    const bool from_ended = direction.from->core->closed() || direction.from->core->terminated();
    for (Side* side : {direction.to, &capture_}) {
      // A frontend that is its own backend, such as a REP, may have room only once it received.
      if (!from_ended && side != direction.from && side->core != nullptr &&
          !side->core->readiness({.output = true}).output) {
        direction.full = side;
        return false;
      }
    }
    msg::Inbound in{&direction.held, {}};
    if (auto received = direction.from->core->recv(in, msg::Timeout::none()); !received) {
      return is_nothing(received.error()) ? Result<bool>(false) : Result<bool>(received.error());
    }
    capture(direction.held);
    return true;
  }

  void capture(const Message& part) {
    if (capture_.core != nullptr) {
      Message copy = part.share();
      msg::Outbound out{copy.bytes(), &copy, part.more()};
      out.relayed = true;
      (void)capture_.core->send(out, msg::Timeout::none());
    }
  }

  // --- orders ---

  Result<void> take_orders() {
    while (!ended_) {
      Message order;
      msg::Inbound in{&order, {}};
      if (auto received = control_.core->recv(in, msg::Timeout::none()); !received) {
        return is_nothing(received.error()) ? Result<void>() : received;
      }
      for (bool more = order.more(); more;) {
        Message rest;
        msg::Inbound skipped{&rest, {}};
        WEFT_TRY(control_.core->recv(skipped, msg::Timeout::none()));
        more = rest.more();
      }
      obey(order.text());
    }
    return {};
  }

  void obey(std::string_view order) {
    if (order == "STATISTICS") {
      send_statistics();
      return;
    }
    paused_ = order == "PAUSE" || (paused_ && order != "RESUME");
    ended_ = order == "TERMINATE";
    if (control_.core->type() == SocketType::rep) {
      answer({}, false);
    }
  }

  void send_statistics() {
    const Side& back = direction_count_ == 1 ? frontend_ : backend_;
    const std::array<std::uint64_t, 8> numbers = {frontend_.parts_in,  frontend_.bytes_in, frontend_.parts_out,
                                                  frontend_.bytes_out, back.parts_in,      back.bytes_in,
                                                  back.parts_out,      back.bytes_out};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::array<std::uint8_t, sizeof(std::uint64_t)> bytes;
      std::memcpy(bytes.data(), &numbers[i], bytes.size());
      if (!answer(bytes, i + 1 < numbers.size())) {
        return;
      }
    }
  }

  bool answer(Bytes bytes, bool more) {
    msg::Outbound out{bytes, nullptr, more};
    return control_.core->send(out, msg::Timeout::none()).has_value();
  }

  Side frontend_;
  Side backend_;  // without a core when the backend is the frontend
  Side capture_;
  Side control_;
  std::array<PollItem, 4> items_;
  std::size_t item_count_ = 0;
  std::array<Direction, 2> directions_;
  std::size_t direction_count_ = 0;
  bool paused_ = false;
  bool ended_ = false;
};

Result<void> run_proxy(Socket& frontend, Socket& backend, Socket* capture, Socket* control) {
  for (const Socket* socket : std::array<const Socket*, 4>{&frontend, &backend, capture, control}) {
    if (socket != nullptr && (socket->core() == nullptr || socket->core()->closed())) {
      return kSocketClosed;
    }
  }
  return Proxy(frontend, backend, capture, control).run();
}

}  // namespace

Result<void> proxy(Socket& frontend, Socket& backend, Socket* capture) {
  return run_proxy(frontend, backend, capture, nullptr);
}
Result<void> proxy(Socket& frontend, Socket& backend, Socket* capture, Socket& control) {
  return run_proxy(frontend, backend, capture, &control);
}

}  // namespace weft
