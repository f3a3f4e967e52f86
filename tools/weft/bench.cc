// SPDX-License-Identifier: MIT
#include "tools/weft/bench.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "weft/base/histogram.h"
#include "weft/sys/clock.h"
#include "weft/sys/signals.h"

namespace weft::cli {

namespace {

constexpr const char* kLocal = "tcp://127.0.0.1:*";
constexpr std::uint64_t kSizeMax = std::uint64_t{16} << 20U;
constexpr std::uint64_t kBurst = 256;  // messages between two looks at the clock
constexpr double kPatience = 10;       // seconds for a reply
constexpr Duration kStopLook = std::chrono::milliseconds(200);
constexpr Duration kProgress = std::chrono::milliseconds(200);

// The first byte of a message. The answering end keeps nothing but a count.
constexpr char kData = 'd';   // is counted
constexpr char kCount = 'c';  // the reply is the count, which begins anew
constexpr char kEcho = 'e';   // the reply is the message

// Answers until the context ends, or a signal when it runs on the main thread.
void answer(Socket& socket) {
  std::uint64_t count = 0;
  for (;;) {
    auto message = socket.recv();
    if (!message) {
      if (message.error() == Errc::interrupted || message.error() == Errc::timed_out) {
        throw_if_stopped();
        continue;
      }
      return;
    }
    const char kind = message->empty() ? '\0' : message->text()[0];
    if (kind == kData) {
      ++count;
    } else if (kind == kEcho) {
      (void)socket.try_send(std::move(*message));
    } else if (kind == kCount) {
      (void)socket.try_send(std::to_string(std::exchange(count, 0)));
    }
  }
}

// The answering end in this process.
class LocalEnd {
 public:
  explicit LocalEnd(const LinkOptions& link) : socket_(need(context_.socket(SocketType::dealer), "a socket")) {
    configure(socket_, link);
    endpoint_ = need(socket_.bind(kLocal), kLocal);
    const sys::SignalsBlocked blocked;  // signals go to the measuring thread
    thread_ = std::thread([this] { answer(socket_); });
  }
  LocalEnd(const LocalEnd&) = delete;
  LocalEnd& operator=(const LocalEnd&) = delete;
  ~LocalEnd() {
    context_.shut_down();
    thread_.join();
  }
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

 private:
  Context context_;
  Socket socket_;
  std::string endpoint_;
  std::thread thread_;
};

double seconds_between(Instant from, Instant to) { return std::chrono::duration<double>(to - from).count(); }

class Meter {
 public:
  Meter(Console& console, Link& link, const BenchOptions& options)
      : console_(console), link_(link), options_(options) {}

  void latency() {
    const Parts message{std::string(options_.size, kEcho)};
    const Instant start = sys::now();
    const Instant end = start + seconds(options_.seconds);
    for (Instant now = start; now < end;) {
      link_.send(message);
      (void)link_.receive();
      const Instant back = sys::now();
      trips_.add(static_cast<std::uint64_t>((back - now).count()));
      now = back;
      show(now, "round trips", trips_.total(), start);
    }
  }

  void throughput() {
    const Parts message{std::string(options_.size, kData)};
    const Instant start = sys::now();
    const Instant end = start + seconds(options_.seconds);
    std::uint64_t sent = 0;
    for (Instant now = start; now < end; now = sys::now()) {
      for (std::uint64_t i = 0; i < kBurst && (i == 0 || options_.size <= 4096); ++i, ++sent) {
        link_.send(message);
      }
      show(now, "messages", sent, start);
    }
    link_.send({std::string(1, kCount)});
    const Parts reply = link_.receive();
    elapsed_ = seconds_between(start, sys::now());
    arrived_ = std::strtoull(reply[0].c_str(), nullptr, 10);
    if (arrived_ != sent) {
      throw Failure("of " + std::to_string(sent) + " messages " + printable(reply[0]) +
                    " arrived: the connection broke, or another program sends there");
    }
  }

  void report() {
    const double rate = static_cast<double>(arrived_) / elapsed_;
    const double megabytes = rate * static_cast<double>(options_.size) / 1e6;
    const auto us = [&](double share) { return trips_.quantile(share) / 1000; };
    if (console_.json) {
      console_.record({{"size", options_.size},
                       {"round_trips", trips_.total()},
                       {"round_trip_us_p50", us(0.5)},
                       {"round_trip_us_p99", us(0.99)},
                       {"round_trip_us_max", static_cast<double>(trips_.max()) / 1000},
                       {"messages", arrived_},
                       {"messages_per_second", rate},
                       {"megabytes_per_second", megabytes}});
      return;
    }
    console_.line("round trip   " + format("p50 %.1f us, ", us(0.5)) + format("p99 %.1f us, ", us(0.99)) +
                  format("max %.1f us", static_cast<double>(trips_.max()) / 1000));
    console_.line("throughput   " + format("%.0f messages/s, ", rate) + format("%.1f MB/s", megabytes));
  }

 private:
  void show(Instant now, const char* what, std::uint64_t count, Instant start) {
    if (now >= next_) {
      throw_if_stopped();
      console_.progress(std::to_string(count) + " " + what + format(", %.1f s", seconds_between(start, now)));
      next_ = now + kProgress;
    }
  }

  Console& console_;
  Link& link_;
  const BenchOptions& options_;
  Histogram<8> trips_;
  Instant next_{};
  std::uint64_t arrived_ = 0;
  double elapsed_ = 0;
};

}  // namespace

int bench(Console& console, const BenchOptions& options) {
  if (options.size == 0 || options.size > kSizeMax) {
    throw Usage("--size is 1 to 16777216 bytes");
  }
  if (!options.link.bind.empty()) {
    if (!options.link.connect.empty()) {
      throw Usage("one end binds and answers, the other one connects and measures");
    }
    Link link(console, SocketType::dealer, options.link);
    // A signal between two calls interrupts none of them.
    need(link.socket().set(option::receive_timeout, kStopLook), "receive_timeout");
    link.open();
    answer(link.socket());
    return kExitFailed;
  }
  BenchOptions measuring = options;
  if (measuring.link.timeout < 0) {
    measuring.link.timeout = kPatience;
  }
  std::unique_ptr<LocalEnd> local;
  if (options.link.connect.empty()) {
    local = std::make_unique<LocalEnd>(options.link);
    measuring.link.connect = {local->endpoint()};
  }
  Link link(console, SocketType::dealer, measuring.link);
  link.open();
  link.wait_for_peers(1);
  const auto meter = std::make_unique<Meter>(console, link, measuring);
  meter->latency();
  meter->throughput();
  meter->report();
  return 0;
}

}  // namespace weft::cli
