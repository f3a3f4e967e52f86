// SPDX-License-Identifier: MIT
#include "weft/zmtp/local_end.h"

#include <algorithm>
#include <chrono>

#include "weft/base/assert.h"
#include "weft/mem/secret.h"
#include "weft/zmtp/null.h"

namespace weft::zmtp {
namespace {

constexpr Duration kDecisecond = std::chrono::milliseconds(100);
constexpr std::uint64_t kSubscribeNameSize = 1 + std::string_view("SUBSCRIBE").size();

std::vector<std::uint8_t> encode_metadata(const LocalEndConfig& config) {
  std::vector<std::uint8_t> out;
  append_property(out, "Socket-Type", as_bytes(socket_type_name(config.socket_type)));
  if (sends_identity(config.socket_type)) {
    append_property(out, "Identity", as_bytes(config.identity));
  }
  if (config.announces_filters && knows_filters(config.socket_type)) {
    append_property(out, kFilterProperty, as_bytes("1"));
  }
  for (const auto& [name, value] : config.metadata) {
    append_property(out, name, as_bytes(value));
  }
  return out;
}

StaticText describe_mismatch(std::string_view theirs) {
  if (theirs == "NULL") {
    return "peer's security mechanism is NULL, not ours";
  }
  if (theirs == "PLAIN") {
    return "peer's security mechanism is PLAIN, not ours";
  }
  if (theirs == "CURVE") {
    return "peer's security mechanism is CURVE, not ours";
  }
  return "peer's security mechanism is not ours";
}

// The reasons "300", "400" and "500" are the statuses of a refused login. Any other reason is text for
// people.
int parse_status(std::string_view reason) {
  if (reason.size() != 3 || reason[0] < '3' || reason[0] > '5' || reason.substr(1) != "00") {
    return 0;
  }
  return (reason[0] - '0') * 100;
}

}  // namespace

LocalEnd::LocalEnd(LocalEndConfig config) : LocalEnd(std::move(config), std::make_unique<NullMechanism>()) {}

LocalEnd::LocalEnd(LocalEndConfig config, std::unique_ptr<Mechanism> mechanism)
    : config_(std::move(config)), mechanism_(std::move(mechanism)), our_metadata_(encode_metadata(config_)) {
  WEFT_ASSERT(mechanism_ != nullptr && config_.identity.size() <= kIdentityMax);
  const Limits& limits = config_.limits;
  const std::uint64_t topic_max = takes_filters(config_.socket_type)
                                      ? std::max(limits.subscription_bytes_max, limits.subscription_dropped_max)
                                      : limits.subscription_bytes_max;
  command_body_max_ = std::max<std::uint64_t>(limits.command_bytes_max, kSubscribeNameSize + topic_max);
}

void LocalEnd::start(Instant now, Opening opening) {
  fault_.reset();
  refusal_.clear();
  refusal_status_ = 0;
  asking_ = false;
  handshake_bytes_ = 0;
  greeted_too_much_ = mechanism_begun_ = false;
  peer_ = {};
  started_ = last_ping_ = now;
  unanswered_ = kNever;
  peer_ttl_ = Duration::zero();
  meters_ = {};

  wipe(output_);
  output_sent_ = greeting_offered_ = 0;
  offer_greeting(opening == Opening::whole || !takes_old_peers() ? kGreetingSize : kSignatureSize);
  phase_ = Phase::greeting;
}

// Offers our greeting up to `end`, without the part that went out already.
void LocalEnd::offer_greeting(std::size_t end) {
  if (greeting_offered_ >= end) {
    return;
  }
  Greeting greeting;
  greeting.set_mechanism(mechanism_->name());
  greeting.as_server = serves();  // RFC 23: NULL has no roles, the byte is 0
  std::uint8_t bytes[kGreetingSize];
  write_greeting(bytes, greeting, config_.identity.size());
  output_.insert(output_.end(), bytes + greeting_offered_, bytes + end);
  greeting_offered_ = end;
}

void LocalEnd::fail(Errc code, StaticText text, Breach breach) noexcept {
  if (!fault_) {
    fault_ = Fault{code, text, static_cast<std::uint32_t>(breach)};
  }
}

bool LocalEnd::serves() const noexcept { return config_.as_server && mechanism_->name() != "NULL"; }

// The fault has the status of the refused login, if there is one.
void LocalEnd::refuse(StaticText text) noexcept {
  if (!fault_) {
    fault_ = Fault{Errc::handshake_refused, text, static_cast<std::uint32_t>(refusal_status_)};
  }
}

void LocalEnd::consume_output(std::size_t size) noexcept {
  WEFT_ASSERT(size <= output_.size() - output_sent_);
  output_sent_ += size;
  if (output_sent_ == output_.size()) {
    wipe(output_);
    if (phase_ == Phase::traffic) {
      output_.shrink_to_fit();  // no output follows the handshake
    }
    output_sent_ = 0;
  }
}

std::size_t LocalEnd::handle_input(Bytes input, Instant now) {
  WEFT_ASSERT(phase_ != Phase::idle);
  std::size_t taken = 0;
  while (!fault_ && phase_ != Phase::traffic && !asking_) {
    const Bytes rest = input.subspan(taken);
    const std::size_t step =
        phase_ == Phase::handshake ? handle_handshake_frame(rest, now) : handle_greeting(rest, now);
    if (step == 0) {
      break;
    }
    taken += step;
  }
  return taken;
}

std::size_t LocalEnd::handle_greeting(Bytes input, Instant now) {
  if (phase_ == Phase::old_greeting) {
    return handle_old_greeting(input, now);
  }
  const Recognition seen = recognize_version(input);
  peer_.version = seen.version;
  if (seen.version == Version::foreign) {
    fail(Errc::protocol_error, seen.problem, Breach::unspecified);
    return 0;
  }
  if (is_old(seen.version)) {
    return begin_old_greeting() ? handle_old_greeting(input, now) : 0;
  }
  if (seen.version == Version::v3) {
    if (greeting_offered_ < kGreetingSize) {
      offer_greeting(kGreetingSize);
      begin_mechanism();  // NULL: our READY need not wait for the rest of the peer's greeting, which waited for ours
    }
    return handle_whole_greeting(input);
  }
  if (seen.has_signature) {
    offer_greeting(kMajorEnd);
  }
  return 0;
}

std::size_t LocalEnd::handle_whole_greeting(Bytes input) {
  const GreetingResult result = parse_greeting(input);
  if (result.status == ParseStatus::malformed) {
    fail(Errc::protocol_error, result.problem, Breach::unspecified);
  }
  if (result.status != ParseStatus::complete) {
    return 0;
  }
  Greeting wanted;
  wanted.set_mechanism(mechanism_->name());
  if (result.greeting.mechanism_field != wanted.mechanism_field) {
    fail(Errc::protocol_error, describe_mismatch(result.greeting.mechanism()), Breach::mechanism_mismatch);
    return kGreetingSize;
  }
  peer_.minor_version = result.greeting.major == 3 && result.greeting.minor == 0 ? 0 : 1;
  phase_ = Phase::handshake;
  begin_mechanism();
  asking_ = mechanism_->question() != nullptr;
  return kGreetingSize;
}

void LocalEnd::begin_mechanism() {
  if (!std::exchange(mechanism_begun_, true)) {
    mechanism_->start(our_metadata_);
    poll_mechanism();
  }
}

// Takes one whole frame or nothing. Reports a fault that the header alone shows before the body has arrived.
std::size_t LocalEnd::handle_handshake_frame(Bytes input, Instant now) {
  ZmtpFrameHeader header;
  const ParseStatus status = parse_frame_header(input, header);
  if (status == ParseStatus::malformed) {
    fail(Errc::protocol_error, "malformed frame header in the handshake");
  }
  if (status != ParseStatus::complete) {
    return 0;
  }
  if ((header.flags & kCommand) == 0) {
    fail(Errc::protocol_error, "peer sent a message before the handshake was over", Breach::unexpected_command);
    return 0;
  }
  if (header.body_size > config_.limits.handshake_bytes_max - handshake_bytes_) {
    fail(Errc::message_too_large, "handshake exceeds its limit");
    return 0;
  }
  if (header.body_size > input.size() - header.header_size) {
    return 0;
  }
  handshake_bytes_ += static_cast<std::uint32_t>(header.body_size);
  handle_handshake_command(input.subspan(header.header_size, header.body_size), now);
  return header.header_size + header.body_size;
}

bool LocalEnd::completes(Bytes input) const noexcept {
  ZmtpFrameHeader ready;
  return mechanism_name() == "NULL" && parse_frame_header(input, ready) == ParseStatus::complete &&
         ready.body_size < input.size() - ready.header_size;
}

void LocalEnd::handle_handshake_command(Bytes body, Instant now) {
  Command command;
  if (parse_command(body, command) != ParseStatus::complete) {
    return fail(Errc::protocol_error, "malformed handshake command",
                serves() ? Breach::malformed_command : Breach::unexpected_command);
  }
  if (command.name == "ERROR" && !serves()) {
    std::string_view reason;
    if (parse_error(command.data, reason) != ParseStatus::complete) {
      return fail(Errc::protocol_error, "malformed ERROR command", Breach::malformed_error);
    }
    refusal_ = reason;
    refusal_status_ = parse_status(reason);
    return refuse("peer answered the handshake with ERROR");
  }
  handle_step(mechanism_->handle_command(command), now);
}

void LocalEnd::handle_step(const Mechanism::Step& step, Instant now) {
  if (step.kind == Mechanism::Step::Kind::failed) {
    fault_ = fault_ ? fault_ : step.fault;
    return;
  }
  const bool done = step.kind == Mechanism::Step::Kind::ready;
  if (done && !accept_metadata(step.metadata)) {
    // libzmq raises this only at the client of a mechanism.
    const bool told = !serves() && mechanism_->name() != "NULL";
    fault_->detail = static_cast<std::uint32_t>(told ? Breach::invalid_metadata : Breach::none);
    return;
  }
  poll_mechanism();
  if (done) {
    phase_ = Phase::traffic;
    started_ = last_ping_ = now;
  }
  asking_ = !done && mechanism_->question() != nullptr;
}

void LocalEnd::answer(int status, Instant now) {
  if (!std::exchange(asking_, false) || fault_) {
    return;
  }
  if (status == kAdmitted) {
    return handle_step(mechanism_->admit(), now);
  }
  refusal_status_ = status;
  if (status == kRefused || status == kCannotTell) {
    append_error_frame(output_, status == kRefused ? "400" : "500");
  }
  refuse("the peer was not authenticated");
}

void LocalEnd::poll_mechanism() {
  std::vector<std::uint8_t> body;
  while (mechanism_->poll_command(body)) {
    append_command_frame(output_, body);
    wipe(body);  // PLAIN's password is in one
  }
}

bool LocalEnd::accept_metadata(Bytes metadata) {
  bool has_type = false;
  bool has_identity = false;
  std::string_view type;
  while (!metadata.empty()) {
    Property property;
    if (take_property(metadata, property) != ParseStatus::complete) {
      return fail(Errc::protocol_error, "malformed metadata"), false;
    }
    if (peer_.metadata.size() >= config_.limits.metadata_properties_max) {
      return fail(Errc::message_too_large, "more metadata properties than the limit"), false;
    }
    if (same_name(property.name, "Socket-Type")) {
      if (std::exchange(has_type, true)) {
        return fail(Errc::protocol_error, "peer sent Socket-Type twice"), false;
      }
      type = as_text(property.value);
    } else if (same_name(property.name, "Identity")) {
      if (std::exchange(has_identity, true)) {
        return fail(Errc::protocol_error, "peer sent Identity twice"), false;
      }
      if (!accept_identity(property.value)) {
        return false;
      }
    }
    peer_.has_filters |= config_.announces_filters && knows_filters(config_.socket_type) &&
                         same_name(property.name, kFilterProperty) && as_text(property.value) == "1";
    peer_.metadata.emplace_back(property.name, as_text(property.value));
  }
  if (!has_type) {
    return fail(Errc::protocol_error, "peer sent no Socket-Type"), false;
  }
  return accept_socket_type(type);
}

// RFC 23: identities that begin with a zero byte are for a ROUTER, which names anonymous peers so. A peer with such an
// identity could take the name of another.
bool LocalEnd::accept_identity(Bytes identity) {
  if (identity.size() > kIdentityMax) {
    return fail(Errc::protocol_error, "peer's identity is longer than 255 bytes"), false;
  }
  if (!identity.empty() && identity.front() == 0) {
    return fail(Errc::protocol_error, "peer's identity begins with a zero byte"), false;
  }
  peer_.identity = as_text(identity);
  return true;
}

bool LocalEnd::accept_socket_type(std::string_view value) {
  const std::optional<WireType> type = parse_socket_type(value);
  if (type && compatible(config_.socket_type, *type)) {
    peer_.type = *type;
    return true;
  }
  append_error_frame(output_, "Socket-Type cannot talk to this socket");
  fail(Errc::incompatible_peer,
       type ? StaticText("peer's socket type cannot talk to ours") : StaticText("peer's socket type is unknown"));
  return false;
}

Event LocalEnd::handle_command(Bytes body, Instant now) noexcept {
  WEFT_ASSERT(phase_ == Phase::traffic);
  Command command;
  if (fault_) {
    return {};
  }
  if (is_old(peer_.version)) {
    return fail(Errc::protocol_error, "a command from a peer whose version has none"), Event{};
  }
  if (parse_command(body, command) != ParseStatus::complete) {
    return fail(Errc::protocol_error, "malformed command"), Event{};
  }
  if (command.name == "SUBSCRIBE") {
    return subscription(Event::Kind::subscribe, command.data, now);
  }
  if (command.name == "CANCEL") {
    return subscription(Event::Kind::cancel, command.data, now);
  }
  if (takes_filters(config_.socket_type) && (command.name == "FILTER" || command.name == "UNFILTER")) {
    return filter(command.name == "FILTER" ? Event::Kind::filter : Event::Kind::unfilter, command.data, now);
  }
  if (body.size() > config_.limits.command_bytes_max) {
    return fail(Errc::message_too_large, "command exceeds its limit"), Event{};
  }
  if (command.name == "PING") {
    return ping(command.data, now);
  }
  if (config_.socket_type == WireType::radio && (command.name == "JOIN" || command.name == "LEAVE")) {
    if (command.data.size() > kGroupMax) {
      return fail(Errc::protocol_error, "a group is longer than 255 bytes"), Event{};
    }
    if (!meters_.subscriptions.take(config_.limits.subscriptions, now)) {
      return fail(Errc::protocol_error, "more JOIN and LEAVE commands than the limit"), Event{};
    }
    return {command.name == "JOIN" ? Event::Kind::join : Event::Kind::leave, 0, command.data, FilterKind::prefix};
  }
  Event event;
  if (command.name == "PONG") {
    if (parse_pong(command.data, event.topic_or_context) != ParseStatus::complete) {
      return fail(Errc::protocol_error, "malformed PONG command"), Event{};
    }
    if (!meters_.pongs.take(config_.limits.pongs, now)) {
      return fail(Errc::protocol_error, "more PONG commands than the limit"), Event{};
    }
    event.kind = Event::Kind::pong;
  } else if (command.name == "ERROR") {
    std::string_view reason;
    if (parse_error(command.data, reason) != ParseStatus::complete) {
      return fail(Errc::protocol_error, "malformed ERROR command"), Event{};
    }
    event.kind = Event::Kind::error;
    event.topic_or_context = as_bytes(reason);
  } else if (command.name == "READY") {
    fail(Errc::protocol_error, "peer sent READY twice");
  } else if (!meters_.unknown_commands.take(config_.limits.unknown_commands, now)) {
    fail(Errc::protocol_error, "more unknown commands than the limit");
  }
  return event;
}

Event LocalEnd::parse_legacy_subscription(Bytes message_body, Instant now) noexcept {
  if (fault_ || message_body.empty() || message_body[0] > 1) {
    return {};
  }
  return subscription(message_body[0] == 1 ? Event::Kind::subscribe : Event::Kind::cancel, message_body.subspan(1),
                      now);
}

Event LocalEnd::subscription(Event::Kind kind, Bytes topic, Instant now) noexcept {
  if (!meters_.subscriptions.take(config_.limits.subscriptions, now)) {
    return fail(Errc::protocol_error, "more subscriptions and cancellations than the limit"), Event{};
  }
  if (topic.size() > config_.limits.subscription_bytes_max) {
    return {Event::Kind::excess, 0, topic, FilterKind::prefix};
  }
  return {kind, 0, topic, FilterKind::prefix};
}

Event LocalEnd::filter(Event::Kind kind, Bytes data, Instant now) noexcept {
  if (!peer_.has_filters) {
    return fail(Errc::protocol_error, "a filter from a peer that announced none"), Event{};
  }
  FilterView filter{};
  if (parse_filter(data, filter) != ParseStatus::complete) {
    return fail(Errc::protocol_error, "malformed FILTER or UNFILTER command"), Event{};
  }
  if (!meters_.subscriptions.take(config_.limits.subscriptions, now)) {
    return fail(Errc::protocol_error, "more subscriptions and cancellations than the limit"), Event{};
  }
  return {kind, 0, as_bytes(filter.text), filter.kind};
}

Event LocalEnd::ping(Bytes data, Instant now) noexcept {
  Ping ping;
  if (parse_ping(data, ping) != ParseStatus::complete) {
    return fail(Errc::protocol_error, "malformed PING command"), Event{};
  }
  if (!meters_.pings.take(config_.limits.pings, now)) {
    return fail(Errc::protocol_error, "more PING commands than the limit"), Event{};
  }
  peer_ttl_ = ping.ttl_deciseconds * kDecisecond;
  return {Event::Kind::ping, ping.ttl_deciseconds, ping.context, FilterKind::prefix};
}

// The time when silence since `last_input` ends the connection. Input at the very instant of a PING counts as
// its answer. Clocks are read once per turn; a wrong "alive" costs one interval, a wrong "dead" costs the
// connection.
Instant LocalEnd::expiry(Instant last_input) const noexcept {
  if (phase_ != Phase::traffic) {
    const Duration wait = config_.handshake_timeout;
    return wait > Duration::zero() ? deadline_after(started_, wait) : kNever;
  }
  Instant at = kNever;
  if (peer_ttl_ > Duration::zero()) {
    at = deadline_after(std::max(last_input, started_), peer_ttl_);
  }
  if (unanswered_ != kNever && last_input < unanswered_) {
    const bool given = config_.heartbeat_timeout >= Duration::zero();
    const Duration wait = given ? config_.heartbeat_timeout : config_.heartbeat_interval;
    at = wait > Duration::zero() ? std::min(at, deadline_after(unanswered_, wait)) : at;
  }
  return at;
}

Instant LocalEnd::ping_due() const noexcept {
  const bool pinging =
      phase_ == Phase::traffic && config_.heartbeat_interval > Duration::zero() && !is_old(peer_.version);
  return pinging ? deadline_after(last_ping_, config_.heartbeat_interval) : kNever;
}

Instant LocalEnd::next_deadline(Instant last_input) const noexcept {
  if (fault_ || phase_ == Phase::idle) {
    return kNever;
  }
  return std::min(expiry(last_input), ping_due());
}

TimeAction LocalEnd::handle_time(Instant now, Instant last_input) noexcept {
  if (fault_ || phase_ == Phase::idle) {
    return TimeAction::none;
  }
  if (now >= expiry(last_input)) {
    fail(Errc::timed_out,
         phase_ == Phase::traffic ? StaticText("peer is silent") : StaticText("handshake took too long"));
    return TimeAction::expired;
  }
  if (now < ping_due()) {
    return TimeAction::none;
  }
  if (unanswered_ == kNever || last_input >= unanswered_) {
    unanswered_ = now;
  }
  last_ping_ = now;
  return TimeAction::send_ping;
}

std::uint16_t LocalEnd::ping_ttl_deciseconds() const noexcept {
  if (config_.heartbeat_ttl <= Duration::zero()) {
    return 0;
  }
  const Duration ttl = std::min<Duration>(config_.heartbeat_ttl, UINT16_MAX * kDecisecond);
  return static_cast<std::uint16_t>((ttl + kDecisecond - Duration(1)) / kDecisecond);
}

}  // namespace weft::zmtp
