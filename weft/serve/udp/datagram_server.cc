// SPDX-License-Identifier: MIT
#include "weft/serve/udp/datagram_server.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "weft/net/endpoint.h"
#include "weft/sync/condition.h"
#include "weft/sys/datagram.h"
#include "weft/sys/socket.h"

namespace weft::serve {
namespace {

constexpr std::uint32_t kDatagramMax = 65507;  // RFC 768 over IPv4 without options

// CoreVisits: waits for jobs on cores. A job that a loop drops counts as ended.
class CoreVisits : public std::enable_shared_from_this<CoreVisits> {
 public:
  struct Visit {
    std::shared_ptr<CoreVisits> visits;
    ~Visit() { visits->leave(); }
  };

  std::shared_ptr<Visit> begin() {
    auto visit = std::make_shared<Visit>(shared_from_this());
    const std::lock_guard lock(mutex_);
    ++under_way_;
    return visit;
  }
  void note(const Error& error) {
    const std::lock_guard lock(mutex_);
    error_ = error;
    failed_ = true;
  }
  Result<void> wait(Instant deadline) {
    std::unique_lock lock(mutex_);
    while (under_way_ != 0 && sync::sleep_until(changed_, lock, deadline)) {
    }
    if (under_way_ != 0) {
      return Error(Errc::timed_out, "a core did not come to it by the deadline");
    }
    return failed_ ? Result<void>(error_) : Result<void>();
  }

 private:
  void leave() {
    const std::lock_guard lock(mutex_);
    --under_way_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  int under_way_ = 0;
  bool failed_ = false;
  Error error_;
};

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
  shards_.resize(runtime_.size());
  const auto visits = std::make_shared<CoreVisits>();
  for (unsigned i = 0; i < runtime_.size(); ++i) {
    auto fd = std::make_shared<sys::Fd>(std::move(sockets[i]));
    rt::Job job([this, i, fd, make_calls, visit = visits->begin()] {
      try {
        rt::Core& core = runtime_.core(i);
        shards_[i] = std::make_shared<DatagramShard>(core, common_, std::move(*fd), make_calls(core));
        if (const auto started = shards_[i]->start(); !started) {
          visit->visits->note(started.error());
        }
      } catch (...) {
        visit->visits->note(Error(Errc::system, "make_service threw"));
      }
    });
    if (const auto posted = runtime_.core(i).loop().try_post(job); !posted) {
      visits->note(posted.error());
    }
  }
  return visits->wait(kNever);
}

Result<void> DatagramServer::stop(Instant deadline) {
  if (on_core_of(runtime_)) {
    return Error(Errc::invalid_state, "a core cannot wait for the cores");
  }
  const auto visits = std::make_shared<CoreVisits>();
  for (unsigned i = 0; i < shards_.size() && !gone_->load(); ++i) {
    rt::Job job([shard = shards_[i], visit = visits->begin()] {
      if (shard != nullptr) {
        shard->stop();
      }
    });
    (void)runtime_.core(i).loop().try_post(job);  // refused: the core has ended, and its sessions with it
  }
  return visits->wait(deadline);
}

DatagramServer::~DatagramServer() {
  if (!on_core_of(runtime_)) {
    (void)stop(kNever);
    return;
  }
  for (unsigned i = 0; i < shards_.size(); ++i) {
    rt::Job job([shard = shards_[i]] {
      if (shard != nullptr) {
        shard->stop();
      }
    });
    (void)runtime_.core(i).loop().try_post(job);
  }
}

DatagramCounterValues DatagramServer::counters() const noexcept {
  DatagramCounterValues sum;
  for (unsigned i = 0; i < shards_.size(); ++i) {
    sync::add_counters(sum, common_->counts[i]);
  }
  return sum;
}

CounterSource DatagramServer::counter_source() const {
  return [common = common_, cores = shards_.size()](std::string_view name, CounterReadings& into) {
    DatagramCounterValues sum;
    for (std::size_t i = 0; i < cores; ++i) {
      sync::add_counters(sum, common->counts[i]);
    }
    into.push_back({&kDatagramTable, {{"udp", std::string(name)}}, sync::read_counters(sum)});
  };
}

}  // namespace weft::serve
