// SPDX-License-Identifier: MIT
#include "tools/weft/bridge/unit.h"

namespace weft::bridge {

Unit::Unit(Surroundings& around, Section section)
    : around_(around),
      section_(std::move(section)),
      counters_(std::make_shared<Counters>()),
      id_(around.name + "/" + section_.name) {}

Unit::~Unit() = default;

Result<void> Unit::secure(Socket& socket) {
  const Curve& curve = section_.curve;
  if (curve.secret_key.empty()) {
    return {};
  }
  WEFT_TRY(socket.set(option::curve_public_key, curve.public_key));
  WEFT_TRY(socket.set(option::curve_secret_key, curve.secret_key));
  return curve.server ? socket.set(option::curve_server, true) : socket.set(option::curve_server_key, curve.server_key);
}

std::string Unit::open() {
  Result<Socket> made = around_.context.socket(type());
  if (!made) {
    return "a socket: " + made.error().message();
  }
  const int queue = static_cast<int>(section_.queue_messages);
  const auto set = [&]() -> Result<void> {
    WEFT_TRY(made->set(option::send_high_water_mark, queue));
    WEFT_TRY(made->set(option::receive_high_water_mark, queue));
    WEFT_TRY(made->set(option::max_message_size, section_.message_bytes));
    WEFT_TRY(made->set(option::linger, Duration(0)));
    WEFT_TRY(made->set(option::metadata, std::string(kViaProperty) + ":" + id_));
    WEFT_TRY(secure(*made));
    return prepare(*made);
  };
  if (const Result<void> done = set(); !done) {
    return "the options of its socket: " + done.error().message();
  }
  socket_source_ = made->counter_source();
  Result<AsyncSocket> socket = AsyncSocket::make(around_.loop, *std::move(made));
  if (!socket) {
    return "a socket: " + socket.error().message();
  }
  socket_ = std::make_unique<AsyncSocket>(*std::move(socket));
  for (const std::string& endpoint : section_.bind) {
    const Result<std::string> bound = socket_->socket().bind(endpoint);
    if (!bound) {
      return "bind " + endpoint + ": " + bound.error().message();
    }
    endpoints_.push_back(*bound);
  }
  for (const std::string& endpoint : section_.connect) {
    if (const Result<void> connected = socket_->socket().connect(endpoint); !connected) {
      return "connect " + endpoint + ": " + connected.error().message();
    }
    endpoints_.push_back(endpoint);
  }
  return {};
}

void Unit::close(Duration linger) {
  if (socket_ != nullptr) {
    (void)socket_->socket().set(option::linger, linger);
    socket_->close();
  }
}

Statistics Unit::statistics() {
  Result<Statistics> now = socket_->socket().statistics();
  return now ? *now : Statistics();
}

void Unit::drain() {
  draining_ = true;
  queued_ = statistics().queued_in;
}

bool Unit::may_take() noexcept { return !draining_ || (queued_ != 0 && queued_-- != 0); }

bool Unit::has_taken() { return queued_ == 0 || statistics().queued_in == 0; }

rt::Task<void> Unit::take_each(std::function<void(std::vector<Message>)> handle) {
  while (may_take()) {
    Result<std::vector<Message>> frames = co_await socket().recv_all();
    if (frames) {
      counters_->taken.add();
      handle(*std::move(frames));
    } else if (frames.error() != Errc::interrupted) {
      co_return;
    }
  }
}

Result<void> Unit::send(std::vector<Message>&& frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    // Only the first frame has to find a peer with room.
    WEFT_TRY(socket_->try_send(std::move(frames[i]), i + 1 < frames.size() ? More::yes : More::no));
  }
  return {};
}

}  // namespace weft::bridge
