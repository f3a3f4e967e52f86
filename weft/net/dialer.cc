// SPDX-License-Identifier: MIT
#include "weft/net/dialer.h"

#include <mutex>
#include <optional>
#include <utility>

namespace weft::net {

// Where the resolver's thread leaves its answer for the owner's.
struct Dialer::LookupResult {
  std::mutex mutex;
  std::optional<Result<Resolver::Addresses>> answer;  // guarded by mutex
};

Dialer::Dialer(Endpoint endpoint, const sys::SocketOptions& options, Resolver* resolver)
    : endpoint_(std::move(endpoint)),
      options_(options),
      row_(transport_row(endpoint_.transport)),
      resolver_(resolver) {}

Result<Progress> Dialer::begin() {
  cancel();
  if (row_.begin_connect == nullptr) {
    return Error(Errc::not_supported, "this transport has no dialer");
  }
  addresses_ = WEFT_TRY(row_.known_addresses(endpoint_));
  return addresses_.empty() ? begin_lookup() : try_next_address();
}

Result<Progress> Dialer::finish() {
  switch (state_) {
    case State::idle: return Error(Errc::invalid_state, "finish without begin");
    case State::resolving: return finish_lookup();
    case State::connected: return Progress::connected;
    case State::connecting: break;
  }
  const auto outcome = sys::finish_connect(fd());
  if (outcome) {
    state_ = State::connected;
    return Progress::connected;
  }
  if (outcome.error() == Errc::would_block) {
    return Progress::pending;
  }
  last_error_ = outcome.error();
  return try_next_address();
}

std::unique_ptr<Stream> Dialer::take_stream() {
  if (state_ != State::connected) {
    return nullptr;
  }
  auto stream = make_socket_stream(std::move(connecting_.fd));
  cancel();
  return stream;
}

void Dialer::cancel() {
  if (request_ != 0) {
    resolver_->cancel(request_);
    request_ = 0;
  }
  lookup_.reset();
  connecting_ = {};
  addresses_.clear();
  next_address_ = 0;
  last_error_ = Error(Errc::connection_failed);
  state_ = State::idle;
}

Result<Progress> Dialer::begin_lookup() {
  if (resolver_ == nullptr) {
    resolver_ = &Resolver::shared();
  }
  lookup_ = std::make_shared<LookupResult>();
  auto deliver = [result = lookup_, notify = on_resolved_](Result<Resolver::Addresses> answer) {
    {
      const std::lock_guard lock(result->mutex);
      result->answer.emplace(std::move(answer));
    }
    if (notify) {
      notify();
    }
  };
  auto request = resolver_->submit(endpoint_.host, endpoint_.port, options_.ipv6, std::move(deliver));
  if (!request) {
    return fail(request.error());
  }
  request_ = *request;
  state_ = State::resolving;
  return Progress::resolving;
}

Result<Progress> Dialer::finish_lookup() {
  std::optional<Result<Resolver::Addresses>> answer;
  {
    const std::lock_guard lock(lookup_->mutex);
    answer.swap(lookup_->answer);
  }
  if (!answer) {
    return Progress::resolving;
  }
  request_ = 0;
  lookup_.reset();
  if (!*answer) {
    return fail(answer->error());
  }
  addresses_ = std::move(*answer).value();
  return try_next_address();
}

Result<Progress> Dialer::try_next_address() {
  while (next_address_ < addresses_.size()) {
    connecting_ = {};
    auto started = row_.begin_connect(addresses_[next_address_++], endpoint_, options_);
    if (!started) {
      last_error_ = started.error();
      continue;
    }
    connecting_ = std::move(started).value();
    if (!connecting_.connected) {
      state_ = State::connecting;
      return Progress::pending;
    }
    const auto outcome = sys::finish_connect(fd());
    if (outcome) {
      state_ = State::connected;
      return Progress::connected;
    }
    last_error_ = outcome.error();
  }
  return fail(last_error_);
}

Error Dialer::fail(Error error) {
  cancel();
  return error;
}

}  // namespace weft::net
