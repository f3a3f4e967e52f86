// SPDX-License-Identifier: MIT
#include "tools/weft/proxy.h"

#include <array>
#include <cstring>
#include <thread>

#include "weft/msg/poll.h"
#include "weft/msg/proxy.h"
#include "weft/sys/clock.h"
#include "weft/sys/signals.h"

namespace weft::cli {

namespace {

constexpr const char* kControl = "inproc://control";
constexpr std::size_t kCounters = 8;
constexpr std::array<const char*, kCounters> kCounterNames = {
    "frontend_parts_in", "frontend_bytes_in", "frontend_parts_out", "frontend_bytes_out",
    "backend_parts_in",  "backend_bytes_in",  "backend_parts_out",  "backend_bytes_out"};
using Counters = std::array<std::uint64_t, kCounters>;

struct Device {
  const char* name;
  SocketType frontend;
  SocketType backend;
};
constexpr std::array<Device, 3> kDevices = {{{"forwarder", SocketType::xsub, SocketType::xpub},
                                             {"queue", SocketType::router, SocketType::dealer},
                                             {"streamer", SocketType::pull, SocketType::push}}};

void attach(Console& console, Socket& socket, const std::string& endpoint, bool connects, const char* side) {
  need(socket.set(option::linger, std::chrono::seconds(0)), "linger");
  if (connects) {
    need(socket.connect(endpoint), "connect " + endpoint);
    return;
  }
  const std::string bound = need(socket.bind(endpoint), "bind " + endpoint);
  if (bound != endpoint) {
    console.note(std::string(side) + " bound to " + bound);
  }
}

Counters read_counters(Socket& control) {
  Counters counters{};
  need(control.send("STATISTICS"), "the proxy");
  for (std::uint64_t& counter : counters) {
    const Message part = need(control.recv(std::chrono::seconds(5)), "the proxy's counters");
    if (part.size() == sizeof counter) {
      std::memcpy(&counter, part.bytes().data(), sizeof counter);
    }
  }
  return counters;
}

void report(Console& console, const Counters& now, const Counters& before, double elapsed) {
  if (console.json) {
    Record record;
    for (std::size_t i = 0; i < kCounters; ++i) {
      record.emplace_back(kCounterNames[i], now[i]);
    }
    console.record(record);
    return;
  }
  const auto way = [&](const char* name, std::size_t in) {
    const auto parts = static_cast<double>(now[in] - before[in]);
    const auto bytes = static_cast<double>(now[in + 1] - before[in + 1]);
    return std::string(name) + " " + std::to_string(now[in]) + " parts, " + format("%.0f/s, ", parts / elapsed) +
           format("%.2f MB/s", bytes / elapsed / 1e6);
  };
  console.line(way("to backend:", 0) + "; " + way("to frontend:", 4));
}

// Joins the proxy's thread, whatever ends the command.
struct Runner {
  Context& context;
  std::thread thread;
  ~Runner() {
    context.shut_down();
    thread.join();
  }
};

}  // namespace

int run_device(Console& console, const DeviceOptions& options) {
  const Device* device = nullptr;
  for (const Device& each : kDevices) {
    device = options.device == each.name ? &each : device;
  }
  if (device == nullptr) {
    throw Usage("the device is forwarder, queue or streamer, not '" + printable(options.device) + "'");
  }
  Context context;
  Socket frontend = need(context.socket(device->frontend), "a socket");
  Socket backend = need(context.socket(device->backend), "a socket");
  Socket capture;
  attach(console, frontend, options.frontend, options.connect_frontend, "frontend");
  attach(console, backend, options.backend, options.connect_backend, "backend");
  if (!options.capture.empty()) {
    capture = need(context.socket(SocketType::pub), "a socket");
    attach(console, capture, options.capture, false, "capture");
  }
  Socket orders = need(context.socket(SocketType::pair), "a socket");
  Socket control = need(context.socket(SocketType::pair), "a socket");
  need(orders.bind(kControl), kControl);
  need(control.connect(kControl), kControl);

  // Ends when the context does. A later error shows in the counters' time-out.
  const auto run = [&] { (void)proxy(frontend, backend, options.capture.empty() ? nullptr : &capture, orders); };
  {
    Runner runner{context, {}};
    {
      const sys::SignalsBlocked blocked;  // signals go to this thread
      runner.thread = std::thread(run);
    }
    Counters before{};
    Instant last = sys::now();
    for (;;) {
      sleep_until(options.every > 0 ? last + seconds(options.every) : kNever);
      const Counters counters = read_counters(control);
      const Instant now = sys::now();
      report(console, counters, before, std::chrono::duration<double>(now - last).count());
      before = counters;
      last = now;
    }
  }
}

}  // namespace weft::cli
