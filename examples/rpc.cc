// SPDX-License-Identifier: MIT
// Remote calls with FlatBuffers: a server that adds numbers, and a client that calls it, with a deadline. The messages
// are in rpc.fbs.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc_generated.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/client/client.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/client/typed_client.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/dispatch/typed.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"

using namespace weft;
using namespace std::chrono_literals;
using Session = serve::SessionOf<serve::NumberedCodec>;
using Client = serve::Client<>;

constexpr std::uint32_t kSum = 1;  // the id of the call, and of its answer; the codec numbers the calls
constexpr const char* kRequest = "SUMQ";
constexpr const char* kReply = "SUMR";

// [server]
Result<void> add(Session& session, const rpc::SumRequest& request, const serve::FrameHeader& header) {
  if (request.numbers() == nullptr || request.numbers()->size() == 0) {
    return Error(Errc::invalid_argument, "nothing to add");  // the caller gets an error frame
  }
  std::uint64_t sum = 0;
  for (const std::int64_t number : *request.numbers()) {
    sum += static_cast<std::uint64_t>(number);
  }
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(rpc::CreateSumReply(builder, static_cast<std::int64_t>(sum)), kReply);
  return session.send(header, Bytes(builder.GetBufferPointer(), builder.GetSize()));
}

struct Adder {
  serve::Dispatcher<Session> dispatcher;

  Adder() { (void)serve::route<rpc::SumRequest>(dispatcher, kSum, kRequest, &add); }
  void on_frame(Session& session, const serve::NumberedCodec::Frame& frame) { dispatcher.dispatch(session, frame); }
};
// [server]

// [client]
rt::Task<Result<std::int64_t>> sum(Client* client, std::vector<std::int64_t> numbers) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(rpc::CreateSumRequestDirect(builder, &numbers), kRequest);
  const auto reply = co_await serve::call<rpc::SumReply>(client, kSum, builder.Release(), kReply, sys::now() + 10s);
  if (!reply) {
    co_return reply.error();
  }
  co_return (*reply)->sum();
}

rt::Task<Result<void>> ask(std::string endpoint) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());  // one for all clients of this core
  const auto client = Client::open(host, endpoint);
  if (!client) {
    co_return client.error();
  }
  const auto connected = co_await (*client)->connected(sys::now() + 10s);
  if (!connected) {
    co_return connected;
  }
  std::vector<std::int64_t> numbers = {1, 2, 3};
  const auto six = co_await sum(client->get(), std::move(numbers));
  if (!six) {
    co_return six.error();
  }
  std::printf("1 + 2 + 3 = %lld\n", static_cast<long long>(*six));
  const auto nothing = co_await sum(client->get(), std::vector<std::int64_t>());
  std::printf("nothing: %s\n", nothing ? "a sum" : nothing.error().message().c_str());
  const auto closed = co_await (*client)->close(sys::now() + 10s);
  co_return *six == 6 && !nothing ? closed : Error(Errc::protocol_error, "the sums are wrong");
}
// [client]

Result<void> run() {
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const std::string endpoint =
      WEFT_TRY(server->listen<serve::NumberedCodec>("tcp://127.0.0.1:0", {}, [] { return Adder(); }));
  WEFT_TRY(rt::spawn(runtime->core(0).loop(), ask(endpoint)).get());
  return server->stop(sys::now() + 10s);
}

int main() {
  if (const auto result = run(); !result) {
    std::fprintf(stderr, "rpc: %s\n", result.error().message().c_str());
    return 1;
  }
}
