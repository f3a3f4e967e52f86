// SPDX-License-Identifier: MIT
// Link: the handshake.
#include <utility>

#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/msg/connection/link.h"
#include "weft/net/tls/tls.h"
#include "weft/sys/call.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {

// Bytes of one read before the handshake is over. A peer that is not known yet makes this process hold so many, and as
// many as its handshake may have (zmtp::Limits): less than MessageReader::kSettleMax together, so no block stays with
// it.
constexpr std::size_t kHandshakeReadMax = 8 * 1024;

// Reads for the last words of a peer that has left. Each takes at most 512 KiB of fragments below, the first 8 KiB.
constexpr int kLastReadsMax = 4;

// The mechanism in the ZAP request for a client whose certificate TLS has verified, when ZMTP's own is NULL.
constexpr std::string_view kTlsMechanism = "TLS";

constexpr StaticText kClosedInHandshake("closed during the handshake");
constexpr StaticText kClosedInCurve("closed during the handshake of CURVE: is the server's key right?");

// "127.0.0.1:5555" -> "127.0.0.1", "[::1]:5555" -> "::1"; of a unix socket, as libzmq has it, "localhost:uid:gid:pid".
std::string host_of(const net::ByteStream& stream) {
  const std::string address = stream.peer_address();
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || address[0] == '/' || address[0] == '@') {
    const auto peer = sys::peer_credentials(stream.fd());
    return !peer ? "localhost"
                 : "localhost:" + std::to_string(peer->uid) + ':' + std::to_string(peer->gid) + ':' +
                       std::to_string(peer->pid);
  }
  return address[0] == '[' && colon > 2 ? address.substr(1, colon - 2) : address.substr(0, colon);
}

}  // namespace

void Link::begin_handshake(std::unique_ptr<net::ByteStream> stream) {
  schedule<&Link::handle_connect_time>(timers_.connect, kNever);
  common_.stream = std::move(stream);
  other_end_ = common_.owner.monitor().watched() ? find_other_end() : std::string();
  raw_ = common_.owner.raw();
  if (connecting()) {
    emit(EventKind::connected, Error(), common_.stream->fd());
  }
  receive_.begin_handshake();
  if (speaks_zmtp() || common_.layered()) {
    // Of a raw connection: for the time of the layer's handshake.
    common_.local_end.start(connecting() ? sys::now() : arrival_.at, opening_);
    common_.local_end.consume_output(arrival_.greeting_written);
  }
  phase_ = Phase::handshake;
  if (const auto put = put_layer(); !put) {
    fail_handshake(put.error());
    return;
  }
  interest_ = sys::Interest::readable | sys::Interest::writable | sys::Interest::peer_closed;
  auto watch = common_.io.loop().watch(common_.stream->fd(), interest_, true, this);
  if (!watch) {
    fail_handshake(watch.error());
    return;
  }
  watch_ = *watch;
  if (!speaks_zmtp() && !common_.layered()) {
    enter_traffic();
    return;
  }
  schedule_peer_time();
  if (raw_) {
    return;  // the socket is writable: its event begins the layer's handshake
  }
  int os_errno = 0;
  (void)write_handshake(os_errno);  // a failure has an event; the peer's bytes may be here
}

// Requires a stream, which an error closes.
Result<void> Link::put_layer() {
  if (common_.layered()) {
    common_.stream = WEFT_TRY(common_.layering->apply(std::move(common_.stream), common_.local_end.mechanism_name()));
  }
  return {};
}

// A connection of plain bytes has no handshake, and one of datagrams has no peer for it. Requires a stream.
bool Link::speaks_zmtp() const { return !raw_ && !common_.stream->state().datagrams; }

bool Link::write_handshake(int& os_errno) {
  push_layer();
  while (!common_.local_end.pending_output().empty()) {
    const Bytes output = common_.local_end.pending_output();
    const sys::IoResult result = common_.stream->write({&output, 1});
    if (result.status == sys::IoResult::Status::would_block) {
      return true;
    }
    if (result.status != sys::IoResult::Status::done) {
      os_errno = result.os_errno;
      return false;
    }
    common_.local_end.consume_output(result.bytes);
  }
  return true;
}

// The steps of TLS and of CURVE do.
bool Link::computes_long() const noexcept {
  return common_.layered() || (!raw_ && common_.local_end.mechanism_name() == "CURVE");
}

void Link::handle_handshake() {
  if (refused_for_now_) {
    await_leaving();
    return;
  }
  if (computes_long() && common_.io.defers_handshake()) {
    common_.io.request(common_.connection.shared_from_this(), IoService::read);
    return;
  }
  if (raw_) {
    handle_layer_handshake();
    return;
  }
  bool alive = true;
  bool writable = true;
  int os_errno = 0;
  Turn turn;
  while (alive && !common_.local_end.ready() && !common_.local_end.fault()) {
    receive_.reader().consume_bytes(common_.local_end.handle_input(receive_.reader().unparsed(), sys::now()));
    writable = writable && write_handshake(os_errno);
    if (common_.local_end.question() != nullptr) {
      if (!writable && !has_said_all()) {
        break;
      }
      answer_question();
      if (common_.local_end.question() != nullptr) {
        receive_.reader().settle();
        return;  // the answer continues the handshake
      }
      continue;
    }
    if (common_.local_end.ready() || common_.local_end.fault()) {
      break;
    }
    if (!turn.may_read()) {
      receive_.reader().settle();
      common_.io.request(common_.connection.shared_from_this(), IoService::read);
      return;
    }
    bool drained = false;
    const sys::IoResult result = receive_.reader().fill(*common_.stream, nullptr, drained, kHandshakeReadMax);
    turn.count_read(result);
    if (result.status == sys::IoResult::Status::would_block) {
      receive_.reader().settle();
      // The read may have ended the layer's own handshake.
      if (writable && (!common_.layered() || write_handshake(os_errno))) {
        return;
      }
      break;
    }
    alive = result.status == sys::IoResult::Status::done;
    os_errno = writable ? result.os_errno : os_errno;
  }
  end_handshake(writable, os_errno);
}

void Link::end_handshake(bool writable, int os_errno) {
  if (common_.local_end.fault()) {
    (void)write_handshake(os_errno);  // the ERROR command, if the peer still reads
    fail_handshake(Error(common_.local_end.fault()->code, common_.local_end.fault()->text),
                   common_.local_end.fault()->detail);
  } else if (!common_.local_end.ready()) {
    // A server of CURVE cannot open a HELLO for another key, and ends without an answer.
    const bool curve = connecting() && common_.local_end.mechanism_name() == "CURVE" && !common_.local_end.serves();
    fail_stream(curve ? kClosedInCurve : kClosedInHandshake, os_errno);
  } else if ((!writable || !write_handshake(os_errno)) && !has_last_words()) {
    fail_stream(kClosedInHandshake, os_errno);
  } else if (common_.local_end.pending_output().empty()) {
    enter_traffic();
  }
}

// Whether a peer that has left needs no answer of ours for its messages. They count as if it had left after the answer
// of the authenticator.
bool Link::has_said_all() noexcept {
  for (int reads = 0; !common_.local_end.completes(receive_.reader().unparsed()); ++reads) {
    bool drained = false;
    if (reads == kLastReadsMax || receive_.reader().fill(*common_.stream, nullptr, drained, kHandshakeReadMax).status !=
                                      sys::IoResult::Status::done) {
      return false;
    }
  }
  return true;
}

// The stream takes no more of our handshake, but the peer's is whole. Returns true if messages came after it, which
// count as if the peer had left a moment later; the traffic begins and ends with them.
bool Link::has_last_words() {
  MessageReader& reader = receive_.reader();
  common_.stream->admit();  // a message in fragments may need more than a peer before its handshake gets
  for (int reads = 0; reader.unparsed().empty() && reads < kLastReadsMax; ++reads) {
    bool drained = false;
    if (reader.fill(*common_.stream, nullptr, drained, kHandshakeReadMax).status != sys::IoResult::Status::done) {
      return false;
    }
  }
  common_.local_end.consume_output(common_.local_end.pending_output().size());
  return !reader.unparsed().empty();
}

// Of a raw connection, which has no handshake of its own.
void Link::handle_layer_handshake() {
  push_layer();
  bool drained = false;
  const sys::IoResult result = receive_.reader().fill(*common_.stream, nullptr, drained, kHandshakeReadMax);
  if (common_.stream->state().established) {
    enter_traffic();  // which reads on, also an end
  } else if (result.cut) {
    receive_.reader().settle();
    common_.io.request(common_.connection.shared_from_this(), IoService::read);
  } else if (result.status != sys::IoResult::Status::would_block) {
    fail_stream(kClosedInHandshake, result.os_errno);
  } else {
    receive_.reader().settle();
  }
}

void Link::answer_question() {
  if (zap_ != nullptr) {
    return;  // asked already
  }
  const Options& options = *common_.options;
  const std::string address = host_of(*common_.stream);
  std::string_view mechanism = common_.local_end.mechanism_name();
  std::vector<std::string> credentials = common_.local_end.question()->credentials;
  if (std::string subject = certificate_subject(); mechanism == "NULL" && !subject.empty()) {
    mechanism = kTlsMechanism;
    credentials.push_back(std::move(subject));
  }
  auto asked = common_.owner.ask_authenticator(
      common_.io.loop(), {options.zap_domain, address, options.routing_id, mechanism, credentials},
      [this](const ZapReply& reply) { take_zap_reply(reply); });
  const auto refuse = [this](StaticText why) { fail_handshake(Error(Errc::no_such_endpoint, why)); };
  if (!asked) {
    fail_handshake(asked.error());
  } else if (*asked == nullptr) {
    // No authenticator: CURVE has proved that the client has our key, PLAIN has proved nothing. As in libzmq.
    const bool unproven =
        common_.local_end.mechanism_name() == "PLAIN" || (options.zap_enforce_domain && !options.zap_domain.empty());
    unproven ? refuse("there is no authenticator") : common_.local_end.answer(zmtp::kAdmitted, sys::now());
  } else {
    zap_ = std::move(*asked);
  }
}

void Link::take_zap_reply(const ZapReply& reply) noexcept {
  const auto keep = keep_alive();
  try {
    handle_zap_reply(reply);
  } catch (const std::bad_alloc&) {
    handle_no_memory();
  }
}

void Link::handle_zap_reply(const ZapReply& reply) {
  const auto request = std::move(zap_);  // until the end of its own callback
  if (reply.breach != ZapBreach::none) {
    fail_handshake(Error(Errc::handshake_refused, "the authenticator's reply is no ZAP"),
                   static_cast<std::uint32_t>(reply.breach));
    return;
  }
  if (reply.status == zmtp::kRefusedForNow) {
    refused_for_now_ = true;
    emit(EventKind::handshake_failed, Error(Errc::handshake_refused, "refused for now"), -1, zmtp::kRefusedForNow);
    await_leaving();
    return;
  }
  authenticated_ = reply.metadata;
  authenticated_.emplace_back("User-Id", reply.user_id.empty() ? certificate_subject() : reply.user_id);
  common_.local_end.answer(reply.status, sys::now());
  handle_handshake();
}

// The client gets no answer and may come again: after it gave up, or when the time for the handshake is over.
void Link::await_leaving() {
  for (Turn turn = common_.io.turn(); turn.may_read();) {
    receive_.reader().reset();
    bool drained = false;
    const sys::IoResult result = receive_.reader().fill(*common_.stream, nullptr, drained, turn.read_max());
    if (result.status == sys::IoResult::Status::would_block) {
      receive_.reader().reset();
      return;
    }
    if (result.status != sys::IoResult::Status::done) {
      fail_stream(kClosedInHandshake, result.os_errno);
      return;
    }
    turn.count_read(result);
  }
  common_.io.request(common_.connection.shared_from_this(), IoService::read);
}

// Greet with ZMTP 3 where a ZMTP 3 peer answered before, not where the peer is unknown. An old peer would need a second
// connection and lose the messages that it queued for the first; a PAIR of libzmq 2.x would abort.
void Link::choose_opening() noexcept {
  const bool modern = connecting() && common_.local_end.version() == zmtp::Version::v3;
  opening_ = modern ? zmtp::Opening::whole : zmtp::Opening::signature;
}

// The stream failed. A monitor of libzmq's kind reports only failures with a detail.
void Link::fail_stream(StaticText text, int os_errno) noexcept {
  const Error reason = common_.failure_or(Error(Errc::connection_closed, text, os_errno));
  const bool websocket = common_.layered() && net::is_websocket(common_.layering->endpoint.transport);
  const zmtp::Breach breach = reason != Errc::protocol_error ? zmtp::Breach::none
                              : websocket                    ? zmtp::Breach::websocket
                                                             : zmtp::Breach::unspecified;
  fail_handshake(reason, static_cast<std::uint32_t>(breach));
}

void Link::fail_handshake(Error reason, std::uint32_t detail) noexcept {
  const int fd = common_.stream != nullptr ? common_.stream->fd() : -1;
  const bool again = connecting() && common_.local_end.greeted_too_much();
  const bool keeps = keeps_stream(reason);
  const bool in_tls = reason == Errc::protocol_error && common_.failed_in_tls();
  const bool told = again || std::exchange(refused_for_now_, false);
  emit(told ? EventKind::disconnected : EventKind::handshake_failed, reason, fd, detail);
  drop_stream(keeps);
  choose_opening();
  if (keeps) {
    begin_later();
  } else if (again) {
    retry_later(Cause::misgreeted);
  } else if (ends_for_good(reason, in_tls)) {
    finish();
  } else {
    retry_later(Cause::handshake_failed, in_tls ? Pace::costly : Pace::usual);
  }
}

// Another try would end the same way: the peer has refused us, or one side broke the protocol of ZMTP.
bool Link::ends_for_good(const Error& reason, bool in_tls) const noexcept {
  const Errc code = reason.code();
  const bool fault = code == Errc::protocol_error || code == Errc::incompatible_peer ||
                     code == Errc::handshake_refused || code == Errc::message_too_large;
  return !connecting() || (fault && !in_tls && !common_.options->reconnect_after_fault);
}

// Of the certificate by which TLS has verified the client; empty: none.
std::string Link::certificate_subject() const {
  const auto info = common_.layered() && !connecting() ? net::tls_info(*common_.stream) : std::nullopt;
  return info ? info->peer_subject : std::string();
}

// The properties of the peer that a received message can tell.
void Link::remember_peer() {
  // The first of a name counts, so our own and the authenticator's properties stand before the peer's.
  zmtp::Metadata properties = authenticated_;
  if (std::string subject = certificate_subject(); !subject.empty()) {
    properties.emplace_back("User-Id", std::move(subject));
  }
  properties.emplace_back("Peer-Address", host_of(*common_.stream));
  properties.emplace_back("__fd", std::to_string(common_.stream->fd()));  // libzmq's name
  for (auto& property : common_.local_end.take_peer_metadata()) {         // up to 16 KiB, which are held once
    if (property.first != "User-Id") {                                    // only an authenticator may set it
      properties.push_back(std::move(property));
    }
  }
  peer_ = KnownPeer::remember(properties);
}

// Whether the application gets an empty message at that point.
bool Link::tells(Notice notice) const noexcept {
  const bool router = common_.share.traits.wire == zmtp::WireType::router;
  return raw_ ? common_.options->stream_notify : router && (common_.options->router_notify & notice) != 0;
}

// Why the pattern refused the connection.
Error Link::describe_refusal() const {
  if (raw_) {
    return {Errc::resource_exhausted, "too many connections have ended and were not received from"};
  }
  return speaks_zmtp() ? Error(Errc::address_in_use, "another peer has this routing id")
                       : Error(Errc::invalid_state, "the socket has an endpoint for datagrams already");
}

void Link::enter_traffic() {
  WEFT_ASSERT(send_.held_by_link() && receive_.held_by_link());
  const bool has_mechanism = speaks_zmtp();
  zmtp::Mechanism* const cipher = has_mechanism ? common_.local_end.cipher() : nullptr;
  const zmtp::Framing framing = raw_ ? zmtp::Framing::none : common_.local_end.framing();
  send_.connect(cipher, framing, common_.local_end.minor_version(),
                has_mechanism && common_.local_end.peer_has_filters());
  receive_.connect(cipher, framing);
  choose_opening();
  phase_ = Phase::traffic;
  common_.stream->admit();
  if (send_.channel().bytes_beside() != SIZE_MAX) {
    bound_unsent();
  }
  if (!common_.stream->state().datagrams) {
    remember_peer();
  }
  if (!closing_.begun && !common_.owner.connection_ready(common_.connection, common_.local_end.peer_identity())) {
    fail_handshake(describe_refusal());
    return;
  }
  if (!closing_.begun && common_.share.traits.takes_subscriptions && !common_.local_end.subscribes_by_itself()) {
    (void)common_.owner.handle_subscription(common_.connection, true, {FilterKind::prefix, {}});
  }
  if (connector_ != nullptr) {
    connector_->handle_success();
  }
  traffic_since_ = sys::now();
  if (has_mechanism) {
    emit(EventKind::handshake_succeeded, Error(), common_.stream->fd());
    schedule_peer_time();
  } else {
    schedule<&Link::handle_peer_time>(timers_.peer, kNever);
  }
  send_.give_to_senders();
  set_interest(traffic_interest());
  receive_.begin_traffic(!closing_.begun && tells(kBegin));
  common_.share.output_parker.wake_with_fence();
  if (closing_.begun) {
    linger();
  }
}

}  // namespace weft::msg
