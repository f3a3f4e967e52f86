// SPDX-License-Identifier: MIT
// Cap'n Proto's client: an event loop of KJ. The messages of a stream are calls whose flow the library controls.
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/server/rpc/client_host.h"
#include "rival.capnp.h"

namespace bench {
namespace {

struct Connection {
  explicit Connection(kj::Own<kj::AsyncIoStream> over)
      : stream(kj::mv(over)), client(*stream), echo(client.bootstrap().castAs<Echo>()) {}
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyClient client;
  Echo::Client echo;
  std::uint64_t number = 0;
  std::uint64_t sequence = 0;
};

capnp::MessageSize size_of(Bytes body) { return {body.size() / sizeof(capnp::word) + 8, 0}; }
kj::ArrayPtr<const kj::byte> array_of(Bytes body) { return kj::arrayPtr(body.data(), body.size()); }

class CapnpLoad final : public RpcLoad {
 public:
  explicit CapnpLoad(const ClientProcess::Options& options)
      : options_(options), bodies_(options.size), io_(kj::setupAsyncIo()) {
    auto address = io_.provider->getNetwork()
                       .parseAddress(("127.0.0.1:" + std::to_string(options.port)).c_str())
                       .wait(io_.waitScope);
    for (std::uint32_t i = 0; i < options.connections; ++i) {
      connections_.push_back(std::make_unique<Connection>(address->connect().wait(io_.waitScope)));
      connections_.back()->number = i;
    }
  }
  ~CapnpLoad() noexcept override {}  // NOLINT(modernize-use-equals-default): the members' destructors may throw
  CapnpLoad(const CapnpLoad&) = delete;
  CapnpLoad& operator=(const CapnpLoad&) = delete;

  void call(std::uint64_t count, LoadResult& result) override {
    left_ = count;
    result_ = &result;
    auto lanes = kj::heapArrayBuilder<kj::Promise<void>>(options_.depth * connections_.size());
    for (std::uint32_t i = 0; i < options_.depth; ++i) {
      for (const auto& connection : connections_) {
        lanes.add(call_in_turn(*connection));
      }
    }
    run(kj::joinPromises(lanes.finish()));
  }

  void stream(std::uint64_t each) override {
    auto streams = kj::heapArrayBuilder<kj::Promise<void>>(connections_.size());
    for (const auto& connection : connections_) {
      streams.add(push(*connection, each, each));
    }
    run(kj::joinPromises(streams.finish()));
  }

 private:
  void run(kj::Promise<void> all) {
    try {
      all.wait(io_.waitScope);
    } catch (const kj::Exception& error) {
      throw LoadError(std::string("capnp: ") + error.getDescription().cStr());
    }
  }

  // One call after the other, while there are any left.
  kj::Promise<void> call_in_turn(Connection& connection) {
    if (left_ == 0) {
      return kj::READY_NOW;
    }
    --left_;
    const std::uint64_t tag = make_tag(connection.number, connection.sequence++);
    const std::uint64_t start = now_ns();
    const Bytes body = bodies_.make(tag);
    auto request = connection.echo.callRequest(size_of(body));
    request.setBody(array_of(body));
    return request.send().then([this, &connection, tag, start](capnp::Response<Echo::CallResults>&& answer) {
      const auto got = answer.getBody();
      bodies_.check({got.begin(), got.size()}, tag);
      result_->trips.add(now_ns() - start);
      return call_in_turn(connection);
    });
  }

  kj::Promise<void> push(Connection& connection, std::uint64_t left, std::uint64_t count) {
    if (left == 0) {
      return connection.echo.finishRequest().send().then([count](capnp::Response<Echo::FinishResults>&& answer) {
        const auto report = answer.getReport();
        check_report({report.begin(), report.size()}, count);
      });
    }
    const Bytes body = bodies_.make(make_tag(connection.number, connection.sequence++));
    auto request = connection.echo.pushRequest(size_of(body));
    request.setBody(array_of(body));
    return request.send().then([this, &connection, left, count] { return push(connection, left - 1, count); });
  }

  const ClientProcess::Options options_;
  RequestBodies bodies_;
  kj::AsyncIoContext io_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::uint64_t left_ = 0;
  LoadResult* result_ = nullptr;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::run_client(argc, argv, "Cap'n Proto", [](const auto& options) -> std::unique_ptr<bench::RpcLoad> {
    return std::make_unique<bench::CapnpLoad>(options);
  });
}
