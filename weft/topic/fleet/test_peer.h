// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/msg/context.h"
#include "weft/msg/socket.h"
#include "weft/sys/path.h"
#include "weft/topic/test_time.h"
#include "weft/topic/wire/control.h"
#include <gtest/gtest.h>

namespace weft::topic {

using namespace std::chrono_literals;

// ControlSender: the XSUB of a handle that exists in a test only: it sends control messages, also false ones.
// Owner: a test. Affinity: its thread.
class ControlSender {
 public:
  ControlSender(Context& context, const std::string& endpoint) : socket_(*context.socket(SocketType::xsub)) {
    EXPECT_TRUE(socket_.set(option::linger, Duration(5s)));
    EXPECT_TRUE(socket_.set(option::send_high_water_mark, 0));  // an XSUB drops messages to a peer beyond its mark
    EXPECT_TRUE(socket_.connect(endpoint));
    const auto welcome = socket_.recv_until(soon());
    EXPECT_TRUE(welcome && decode_control(welcome->bytes()));
  }
  void send(const Control& control) { EXPECT_TRUE(socket_.send(*encode_control(control))); }
  void send_bytes(std::string_view bytes) { EXPECT_TRUE(socket_.send(bytes)); }
  void send_roster(std::uint64_t from, std::vector<std::string> texts, std::uint64_t revision = 1) {
    send({.kind = Control::Kind::roster, .from = from, .id = revision, .texts = std::move(texts)});
  }

 private:
  Socket socket_;
};

// A port of an address that this process alone has, of all in 127.0.0.0/8: no other process takes it while no
// ControlReceiver listens there.
inline std::string unused_endpoint() {
  const int id = sys::process_id();
  return "tcp://127." + std::to_string(1 + id / 65'536 % 254) + "." + std::to_string(id / 256 % 256) + "." +
         std::to_string(id % 256) + ":0";
}

// ControlReceiver: the XPUB of such a handle, to which the others connect. Owner: a test. Affinity: its thread.
class ControlReceiver {
 public:
  // `mark`: of messages that the socket takes before a reader takes them.
  ControlReceiver(Context& context, const std::string& endpoint, int mark = 1000, std::uint64_t instance = kInstance)
      : socket_(*context.socket(SocketType::xpub)) {
    EXPECT_TRUE(socket_.set(option::receive_high_water_mark, mark));
    EXPECT_TRUE(socket_.set(option::receive_buffer, 64 * 1024));  // else the system's grows to many MB
    const auto welcome = encode_control({.kind = Control::Kind::roster_wanted, .from = instance});
    EXPECT_TRUE(socket_.set(option::xpub_welcome_message, *welcome));
    const auto bound = socket_.bind(endpoint);
    EXPECT_TRUE(bound) << bound.error().message();
    endpoint_ = bound.value_or("");
  }
  static constexpr std::uint64_t kInstance = 5;
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }
  // A handle has connected, and has noticed it.
  bool linked() {
    return receives([](const Control& control) { return control.kind == Control::Kind::roster_wanted; });
  }
  // Reads until `wanted` returns true.
  template <typename Wanted>
  bool receives(Wanted wanted) {
    while (const auto message = socket_.recv_until(soon())) {
      const auto control = decode_control(message->bytes());
      if (control && wanted(*control)) {
        return true;
      }
    }
    return false;
  }

 private:
  Socket socket_;
  std::string endpoint_;
};

}  // namespace weft::topic
