// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/rpc_service.h"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "weft/serve/rpc/incoming.h"
#include "weft/serve/session/session_task.h"
#include "weft/serve/session/shard.h"
#include "weft/sys/clock.h"

namespace weft::serve::rpc {

namespace {

constexpr std::uint32_t kCallsMax = std::uint32_t{1} << 16;  // calls_max of a service is at most this
constexpr Error kUnasked(Errc::protocol_error, "a client sent an answer");
constexpr Error kDuplicate(Errc::protocol_error, "a request has the id of a call in flight");

// The methods, and the one that lists them. With Methods::kMethodsMax of them, there is none that does.
std::shared_ptr<const Methods> with_list(Methods methods) {
  auto shared = std::make_shared<Methods>(std::move(methods));
  (void)shared->add_reserved<ListMethods>([listed = shared.get()] { return listed->list(); });
  return shared;
}

ServiceOptions bounded(ServiceOptions options) noexcept {
  options.calls_max = std::clamp<std::uint32_t>(options.calls_max, 1, kCallsMax);
  return options;
}

}  // namespace

// --- the state of all cores ---

ServiceState::ServiceState(Methods methods, const ServiceOptions& options)
    : methods_(with_list(std::move(methods))), options_(bounded(options)) {}

ServiceState::ServiceState(MakeMethods make, const ServiceOptions& options)
    : make_(std::move(make)), options_(bounded(options)) {}

std::shared_ptr<const Methods> ServiceState::methods(rt::Core& core) const {
  return make_ ? with_list(make_(core)) : methods_;
}

RpcCounters& ServiceState::add_counters() {
  const sync::LockGuard lock(mutex_);
  counters_.push_back(std::make_unique<RpcCounters>());
  return *counters_.back();
}

RpcCounts ServiceState::counts() const {
  RpcCounts sum;
  const sync::LockGuard lock(mutex_);
  for (const auto& one : counters_) {
    sync::add_counters(sum, *one);
  }
  return sum;
}

HandlerTimes& ServiceState::add_times() {
  const sync::LockGuard lock(mutex_);
  times_.push_back(std::make_unique<HandlerTimes>());
  return *times_.back();
}

void ServiceState::read_times(std::string_view name, sync::DurationReadings& into) const {
  const sync::LockGuard lock(mutex_);
  for (const auto& one : times_) {
    one->read_into(kRpcTimesRow, {"rpc", std::string(name)}, into);
  }
}

// --- one core ---

CoreService::CoreService(std::shared_ptr<ServiceState> state, rt::Core& core)
    : state_(std::move(state)), methods_(state_->methods(core)), counts_(state_->add_counters()) {
  if (state_->options().time_handlers) {
    HandlerTimes& times = state_->add_times();
    for (const MethodInfo& method : methods_->list()) {
      times_.push_back(&times.series({{"method", method.name}}));
    }
  }
}

void CoreService::on_frame(Session& session, const Codec::Frame& frame) {
  switch (frame.header.type) {
    case FrameType::request: return begin(session, frame);
    case FrameType::cancel: return cancel(session, frame.header.id);
    case FrameType::data:
    case FrameType::end:
    case FrameType::credit: return handle_stream(session, frame);
    case FrameType::answer: break;
  }
  counts_.unasked.add();
  session.refuse(kUnasked);
}

void CoreService::on_close(Session& session, const Error& /*why*/) {
  delete table_of(session);
  session.set_context(nullptr);
}

void CoreService::begin(Session& session, const Codec::Frame& frame) {
  const CallTable* const table = table_of(session);
  if (table != nullptr && table->find(frame.header.id) != nullptr) {
    counts_.duplicates.add();
    return session.refuse(kDuplicate);
  }
  const Instant deadline = deadline_after(session.shard().loop().now(), duration_of(frame.header.time_us));
  const Methods::Entry* const entry = methods_->find(frame.header);
  if (entry != nullptr && entry->start != nullptr) {
    return start(session, frame, *entry, deadline);
  }
  Incoming call(session, counts_, frame.header, entry != nullptr ? std::string_view(entry->name) : frame.header.method,
                frame.body, deadline);
  if (entry == nullptr) {
    return call.refuse_with(status_error(Status::unknown_method, "the server has no such method"));
  }
  session.note_handler(entry->number);
  sync::DurationCounts* const times = times_of(*entry);
  const std::uint64_t began = times != nullptr ? sys::ticks() : 0;
  try {
    entry->call(entry->handler.get(), call);
  } catch (...) {
    call.note_thrown(std::current_exception());
  }
  if (times != nullptr) {
    times->add(sys::time_between(began, sys::ticks()));
  }
}

// A call that lives as long as its coroutine. Its tracestate and its body are copied after it.
struct CoreService::Kept {
  Kept(Session& of, sync::DurationCounts* in) noexcept
      : session(of), times(in), began(in != nullptr ? sys::ticks() : 0) {}
  // Before there is a call.
  Kept(Kept&& other) noexcept : session(other.session), times(other.times), began(other.began) {}
  Kept& operator=(Kept&&) = delete;
  ~Kept() = default;

  void handle_end(const Error& outcome, bool /*cancelled*/) noexcept {
    if (times != nullptr) {
      times->add(sys::time_between(began, sys::ticks()));
    }
    call->end_unanswered();
    if (!(outcome == Errc::ok)) {
      session.abort(CloseReason::service_failed, outcome);
    }
  }

  Session& session;
  sync::DurationCounts* times;  // null: it is not measured
  std::uint64_t began;
  std::optional<Incoming> call;
};

void CoreService::start(Session& session, const Codec::Frame& frame, const Methods::Entry& entry, Instant deadline) {
  const CallTable* const table = table_of(session);
  const bool full = table != nullptr && table->size() >= state_->options().calls_max;
  if (!full && try_start(session, frame, entry, deadline)) {
    return;
  }
  Incoming refused(session, counts_, frame.header, entry.name, frame.body, deadline);
  refused.note_busy(full ? "the connection has calls_max calls in flight" : "no memory for the call");
}

// Returns false, and nothing has begun, if there is no memory.
bool CoreService::try_start(Session& session, const Codec::Frame& frame, const Methods::Entry& entry,
                            Instant deadline) {
  using Block = SessionTaskOf<void, Kept>;
  if (session.context() == nullptr) {
    session.set_context(new (std::nothrow) CallTable);
  }
  const std::string_view state = frame.header.state;
  auto block = Block::make(Kept(session, times_of(entry)), state.size() + frame.body.size());
  if (session.context() == nullptr || block == nullptr) {
    return false;
  }
  std::uint8_t* const room = block->room();
  copy_bytes(room, as_bytes(state));
  copy_bytes(room + state.size(), frame.body);
  Header header = frame.header;
  header.state = as_text(Bytes(room, state.size()));
  header.method = {};
  Incoming& call = block->kept().call.emplace(session, counts_, header, entry.name,
                                              Bytes(room + state.size(), frame.body.size()), deadline);
  if (!call.enter(*table_of(session), session.shard().loop().timers())) {
    return false;
  }
  if (entry.receives || entry.sends) {
    call.open_stream(entry.receives, entry.sends);
  }
  session.note_handler(entry.number);
  try {
    rt::Task<> task = entry.start(entry.handler.get(), call);
    return session.start_handler(Block::with_task(std::move(block), std::move(task)), true).has_value();
  } catch (const std::bad_alloc&) {  // for the frame of the coroutine
    return false;
  }
}

void CoreService::cancel(Session& session, std::uint64_t id) {
  const CallTable* const table = table_of(session);
  if (Incoming* const call = table != nullptr ? table->find(id) : nullptr) {
    return call->cancel();
  }
  counts_.cancels_late.add();
}

void CoreService::handle_stream(Session& session, const Codec::Frame& frame) {
  const CallTable* const table = table_of(session);
  Incoming* const call = table != nullptr ? table->find(frame.header.id) : nullptr;
  if (call == nullptr) {
    return counts_.messages_late.add();
  }
  Result<void> handled = Error(Errc::protocol_error, "a message of a call that is not a stream");
  if (StreamEnd* const stream = call->stream()) {
    handled = frame.header.type == FrameType::data  ? stream->handle_data(frame.body)
              : frame.header.type == FrameType::end ? stream->handle_end()
                                                    : stream->handle_credit(frame.header.number);
  }
  if (handled.error() == Errc::resource_exhausted) {
    call->end_for_memory();
  } else if (!handled) {
    counts_.faults.add();
    session.refuse(handled.error());
  }
}

Result<std::string> listen(Server& server, std::string_view endpoint, const Service& service, ListenerOptions options) {
  // A coroutine that has answered may end a turn later, while its caller's next request begins.
  options.limits.handlers_max = std::max(options.limits.handlers_max, 2 * service.options().calls_max);
  return server.listen<Codec>(endpoint, options, service.services(), service.codec());
}

}  // namespace weft::serve::rpc
