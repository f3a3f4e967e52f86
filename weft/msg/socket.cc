// SPDX-License-Identifier: MIT
#include "weft/msg/socket.h"

#include "weft/msg/socket/socket_core.h"
#include "weft/sys/clock.h"

namespace weft {

namespace {
constexpr Error kClosed(Errc::closed, "the socket is closed or was moved from");

// Null: the handle was moved from.
template <typename T, typename... Params, typename... Args>
Result<T> set_up(const std::shared_ptr<msg::SocketCore>& core, Result<T> (msg::SocketCore::*call)(Params...),
                 Args&&... args) noexcept {
  return core == nullptr ? Result<T>(kClosed) : msg::set_up(*core, call, std::forward<Args>(args)...);
}
}  // namespace

Socket::Socket(std::shared_ptr<msg::SocketCore> core) noexcept : core_(std::move(core)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
  }
  return *this;
}

Socket::~Socket() { close(); }

void Socket::close() {
  if (core_ != nullptr) {
    core_->close();  // the handle keeps the core: other threads may be inside a call
  }
}

Result<std::string> Socket::bind(std::string_view endpoint) { return set_up(core_, &msg::SocketCore::bind, endpoint); }
Result<void> Socket::connect(std::string_view endpoint) { return set_up(core_, &msg::SocketCore::connect, endpoint); }
Result<std::uint32_t> Socket::connect_peer(std::string_view endpoint) {
  return set_up(core_, &msg::SocketCore::connect_peer, endpoint);
}
Result<void> Socket::disconnect_peer(std::uint32_t routing_id) {
  return set_up(core_, &msg::SocketCore::disconnect_peer, routing_id);
}
Result<void> Socket::unbind(std::string_view endpoint) { return set_up(core_, &msg::SocketCore::unbind, endpoint); }
Result<void> Socket::disconnect(std::string_view endpoint) {
  return set_up(core_, &msg::SocketCore::disconnect, endpoint);
}

Result<void> Socket::send_part(Bytes bytes, Message* message, More more, bool wait) {
  if (core_ == nullptr) {
    return kClosed;
  }
  msg::Outbound part{bytes, message, more == More::yes};
  return core_->send(part, wait ? msg::Timeout::option() : msg::Timeout::none());
}

Result<void> Socket::send(Bytes bytes, More more) { return send_part(bytes, nullptr, more, true); }
Result<void> Socket::send(Message&& message, More more) { return send_part(message.bytes(), &message, more, true); }
Result<void> Socket::try_send(Bytes bytes, More more) { return send_part(bytes, nullptr, more, false); }
Result<void> Socket::try_send(Message&& message, More more) {
  return send_part(message.bytes(), &message, more, false);
}

Result<void> Socket::send(std::initializer_list<std::string_view> parts) {
  if (parts.size() == 0) {
    return msg::kNoParts;
  }
  for (const std::string_view& part : parts) {
    WEFT_TRY(send(part, &part + 1 != parts.end() ? More::yes : More::no));
  }
  return {};
}
Result<void> Socket::send_all(std::span<Message> parts) {
  if (parts.empty()) {
    return msg::kNoParts;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    WEFT_TRY(send(std::move(parts[i]), i + 1 < parts.size() ? More::yes : More::no));
  }
  return {};
}

namespace {
Result<Message> recv_message(msg::SocketCore* core, msg::Timeout timeout) {
  if (core == nullptr) {
    return kClosed;
  }
  Message message;
  msg::Inbound part{&message, {}};
  WEFT_TRY(core->recv(part, timeout));
  return message;
}
Result<Received> recv_bytes(msg::SocketCore* core, MutableBytes target, msg::Timeout timeout) {
  if (core == nullptr) {
    return kClosed;
  }
  msg::Inbound part{nullptr, target};
  WEFT_TRY(core->recv(part, timeout));
  return Received{part.size, part.more, part.size > target.size()};
}
}  // namespace

Result<Message> Socket::recv_until(Instant deadline) {
  return recv_message(core_.get(), msg::Timeout::until(deadline));
}
Result<Message> Socket::recv(Duration timeout) { return recv_until(deadline_after(sys::now(), timeout)); }
Result<Message> Socket::recv() { return recv_message(core_.get(), msg::Timeout::option()); }
Result<Message> Socket::try_recv() { return recv_message(core_.get(), msg::Timeout::none()); }

Result<Received> Socket::recv_into(MutableBytes target) {
  return recv_bytes(core_.get(), target, msg::Timeout::option());
}
Result<Received> Socket::try_recv_into(MutableBytes target) {
  return recv_bytes(core_.get(), target, msg::Timeout::none());
}

Result<std::vector<Message>> Socket::recv_all() {
  return or_no_memory([&]() -> Result<std::vector<Message>> {
    std::vector<Message> parts;
    do {
      parts.push_back(WEFT_TRY(recv()));
    } while (parts.back().more());
    return parts;
  });
}

Result<void> Socket::subscribe(std::string_view prefix) {
  return set_up(core_, &msg::SocketCore::subscribe, FilterView{FilterKind::prefix, prefix}, true);
}
Result<void> Socket::unsubscribe(std::string_view prefix) {
  return set_up(core_, &msg::SocketCore::subscribe, FilterView{FilterKind::prefix, prefix}, false);
}
Result<void> Socket::subscribe(const Filter& filter) {
  return set_up(core_, &msg::SocketCore::subscribe, filter, true);
}
Result<void> Socket::unsubscribe(const Filter& filter) {
  return set_up(core_, &msg::SocketCore::subscribe, filter, false);
}

Result<std::size_t> Socket::topics() { return core_ == nullptr ? Result<std::size_t>(kClosed) : core_->topics(); }

Result<void> Socket::join(std::string_view group) {
  return set_up(core_, &msg::SocketCore::join, as_bytes(group), true);
}
Result<void> Socket::leave(std::string_view group) {
  return set_up(core_, &msg::SocketCore::join, as_bytes(group), false);
}

Result<void> Socket::change(const std::function<Result<void>(Options&)>& change) {
  return set_up(core_, &msg::SocketCore::set_options, change);
}
Result<void> Socket::set(std::string_view name, std::string_view value) {
  return change([&](Options& options) { return set_option(options, name, value); });
}
Result<Options> Socket::options() {
  return core_ == nullptr ? Result<Options>(kClosed)
                          : or_no_memory([&] { return Result<Options>(core_->options_copy()); });
}

Result<void> Socket::reload_certificates() { return set_up(core_, &msg::SocketCore::reload_certificates); }

Result<MonitorEvent> Socket::next_event(Duration timeout) {
  return core_ == nullptr ? Result<MonitorEvent>(kClosed) : core_->monitor().receive(timeout);
}
Result<void> Socket::watch_events() {
  if (core_ == nullptr) {
    return kClosed;
  }
  core_->monitor().enable();
  return {};
}
Result<void> Socket::report_pipes() { return core_ == nullptr ? Result<void>(kClosed) : core_->report_pipes(); }
Result<Statistics> Socket::statistics() {
  return core_ == nullptr ? Result<Statistics>(kClosed) : Result<Statistics>(core_->statistics());
}

CounterSource Socket::counter_source() const {
  return [weak = std::weak_ptr<msg::SocketCore>(core_)](std::string_view name, CounterReadings& into) {
    const auto core = weak.lock();
    if (core != nullptr && !core->closed()) {
      into.push_back({&kSocketTable,
                      {{"socket", std::string(name)}, {"type", std::string(zmtp::socket_type_name(core->wire_type()))}},
                      sync::read_counters(core->statistics())});
    }
  };
}
Result<bool> Socket::peer_writable(std::string_view routing_id) {
  return core_ == nullptr ? Result<bool>(kClosed) : core_->peer_writable(as_bytes(routing_id));
}
SocketType Socket::type() const noexcept { return core_ == nullptr ? SocketType::pair : core_->type(); }

}  // namespace weft
