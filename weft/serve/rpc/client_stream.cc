// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/client_stream.h"

#include <stdexcept>
#include <string>

#include "weft/serve/session/shard.h"

namespace weft::serve::rpc {

namespace {

Result<void> send_by_client(void* table, const Header& header, Bytes body) {
  auto* const connection = static_cast<StreamTable*>(table)->connection;
  if (connection == nullptr) {
    return Error(Errc::closed, "the client has ended");
  }
  return connection->send(header, body);
}
rt::AsyncEvent* never_full(void* /*table*/) { return nullptr; }

}  // namespace

void StreamTable::handle(const Codec::Frame& frame) {
  const FrameType type = frame.header.type;
  const auto at = streams.find(frame.header.id);
  if (at == streams.end() || (type != FrameType::data && type != FrameType::credit)) {
    return;  // of a stream that was given up, or not of a stream: counted as a push
  }
  StreamEnd& end = at->second->end();
  const Result<void> handled =
      type == FrameType::data ? end.handle_data(frame.body) : end.handle_credit(frame.header.number);
  if (!handled) {
    throw std::runtime_error(handled.error().message());
  }
}

ClientStreamState::ClientStreamState(std::shared_ptr<StreamTable> table, std::shared_ptr<ClientHost> host,
                                     bool receives, bool sends)
    : IdReceiver{&note_id},
      table_(std::move(table)),
      host_(std::move(host)),
      end_(StreamPort{table_.get(), &send_by_client, &never_full, &host_->shard().budget()}, receives, sends),
      scope_(host_->core().loop()) {}

void ClientStreamState::note_id(IdReceiver& receiver, std::uint64_t id) noexcept {
  auto& self = static_cast<ClientStreamState&>(receiver);
  try {
    self.table_->streams.emplace(id, &self);
    self.id_ = id;
    self.end_.begin(id);
  } catch (...) {
    self.scope_.cancel();  // without memory the call is cancelled
  }
}

void ClientStreamState::leave() noexcept {
  if (id_ != 0) {
    table_->streams.erase(std::exchange(id_, 0));
  }
}

void ClientStreamState::finish(const Error& why, OwnedBytes response) noexcept {
  leave();
  over_ = why;
  response_ = std::move(response);
  end_.finish(why);
  answered_.set();
}

rt::Task<Result<OwnedBytes>> ClientStreamState::answer(std::shared_ptr<ClientStreamState> self) {
  const auto waited = co_await self->answered_.wait();
  if (!waited) {
    co_return waited.error();
  }
  if (!(*self->over_ == Errc::ok)) {
    co_return *self->over_;
  }
  co_return std::move(self->response_);
}

}  // namespace weft::serve::rpc
