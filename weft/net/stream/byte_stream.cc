// SPDX-License-Identifier: MIT
#include "weft/net/stream/byte_stream.h"

#include <utility>

namespace weft::net {
namespace {

class SocketStream final : public ByteStream {
 public:
  explicit SocketStream(sys::Fd fd) noexcept : fd_(std::move(fd)) {}

  [[nodiscard]] int fd() const override { return fd_.fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override {
    return into.size() == 1 ? sys::read_some(fd(), into[0]) : sys::read_vector(fd(), into);
  }
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override {
    return from.size() == 1 ? sys::write_some(fd(), from[0]) : sys::write_vector(fd(), from);
  }
  void shutdown_write() override { sys::shutdown_write(fd()); }
  void break_off() noexcept override { sys::reset_at_close(fd()); }
  [[nodiscard]] std::string peer_address() const override {
    if (peer_ != nullptr) {
      return *peer_;
    }
    const auto address = sys::peer_address(fd());
    return address ? address->to_text() : std::string();
  }
  void name_peer(const std::string& address) override { peer_ = std::make_unique<const std::string>(address); }

 private:
  sys::Fd fd_;
  std::unique_ptr<const std::string> peer_;  // null: the socket's own
};

}  // namespace

std::unique_ptr<ByteStream> make_socket_stream(sys::Fd fd) { return std::make_unique<SocketStream>(std::move(fd)); }

}  // namespace weft::net
