// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/msg/context.h"
#include "weft/store/settings.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"
#include "weft/topic/hub/hub.h"
#include "weft/topic/wire/ops.h"
#include <gtest/gtest.h>

namespace weft::topic {

// An op that owns its texts.
struct OwnedOp {
  OwnedOp() = default;
  explicit OwnedOp(Message&& received) : message(std::move(received)) { parse(); }
  OwnedOp(OwnedOp&& other) noexcept : message(std::move(other.message)), op(other.op) { parse(); }
  OwnedOp& operator=(OwnedOp&& other) noexcept {
    message = std::move(other.message);
    op = other.op;
    parse();
    return *this;
  }

  Message message;
  Op op;

 private:
  void parse() noexcept {
    if (const auto parsed = parse_op(message.bytes())) {  // else the op is one without texts, of the helper's own
      op = *parsed;
    }
  }
};

// TestMember: a member of a fleet as the ops see it: one DEALER, requests with ids, deliveries in a queue.
class TestMember {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(20);

  TestMember(Context& context, const std::string& endpoint) : socket_(*context.socket(SocketType::dealer)) {
    (void)socket_.set(option::linger, Duration::zero());
    (void)socket_.set(option::reconnect_interval, std::chrono::milliseconds(5));
    (void)socket_.set(option::reconnect_interval_max, std::chrono::milliseconds(20));
    (void)socket_.set(option::send_high_water_mark, 0);
    (void)socket_.set(option::receive_high_water_mark, 0);
    (void)socket_.connect(endpoint);
  }

  // Sends without waiting for the answer. Returns the id.
  std::uint32_t send(Op op) {
    op.id = op.id == 0 ? ++last_id_ : op.id;
    auto message = Message::with_size(encoded_size(op));
    encode_op(op, message->mutable_bytes());
    (void)socket_.send(*std::move(message));
    return op.id;
  }
  // The next op of any kind; false: none came until the deadline.
  bool receive(OwnedOp& op, Instant deadline) {
    auto message = socket_.recv_until(deadline);
    if (message) {
      op = OwnedOp(*std::move(message));
    }
    return message.has_value();
  }
  // Deliveries that come meanwhile wait for next(). A missing answer is one with the code timed_out.
  OwnedOp answer_to(std::uint32_t id, Duration patience = kPatience) {
    const Instant deadline = sys::now() + patience;
    OwnedOp found;
    while (receive(found, deadline)) {
      if (found.op.kind == OpKind::answer && found.op.id == id) {
        return found;
      }
      others_.push_back(std::move(found));
    }
    OwnedOp none;
    none.op.code = static_cast<std::uint16_t>(Errc::timed_out);
    return none;
  }
  OwnedOp request(const Op& op, Duration patience = kPatience) { return answer_to(send(op), patience); }
  // The next delivery, caught_up, ended or lease_changed. `probe`: none that is due because of ops before.
  OwnedOp next(Duration patience = kPatience) {
    OwnedOp found;
    if (!others_.empty()) {
      found = std::move(others_.front());
      others_.pop_front();
    } else if (!receive(found, sys::now() + patience)) {
      found.op.code = static_cast<std::uint16_t>(Errc::timed_out);
    }
    return found;
  }
  // The deliveries that came by the time that the hub answers a probe.
  std::vector<OwnedOp> all_until_probe() {
    Op probe;
    probe.kind = OpKind::probe;
    (void)request(probe);
    (void)request(probe);  // deliveries of a turn leave behind its answers
    return {std::make_move_iterator(others_.begin()), std::make_move_iterator(others_.end())};
  }

  Errc declare(std::string_view name, const StreamSettings& settings) {
    const std::string body = write_settings(settings);
    Op op;
    op.kind = OpKind::declare;
    op.name = name;
    op.body = as_bytes(body);
    return request(op).op.error();
  }
  static Op append_op(std::string_view stream, std::string_view topic, std::string_view body,
                      std::string_view id = "") {
    Op op;
    op.kind = OpKind::append;
    op.name = stream;
    op.key = topic;
    op.message_id = id;
    op.body = as_bytes(body);
    return op;
  }
  void close() { socket_.close(); }

 private:
  Socket socket_;
  std::uint32_t last_id_ = 0;
  std::deque<OwnedOp> others_;
};

// HubTest: a hub in a directory of its own.
class HubTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = *sys::make_private_directory();
    options_.directory = directory_;
    options_.store = directory_ + "/store.db";
    options_.quiet = Duration::zero();
    hub_ = host();
    if (hub_ == nullptr && error_ == Errc::not_supported) {
      GTEST_SKIP() << "this build has no SQLite";
    }
    ASSERT_NE(hub_, nullptr) << error_.message();
  }
  void TearDown() override {
    hub_.reset();
    std::filesystem::remove_all(directory_);
  }
  std::unique_ptr<Hub> host() {
    auto hub = Hub::host(context_, options_);
    error_ = hub.error();
    return hub ? *std::move(hub) : nullptr;
  }
  TestMember member() { return TestMember(context_, Hub::endpoint(directory_)); }

  static Op op_of(OpKind kind, std::string_view name = "", std::string_view key = "", std::string_view body = "") {
    Op op;
    op.kind = kind;
    op.name = name;
    op.key = key;
    op.body = as_bytes(body);
    return op;
  }

  std::string directory_;
  HubOptions options_;
  Error error_;
  Context context_;
  std::unique_ptr<Hub> hub_;
};

}  // namespace weft::topic
