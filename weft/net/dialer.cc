// SPDX-License-Identifier: MIT
#include "weft/net/dialer.h"

#include <algorithm>
#include <utility>

#include "weft/net/transport/transport.h"
#include "weft/sync/lock.h"
#include "weft/sys/address.h"
#include "weft/sys/call.h"
#include "weft/sys/clock.h"

namespace weft::net {

// The place where the resolver's thread leaves its answer for the owner's thread.
struct Dialer::LookupResult {
  sync::StdMutex mutex;
  std::optional<Result<Resolver::Addresses>> answer WEFT_GUARDED_BY(mutex);
};

namespace {

// RFC 8305 section 4: the families in turns, beginning with that of the first address.
std::vector<sys::SocketAddress> in_turns(std::vector<sys::SocketAddress> addresses) {
  if (addresses.empty()) {
    return addresses;
  }
  const auto family = addresses.front().family();
  const auto second = std::stable_partition(addresses.begin(), addresses.end(),
                                            [&](const sys::SocketAddress& one) { return one.family() == family; });
  std::vector<sys::SocketAddress> turns;
  turns.reserve(addresses.size());
  for (auto one = addresses.begin(), other = second; one != second || other != addresses.end();) {
    if (one != second) {
      turns.push_back(*one++);
    }
    if (other != addresses.end()) {
      turns.push_back(*other++);
    }
  }
  return turns;
}

}  // namespace

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
  tried_address_.reset();
  looked_up_ = false;
  addresses_ = WEFT_TRY(row_.known_addresses(hop()));
  return addresses_.empty() ? begin_lookup() : try_addresses();
}

Result<Progress> Dialer::finish() {
  switch (state_) {
    case State::idle: return Error(Errc::invalid_state, "finish without begin");
    case State::resolving: return finish_lookup();
    case State::connected: return Progress::connected;
    case State::connecting: return try_addresses();
    case State::asking_proxy: break;
  }
  const auto progress = ask_proxy();
  if (progress) {
    return progress;
  }
  last_error_ = progress.error();
  stream_.reset();
  return try_addresses();
}

int Dialer::fd() const noexcept { return waiting_ ? waiting_->set.fd() : tried_fd(); }

int Dialer::tried_fd() const noexcept {
  if (stream_ != nullptr) {
    return stream_->fd();
  }
  return tries_.empty() ? -1 : tries_.back().fd.fd();
}

sys::Interest Dialer::interest() const noexcept {
  const bool reads = state_ == State::asking_proxy ? socks_.pending_output().empty() : waiting_.has_value();
  return reads ? sys::Interest::readable : sys::Interest::writable;
}

std::unique_ptr<ByteStream> Dialer::take_stream() {
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
  tries_.clear();
  waiting_.reset();
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
      const sync::LockGuard lock(result->mutex);
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
    const sync::LockGuard lock(lookup_->mutex);
    answer.swap(lookup_->answer);
  }
  if (!answer) {
    return Progress::resolving;
  }
  (void)resolver_->cancel(std::exchange(request_, 0));  // waits for the end of on_resolved(), which may still run
  lookup_.reset();
  if (!*answer) {
    return fail(answer->error());
  }
  addresses_ = in_turns(std::move(*answer).value());
  looked_up_ = true;
  return try_addresses();
}

// Takes the outcomes of the tries under way, and begins those that are due. A later call takes the outcome of a try
// that begins here, so that the caller gets it first.
Result<Progress> Dialer::try_addresses() {
  state_ = State::connecting;
  for (std::size_t i = 0; i < tries_.size();) {
    const auto outcome = sys::finish_connect(tries_[i].fd.fd());
    if (outcome) {
      return win(i);
    }
    if (outcome.error() == Errc::would_block) {
      ++i;
      continue;
    }
    last_error_ = outcome.error();
    next_at_ = Instant::min();
    end_try(i);
  }
  while (next_address_ != addresses_.size() && (tries_.empty() || (waiting_ && sys::now() >= next_at_))) {
    if (begin_try()) {
      return win(tries_.size() - 1);
    }
  }
  if (tries_.empty()) {
    return fail(last_error_);
  }
  if (const auto waits = await_tries(); !waits) {
    waiting_.reset();
    while (tries_.size() > 1) {
      end_try(0);
    }
    tries_.front().waited_for = false;
  }
  return Progress::pending;
}

// Returns true if it is connected.
bool Dialer::begin_try() {
  if (tries_.size() == kAtOnceMax) {
    end_try(0);
  }
  const sys::SocketAddress& to = addresses_[next_address_++];
  if (looked_up_ && !proxy_) {
    tried_address_ = to;
  }
  auto begun = row_.begin_connect(to, proxy_ && proxy_->endpoint.has_source ? hop() : endpoint_, options_);
  if (!begun) {
    last_error_ = begun.error();
    return false;
  }
  tries_.push_back({std::move(begun->fd), to});
  next_at_ = sys::now() + attempt_delay_;
  return begun->connected;
}

// A child of a fork may have the descriptor, too: the set must forget it before it is closed here.
void Dialer::end_try(std::size_t which) noexcept {
  if (waiting_ && tries_[which].waited_for) {
    (void)waiting_->set.remove(tries_[which].fd.fd());
  }
  tries_.erase(tries_.begin() + static_cast<std::ptrdiff_t>(which));
}

// Nothing to do for the only try of the last address: it has a descriptor of its own.
Result<void> Dialer::await_tries() {
  const bool last = next_address_ == addresses_.size();
  if (!waiting_) {
    if (last) {
      return {};
    }
    waiting_ = Waiting{WEFT_TRY(sys::EpollSet::make()), WEFT_TRY(sys::TimerFd::make())};
    WEFT_TRY(waiting_->set.add(waiting_->next.fd(), 0, sys::Interest::readable));
  }
  for (Try& one : tries_) {
    if (!one.waited_for) {
      WEFT_TRY(waiting_->set.add(one.fd.fd(), 0, sys::Interest::writable));
      one.waited_for = true;
    }
  }
  waiting_->next.set(last ? kNever : next_at_);
  return {};
}

Result<Progress> Dialer::win(std::size_t which) {
  if (waiting_ && tries_[which].waited_for) {
    (void)waiting_->set.remove(tries_[which].fd.fd());
  }
  if (tried_address_) {
    tried_address_ = tries_[which].to;
  }
  stream_ = make_socket_stream(std::move(tries_[which].fd));
  for (std::size_t i = 0; proxy_ && i < tries_.size(); ++i) {  // for when the proxy there refuses
    if (i != which) {
      addresses_.push_back(tries_[i].to);
    }
  }
  tries_.clear();
  waiting_.reset();
  if (!proxy_) {
    state_ = State::connected;
    return Progress::connected;
  }
  state_ = State::asking_proxy;
  socks_.start(*proxy_, endpoint_.host, endpoint_.port);
  return finish();
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
