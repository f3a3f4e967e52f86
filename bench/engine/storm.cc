// SPDX-License-Identifier: MIT
#include "bench/engine/storm.h"

#include <cstring>

namespace bench {

Storm::~Storm() { close(); }

void Storm::bind(Addresses& addresses) {
  context_ = std::make_unique<ZmqContext>();
  void* const socket = context_->open_socket(ZMQ_PULL, cell_);
  sockets_.push_back(socket);
  ZmqContext::set(socket, ZMQ_BACKLOG, cell_.times);
  if (cell_.curve) {
    ZmqContext::set_keys(socket, true, addresses);
  }
  bind_zmq(socket, cell_, 0, addresses);
}

void Storm::open(const Addresses& addresses) {
  if (context_ == nullptr) {
    context_ = std::make_unique<ZmqContext>();
    context_->allow_sockets(cell_.times + 16);
  }
  for (int i = 0; i < cell_.times; ++i) {
    sockets_.push_back(context_->open_socket(ZMQ_PUSH, cell_));
    if (cell_.curve) {
      ZmqContext::set_keys(sockets_.back(), false, addresses);
    }
  }
}

void Storm::connect(const Addresses& addresses, const Task& task, LaneResult& result) {
  std::vector<unsigned char> message(cell_.size);
  result.first_ns = now_ns();
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    check_zmq(zmq_connect(sockets_[i], addresses.endpoints[0].data()) == 0, "zmq_connect");
    const std::uint64_t word = task.run << 40U | i;
    std::memcpy(message.data(), &word, sizeof word);
    check_zmq(zmq_send(sockets_[i], message.data(), message.size(), 0) >= 0, "zmq_send");
  }
}

void Storm::receive(const Task& task, LaneResult& result) {
  std::vector<unsigned char> message(cell_.size);
  std::vector<bool> seen(static_cast<std::size_t>(cell_.times));
  for (int i = 0; i < cell_.times; ++i) {
    const int size = zmq_recv(sockets_[0], message.data(), message.size(), 0);
    check_zmq(size >= 0, "zmq_recv");
    std::uint64_t word = 0;
    std::memcpy(&word, message.data(), sizeof word);
    const std::uint64_t peer = word & ((std::uint64_t{1} << 40U) - 1);
    const bool right = static_cast<std::size_t>(size) == cell_.size && word >> 40U == task.run && peer < seen.size();
    if (!right || seen[peer]) {
      fail(cell_.name + ": a message was doubled or damaged");
    }
    seen[peer] = true;
  }
  result.last_ns = now_ns();
}

void Storm::close() {
  for (void* const socket : sockets_) {
    zmq_close(socket);
  }
  sockets_.clear();
}

}  // namespace bench
