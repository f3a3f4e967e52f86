// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/rpc_client.h"

#include <algorithm>

#include "weft/serve/rpc/status.h"
#include "weft/sys/clock.h"

namespace weft::serve::rpc {

Client::Client(std::shared_ptr<ClientHost> host, std::unique_ptr<Connection> connection, Duration timeout)
    : host_(std::move(host)), connection_(std::move(connection)), timeout_(timeout) {
  streams_->connection = connection_.get();
}

Instant Client::deadline_of(const CallOptions& options, Duration otherwise) noexcept {
  const Duration timeout = options.timeout.value_or(otherwise);
  const Instant own = timeout < Duration::zero() ? kNever : deadline_after(sys::now(), timeout);
  return options.within != nullptr ? std::min(own, options.within->deadline()) : own;
}

Result<Client::Asking> Client::ask(Header header, std::string_view name, Bytes body, const CallOptions& options) {
  trace::TraceContext inherited;
  const trace::TraceContext* context = options.trace;
  if (context == nullptr && options.within != nullptr) {
    inherited = options.within->trace();
    context = &inherited;
  }
  std::string_view state;
  if (context != nullptr && !context->empty()) {
    header.traced = true;
    header.trace = context->trace_id();
    header.span = context->span_id();
    header.sampled = context->is_sampled();
    state = context->tracestate();
  }
  OwnedBytes sent;
  if (!sent.assign_parts({as_bytes(state), as_bytes(name), body})) {
    return Error(Errc::resource_exhausted, "no memory for the body of a call").with_fate(Fate::not_sent);
  }
  const Bytes kept = sent.bytes();
  header.state = as_text(kept.first(state.size()));
  if (!name.empty()) {
    header.method = as_text(kept.subspan(state.size(), name.size()));
  }
  auto answer = connection_->ask(header, kept.subspan(state.size() + name.size()), deadline_of(options, timeout_));
  return Asking(std::move(sent), std::move(answer));
}

Error Client::error_of_answer(const Answer& answer, std::string* refusal) {
  const Header& header = answer.header();
  const std::string_view text = as_text(answer.body()).substr(0, kTextMax);
  if (refusal != nullptr) {
    *refusal = text;
  }
  return error_of({header.status, static_cast<std::uint16_t>(header.number), text});
}

Result<std::shared_ptr<ClientStreamState>> Client::begin_stream(const Header& header, Bytes body, CallOptions options,
                                                                bool receives, bool sends) {
  if (const Error wrong = connection_->used_elsewhere(); !(wrong == Errc::ok)) {
    return wrong;
  }
  if (!options.timeout) {
    options.timeout = Duration(-1);
  }
  if (!std::exchange(streams_->listens, true)) {
    connection_->on_push([table = streams_](const Codec::Frame& frame) { table->handle(frame); });
  }
  auto state = std::make_shared<ClientStreamState>(streams_, host_, receives, sends);
  Header with_receiver = header;
  with_receiver.receiver = &state->receiver();
  Asking asking = WEFT_TRY(ask(with_receiver, {}, body, options));
  WEFT_TRY(state->scope().spawn(run_stream(state, std::move(asking), options.refusal)));
  return state;
}

rt::Task<void> Client::run_stream(std::shared_ptr<ClientStreamState> state, Asking asking, std::string* refusal) {
  Result<Answer> answered = co_await asking.answer;
  if (!answered) {
    state->finish(answered.error(), OwnedBytes());
  } else if (answered->header().is_error()) {
    state->finish(error_of_answer(*answered, refusal), OwnedBytes());
  } else {
    state->finish(Error(), answered->take_body());
  }
}

rt::Task<Result<OwnedBytes>> Client::call_bytes(std::string_view method, Bytes body, const CallOptions& options) {
  if (!is_method_name(method)) {
    return fail<OwnedBytes>(Error(Errc::invalid_argument, "not the name of a method").with_fate(Fate::not_sent));
  }
  Result<Asking> asking = ask(Header(), method, body, options);
  return asking ? finish<OwnedBytes>(*std::move(asking), options.refusal) : fail<OwnedBytes>(asking.error());
}

}  // namespace weft::serve::rpc
