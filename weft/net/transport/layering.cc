// SPDX-License-Identifier: MIT
#include "weft/net/transport/layering.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weft/net/stream/transport_row.h"
#include "weft/net/tls/tls.h"
#include "weft/sync/lock.h"

namespace weft::net {
namespace {

using Status = sys::IoResult::Status;

class SharedStream final : public ByteStream {
 public:
  explicit SharedStream(std::unique_ptr<ByteStream> layer) noexcept : layer_(std::move(layer)), fd_(layer_->fd()) {}

  [[nodiscard]] int fd() const override { return fd_; }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override {
    const sync::LockGuard lock(mutex_);
    return layer_->read(into);
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    const sync::LockGuard lock(mutex_);
    return write_locked(from);
  }
  void shutdown_write() override {
    const sync::LockGuard lock(mutex_);
    layer_->shutdown_write();
  }
  void break_off() noexcept override {
    const sync::LockGuard lock(mutex_);
    layer_->break_off();
  }
  void admit() noexcept override {
    const sync::LockGuard lock(mutex_);
    layer_->admit();
  }
  [[nodiscard]] std::string peer_address() const override { return layer_->peer_address(); }
  [[nodiscard]] StreamState state() const noexcept override {
    const sync::LockGuard lock(mutex_);
    StreamState state = layer_->state();
    state.unsent = state.unsent && !owes_;
    return state;
  }
  [[nodiscard]] bool ping() noexcept override {
    const sync::LockGuard lock(mutex_);
    return layer_->ping();
  }
  [[nodiscard]] const ByteStream* below() const noexcept override { return layer_.get(); }

 private:
  static constexpr std::size_t kPartsMax = 64;

  [[nodiscard]] sys::IoResult write_locked(std::span<const Bytes> from) WEFT_REQUIRES(mutex_);

  const std::unique_ptr<ByteStream> layer_;
  const int fd_;
  mutable sync::StdMutex mutex_;
  bool owes_ WEFT_GUARDED_BY(mutex_) = false;  // the layer took one byte more than write() reported
};

sys::IoResult SharedStream::write_locked(std::span<const Bytes> from) {
  if (layer_->state().unsent) {
    const sys::IoResult pushed = layer_->write({});
    if (pushed.status == Status::failed) {
      return pushed;
    }
    if (layer_->state().unsent) {
      return {};
    }
  }
  std::array<Bytes, kPartsMax> parts;
  const std::size_t count = std::min(from.size(), kPartsMax);
  std::size_t owed = owes_ ? 1 : 0;
  std::size_t size = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t skip = std::min(owed, from[i].size());
    parts[i] = from[i].subspan(skip);
    owed -= skip;
    size += parts[i].size();
  }
  std::size_t taken = owes_ && owed == 0 ? 1 : 0;
  if (size != 0) {
    const sys::IoResult written = layer_->write(std::span(parts).first(count));
    if (written.status == Status::failed || written.status == Status::end_of_stream) {
      return written;
    }
    taken += written.bytes;
  }
  if (taken == 0) {
    return {};
  }
  owes_ = layer_->state().unsent;
  taken -= owes_ ? 1 : 0;
  return {taken != 0 ? Status::done : Status::would_block, taken, 0};
}

}  // namespace

Result<std::unique_ptr<ByteStream>> Layering::apply(std::unique_ptr<ByteStream> below,
                                                    std::string_view mechanism) const {
  return make_shared_stream(WEFT_TRY(row.layer(std::move(below), *this, mechanism)));
}

Result<std::unique_ptr<ByteStream>> put_tls(std::unique_ptr<ByteStream> below, const Layering& how,
                                            std::string_view /*mechanism*/) {
  return how.accepts ? how.tls_server->wrap(std::move(below)) : how.tls_client->wrap(std::move(below), how.tls_name);
}

std::unique_ptr<ByteStream> make_shared_stream(std::unique_ptr<ByteStream> layer) {
  return std::make_unique<SharedStream>(std::move(layer));
}

}  // namespace weft::net
