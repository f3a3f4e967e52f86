// SPDX-License-Identifier: MIT
// Cap'n Proto's RPC: an event loop of KJ, and an object for each connection.
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cstring>
#include <future>
#include <thread>

#include "bench/server/host.h"
#include "rival.capnp.h"

namespace bench {
namespace {

class EchoServer final : public Echo::Server {
 public:
  explicit EchoServer(Tally& tally) : tally_(tally) {}

 protected:
  kj::Promise<void> call(CallContext context) override {
    tally_.add(Tally::messages);
    const auto body = context.getParams().getBody();
    context.initResults(capnp::MessageSize{body.size() / sizeof(capnp::word) + 8, 0}).setBody(body);
    return kj::READY_NOW;
  }
  kj::Promise<void> push(PushContext context) override {
    tally_.add(Tally::messages);
    const auto body = context.getParams().getBody();
    check_.take({body.begin(), body.size()});
    return kj::READY_NOW;
  }
  kj::Promise<void> finish(FinishContext context) override {
    tally_.add(Tally::messages);
    const auto report = check_.report();
    context.initResults().setReport(kj::arrayPtr(report.data(), report.size()));
    return kj::READY_NOW;
  }

 private:
  Tally& tally_;
  StreamCheck check_;
};

class Peer {
 public:
  Peer(kj::Own<kj::AsyncIoStream> stream, Tally& tally)
      : stream_(kj::mv(stream)),
        network_(*stream_, capnp::rpc::twoparty::Side::SERVER),
        rpc_(capnp::makeRpcServer(network_, kj::heap<EchoServer>(tally))) {}
  kj::Promise<void> ended() { return network_.onDisconnect(); }

 private:
  kj::Own<kj::AsyncIoStream> stream_;
  capnp::TwoPartyVatNetwork network_;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc_;
};

class Accepting final : public kj::TaskSet::ErrorHandler {
 public:
  Accepting(kj::Own<kj::ConnectionReceiver> receiver, Tally& tally)
      : receiver_(kj::mv(receiver)), tally_(tally), peers_(*this) {}

  kj::Promise<void> run() {
    return receiver_->accept().then([this](kj::Own<kj::AsyncIoStream> stream) {
      const int yes = 1;
      stream->setsockopt(IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      tally_.add(Tally::accepted);
      auto peer = kj::heap<Peer>(kj::mv(stream), tally_);
      auto ended = peer->ended();
      peers_.add(ended.attach(kj::mv(peer)));
      return run();
    });
  }
  void taskFailed(kj::Exception&&) override { tally_.add(Tally::closed); }

 private:
  kj::Own<kj::ConnectionReceiver> receiver_;
  Tally& tally_;
  kj::TaskSet peers_;
};

void serve(int listener, Tally& tally) {
  auto io = kj::setupAsyncIo();
  Accepting accepting(io.lowLevelProvider->wrapListenSocketFd(listener), tally);
  accepting.run().wait(io.waitScope);
}

HostedServer start(const HostOptions& options, std::vector<Tally>& tallies) {
  HostedServer server{"Cap'n Proto", 0, {}};
  server.name += " " + std::to_string(CAPNP_VERSION / 1'000'000) + "." + std::to_string(CAPNP_VERSION / 1'000 % 1'000) +
                 "." + std::to_string(CAPNP_VERSION % 1'000);
  for (Tally& tally : tallies) {
    const int listener = listen_on(server.port, options.threads > 1);
    std::thread([listener, &tally] { serve(listener, tally); }).detach();
  }
  return server;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "none", bench::start); }
