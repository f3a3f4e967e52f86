// SPDX-License-Identifier: MIT
// gRPC C++ at its best: completion queues, whose thread also runs the handler, and bodies that are bytes without
// protobuf, like those of Weft. A call's object is used again after its answer.
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <optional>
#include <thread>

#include "bench/server/host.h"
#include "bench/server/rpc/grpc_names.h"

namespace bench {
namespace {

using grpc::ByteBuffer;

constexpr int kCallsWaiting = 256;  // calls of a thread that may begin at the same time
constexpr int kStreamsWaiting = 16;

// As protoc generates it for a service with both methods, of bytes.
class EchoService final : public grpc::Service {
 public:
  EchoService() {
    using grpc::internal::RpcMethod;
    using grpc::internal::RpcServiceMethod;
    AddMethod(new RpcServiceMethod(kGrpcCall, RpcMethod::NORMAL_RPC, nullptr));
    AddMethod(new RpcServiceMethod(kGrpcPush, RpcMethod::CLIENT_STREAMING, nullptr));
    MarkMethodAsync(0);
    MarkMethodAsync(1);
  }
  using grpc::Service::RequestAsyncClientStreaming;
  using grpc::Service::RequestAsyncUnary;
};

// An operation that waits in a completion queue.
class Waiting {
 public:
  Waiting() = default;
  virtual ~Waiting() = default;
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  virtual void handle(bool ok) = 0;
};

struct Place {
  EchoService& service;
  grpc::ServerCompletionQueue& queue;
  Tally& tally;
};

class EchoCall final : public Waiting {
 public:
  explicit EchoCall(const Place& place) : place_(place) { begin(); }

  void handle(bool ok) override {
    if (answering_ || !ok) {
      return begin();
    }
    answering_ = true;
    place_.tally.add(Tally::messages);
    writer_->Finish(body_, grpc::Status::OK, this);
  }

 private:
  void begin() {
    answering_ = false;
    writer_.reset();
    context_.emplace();
    writer_.emplace(&*context_);
    place_.service.RequestAsyncUnary(0, &*context_, &body_, &*writer_, &place_.queue, &place_.queue, this);
  }

  const Place place_;
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncResponseWriter<ByteBuffer>> writer_;
  ByteBuffer body_;
  bool answering_ = false;
};

class PushCall final : public Waiting {
 public:
  explicit PushCall(const Place& place) : place_(place) { begin(); }

  void handle(bool ok) override {
    if (answering_ || (state_ == State::begins && !ok)) {
      return begin();
    }
    if (state_ == State::reads && !ok) {
      return answer();
    }
    if (state_ == State::reads) {
      place_.tally.add(Tally::messages);
      grpc::Slice body;
      (void)(message_.TrySingleSlice(&body).ok() || message_.DumpToSingleSlice(&body).ok());
      check_.take({body.begin(), body.size()});
    }
    state_ = State::reads;
    reader_->Read(&message_, this);
  }

 private:
  enum class State { begins, reads };

  void begin() {
    answering_ = false;
    state_ = State::begins;
    reader_.reset();
    context_.emplace();
    reader_.emplace(&*context_);
    place_.service.RequestAsyncClientStreaming(1, &*context_, &*reader_, &place_.queue, &place_.queue, this);
  }
  void answer() {
    answering_ = true;
    place_.tally.add(Tally::messages);
    const auto report = check_.report();
    const grpc::Slice slice(report.data(), report.size());
    reader_->Finish(ByteBuffer(&slice, 1), grpc::Status::OK, this);
  }

  const Place place_;
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncReader<ByteBuffer, ByteBuffer>> reader_;
  ByteBuffer message_;
  StreamCheck check_;
  State state_ = State::begins;
  bool answering_ = false;
};

HostedServer start(const HostOptions& options, std::vector<Tally>& tallies) {
  // All of these live as long as the program.
  auto* const service = new EchoService;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_MINIMAL_STACK, 1);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(service);
  std::vector<grpc::ServerCompletionQueue*> queues;
  for (unsigned i = 0; i < options.threads; ++i) {
    queues.push_back(builder.AddCompletionQueue().release());
  }
  if (builder.BuildAndStart().release() == nullptr) {
    give_up("grpc");
  }
  for (unsigned i = 0; i < options.threads; ++i) {
    std::thread([place = Place{*service, *queues[i], tallies[i]}] {
      for (int k = 0; k < kCallsWaiting; ++k) {
        new EchoCall(place);
      }
      for (int k = 0; k < kStreamsWaiting; ++k) {
        new PushCall(place);
      }
      void* waiting = nullptr;
      for (bool ok = false; place.queue.Next(&waiting, &ok);) {
        static_cast<Waiting*>(waiting)->handle(ok);
      }
    }).detach();
  }
  return {"gRPC " + grpc::Version(), static_cast<std::uint16_t>(port), {}};
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "none", bench::start); }
