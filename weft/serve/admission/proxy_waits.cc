// SPDX-License-Identifier: MIT
#include "weft/serve/admission/proxy_waits.h"

#include <array>
#include <cstdint>
#include <new>
#include <utility>

#include "weft/sys/socket.h"

namespace weft::serve {
namespace {

constexpr Error kHeaderLate(Errc::timed_out, "the PROXY header did not come in time");
constexpr Error kNoHeaderMemory(Errc::resource_exhausted, "no memory for a connection that waits for its PROXY header");

// Reads as far as the header goes. Errors: would_block (bytes of it are missing); those of the header and the stream.
Result<void> read_header(net::ByteStream& stream, net::ProxyHeader& header) {
  std::array<std::uint8_t, net::ProxyHeader::kBytesMax> room;
  while (header.wanted() != 0) {
    MutableBytes into = MutableBytes(room).first(header.wanted());
    const sys::IoResult result = stream.read({&into, 1});
    switch (result.status) {
      case sys::IoResult::Status::done: header.handle_input(Bytes(room).first(result.bytes)); break;
      case sys::IoResult::Status::would_block: return Error(Errc::would_block);
      case sys::IoResult::Status::end_of_stream:
        return Error(Errc::connection_closed, "the stream ended before its PROXY header");
      case sys::IoResult::Status::failed:
        return Error(Errc::connection_failed, "the stream failed before its PROXY header", result.os_errno);
    }
  }
  return header.fault() ? Result<void>(*header.fault()) : Result<void>();
}

}  // namespace

// One connection.
class ProxyWaits::Wait final : public rt::Watcher {
 public:
  Wait(ProxyWaits& waits, std::size_t of, std::unique_ptr<net::ByteStream> below, Instant began)
      : port(of), accepted(began), stream(std::move(below)), waits_(waits) {}
  ~Wait() {
    if (watch != 0) {
      waits_.loop_.unwatch(watch);
    }
    (void)waits_.loop_.timers().cancel(timer);
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  const std::size_t port;
  const Instant accepted;
  std::unique_ptr<net::ByteStream> stream;
  net::ProxyHeader header;
  rt::Loop::WatchId watch = 0;
  rt::TimerId timer;
  Waits::iterator self;

  void handle_event(const sys::PollEvent& /*event*/) override { waits_.handle_readable(self); }
  static void handle_deadline(void* at) {
    auto& late = *static_cast<Wait*>(at);
    late.timer = {};
    late.waits_.refuse(late.self, kHeaderLate);
  }

 private:
  ProxyWaits& waits_;
};

ProxyWaits::ProxyWaits(rt::Loop& loop, SessionCount& count, Handlers handlers)
    : loop_(loop), count_(count), handlers_(std::move(handlers)) {}

ProxyWaits::~ProxyWaits() { refuse_all(Error(Errc::terminated, "the server stops")); }

void ProxyWaits::begin(std::size_t port, std::unique_ptr<net::ByteStream> stream, Duration patience) {
  const Instant accepted = loop_.now();
  net::ProxyHeader header;
  const auto read = read_header(*stream, header);
  if (read) {
    return handlers_.ready(port, std::move(stream), header.source(), accepted);
  }
  if (!(read.error() == Errc::would_block)) {
    return handlers_.refused(*stream, read.error());
  }
  if (!count_.take()) {
    return handlers_.full(*stream);
  }
  Waits::iterator at;
  try {
    at = waits_.emplace(waits_.end(), *this, port, std::move(stream), accepted);
  } catch (const std::bad_alloc&) {
    count_.give_back();
    throw;
  }
  at->self = at;
  at->header = header;
  const auto watch = loop_.watch(at->stream->fd(), sys::Interest::readable, false, &*at);
  if (!watch) {
    return refuse(at, watch.error());
  }
  at->watch = *watch;
  if (const Instant deadline = deadline_after(accepted, patience); deadline != kNever) {
    at->timer = loop_.timers().schedule(deadline, {&Wait::handle_deadline, &*at});
    if (!at->timer) {
      refuse(at, kNoHeaderMemory);
    }
  }
}

void ProxyWaits::handle_readable(Waits::iterator at) {
  const auto read = read_header(*at->stream, at->header);
  if (!read && read.error() == Errc::would_block) {
    return;
  }
  if (!read) {
    return refuse(at, read.error());
  }
  const sys::SocketAddress client = at->header.source();
  const std::size_t port = at->port;
  const Instant accepted = at->accepted;
  handlers_.ready(port, take(at), client, accepted);
}

void ProxyWaits::refuse(Waits::iterator at, const Error& why) noexcept {
  const auto stream = take(at);
  handlers_.refused(*stream, why);  // counted before its peer sees the end
}

std::unique_ptr<net::ByteStream> ProxyWaits::take(Waits::iterator at) noexcept {
  auto stream = std::move(at->stream);
  waits_.erase(at);
  count_.give_back();
  return stream;
}

void ProxyWaits::refuse_all(const Error& why) noexcept {
  while (!waits_.empty()) {
    refuse(waits_.begin(), why);
  }
}

}  // namespace weft::serve
