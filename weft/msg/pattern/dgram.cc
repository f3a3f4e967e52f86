// SPDX-License-Identifier: MIT
// DGRAM: datagrams as messages of two parts, an address and a body, over the one udp endpoint that is bound. In the
// pipe the address of a message that is sent is as the system has it; that of a received one is text, as the
// application sees it.
#include <optional>

#include "weft/msg/pattern/fair_queue.h"
#include "weft/msg/pattern/pattern.h"
#include "weft/sys/address.h"

namespace weft::msg {

namespace {

// "192.0.2.1:5555", "[2001:db8::1]:5555". Received addresses end with a zero byte, and an answer may show it.
std::optional<sys::SocketAddress> parse_address(std::string_view text) noexcept {
  while (text.ends_with('\0')) {
    text.remove_suffix(1);
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  std::uint32_t port = 0;
  for (const char digit : text.substr(colon + 1)) {
    port =
        digit >= '0' && digit <= '9' && port <= 65'535 ? 10 * port + static_cast<std::uint32_t>(digit - '0') : 65'536;
  }
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  const auto address = sys::SocketAddress::parse_numeric(host, static_cast<std::uint16_t>(port));
  return port == 0 || port > 65'535 || !address ? std::nullopt : std::optional(*address);
}

class Dgram final : public Pattern {
 public:
  using Pattern::Pattern;

  void attach(Pipe& pipe) override {
    if (pipe_ == nullptr) {
      queue_.attach(pipe);
      pipe_ = &pipe;
    }
  }
  bool ready(Pipe& pipe, Bytes /*identity*/) override { return pipe_ == &pipe; }
  void detach(Pipe& pipe) override { pipe_ = pipe_ == &pipe ? nullptr : pipe_; }
  void activate(Pipe& pipe) override { queue_.activate(pipe); }
  void deactivate(Pipe& pipe) override { queue_.detach(pipe); }

  Result<void> send(Outbound& part) override {
    if (part.more == in_message_) {
      return Error(Errc::invalid_argument, "a message of DGRAM is an address and a body");
    }
    if (!in_message_) {
      if (!can_send()) {
        return Errc::would_block;
      }
      to_ = parse_address(as_text(part.bytes));
      in_message_ = true;
      return {};
    }
    if (to_ && pipe_ != nullptr) {
      return send_body(part);
    }
    in_message_ = false;
    ++drops_.dropped_no_peer;
    return {};
  }
  bool can_send() override { return in_message_ || (pipe_ != nullptr && pipe_->writable()); }

  Result<void> receive(Inbound& part) override {
    FrameView view;
    if (!find_part(view)) {
      return Errc::would_block;
    }
    if (!part.take(view)) {
      queue_.unpeek();
      return Error(Errc::resource_exhausted, "no memory for a received message");
    }
    queue_.pop();
    return {};
  }
  bool can_receive() override {
    FrameView view;
    const bool found = find_part(view);
    if (found) {
      queue_.unpeek();
    }
    return found;
  }

 private:
  Result<void> send_body(Outbound& part) {
    Outbound head{{static_cast<const std::uint8_t*>(to_->raw()), to_->raw_size()}, nullptr, true};
    static_assert(sys::SocketAddress::kCapacity <= Message::kGroupMax);
    Cell parts[2];
    if (!make_cell(parts[0], head)) {
      return kNoMemoryToSend;
    }
    if (!make_cell(parts[1], part)) {
      parts[0].release();
      return kNoMemoryToSend;
    }
    in_message_ = false;
    if (!pipe_->send_parts(parts, false, &part)) {
      parts[0].release();
      parts[1].release();
      ++drops_.dropped_no_memory;
    }
    return {};
  }

  // A part that is a message of its own stands for a datagram that is not one: it is longer than the socket takes.
  bool find_part(FrameView& view) {
    while (queue_.peek(view) != nullptr) {
      if (view.more || queue_.in_message()) {
        return true;
      }
      ++drops_.dropped_unexpected;
      if (!queue_.drop()) {
        break;
      }
    }
    return false;
  }

  Pipe* pipe_ = nullptr;                  // both locks to write, either to read
  FairQueue queue_;                       // receive lock
  std::optional<sys::SocketAddress> to_;  // send lock, like the next: of the message at hand; none: no address
  bool in_message_ = false;               // the address was sent
};

}  // namespace

std::unique_ptr<Pattern> make_dgram(const PatternTraits& traits, const Options& options) {
  return std::make_unique<Dgram>(traits, options);
}

}  // namespace weft::msg
