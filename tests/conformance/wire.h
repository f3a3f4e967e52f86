// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/test_certificates.h"
#include "weft/net/dialer.h"
#include "weft/net/listener.h"
#include "weft/net/transport/layering.h"
#include "weft/net/transport/transport.h"
#include "weft/net/ws/ws_stream.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include "weft/zmtp/local_end.h"
#include "weft/zmtp/null.h"
#include <gtest/gtest.h>

namespace weft::conformance {

// A subscription on the wire: a command, or over WebSocket a message in the form of ZMTP 3.0.
[[nodiscard]] inline std::string subscription(const Transport& row, bool subscribes, std::string_view topic) {
  const std::string_view command = subscribes ? "\x9SUBSCRIBE" : std::string_view("\6CANCEL");
  return std::string(row.websocket() ? std::string_view(subscribes ? "\1" : "\0", 1) : command).append(topic);
}

[[nodiscard]] inline std::string wire_frame(std::uint8_t flags, std::string_view body) {
  std::uint8_t header[zmtp::kFrameHeaderSizeMax];
  const std::size_t size = zmtp::write_frame_header(header, flags, body.size());
  return std::string(as_text(Bytes(header, size))).append(body);
}

// All that a PUSH sends before its first message: greeting and READY.
[[nodiscard]] inline std::string first_words_of_push() {
  zmtp::LocalEndConfig ours;
  ours.socket_type = zmtp::WireType::push;
  zmtp::LocalEndConfig theirs;
  theirs.socket_type = zmtp::WireType::pull;
  zmtp::LocalEnd push(ours);
  zmtp::LocalEnd pull(theirs);
  push.start(sys::now());
  pull.start(sys::now());
  std::string said;
  std::string to_push;
  std::string to_pull;
  const auto move = [](zmtp::LocalEnd& from, std::string& unread, zmtp::LocalEnd& to) {
    const std::string output(as_text(from.pending_output()));
    from.consume_output(output.size());
    unread += output;
    unread.erase(0, to.handle_input(as_bytes(unread), sys::now()));
    return output;
  };
  while (!push.ready() || !pull.ready()) {
    said += move(push, to_pull, pull);
    (void)move(pull, to_push, push);
  }
  return said;
}

// BytePeer: the other end of a connection, without a protocol.
class BytePeer {
 public:
  static BytePeer dial(const std::string& endpoint) {
    net::Dialer dialer(*net::parse_endpoint(endpoint, false), {});
    auto progress = dialer.begin();
    while (progress && *progress == net::Progress::pending) {
      EXPECT_TRUE(wait(dialer.fd(), sys::Interest::writable));
      progress = dialer.finish();
    }
    EXPECT_TRUE(progress) << progress.error().message();
    return BytePeer(put_layer(dialer.take_stream(), endpoint, false));
  }
  // Takes the next connection to `listener`.
  static BytePeer accept(net::Listener& listener) {
    EXPECT_TRUE(wait(listener.fd(), sys::Interest::readable));
    auto stream = listener.try_accept();
    EXPECT_TRUE(stream) << stream.error().message();
    return BytePeer(put_layer(std::move(stream).value(), listener.bound_endpoint(), true));
  }

  void write(std::string_view bytes) {
    ASSERT_EQ(write_until_full(bytes, kLong), bytes.size());
    while (stream_->state().unsent && wait(stream_->fd(), sys::Interest::writable)) {
      ASSERT_NE(stream_->write({}).status, sys::IoResult::Status::failed);
    }
  }
  // Writes until the kernel takes no byte for `patience`; returns how many bytes it took.
  std::size_t write_until_full(std::string_view bytes, Duration patience) {
    const std::size_t size = bytes.size();
    while (!bytes.empty()) {
      const Bytes from = as_bytes(bytes);
      const sys::IoResult result = stream_->write({&from, 1});
      if (result.status == sys::IoResult::Status::done) {
        bytes.remove_prefix(result.bytes);
      } else if (result.status != sys::IoResult::Status::would_block ||
                 !wait(stream_->fd(), sys::Interest::writable, patience)) {
        break;
      }
    }
    return size - bytes.size();
  }
  void end_writing() { stream_->shutdown_write(); }
  [[nodiscard]] net::ByteStream& stream() noexcept { return *stream_; }

  // Exactly so many bytes, fewer if the stream ends.
  std::string read(std::size_t size) {
    read_bytes(size);
    std::string bytes = input_.substr(0, size);
    input_.erase(0, bytes.size());
    return bytes;
  }
  std::string read_to_end() {
    while (read_more()) {
    }
    return std::move(input_);
  }
  // Reads until `size` bytes are here or the stream ended.
  void read_bytes(std::size_t size) {
    while (input_.size() < size && read_more()) {
    }
  }

 protected:
  static constexpr Duration kLong = std::chrono::seconds(20);

  explicit BytePeer(std::unique_ptr<net::ByteStream> stream) : stream_(std::move(stream)) {}

  // After the layer's own handshake.
  static std::unique_ptr<net::ByteStream> put_layer(std::unique_ptr<net::ByteStream> below, const std::string& text,
                                                    bool accepted) {
    const net::Endpoint endpoint = *net::parse_endpoint(text, accepted);
#ifdef WEFT_HAVE_OPENSSL
    if (net::transport_row(endpoint.transport).has_tls) {
      below = put_test_tls(std::move(below), accepted);
    }
#endif
    if (text.starts_with("ws")) {
      below = net::make_shared_stream(net::ws::make_zws_stream(std::move(below), {.client = !accepted}).value());
      while (below->read({}).status == sys::IoResult::Status::would_block) {
        EXPECT_TRUE(wait(below->fd(), sys::Interest::readable));
      }
    }
    return below;
  }

  bool read_more() {
    for (;;) {
      std::uint8_t bytes[4096];
      MutableBytes into(bytes);
      const sys::IoResult result = stream_->read({&into, 1});
      if (result.status == sys::IoResult::Status::would_block) {
        if (!wait(stream_->fd(), sys::Interest::readable)) {
          ADD_FAILURE() << "nothing to read";
          return false;
        }
        continue;
      }
      input_.append(as_text(Bytes(bytes).first(result.bytes)));
      return result.status == sys::IoResult::Status::done;
    }
  }
  static bool wait(int fd, sys::Interest interest, Duration timeout = kLong) {
    sys::PollFd polled{.fd = fd, .want = interest};
    return sys::poll_fds({&polled, 1}, timeout).value_or(std::size_t{0}) == 1;
  }

  std::unique_ptr<net::ByteStream> stream_;
  std::string input_;
};

// WirePeer: a peer of a socket that speaks the protocol by hand, so that it can stop in the middle of any frame.
class WirePeer : public BytePeer {
 public:
  // Connects to a bound socket and shakes hands as a socket of `type`.
  static WirePeer dial(const std::string& endpoint, zmtp::WireType type,
                       std::unique_ptr<zmtp::Mechanism> mechanism = std::make_unique<zmtp::NullMechanism>()) {
    WirePeer peer(BytePeer::dial(endpoint));
    peer.shake_hands(type, std::move(mechanism));
    return peer;
  }
  // Takes the next connection to `listener` and shakes hands.
  static WirePeer accept(net::Listener& listener, zmtp::WireType type) {
    WirePeer peer(BytePeer::accept(listener));
    peer.shake_hands(type);
    return peer;
  }
  // The same without a handshake.
  static WirePeer dial(const std::string& endpoint) { return WirePeer(BytePeer::dial(endpoint)); }
  static WirePeer accept(net::Listener& listener) { return WirePeer(BytePeer::accept(listener)); }

  void shake_hands(zmtp::WireType type,
                   std::unique_ptr<zmtp::Mechanism> mechanism = std::make_unique<zmtp::NullMechanism>()) {
    zmtp::LocalEndConfig config;
    config.socket_type = type;
    peer_ = std::make_unique<zmtp::LocalEnd>(config, std::move(mechanism));
    peer_->start(sys::now());
    for (;;) {
      write(as_text(peer_->pending_output()));
      peer_->consume_output(peer_->pending_output().size());
      input_.erase(0, peer_->handle_input(as_bytes(input_), sys::now()));
      if (peer_->pending_output().empty() && (peer_->ready() || peer_->fault() || !read_more())) {
        break;
      }
    }
    EXPECT_TRUE(peer_->ready()) << "the handshake failed";
  }

  // The frame as the mechanism seals it.
  [[nodiscard]] std::string sealed_frame(std::uint8_t flags, std::string_view body) {
    std::string sealed(body.size() + zmtp::kSealOverhead, '\0');
    peer_->cipher()->seal(reinterpret_cast<std::uint8_t*>(sealed.data()), flags, as_bytes(body));
    return wire_frame(0, sealed);
  }

  // The frame as this connection carries it.
  [[nodiscard]] std::string frame(std::uint8_t flags, std::string_view body) {
    return peer_->cipher() != nullptr ? sealed_frame(flags, body) : wire_frame(flags, body);
  }

  // The next frame. At the end of the stream flags are 0xff.
  struct Frame {
    std::uint8_t flags = 0xff;
    std::string body;
  };
  Frame read_frame() {
    for (;;) {
      zmtp::ZmtpFrameHeader header;
      if (zmtp::parse_frame_header(as_bytes(input_), header) == weft::ParseStatus::complete &&
          header.body_size <= input_.size() - header.header_size) {
        Frame frame{header.flags, input_.substr(header.header_size, header.body_size)};
        input_.erase(0, header.header_size + header.body_size);
        return frame;
      }
      if (!read_more()) {
        return {};
      }
    }
  }
  // The next frame as the mechanism opens it.
  Frame read_opened_frame() {
    Frame frame = read_frame();
    if (peer_->cipher() != nullptr && frame.flags != Frame().flags) {
      const MutableBytes sealed(reinterpret_cast<std::uint8_t*>(frame.body.data()), frame.body.size());
      EXPECT_EQ(peer_->cipher()->open(sealed, frame.flags), zmtp::Breach::none);
      frame.body.erase(0, zmtp::kSealOverhead);
    }
    return frame;
  }

 private:
  explicit WirePeer(BytePeer connected) : BytePeer(std::move(connected)) {}

  std::unique_ptr<zmtp::LocalEnd> peer_;  // null without a handshake
};

}  // namespace weft::conformance
