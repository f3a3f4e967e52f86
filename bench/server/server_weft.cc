// SPDX-License-Identifier: MIT
// Weft's server, as a user writes it. `publish`: its sessions are in a group, to which kPublish goes.
#include <chrono>
#include <cstring>

#include "bench/server/host.h"
#include "bench/server/must.h"
#include "weft/net/admit/admission.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/server/server.h"

namespace bench {
namespace {

using weft::serve::HeaderCodec;
using Session = weft::serve::SessionOf<HeaderCodec>;
constexpr weft::serve::GroupId kEverybody{1};

// One service for each core.
class Service {
 public:
  // `publisher`: null, unless the sessions are in a group.
  Service(Tally& tally, weft::serve::Server* publisher) : tally_(tally), publisher_(publisher) {}

  void on_open(Session& session) {
    session.set_context(new StreamCheck);
    if (publisher_ != nullptr) {
      (void)session.join(kEverybody);
    }
    tally_.add(Tally::accepted);
  }

  void on_frame(Session& session, const HeaderCodec::Frame& frame) {
    tally_.add(Tally::messages);
    switch (frame.header.id) {
      case kCount: stream_of(session).take(frame.body); return;
      case kSync:
        answer_.resize(frame.body.size());
        stream_of(session).answer(frame.body, answer_.data());
        (void)session.send(frame.header, answer_);
        return;
      case kPublish:
        if (publisher_ != nullptr) {
          (void)publisher_->publish(kEverybody,
                                    must(weft::serve::SharedFrame::encode(session.codec(), frame.header, frame.body)));
        }
        return;
      default: (void)session.send(frame.header, frame.body);
    }
  }

  void on_close(Session& session, const weft::Error&) {
    delete &stream_of(session);
    tally_.add(Tally::closed);
  }

 private:
  static StreamCheck& stream_of(Session& session) { return *static_cast<StreamCheck*>(session.context()); }

  Tally& tally_;
  weft::serve::Server* publisher_;
  std::vector<std::uint8_t> answer_;
};

Json reasons_of(const weft::serve::CounterValues& counters) {
  Json reasons;
  const auto add = [&](std::string_view name, std::uint64_t count) { reasons[std::string(name)] = count; };
  for (std::size_t i = 0; i < weft::serve::kCloseReasons; ++i) {
    add(describe(static_cast<weft::serve::CloseReason>(i)), counters.closed[i]);
  }
  for (std::size_t i = 0; i < weft::serve::kRejections; ++i) {
    add(describe(static_cast<weft::serve::Rejection>(i)), counters.rejected[i]);
  }
  add("accept paused", counters.accept_pauses);
  return reasons;
}

HostedServer start(const HostOptions& options, std::vector<Tally>& tallies) {
  weft::rt::RuntimeOptions runtime_options;
  runtime_options.cores = options.threads;
  const bool io_uring = options.variant == "io_uring";
  const bool publishes = options.variant == "publish";
  if (io_uring) {
    runtime_options.poller = weft::sys::PollerKind::io_uring;
  } else if (options.variant == "latency") {
    runtime_options.wait_mode = weft::sync::WaitMode::latency;
  } else if (options.variant == "eco") {
    runtime_options.wait_mode = weft::sync::WaitMode::eco;
  } else if (!options.variant.empty() && !publishes) {
    give_up("weft: there is no such variant");
  }
  // Both live as long as the program.
  auto* const runtime = must(weft::rt::Runtime::start(runtime_options)).release();
  if (io_uring != (runtime->poller().kind == weft::sys::PollerKind::io_uring)) {
    give_up(std::string("weft: ") + runtime->poller().refusal.message());
  }
  auto* const server = must(weft::serve::Server::make(*runtime)).release();
  weft::serve::ListenerOptions listener;
  listener.socket.backlog = 4096;
  if (options.patience_ms > 0) {
    listener.limits.handshake_timeout = std::chrono::milliseconds(options.patience_ms);
  }
  if (options.per_address > 0) {
    weft::net::AdmissionOptions admission;
    admission.address_connections_max = options.per_address;
    listener.admission = must(weft::net::Admission::make(admission));
  }
  auto* const publisher = publishes ? server : nullptr;
  const std::string endpoint =
      must(server->listen<HeaderCodec>("tcp://127.0.0.1:0", listener, [&tallies, publisher](weft::rt::Core& core) {
        return Service(tallies[core.index()], publisher);
      }));
  const auto port = static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
  return {options.variant.empty() ? "Weft" : "Weft with " + options.variant, port,
          [server] { return reasons_of(server->counters()); }};
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "io_uring, latency, eco, publish", bench::start); }
