// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "weft/base/bytes.h"
#include "weft/msg/message/message_drops.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/sys/address.h"
#include "weft/sys/datagram.h"
#include "weft/sys/fd.h"
#include "weft/zmtp/datagram_codec.h"

namespace weft::msg {

// DatagramStream: a UDP socket as a Stream of ZMTP 3 frames without a greeting: a message of two parts is a datagram.
// Owner: a connection. Affinity: one reader and one writer thread at a time, as of every Stream.
// Cost: one system call for up to 32 datagrams, each way. A datagram that is sent is not copied, one that was received
// is copied once. A stream that receives has kRooms * kRoom bytes of address space; a page counts once it was used.
// Invariants:
// 1. write() takes whole datagrams. The only bytes that it keeps are the first part of a message, when the rest follows
//    in the next write().
// 2. Nothing but shutdown_write() ends the stream. A refusal by the system loses one datagram, which the drops count.
// 3. One read() receives at most kCallsMax times: a flood does not keep its thread.
// 4. A write() sends its bytes before it returns, unless the kernel has no room.
class DatagramStream final : public net::ByteStream {
 public:
  static constexpr std::size_t kRooms = 16;
  static constexpr std::size_t kRoom = 64 * 1024;  // bytes, the longest datagram of UDP
  static constexpr int kCallsMax = 16;

  enum class Form : std::uint8_t {
    grouped,    // RADIO, DISH: the first part is the group; all datagrams go to one address
    addressed,  // DGRAM: the first part is the address: raw when sent, and text with a final zero when received
  };
  // `to`: the target of sent frames, if grouped; with it the stream receives no frames, and counts those that arrive.
  // `part_max`: bytes of one part that the socket takes.
  DatagramStream(sys::Fd fd, Form form, const sys::SocketAddress& to, std::uint64_t part_max, MessageDrops& drops);

  [[nodiscard]] int fd() const override { return fd_.fd(); }
  [[nodiscard]] sys::IoResult read(std::span<MutableBytes> into) override;
  [[nodiscard]] sys::IoResult write(std::span<const Bytes> from) override;
  void shutdown_write() override { ended_ = true; }  // then read() finds the end
  [[nodiscard]] std::string peer_address() const override { return to_.to_text(); }
  [[nodiscard]] net::StreamState state() const noexcept override;

 private:
  static constexpr std::size_t kHeadMax = 256;  // a group with its length; or a raw address

  struct Batch {
    std::array<sys::OutgoingDatagram, sys::kMaxDatagrams> datagrams;
    std::array<std::size_t, sys::kMaxDatagrams> ends;  // of the bytes written
    std::size_t count = 0;
  };
  [[nodiscard]] bool send(Batch& batch, std::size_t& taken) noexcept;
  void hold(Bytes head) noexcept;
  [[nodiscard]] bool receive(int& calls) noexcept;
  void translate(const sys::IncomingDatagram& datagram) noexcept;

  const sys::Fd fd_;
  const Form form_;
  const sys::SocketAddress to_;
  const std::uint64_t part_max_;
  MessageDrops& drops_;
  bool ended_ = false;  // no reader and no writer when it is set

  // The writer's.
  std::array<std::uint8_t, kHeadMax> held_{};
  std::size_t held_size_ = 0;

  // The reader's.
  std::unique_ptr<std::uint8_t[]> rooms_;
  std::array<sys::IncomingDatagram, kRooms> received_;
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::uint32_t overflow_ = 0;
  zmtp::IncomingFrames frames_;
};

}  // namespace weft::msg
