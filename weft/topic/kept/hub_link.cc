// SPDX-License-Identifier: MIT
// HubLink: requests, deadlines, and the ops of the hub.
#include "weft/topic/kept/hub_link.h"

#include <algorithm>
#include <array>
#include <new>

#include "weft/base/endian.h"
#include "weft/base/no_memory.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sync/kept_text.h"

namespace weft::topic {

namespace {
constexpr Error kUnknown(Errc::outcome_unknown, "the hub did not answer in time: it may have carried out the request");
constexpr Error kUnsent(Errc::timed_out, "no hub took the request in time");
constexpr Error kSilent(Errc::timed_out, "the hub did not answer in time");
// The servers of a fleet on NATS.
constexpr Error kServersUnknown(Errc::outcome_unknown,
                                "the servers of NATS did not answer in time: they may have carried out the request");
constexpr Error kServersSilent(Errc::timed_out, "the servers of NATS did not answer in time");
constexpr std::string_view kServersTrouble = "the servers of NATS did not answer in time; last: ";
constexpr std::string_view kServersTroubleUnknown = "the servers of NATS may have carried it out; last: ";

// RefusalTexts: of answers without a text.
struct RefusalTexts {
  StaticText not_found;
  StaticText conflict;
  StaticText resource_exhausted;
  StaticText corrupt;
  StaticText not_supported;
  StaticText other;
};
constexpr RefusalTexts kOfHub{
    "the hub has no such stream, topic, consumer or message",
    "the hub has another state than the request expects",
    "a bound of the stream or of the hub is reached",
    "the hub's file is damaged",
    "the hub cannot keep what was declared",
    "the hub refused the request",
};
constexpr RefusalTexts kOfServers{
    "the servers of NATS have no such stream, topic, consumer or message",
    "the servers of NATS have another state than the request expects",
    "a bound of the stream, of the account or of the servers of NATS is reached",
    "the file of a server of NATS is damaged",
    "the servers of NATS cannot keep what was declared",
    "the servers of NATS refused the request",
};

StaticText text_of(Errc errc, const RefusalTexts& texts) noexcept {
  switch (errc) {
    case Errc::not_found: return texts.not_found;
    case Errc::conflict: return texts.conflict;
    case Errc::resource_exhausted: return texts.resource_exhausted;
    case Errc::corrupt: return texts.corrupt;
    case Errc::not_supported: return texts.not_supported;
    default: return texts.other;
  }
}

}  // namespace

// Would_block would not be an end: a waiting caller would wait for ever.
Error HubLink::error_of(const Op& op) const noexcept {
  const Errc errc = op.error();
  if (errc == Errc::would_block) {
    return Error(Errc::protocol_error, "the answer says that there is none");
  }
  // The words of the answer name the cause. The body of a lease's conflict is the holder's data.
  const bool has_text = op.kind == OpKind::ended || op.number == 0;
  const std::string_view text = has_text ? as_text(op.body) : std::string_view();
  const StaticText otherwise = text_of(errc, settings_.direct ? kOfServers : kOfHub);
  return Error(errc, text.empty() ? otherwise : sync::keep_peer_text({text}, otherwise));
}

HubLink::HubLink(rt::Loop& loop, LinkSettings settings, Hosting hosting)
    : loop_(loop), settings_(std::move(settings)), hosted_(std::move(hosting)) {}

HubLink::~HubLink() { close(); }

void HubLink::close() noexcept {
  {
    const sync::LockGuard lock(mutex_);
    if (closed_) {
      return;
    }
    closed_ = true;
    while (!calls_.order.empty()) {
      HubCall& call = calls_.order.front();
      finish(call, call.sent && call.on_loss != OnLoss::resend ? unanswered(true) : kClosed);
    }
    for (auto& [id, channel] : channels_) {
      give_back_begun(*channel);
      send_settled(*channel, id);
      channel->state = KeptChannel::State::ended;
      channel->end = kClosed;
      send_op({.kind = OpKind::end, .flags = OpFlags::quiet, .id = id});
      channel->drop_queue();
      channel->changed.notify();
    }
    channels_.clear();
    declared_.clear();
    place_.notify();
  }
  flush();
  for (rt::TimerId* const timer : {&timer_, &retry_}) {
    if (*timer) {
      loop_.timers().cancel(std::exchange(*timer, {}));
    }
  }
  if (hosted_.hub != nullptr) {
    wait_for_hub();
  }
  drop_connection();
  hosted_ = {};
}

// The hub ends with this handle, so it first handles the handle's last acknowledgements. It answers a probe after them.
void HubLink::wait_for_hub() noexcept {
  constexpr Duration kLongest = std::chrono::seconds(1);
  loop_.unwatch(std::exchange(connection_.watch, 0));
  std::shared_ptr<msg::SocketCore> core;
  std::uint32_t id = 0;
  {
    const sync::LockGuard lock(mutex_);
    id = fresh_id();
    if (!send_op({.kind = OpKind::probe, .id = id})) {
      return;
    }
    core = connection_.socket.core();
  }
  flush();
  const Instant end = deadline_after(sys::now(), kLongest);
  for (;;) {
    Message message;
    msg::Inbound part{&message, {}};
    if (!core->recv(part, msg::Timeout::until(end)) || sys::now() >= end) {
      return;
    }
    if (const auto op = parse_op(message.bytes()); op && op->kind == OpKind::answer && op->id == id) {
      return;
    }
  }
}

KeptStatistics HubLink::statistics() const {
  const sync::LockGuard lock(mutex_);
  KeptStatistics all = counts_;
  all.in_flight = calls_.appends;
  all.channels = channels_.size();
  return all;
}

void HubLink::read_counters(std::string_view name, CounterReadings& into) const {
  into.push_back({&kKeptTable, {{"kept", std::string(name)}}, sync::read_counters(statistics())});
  CounterSource hub;
  {
    const sync::LockGuard lock(mutex_);
    hub = hub_counters_;
  }
  if (hub) {
    hub(name, into);
  }
}

Error HubLink::unanswered(bool unknown) const noexcept {
  if (!settings_.direct) {
    return unknown ? kUnknown : kSilent;
  }
  const Error& plain = unknown ? kServersUnknown : kServersSilent;
  const Error missing = settings_.servers_missing ? settings_.servers_missing() : Error();
  if (missing == Errc::ok) {
    return plain;
  }
  std::array<char, sync::kKeptTextSize> reason;
  return Error(plain.code(),
               sync::keep_text({unknown ? kServersTroubleUnknown : kServersTrouble, missing.write_message(reason)},
                               plain.static_text()));
}

Error HubLink::unsent() const noexcept {
  if (settings_.direct) {
    return unanswered(false);
  }
  if (trouble_ == Errc::ok) {
    return kUnsent;
  }
  const std::string_view text =
      trouble_ == Errc::handshake_refused ? "does the hub have this handle's key?" : trouble_.text();
  return Error(Errc::timed_out, sync::keep_text({"no hub took the request in time; last: ", settings_.endpoint, ": ",
                                                 describe(trouble_.code()), text.empty() ? "" : ": ", text},
                                                kUnsent.static_text()));
}

Error HubLink::untaken() const {
  const sync::LockGuard lock(mutex_);
  return unsent();
}

std::string HubLink::next_message_id() {
  const sync::LockGuard lock(mutex_);
  return settings_.id + '-' + std::to_string(++messages_);
}

// --- requests ---

std::uint32_t HubLink::fresh_id() noexcept {
  do {
    ++last_id_;
  } while (last_id_ == 0 || calls_.by_id.contains(last_id_) || channels_.contains(last_id_));
  return last_id_;
}

bool HubLink::has_place(const HubCall& call) const noexcept {
  if (!call.is_append) {
    return calls_.by_id.size() - calls_.appends < kCallsMax;
  }
  return calls_.appends == 0 ||
         (calls_.appends < kInFlightMax && calls_.append_bytes + call.footprint() <= kInFlightBytesMax);
}

Result<IntrusivePtr<HubCall>> HubLink::prepare(const Op& op, OnLoss on_loss, Instant deadline) {
  return or_no_memory([&]() -> Result<IntrusivePtr<HubCall>> {
    auto call = make_intrusive<HubCall>();
    call->on_loss = on_loss;
    call->is_append = op.kind == OpKind::append || op.kind == OpKind::append_all;
    call->deadline = deadline;
    call->request = WEFT_TRY(encoded(op));
    return call;
  });
}

Result<void> HubLink::start(const IntrusivePtr<HubCall>& call) {
  if (closed_) {
    return kClosed;
  }
  if (!has_place(*call)) {
    return Errc::would_block;
  }
  if (call->deadline <= sys::now()) {
    return unsent();
  }
  return or_no_memory([&]() -> Result<void> {
    sync::assume_locked(mutex_);
    if (state_ != Link::up) {
      want_connection();
    }
    want_timer(call->deadline);
    call->id = fresh_id();
    set_op_id(call->request.mutable_bytes(), call->id);
    calls_.by_id.emplace(call->id, call);
    calls_.order.push_back(*call);
    if (call->is_append) {
      ++calls_.appends;
      calls_.append_bytes += call->footprint();
      ++counts_.appended;
    }
    if (state_ == Link::up) {
      call->sent = send(call->request);
    }
    return {};
  });
}

rt::Task<Result<void>> HubLink::start_task(std::shared_ptr<HubLink> link, IntrusivePtr<HubCall> call) {
  HubLink* const self = link.get();
  const auto begin = [self, raw = &call] { return self->in_lock(), self->start(*raw); };
  const Result<void> started = co_await wait_task_until<void>(link, &self->place_, call->deadline, begin, nullptr);
  co_return started;
}
rt::Task<Result<void>> HubLink::run_task(std::shared_ptr<HubLink> link, IntrusivePtr<HubCall> call) {
  const Result<void> started = co_await start_task(link, call);
  if (!started) {
    co_return started.error();
  }
  const auto end = [raw = call.get()] { return outcome(*raw); };
  const Result<void> ended = co_await wait_task<void>(link, &call->changed, end, call);
  co_return ended;
}

Result<Message> HubLink::encoded(const Op& op) noexcept {
  WEFT_TRY(check_op(op));
  auto message = Message::with_size(encoded_size(op));
  if (message) {
    encode_op(op, message->mutable_bytes());
  }
  return message;
}

bool HubLink::send_op(const Op& op) noexcept {
  const auto message = state_ == Link::up ? encoded(op) : Result<Message>(Errc::closed);
  return message && send(*message);
}

// Returns false if the connection is about to end; the ops that it did not take leave again over the next one.
bool HubLink::send(const Message& message) noexcept {
  unanswered_bytes_ = 0;
  return static_cast<bool>(connection_.socket.try_send(message.share()));
}

Result<void> HubLink::keep_declaring(const std::string& stream, const Op& op) {
  Message message = WEFT_TRY(encoded(op));
  const sync::LockGuard lock(mutex_);
  if (closed_) {
    return kClosed;
  }
  if (declared_.size() >= kChannelsMax) {
    return Error(Errc::resource_exhausted, "4,096 streams in the memory of a hub");
  }
  return or_no_memory([&]() -> Result<void> {
    sync::assume_locked(mutex_);
    declared_.insert_or_assign(stream, std::move(message));
    return {};
  });
}
void HubLink::stop_declaring(const std::string& stream) noexcept {
  const sync::LockGuard lock(mutex_);
  declared_.erase(stream);
}

void HubLink::finish(HubCall& call, const Error& error) noexcept {
  const auto held = IntrusivePtr<HubCall>::retain(&call);
  call.unhook();
  calls_.by_id.erase(call.id);
  call.done = true;
  call.error = error;
  if (call.is_append) {
    --calls_.appends;
    calls_.append_bytes -= call.footprint();
    if (error == Error()) {
      ++counts_.acknowledged;
    } else if (error == Errc::outcome_unknown) {
      ++counts_.unknown;
    } else if (call.answer.kind == OpKind::answer) {
      ++counts_.refused;
    } else {
      ++counts_.unsent;
    }
  }
  call.request = Message();
  call.changed.notify();
  // Not for each answer: a publisher that waits for a place sends a quarter of all at once.
  if (!call.is_append || calls_.appends == 0 ||
      (calls_.appends <= kInFlightMax / 4 * 3 && calls_.append_bytes <= kInFlightBytesMax / 4 * 3)) {
    place_.notify();
  }
}

void HubLink::flush_sent() noexcept {
  if (state_ == Link::up) {
    connection_.socket.core()->flush_batches();
  }
}

// --- ops of the hub ---

void HubLink::handle_op(Message&& message) {
  const auto op = parse_op(message.bytes());
  if (!op) {
    ++counts_.malformed;
    return;
  }
  if (const auto found = channels_.find(op->id); found != channels_.end()) {
    const IntrusivePtr<KeptChannel> channel = found->second;
    handle_channel(*channel, std::move(message), *op);
  } else if (op->kind == OpKind::answer) {
    handle_answer(std::move(message), *op);
  } else if (op->kind == OpKind::delivery) {
    ++counts_.dropped_unasked;
  } else if (op->kind != OpKind::ended && op->kind != OpKind::caught_up) {
    ++counts_.malformed;  // of a channel that was just closed they may come
  }
}

void HubLink::handle_answer(Message&& message, const Op& op) {
  if (op.id == 0) {
    return;  // to a declaration that was repeated, or an acknowledgement
  }
  if (op.has(OpFlags::run)) {
    handle_run(op);
    return;
  }
  const auto found = calls_.by_id.find(op.id);
  if (found == calls_.by_id.end()) {
    ++counts_.malformed;  // it came after its deadline, or answers nothing
    return;
  }
  const IntrusivePtr<HubCall> call = found->second;
  const Errc errc = op.error();
  call->bytes = std::move(message);
  call->answer = *parse_op(call->bytes.bytes());  // its views point into the new place
  if (errc == Errc::ok && !call->is_append && !call->answer.key.empty()) {
    const auto asked = parse_op(call->request.bytes());
    if (asked && asked->kind == OpKind::declare) {
      fleet_store_ = call->answer.key;
    }
  }
  finish(*call, errc == Errc::ok ? Error() : error_of(op));
}

// One answer to appends whose ids and sequences follow each other.
void HubLink::handle_run(const Op& op) {
  if (op.error() != Errc::ok || op.second > kInFlightMax) {
    ++counts_.malformed;
    return;
  }
  for (std::uint32_t i = 0; i < op.second; ++i) {
    const auto found = calls_.by_id.find(op.id + i);
    if (found == calls_.by_id.end() || !found->second->is_append) {
      ++counts_.malformed;  // it came after its deadline, or answers nothing
      continue;
    }
    HubCall& call = *found->second;
    call.answer = {.kind = OpKind::answer, .id = call.id, .number = op.number + i};
    finish(call, Error());
  }
}

// --- deadlines ---

void HubLink::want_timer(Instant deadline) {
  if (deadline < timer_wanted_) {
    post(&HubLink::arm_timer);
    timer_wanted_ = deadline;
  }
}

void HubLink::arm_timer() {
  Instant wanted;
  {
    const sync::LockGuard lock(mutex_);
    if (closed_ || timer_wanted_ == kNever) {
      return;
    }
    wanted = timer_wanted_;
  }
  if (!timer_ || !loop_.timers().reschedule(timer_, wanted)) {
    timer_ = loop_.timers().schedule(wanted, {&HubLink::timer_fired, this});
  }
}

void HubLink::timer_fired(void* self) {
  auto& link = *static_cast<HubLink*>(self);
  link.timer_ = {};
  link.handle_deadlines();
}

void HubLink::handle_deadlines() {
  const Instant now = sys::now();
  {
    const sync::LockGuard lock(mutex_);
    Instant next = kNever;
    List<HubCall> kept;
    while (HubCall* const call = calls_.order.pop_front()) {
      if (call->deadline <= now) {
        finish(*call, !call->sent ? unsent() : unanswered(call->on_loss != OnLoss::resend));
      } else {
        next = std::min(next, call->deadline);
        kept.push_back(*call);
      }
    }
    while (HubCall* const call = kept.pop_front()) {
      calls_.order.push_back(*call);
    }
    for (auto at = channels_.begin(); at != channels_.end();) {
      KeptChannel& channel = *(at++)->second;  // end_channel() erases the entry
      if (channel.open_until <= now) {
        end_channel(channel, trouble_ == Errc::ok ? unanswered(false) : unsent());
      } else {
        next = std::min(next, channel.open_until);
      }
    }
    timer_wanted_ = next;
  }
  arm_timer();
}

}  // namespace weft::topic
