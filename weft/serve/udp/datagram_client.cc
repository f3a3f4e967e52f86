// SPDX-License-Identifier: MIT
#include "weft/serve/udp/datagram_client.h"

#include <algorithm>
#include <array>
#include <new>
#include <span>
#include <utility>

#include "weft/net/stream/endpoint.h"
#include "weft/net/transport/udp.h"
#include "weft/sys/clock.h"
#include "weft/sys/datagram.h"
#include "weft/sys/poll.h"

namespace weft::serve {
namespace {

constexpr std::uint32_t kLongestDatagram = 65507;  // RFC 768 over IPv4 without options
constexpr std::uint32_t kReceivedMost = 65536;
constexpr Error kClosedClient(Errc::closed, "the client is closed");

Result<void> check_options(const DatagramClientOptions& options) {
  if (options.datagram_max < kDatagramHeader || options.datagram_max > kLongestDatagram) {
    return Error(Errc::invalid_argument, "datagram_max is between 9 and 65507");
  }
  if (options.received_max == 0 || options.received_max > kReceivedMost) {
    return Error(Errc::invalid_argument, "received_max is between 1 and 65536");
  }
  if (options.repeat_first <= Duration::zero() || options.repeat_max < options.repeat_first ||
      options.keep_alive <= Duration::zero() || options.silence_timeout <= Duration::zero()) {
    return Error(Errc::invalid_argument, "the times of a client are positive");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<DatagramClient>> DatagramClient::connect(std::string_view endpoint,
                                                                const DatagramClientOptions& options) {
  WEFT_TRY(check_options(options));
  const net::Endpoint parsed = WEFT_TRY(net::parse_endpoint(endpoint, false));
  if (parsed.transport != net::Transport::udp || parsed.has_source) {
    return Error(Errc::invalid_argument, "a datagram client has an endpoint udp://host:port");
  }
  net::UdpSocket socket = WEFT_TRY(net::open_udp(parsed, false, {}, {}));
  if (socket.to.is_multicast()) {
    return Error(Errc::invalid_argument, "a multicast group has no sessions");
  }
  try {
    std::unique_ptr<DatagramClient> client(new DatagramClient(options, std::move(socket.fd), socket.to));
    client->begin_session(sys::now());
    return client;
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for the client");
  }
}

DatagramClient::DatagramClient(const DatagramClientOptions& options, sys::Fd fd, const sys::SocketAddress& server)
    : options_(options),
      fd_(std::move(fd)),
      server_(server),
      backoff_(options.repeat_first, options.repeat_max, net::Backoff::seed_for(this)),
      in_(sys::kMaxDatagrams * options.datagram_max),
      kept_(std::size_t{options.received_max} * options.datagram_max),
      sizes_(options.received_max) {}

Instant DatagramClient::update() noexcept { return update(sys::now()); }

Instant DatagramClient::update(Instant now) noexcept {
  if (state_ == State::closed) {
    return kNever;
  }
  read(now);
  if (state_ == State::open && now >= heard_ + options_.silence_timeout) {
    end_session(now);
  }
  if (now >= due_) {
    handle_due(now);
  }
  return state_ == State::open ? std::min(due_, heard_ + options_.silence_timeout) : due_;
}

void DatagramClient::handle_due(Instant now) noexcept {
  switch (state_) {
    case State::asking: return repeat(DatagramKind::hello, now);
    case State::opening:
      if (opens_ == kOpensMax) {
        return begin_session(now);
      }
      ++opens_;
      return repeat(DatagramKind::open, now);
    case State::open:
      send_now(DatagramKind::open, {});
      due_ = now + options_.keep_alive;
      return;
    case State::closed: return;
  }
}

void DatagramClient::begin_session(Instant now) noexcept {
  state_ = State::asking;
  cookie_ = 0;
  repeat(DatagramKind::hello, now);
}

// Waits before the next session, because a server without room ends each one at once.
void DatagramClient::end_session(Instant now) noexcept {
  counts_.lost += state_ == State::open ? 1 : 0;
  state_ = options_.reconnect ? State::asking : State::closed;
  cookie_ = 0;
  due_ = options_.reconnect ? now + backoff_.next() : kNever;
}

void DatagramClient::repeat(DatagramKind kind, Instant now) noexcept {
  send_now(kind, {});
  due_ = now + backoff_.next();
}

void DatagramClient::read(Instant now) noexcept {
  std::array<sys::IncomingDatagram, sys::kMaxDatagrams> batch;
  for (int round = 0; round < kBatches && state_ != State::closed; ++round) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i] = {};
      batch[i].room = MutableBytes(in_).subspan(i * options_.datagram_max, options_.datagram_max);
    }
    const sys::DatagramResult got = sys::receive_datagrams(fd_.fd(), batch, true);
    counts_.in += got.count;
    for (const sys::IncomingDatagram& one : std::span(batch).first(got.count)) {
      const auto datagram = parse_datagram(one.room.first(one.size));
      if (one.cut || !datagram || !(one.from == server_)) {
        ++counts_.ignored;
      } else {
        handle(*datagram, now);
      }
    }
    if (got.count < batch.size()) {
      return;
    }
  }
}

void DatagramClient::handle(const ParsedDatagram& datagram, Instant now) noexcept {
  if (datagram.kind == DatagramKind::challenge && state_ == State::asking) {
    state_ = State::opening;
    cookie_ = datagram.cookie;
    opens_ = 1;
    return repeat(DatagramKind::open, now);
  }
  const bool has_session = state_ == State::opening || state_ == State::open;
  const bool of_session = datagram.kind == DatagramKind::opened || datagram.kind == DatagramKind::data ||
                          datagram.kind == DatagramKind::close;
  if (!has_session || !of_session || datagram.cookie != cookie_) {
    ++counts_.ignored;
    return;
  }
  if (datagram.kind == DatagramKind::close) {
    return end_session(now);
  }
  heard_ = now;
  if (state_ == State::opening) {  // `data` may overtake `opened`
    state_ = State::open;
    ++counts_.opened;
    backoff_.reset();
    due_ = now + options_.keep_alive;
  }
  if (datagram.kind == DatagramKind::data) {
    keep(datagram.payload);
  }
}

void DatagramClient::keep(Bytes payload) noexcept {
  if (count_ == options_.received_max) {
    first_ = (first_ + 1) % options_.received_max;
    --count_;
    ++counts_.overflowed;
  }
  const std::size_t at = (first_ + count_) % options_.received_max;
  copy_bytes(kept_.data() + at * options_.datagram_max, payload);
  sizes_[at] = static_cast<std::uint32_t>(payload.size());
  ++count_;
}

std::optional<Bytes> DatagramClient::try_receive() noexcept {
  if (count_ == 0) {
    return std::nullopt;
  }
  const Bytes payload = Bytes(kept_).subspan(first_ * options_.datagram_max, sizes_[first_]);
  first_ = (first_ + 1) % options_.received_max;
  --count_;
  return payload;
}

int DatagramClient::send_now(DatagramKind kind, Bytes payload) noexcept {
  std::array<std::uint8_t, kDatagramHeader> header;
  write_datagram_header(header.data(), kind, cookie_);
  const sys::OutgoingDatagram one{server_.raw(), server_.raw_size(), {header, payload}};
  const sys::DatagramResult sent = sys::send_datagrams(fd_.fd(), std::span(&one, 1));
  ++(sent.count == 1 ? counts_.out : counts_.unsent);
  return sent.os_errno;
}

Result<void> DatagramClient::send(Bytes payload) noexcept {
  if (state_ == State::closed) {
    return kClosedClient;
  }
  if (payload.size() > options_.datagram_max - kDatagramHeader) {
    return Error(Errc::message_too_large, "the datagram is longer than datagram_max");
  }
  if (state_ != State::open) {
    return Error(Errc::unreachable, "the session is not open");
  }
  const int refused = send_now(DatagramKind::data, payload);
  if (refused == 0) {
    return {};
  }
  return sys::would_block(refused) ? Error(Errc::would_block, "the kernel has no room for the datagram")
                                   : Error(Errc::connection_failed, "the kernel refuses the datagram", refused);
}

Result<void> DatagramClient::open_until(Instant deadline) {
  while (state_ != State::open) {
    WEFT_TRY(wait(deadline));
  }
  return {};
}

Result<Bytes> DatagramClient::receive_until(Instant deadline) {
  for (;;) {
    if (const auto payload = try_receive()) {
      return *payload;
    }
    WEFT_TRY(wait(deadline));
  }
}

// Updates once, after a wait if nothing has come.
Result<void> DatagramClient::wait(Instant deadline) {
  const std::uint64_t before = counts_.in;
  const Instant next = std::min(update(), deadline);
  if (counts_.in != before) {
    return {};
  }
  if (state_ == State::closed) {
    return kClosedClient;
  }
  const Instant now = sys::now();
  if (now >= deadline) {
    return Error(Errc::timed_out, "no datagram came by the deadline");
  }
  sys::PollFd one{fd_.fd(), sys::Interest::readable, sys::Interest::none, false};
  const auto ready = sys::poll_fds(std::span(&one, 1), time_left(next, now));
  if (!ready && !(ready.error() == Errc::interrupted)) {
    return ready.error();
  }
  return {};
}

void DatagramClient::close() noexcept {
  if (state_ == State::open || state_ == State::opening) {
    send_now(DatagramKind::close, {});
  }
  state_ = State::closed;
  due_ = kNever;
}

}  // namespace weft::serve
