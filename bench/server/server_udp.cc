// SPDX-License-Identifier: MIT
// Weft's server of datagrams, as a user writes it.
#include <string>

#include "bench/server/host.h"
#include "bench/server/must.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/udp/datagram_server.h"

namespace bench {
namespace {

// One service for each core.
struct UdpEcho {
  Tally& tally;

  void on_open(weft::serve::DatagramSession&) { tally.add(Tally::accepted); }
  void on_datagram(weft::serve::DatagramSession& session, weft::Bytes payload) {
    tally.add(Tally::messages);
    (void)session.send(payload);
  }
  void on_close(weft::serve::DatagramSession&, weft::serve::DatagramEnd) { tally.add(Tally::closed); }
};

HostedServer start_udp(const HostOptions& options, std::vector<Tally>& tallies) {
  weft::rt::RuntimeOptions runtime_options;
  runtime_options.cores = options.threads;
  weft::serve::UdpOptions udp;
  udp.datagrams_per_second = 0;  // a client of the generator sends as fast as it can
  udp.admission.address_connections_max = 0;
  // Both live as long as the program.
  auto* const runtime = must(weft::rt::Runtime::start(runtime_options)).release();
  auto* const server =
      must(weft::serve::DatagramServer::open(*runtime, "udp://127.0.0.1:0", udp, [&tallies](weft::rt::Core& core) {
        return UdpEcho{tallies[core.index()]};
      })).release();
  const std::string& endpoint = server->endpoint();
  const auto port = static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
  return {"Weft", port, [server] {
            const auto counts = server->counters();
            return Json{{"cookie", counts.wrong_cookie},
                        {"no session", counts.strays},
                        {"malformed", counts.malformed},
                        {"receive buffer", counts.receive_buffer},
                        {"send failed", counts.send_failed}};
          }};
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "none", bench::start_udp); }
