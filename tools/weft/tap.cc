// SPDX-License-Identifier: MIT
#include "tools/weft/tap.h"

#include <algorithm>
#include <array>
#include <list>
#include <vector>

#include "tools/weft/decode.h"
#include "tools/weft/dial.h"
#include "weft/net/listener.h"
#include "weft/sys/clock.h"

namespace weft::cli {

namespace {

constexpr std::size_t kConnectionsMax = 256;
constexpr std::size_t kTapBuffer = 65'536;  // bytes in each direction of a connection
constexpr std::uint64_t kBodiesMax = 65'536;
constexpr Duration kConnectTimeout = std::chrono::seconds(10);
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);  // without descriptors
constexpr Duration kFlushTimeout = std::chrono::seconds(1);        // after the last message of --count

// Prints the traffic, with its times.
class Reporter {
 public:
  Reporter(Console& console, std::uint64_t count) : console_(console), left_(count), counts_(count != 0) {}

  // `way`: 0 to the remote end, 1 from there, negative: neither.
  void print(std::uint64_t connection, int way, const Said& said) {
    if (done()) {
      return;
    }
    const Instant now = sys::now();
    const double since_start = std::chrono::duration<double>(now - start_).count();
    const double since_line = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    if (console_.json) {
      Record record{{"time", since_start}, {"since", since_line}, {"connection", connection}};
      if (way >= 0) {
        record.emplace_back("direction", std::string(way == 0 ? "to_remote" : "from_remote"));
      }
      record.emplace_back("kind", said.kind);
      record.insert(record.end(), said.details.begin(), said.details.end());
      console_.record(record);
    } else {
      const char* arrow = way < 0 ? "--" : way == 0 ? "->" : "<-";
      console_.line(format("%10.6f", since_start) + format(" %+10.6f", since_line) + " #" + std::to_string(connection) +
                    " " + arrow + " " + console_.paint(Colour::bold, said.kind) + " " + said.text);
    }
    const bool is_message = said.kind == "message" || (said.kind == "encrypted" && is_sealed_message(said));
    left_ -= counts_ && is_message ? 1 : 0;
  }
  [[nodiscard]] bool done() const noexcept { return counts_ && left_ == 0; }

 private:
  static bool is_sealed_message(const Said& said) { return said.text.starts_with("MESSAGE,"); }

  Console& console_;
  std::uint64_t left_;
  bool counts_;
  Instant start_ = sys::now();
  Instant last_ = start_;
};

// One direction of a connection: bytes that were read and not yet written.
struct Way {
  std::vector<std::uint8_t> buffer = std::vector<std::uint8_t>(kTapBuffer);
  std::size_t begin = 0;
  std::size_t end = 0;
  bool ended = false;   // the reading side gave its last byte
  bool closed = false;  // and the writing side has the end

  [[nodiscard]] bool empty() const noexcept { return begin == end; }
};

// A client's connection and ours to the remote end.
class Connection {
 public:
  Connection(std::uint64_t number, sys::Fd near, sys::Connecting far, std::size_t bodies, Reporter& reporter)
      : number_(number),
        ends_{std::move(near), std::move(far.fd)},
        connected_(far.connected),
        connect_end_(sys::now() + kConnectTimeout),
        reporter_(reporter),
        conversation_(bodies, [this](int way, const Said& said) { reporter_.print(number_, way, said); }) {}

  [[nodiscard]] bool over() const noexcept { return over_; }
  [[nodiscard]] bool flushed() const noexcept { return ways_[0].empty() && ways_[1].empty(); }
  [[nodiscard]] Instant deadline() const noexcept { return connected_ ? kNever : connect_end_; }

  // Fills two elements: for the client's end and for the remote end.
  void watch(sys::PollFd* fds, bool may_read) const {
    for (std::size_t side = 0; side < 2; ++side) {
      auto want = sys::Interest::none;
      const Way& from = ways_[side];
      const Way& to = ways_[1 - side];
      if (!connected_) {
        want = side == 1 ? sys::Interest::writable : want;
      } else {
        want = may_read && from.empty() && !from.ended ? want | sys::Interest::readable : want;
        want = to.empty() ? want : want | sys::Interest::writable;
      }
      fds[side] = {};
      fds[side].fd = want == sys::Interest::none ? -1 : ends_[side].fd();
      fds[side].want = want;
    }
  }

  void handle(const sys::PollFd* fds, bool may_read) {
    const auto ready = [&](std::size_t side) { return fds[side].got != sys::Interest::none || fds[side].failed; };
    if (!connected_) {
      connect(ready(1));
      return;
    }
    for (std::size_t side = 0; side < 2 && !over_; ++side) {
      if (ready(side)) {
        write(1 - side);
        if (may_read) {
          read(side);
        }
      }
    }
    for (std::size_t way = 0; way < 2 && !over_; ++way) {
      write(way);  // the bytes that were just read
    }
    if (!over_ && ways_[0].closed && ways_[1].closed) {
      end("both ends closed", Error());
    }
  }

 private:
  void connect(bool ready) {
    if (ready) {
      if (const auto done = sys::finish_connect(ends_[1].fd()); done) {
        connected_ = true;
      } else if (done.error() != Errc::would_block) {
        end("the remote end cannot be reached", done.error());
      }
    } else if (sys::now() >= connect_end_) {
      end("the remote end does not answer", Error());
    }
  }

  void read(std::size_t side) {
    Way& way = ways_[side];
    if (way.ended || !way.empty()) {
      return;
    }
    const sys::IoResult got = sys::read_some(ends_[side].fd(), way.buffer);
    switch (got.status) {
      case sys::IoResult::Status::would_block: return;
      case sys::IoResult::Status::failed: fail(side, got.os_errno); return;
      case sys::IoResult::Status::end_of_stream: way.ended = true; return;
      case sys::IoResult::Status::done: break;
    }
    way.begin = 0;
    way.end = got.bytes;
    conversation_.feed(static_cast<int>(side), Bytes(way.buffer).first(got.bytes));
  }

  // Way `way` writes to the end that it does not read from.
  void write(std::size_t way_index) {
    Way& way = ways_[way_index];
    const int fd = ends_[1 - way_index].fd();
    while (!way.empty()) {
      const sys::IoResult wrote = sys::write_some(fd, Bytes(way.buffer).subspan(way.begin, way.end - way.begin));
      if (wrote.status == sys::IoResult::Status::would_block) {
        return;
      }
      if (wrote.status != sys::IoResult::Status::done) {
        fail(1 - way_index, wrote.os_errno);
        return;
      }
      way.begin += wrote.bytes;
    }
    if (way.ended && !way.closed) {
      way.closed = true;
      sys::shutdown_write(fd);
      const std::string who = way_index == 0 ? "by the client" : "by the remote end";
      const bool is_cut = conversation_.cut_short(static_cast<int>(way_index));
      const std::string text = who + (is_cut ? ", inside a greeting, a frame or a message" : "");
      reporter_.print(number_, static_cast<int>(way_index), {"closed", text, {{"cut_short", is_cut}}});
    }
  }

  void fail(std::size_t side, int os_errno) {
    end(side == 0 ? "the client's connection broke" : "the remote connection broke",
        Error(Errc::connection_failed, "", os_errno));
  }

  void end(const std::string& why, const Error& error) {
    over_ = true;
    const std::string text = error == Errc::ok ? why : why + ": " + error.message();
    reporter_.print(number_, -1, {"ended", "because " + text, {{"reason", text}}});
  }

  const std::uint64_t number_;
  std::array<sys::Fd, 2> ends_;  // the client's, the remote one
  bool connected_;
  Instant connect_end_;
  bool over_ = false;
  std::array<Way, 2> ways_;  // from the client, from the remote end
  Reporter& reporter_;
  Conversation conversation_;
};

class Tap {
 public:
  Tap(Console& console, const TapOptions& options)
      : bodies_(options.bodies),
        remote_(byte_endpoint(options.remote, false, "REMOTE")),
        reporter_(console, options.count) {
    const net::Endpoint at = byte_endpoint(options.listen, true, "LISTEN");
    listener_ = need(net::Listener::open(at, {}), "bind " + printable(options.listen));
    if (listener_->bound_endpoint() != options.listen) {
      console.note("bound to " + printable(listener_->bound_endpoint()));
    }
  }

  int run() {
    Instant last = kNever;
    while (!reporter_.done() || !flushed()) {
      if (reporter_.done()) {
        last = last == kNever ? sys::now() + kFlushTimeout : last;
        if (sys::now() >= last) {
          break;
        }
      }
      turn(last);
    }
    return 0;
  }

 private:
  [[nodiscard]] bool flushed() const {
    return std::all_of(connections_.begin(), connections_.end(), [](const Connection& each) { return each.flushed(); });
  }

  void turn(Instant end) {
    throw_if_stopped();
    const bool may_read = !reporter_.done();
    const Instant begun = sys::now();
    const bool accepts = may_read && connections_.size() < kConnectionsMax && begun >= accept_again_;
    fds_.assign(2 + 2 * connections_.size(), {});
    fds_[0].fd = stop_fd();
    fds_[0].want = sys::Interest::readable;
    fds_[1].fd = accepts ? listener_->fd() : -1;
    fds_[1].want = sys::Interest::readable;
    if (begun < accept_again_) {
      end = std::min(end, accept_again_);
    }
    std::size_t at = 2;
    for (const Connection& each : connections_) {
      each.watch(&fds_[at], may_read);
      end = std::min(end, each.deadline());
      at += 2;
    }
    const auto ready = sys::poll_fds(fds_, time_left(end, begun));
    if (!ready && ready.error() != Errc::interrupted) {
      throw Failure(ready.error().message());
    }
    throw_if_stopped();
    at = 2;
    for (auto each = connections_.begin(); each != connections_.end(); at += 2) {
      each->handle(&fds_[at], may_read && !reporter_.done());
      each = each->over() ? connections_.erase(each) : std::next(each);
    }
    if (fds_[1].got != sys::Interest::none) {
      accept();
    }
  }

  void accept() {
    auto near = sys::accept_connection(listener_->fd());
    if (!near) {
      if (near.error() == Errc::resource_exhausted) {
        accept_again_ = sys::now() + kAcceptPause;
      }
      return;
    }
    const std::uint64_t number = ++accepted_;
    // A unix client has no address.
    const auto address = sys::peer_address(near->fd());
    const std::string from = address && !address->to_text().empty() ? address->to_text() : "a client";
    reporter_.print(number, -1, {"opened", "by " + printable(from), {{"client", from}}});
    (void)sys::tune_tcp(near->fd(), {});
    auto far = begin_dial(remote_);
    if (!far) {
      const std::string text = "the remote end cannot be reached: " + far.error().message();
      reporter_.print(number, -1, {"ended", "because " + text, {{"reason", text}}});
      return;
    }
    connections_.emplace_back(number, std::move(*near), std::move(*far), bodies_, reporter_);
  }

  const std::size_t bodies_;
  const net::Endpoint remote_;
  Reporter reporter_;
  std::unique_ptr<net::Listener> listener_;
  std::list<Connection> connections_;
  std::vector<sys::PollFd> fds_;
  std::uint64_t accepted_ = 0;
  Instant accept_again_{};
};

}  // namespace

int tap(Console& console, const TapOptions& options) {
  if (options.bodies > kBodiesMax) {
    throw Usage("--bodies is at most " + std::to_string(kBodiesMax));
  }
  return Tap(console, options).run();
}

}  // namespace weft::cli
