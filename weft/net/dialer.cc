// SPDX-License-Identifier: MIT
#include "weft/net/dialer.h"

#include <algorithm>
#include <mutex>

#include "weft/net/transport.h"
#include "weft/sys/address.h"
#include "weft/sys/call.h"

namespace weft::net {

// The place where the resolver's thread leaves its answer for the owner's thread.
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
  addresses_ = WEFT_TRY(row_.known_addresses(hop()));
  return addresses_.empty() ? begin_lookup() : try_next_address();
}

Result<Progress> Dialer::finish() {
  switch (state_) {
    case State::idle: return Error(Errc::invalid_state, "finish without begin");
    case State::resolving: return finish_lookup();
    case State::connected: return Progress::connected;
    case State::connecting:
    case State::asking_proxy: break;
  }
  const auto progress = state_ == State::connecting ? finish_connect() : ask_proxy();
  if (progress) {
    return progress;
  }
  last_error_ = progress.error();
  return try_next_address();
}

sys::Interest Dialer::interest() const noexcept {
  const bool reads = state_ == State::asking_proxy && socks_.pending_output().empty();
  return reads ? sys::Interest::readable : sys::Interest::writable;
}

std::unique_ptr<Stream> Dialer::take_stream() {
  if (state_ != State::connected) {
    return nullptr;
  }
  auto stream = std::move(stream_);
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
  stream_.reset();
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
  auto request = resolver_->submit(hop().host, hop().port, options_.ipv6, std::move(deliver));
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
    const auto progress = try_address(addresses_[next_address_++]);
    if (progress) {
      return progress;
    }
    last_error_ = progress.error();
  }
  return fail(last_error_);
}

Result<Progress> Dialer::try_address(const sys::SocketAddress& address) {
  stream_.reset();
  connecting_ = {};
  connecting_ =
      WEFT_TRY(row_.begin_connect(address, proxy_ && proxy_->endpoint.has_source ? hop() : endpoint_, options_));
  state_ = State::connecting;
  return connecting_.connected ? finish_connect() : Progress::pending;
}

Result<Progress> Dialer::finish_connect() {
  if (const auto outcome = sys::finish_connect(fd()); !outcome) {
    return outcome.error() == Errc::would_block ? Result<Progress>(Progress::pending) : outcome.error();
  }
  stream_ = make_socket_stream(std::move(connecting_.fd));
  if (!proxy_) {
    state_ = State::connected;
    return Progress::connected;
  }
  state_ = State::asking_proxy;
  socks_.start(*proxy_, endpoint_.host, endpoint_.port);
  return ask_proxy();
}

Result<Progress> Dialer::ask_proxy() {
  const auto check = [](const sys::IoResult& result) -> Result<void> {
    if (result.status == sys::IoResult::Status::end_of_stream) {
      return Error(Errc::connection_closed, "SOCKS proxy: it closed the connection");
    }
    return result.status == sys::IoResult::Status::failed
               ? sys::make_error(result.os_errno, "SOCKS proxy: the connection to it broke")
               : Result<void>();
  };
  while (!socks_.done()) {
    const Bytes output = socks_.pending_output();
    if (!output.empty()) {
      const sys::IoResult written = stream_->write({&output, 1});
      WEFT_TRY(check(written));
      if (written.status == sys::IoResult::Status::would_block) {
        return Progress::pending;
      }
      socks_.consume_output(written.bytes);
      continue;
    }
    std::uint8_t bytes[64];
    MutableBytes into(bytes, std::min(sizeof bytes, socks_.wanted()));
    const sys::IoResult read = stream_->read({&into, 1});
    WEFT_TRY(check(read));
    if (read.status == sys::IoResult::Status::would_block) {
      return Progress::pending;
    }
    socks_.handle_input(Bytes(bytes, read.bytes));
    if (socks_.fault()) {
      return *socks_.fault();
    }
  }
  state_ = State::connected;
  return Progress::connected;
}

Error Dialer::fail(Error error) {
  cancel();
  return error;
}

}  // namespace weft::net
