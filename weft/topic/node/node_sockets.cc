// SPDX-License-Identifier: MIT
#include "weft/topic/node/node_sockets.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/topic/wire/control.h"
#include "weft/zmtp/curve.h"

namespace weft::topic {

namespace {

// The property by which a handle of a fleet with CURVE keys proves that it has the fleet's secret.
constexpr std::string_view kProof = "X-Weft-Fleet";

Result<Statistics> statistics_of(Socket& socket) {
  return socket.core() == nullptr ? Result<Statistics>(Errc::closed) : socket.statistics();
}

}  // namespace

Result<void> NodeSockets::open(Context& context, const Names& names, std::uint64_t instance) {
  context_ = context.core();
  if (options_.inside.size() > 256) {
    return Error(Errc::invalid_argument, "at most 256 filters stay inside");
  }
  for (const std::string& text : options_.inside) {
    inside_.push_back(WEFT_TRY(names.filter(text)));
  }
  out_ = WEFT_TRY(context.socket(SocketType::xpub));
  WEFT_TRY(set_common(out_));
  if (has_inner()) {
    inner_ = WEFT_TRY(context.socket(SocketType::xpub));
    WEFT_TRY(set_common(inner_));
  }
  WEFT_TRY(open_in(context));
  if (endpoints_.fleet().kind == Fleet::Kind::tcp) {
    const Control welcome{.kind = Control::Kind::roster_wanted, .from = instance};
    const std::string bytes = WEFT_TRY(encode_control(welcome));
    WEFT_TRY(out_.set(option::xpub_welcome_message, bytes));
  }
  return {};
}

Result<void> NodeSockets::open_in(Context& context) {
  in_ = WEFT_TRY(context.socket(SocketType::xsub));
  WEFT_TRY(set_common(in_));
  WEFT_TRY(in_.set(option::linger, Duration(0)));  // the messages between handles are useless after one has gone
  // Control messages of before a connection stood would overtake the subscriptions, which go out when it stands.
  WEFT_TRY(in_.set(option::immediate, true));
  if (endpoints_.fleet().kind == Fleet::Kind::tcp) {
    WEFT_TRY(set_security(in_));
    WEFT_TRY(set_proof());
  }
  return {};
}

Result<void> NodeSockets::set_proof() {
  if (!options_.security.curve()) {
    return {};
  }
  zmtp::CurveKey secret;
  if (options_.security.curve_server_secret.size() != secret.size()) {
    return Error(Errc::invalid_argument, "a key of CURVE has 32 bytes");
  }
  std::copy_n(options_.security.curve_server_secret.begin(), secret.size(), secret.begin());
  proof_ = WEFT_TRY(zmtp::curve_proof(secret, "weft topics: a handle of the fleet"));
  return in_.set(option::metadata, std::string(kProof) + ':' + proof_);
}

Result<void> NodeSockets::set_common(Socket& socket) const {
  using namespace std::chrono_literals;
  WEFT_TRY(socket.set(option::send_high_water_mark, options_.peer_messages_max));
  WEFT_TRY(socket.set(option::receive_high_water_mark, options_.peer_messages_max));
  WEFT_TRY(socket.set(option::linger, 1s));
  WEFT_TRY(socket.set(option::reconnect_interval, 50ms));
  return socket.set(option::reconnect_interval_max, 2s);
}

// For a socket that connects; of tls for one that is bound, too.
Result<void> NodeSockets::set_security(Socket& socket) const {
  const FleetSecurity& keys = options_.security;
  if (endpoints_.fleet().tls) {
    WEFT_TRY(socket.set(option::tls_certificate, keys.tls_certificate));
    WEFT_TRY(socket.set(option::tls_key, keys.tls_key));
    WEFT_TRY(socket.set(option::tls_authorities, keys.tls_authorities));
    return socket.set(option::tls_server_name, keys.tls_server_name);
  }
  if (!keys.curve()) {
    return {};
  }
  WEFT_TRY(socket.set(option::curve_public_key, keys.curve_public));
  WEFT_TRY(socket.set(option::curve_secret_key, keys.curve_secret));
  return socket.set(option::curve_server_key, keys.curve_server_public);
}

Result<void> NodeSockets::bind_inproc() {
  WEFT_TRY(out_.bind(endpoints_.inproc()));
  if (has_inner()) {
    WEFT_TRY(inner_.bind(FleetEndpoints::inner_of(endpoints_.inproc())));
  }
  return {};
}

Result<std::string> NodeSockets::bind_tcp() {
  if (options_.security.curve()) {
    WEFT_TRY(out_.set(option::curve_secret_key, options_.security.curve_server_secret));
    WEFT_TRY(out_.set(option::curve_server, true));
  }
  if (endpoints_.fleet().tls) {
    WEFT_TRY(set_security(out_));
  }
  const std::string bound = WEFT_TRY(out_.bind(
      options_.listen.empty() ? std::string(endpoints_.fleet().scheme()).append("127.0.0.1:0") : options_.listen));
  return options_.advertise.empty() ? bound : options_.advertise;
}

void NodeSockets::close() noexcept {
  context_.reset();
  out_.close();
  in_.close();
  inner_.close();
}

bool NodeSockets::stays_inside(std::string_view wire) const noexcept {
  return std::any_of(inside_.begin(), inside_.end(), [&](const Filter& filter) { return filter.matches(wire); });
}

void NodeSockets::flush() noexcept {
  for (Socket* const socket : {&out_, &inner_}) {
    if (socket->core() != nullptr) {
      socket->core()->flush_batches();
    }
  }
}

Result<Socket> NodeSockets::make_scout() {
  Socket scout(WEFT_TRY(context_->make_socket(SocketType::xsub)));
  WEFT_TRY(set_common(scout));
  WEFT_TRY(scout.set(option::linger, Duration(0)));
  WEFT_TRY(set_security(scout));
  return scout;
}

// Within the process a message comes over no connection. In a fleet with CURVE keys whoever has the public one may
// connect; a handle has the secret one too, and shows it inside of the encryption. Both sides show a certificate.
bool NodeSockets::is_proven(const Message& message) const noexcept {
  if (proof_.empty() || message.origin().peer == 0) {
    return true;
  }
  const char* const shown = message.peer_property(kProof);
  const std::string_view text = shown == nullptr ? std::string_view() : std::string_view(shown);
  unsigned different = text.size() == proof_.size() ? 0 : 1;
  for (std::size_t i = 0; i < proof_.size() && i < text.size(); ++i) {
    different |= static_cast<unsigned char>(text[i]) ^ static_cast<unsigned char>(proof_[i]);
  }
  return different == 0;
}

std::uint64_t NodeSockets::control_missed() {
  const auto numbers = in_.statistics();
  return numbers ? numbers->dropped_no_memory + numbers->dropped_full : 0;
}

void NodeSockets::add_counts(TopicsStatistics& into) {
  for (Socket* const socket : {&out_, &inner_}) {
    if (const auto numbers = statistics_of(*socket)) {
      into.dropped_full += numbers->dropped_full;
      into.dropped_for_memory += numbers->dropped_no_memory;
      into.dropped_lost += numbers->dropped_lost;
    }
  }
  if (const auto numbers = statistics_of(in_)) {
    into.dropped_lost += numbers->dropped_lost;
    into.control_unsent += numbers->dropped_full + numbers->dropped_no_memory;
  }
  if (const auto numbers = statistics_of(out_)) {
    into.peers_refused = numbers->handshakes_failed;
  }
}

}  // namespace weft::topic
