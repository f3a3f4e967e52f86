// SPDX-License-Identifier: MIT
#include "weft/serve/hand_over/taken_listeners.h"

#include <map>
#include <utility>

#include "weft/serve/hand_over/hand_over_wire.h"
#include "weft/sys/address.h"
#include "weft/sys/socket.h"

namespace weft::serve {
namespace {

bool has_ended(const Error& error) noexcept {
  return error == Errc::connection_closed || error.code() == Errc::connection_failed;
}

}  // namespace

Result<TakenListeners> TakenListeners::take(const std::string& path, Instant deadline) {
  TakenListeners taken;
  const sys::SocketAddress address = WEFT_TRY(sys::SocketAddress::from_path(path));
  auto connecting = sys::open_unix_connection(address, {});
  if (!connecting) {
    return has_ended(connecting.error()) ? Result<TakenListeners>(std::move(taken)) : connecting.error();
  }
  taken.connection_ = std::move(connecting->fd);
  if (!may_hand_over(taken.connection_.fd())) {
    return Error(Errc::not_permitted, "the process at the path is of another user");
  }
  std::vector<HandOverMessage> messages;
  for (;;) {
    auto message = receive_message(taken.connection_.fd(), deadline);
    if (!message) {
      return has_ended(message.error()) ? Result<TakenListeners>(TakenListeners()) : message.error();
    }
    if (message->kind == HandOverKind::all) {
      break;
    }
    if (message->kind != HandOverKind::listener || messages.size() == kHandOverListenersMax) {
      return Error(Errc::protocol_error, "the other process sent an unknown message");
    }
    messages.push_back(std::move(*message));
  }
  taken.sockets_.reserve(messages.size());
  for (HandOverMessage& message : messages) {
    taken.sockets_.push_back({-1, std::move(message.text)});
    taken.sockets_.back().fd = message.descriptor.release();
  }
  return taken;
}

// By name and address: two listeners may have the same name.
std::vector<TakenListener> TakenListeners::listeners() const {
  std::map<std::pair<std::string, std::string>, std::vector<int>> by_name;
  for (const sys::PassedSocket& socket : sockets_) {
    const auto address = sys::local_address(socket.fd);
    by_name[{socket.name, address ? address->to_text() : std::string()}].push_back(socket.fd);
  }
  std::vector<TakenListener> listeners;
  listeners.reserve(by_name.size());
  for (auto& [name, descriptors] : by_name) {
    listeners.push_back({name.first, std::move(descriptors)});
  }
  return listeners;
}

Result<void> TakenListeners::confirm(Instant deadline) {
  if (!connection_.valid()) {
    return {};
  }
  const sys::Fd connection = std::move(connection_);
  if (const auto sent = send_message(connection.fd(), HandOverKind::confirmed, {}, -1, deadline); !sent) {
    return has_ended(sent.error()) ? Result<void>() : sent;
  }
  const auto answer = receive_message(connection.fd(), deadline);
  if (!answer && !has_ended(answer.error())) {
    return answer.error();
  }
  return {};
}

}  // namespace weft::serve
