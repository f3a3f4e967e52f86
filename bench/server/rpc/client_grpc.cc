// SPDX-License-Identifier: MIT
// gRPC's client at its best: one thread and its completion queue, a channel with a connection of its own for each
// connection, and bodies that are bytes. The messages of a stream are written with hints, so that gRPC may gather them.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/server/rpc/client_host.h"
#include "bench/server/rpc/grpc_names.h"

namespace bench {
namespace {

using grpc::ByteBuffer;

constexpr std::uint64_t kGathered = 64;  // messages of a stream for each that is written without a hint

// The first slice of a body that came; it keeps the bytes.
grpc::Slice slice_of(const ByteBuffer& body) {
  grpc::Slice slice;
  if (!body.TrySingleSlice(&slice).ok() && !body.DumpToSingleSlice(&slice).ok()) {
    throw LoadError("grpc: an answer without a body");
  }
  return slice;
}
Bytes bytes_of(const grpc::Slice& slice) { return {slice.begin(), slice.size()}; }
ByteBuffer buffer_of(Bytes bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return ByteBuffer(&slice, 1);
}

struct Connection {
  explicit Connection(const std::shared_ptr<grpc::Channel>& over) : channel(over), stub(over) {}
  std::shared_ptr<grpc::Channel> channel;
  grpc::GenericStub stub;
  std::uint64_t number = 0;
  std::uint64_t sequence = 0;
};

class Waiting {
 public:
  Waiting() = default;
  virtual ~Waiting() = default;
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  virtual void handle(bool ok) = 0;
};

class GrpcLoad final : public RpcLoad {
 public:
  explicit GrpcLoad(const ClientProcess::Options& options) : options_(options), bodies_(options.size) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MINIMAL_STACK, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    const std::string target = "127.0.0.1:" + std::to_string(options.port);
    for (std::uint32_t i = 0; i < options.connections; ++i) {
      connections_.push_back(std::make_unique<Connection>(
          grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments)));
      connections_.back()->number = i;
    }
    for (const auto& connection : connections_) {
      if (!connection->channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20))) {
        throw LoadError("grpc: no connection");
      }
    }
  }

  void call(std::uint64_t count, LoadResult& result) override {
    left_ = goal_ = count;
    result_ = &result;
    std::vector<std::unique_ptr<Lane>> lanes;
    for (std::uint32_t i = 0; i < options_.depth; ++i) {
      for (const auto& connection : connections_) {
        lanes.push_back(std::make_unique<Lane>(*this, *connection));
        lanes.back()->begin();
      }
    }
    await_goal();
  }

  void stream(std::uint64_t each) override {
    goal_ = connections_.size();
    std::vector<std::unique_ptr<Pushing>> streams;
    for (const auto& connection : connections_) {
      streams.push_back(std::make_unique<Pushing>(*this, *connection, each));
    }
    await_goal();
  }

 private:
  // One call after the other.
  class Lane final : public Waiting {
   public:
    Lane(GrpcLoad& load, Connection& connection) : load_(load), connection_(connection) {}

    void begin() {
      if (load_.left_ == 0) {
        return;
      }
      --load_.left_;
      tag_ = make_tag(connection_.number, connection_.sequence++);
      start_ = now_ns();
      reader_.reset();
      context_.emplace();
      reader_ =
          connection_.stub.PrepareUnaryCall(&*context_, kGrpcCall, buffer_of(load_.bodies_.make(tag_)), &load_.queue_);
      reader_->StartCall();
      reader_->Finish(&answer_, &status_, this);
    }
    void handle(bool) override {
      if (!status_.ok()) {
        throw LoadError("grpc: " + status_.error_message());
      }
      load_.bodies_.check(bytes_of(slice_of(answer_)), tag_);
      load_.result_->trips.add(now_ns() - start_);
      --load_.goal_;
      begin();
    }

   private:
    GrpcLoad& load_;
    Connection& connection_;
    std::uint64_t tag_ = 0, start_ = 0;
    std::optional<grpc::ClientContext> context_;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
    ByteBuffer answer_;
    grpc::Status status_;
  };

  // A stream of messages, and its answer.
  class Pushing final : public Waiting {
   public:
    Pushing(GrpcLoad& load, Connection& connection, std::uint64_t count)
        : load_(load), connection_(connection), count_(count), left_(count) {
      stream_ = connection_.stub.PrepareCall(&context_, kGrpcPush, &load_.queue_);
      stream_->StartCall(this);
    }

    void handle(bool ok) override {
      switch (state_) {
        case State::writes:
          if (!ok) {
            throw LoadError("grpc: a stream takes no more messages");
          }
          if (left_ > 0) {
            return write();
          }
          state_ = State::reads;
          return stream_->Read(&report_, this);
        case State::reads: state_ = State::ends; return stream_->Finish(&status_, this);
        case State::ends:
          if (!status_.ok()) {
            throw LoadError("grpc: " + status_.error_message());
          }
          check_report(bytes_of(slice_of(report_)), count_);
          --load_.goal_;
      }
    }

   private:
    enum class State { writes, reads, ends };

    void write() {
      const ByteBuffer body = buffer_of(load_.bodies_.make(make_tag(connection_.number, connection_.sequence++)));
      grpc::WriteOptions options;
      if (--left_ == 0) {
        return stream_->WriteLast(body, options, this);
      }
      if (left_ % kGathered != 0) {
        options.set_buffer_hint();
      }
      stream_->Write(body, options, this);
    }

    GrpcLoad& load_;
    Connection& connection_;
    const std::uint64_t count_;
    std::uint64_t left_;
    grpc::ClientContext context_;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
    ByteBuffer report_;
    grpc::Status status_;
    State state_ = State::writes;
  };

  void await_goal() {
    void* waiting = nullptr;
    for (bool ok = false; goal_ > 0 && queue_.Next(&waiting, &ok);) {
      static_cast<Waiting*>(waiting)->handle(ok);
    }
  }

  const ClientProcess::Options options_;
  RequestBodies bodies_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::uint64_t left_ = 0;  // calls that have not begun
  std::uint64_t goal_ = 0;  // calls, or streams, that have not ended
  LoadResult* result_ = nullptr;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::run_client(argc, argv, "gRPC " + grpc::Version(),
                           [](const auto& options) -> std::unique_ptr<bench::RpcLoad> {
                             return std::make_unique<bench::GrpcLoad>(options);
                           });
}
