// SPDX-License-Identifier: MIT
#include "weft/serve/udp/datagram_server.h"

#include <atomic>
#include <exception>

#include "weft/net/stream/endpoint.h"
#include "weft/sys/datagram.h"
#include "weft/sys/socket.h"

namespace weft::serve {
namespace {

constexpr std::uint32_t kDatagramMax = 65507;  // RFC 768 over IPv4 without options

bool on_core_of(const rt::Runtime& runtime) noexcept {
  const rt::Core* const core = rt::Core::current();
  return core != nullptr && &core->runtime() == &runtime;
}

Result<void> check(const UdpOptions& options) {
  if (options.datagram_max < kDatagramHeader || options.datagram_max > kDatagramMax) {
    return Error(Errc::invalid_argument, "datagram_max is between 9 and 65507");
  }
  if (options.idle_timeout <= Duration::zero() || options.cookie_time <= Duration::zero()) {
    return Error(Errc::invalid_argument, "idle_timeout and cookie_time are positive");
  }
  return {};
}

Result<sys::SocketAddress> local_of(std::string_view text) {
  const net::Endpoint endpoint = WEFT_TRY(net::parse_endpoint(text, true));
  if (endpoint.transport != net::Transport::udp || endpoint.has_source) {
    return Error(Errc::invalid_argument, "a datagram server has an endpoint udp://address:port");
  }
  const std::uint16_t port = endpoint.any_port ? std::uint16_t{0} : endpoint.port;
  return endpoint.wildcard ? sys::SocketAddress::any(false, port)
                           : sys::SocketAddress::parse_numeric(endpoint.host, port);
}

}  // namespace

DatagramServer::DatagramServer(rt::Runtime& runtime, std::shared_ptr<DatagramCommon> common)
    : runtime_(runtime),
      gone_(runtime.gone()),
      common_(std::move(common)),
      shards_(std::make_shared<Shards>(runtime.size())),
      stopping_(rt::CoreVisits::make(runtime, [shards = shards_](unsigned core) {
        if (const auto& shard = (*shards)[core]) {
          shard->stop();
        }
        return Result<void>();
      })) {}

Result<std::unique_ptr<DatagramServer>> DatagramServer::open_with(rt::Runtime& runtime, std::string_view endpoint,
                                                                  UdpOptions options, const MakeCalls& make_calls) {
  if (on_core_of(runtime)) {
    return Error(Errc::invalid_state, "a core cannot wait for the cores");
  }
  WEFT_TRY(check(options));
  const sys::SocketAddress local = WEFT_TRY(local_of(endpoint));
  auto admission = WEFT_TRY(net::Admission::make(options.admission));
  try {
    const CookieMaker cookies(random_sip_key(), options.cookie_time);
    auto common = std::make_shared<DatagramCommon>(DatagramCommon{std::move(options), cookies, random_sip_key(),
                                                                  std::move(admission),
                                                                  std::make_unique<DatagramCounts[]>(runtime.size())});
    std::unique_ptr<DatagramServer> server(new DatagramServer(runtime, std::move(common)));
    WEFT_TRY(server->start(local, make_calls));
    return server;
  } catch (const std::exception&) {
    return Error(Errc::resource_exhausted, "no memory, or no random number");
  }
}

Result<void> DatagramServer::start(const sys::SocketAddress& local, const MakeCalls& make_calls) {
  sys::DatagramOptions how;
  how.local = local;
  how.bound = true;
  how.shared = true;
  sys::SocketOptions buffers;
  buffers.send_buffer = common_->options.send_buffer;
  buffers.receive_buffer = common_->options.receive_buffer;
  std::vector<sys::Fd> sockets;
  for (unsigned i = 0; i < runtime_.size(); ++i) {
    sockets.push_back(WEFT_TRY(sys::open_datagram_socket(how, buffers)));
    how.local = WEFT_TRY(sys::local_address(sockets.back().fd()));
  }
  endpoint_ = "udp://" + how.local.to_text();
  const auto visited = rt::CoreVisits::run(runtime_, [&](unsigned i) -> Result<void> {
    rt::Core& core = runtime_.core(i);
    if (rt::Core::current() != &core) {
      return Error(Errc::closed, "the runtime has stopped");
    }
    const MakeCalls own = make_calls;  // the cores call at the same time
    auto& shard = (*shards_)[i];
    shard = std::make_shared<DatagramShard>(core, common_, std::move(sockets[i]), own(core));
    return shard->start();
  });
  return visited || !(visited.error() == Errc::job_threw) ? visited : Error(Errc::system, "make_service threw");
}

Result<void> DatagramServer::stop(Instant deadline) {
  if (on_core_of(runtime_)) {
    return Error(Errc::invalid_state, "a core cannot wait for the cores");
  }
  if (gone_->load()) {
    return {};  // the sessions of a core end with it
  }
  stopping_->begin();
  return stopping_->wait(deadline);
}

DatagramServer::~DatagramServer() {
  if (!gone_->load() && on_core_of(runtime_)) {
    stopping_->begin();
  } else {
    (void)stop(kNever);
  }
}

DatagramCounterValues DatagramServer::counters() const noexcept {
  DatagramCounterValues sum;
  for (std::size_t i = 0; i < shards_->size(); ++i) {
    sync::add_counters(sum, common_->counts[i]);
  }
  return sum;
}

CounterSource DatagramServer::counter_source() const {
  return [common = common_, cores = shards_->size()](std::string_view name, CounterReadings& into) {
    DatagramCounterValues sum;
    for (std::size_t i = 0; i < cores; ++i) {
      sync::add_counters(sum, common->counts[i]);
    }
    into.push_back({&kDatagramTable, {{"udp", std::string(name)}}, sync::read_counters(sum)});
  };
}

}  // namespace weft::serve
