// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/interop/roles.h"

namespace weft::interop {

// The first thing that went wrong in a role; run_role makes an Outcome of it.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void need(bool condition, const std::string& what) {
  if (!condition) {
    throw Failure(what);
  }
}
inline void need(const Result<void>& result, const std::string& what) {
  need(result.has_value(), what + ": " + result.error().message());
}
template <typename T>
T need(Result<T> result, const std::string& what) {
  need(result.has_value(), what + ": " + result.error().message());
  return std::move(result).value();
}

// Side: the sockets of one role and the ways to use them.
// Affinity: each socket's calls from one thread at a time; counters from any.
class Side {
 public:
  Side(Context& context, const Job& job, Link& link) : context_(context), job_(job), link_(link) {}

  [[nodiscard]] const Job& job() const noexcept { return job_; }
  [[nodiscard]] Link& link() const noexcept { return link_; }
  [[nodiscard]] long sent() const noexcept { return sent_; }
  [[nodiscard]] long received() const noexcept { return received_; }

  [[nodiscard]] Socket open(SocketType type);
  // Binds each, or connects each to every endpoint of the partner.
  void join(std::vector<Socket*> sockets);

  void send(Socket& socket, const MessageId& id, std::string_view topic = {}, std::string_view routing_id = {});
  void send_text(Socket& socket, std::string_view text);
  [[nodiscard]] std::vector<Message> receive(Socket& socket);
  // Receives a message, which must be this one.
  void expect(Socket& socket, const MessageId& id);
  void count_received() noexcept { ++received_; }

  // Before each round except the first: waits until `peers` of the socket's connections have gone.
  void begin_round(Socket& socket, int round, int peers = 1);
  void wait_line(const std::string& word);

  // At the end of a role, with all its sockets: waits until everything is handed over, and checks that the sockets'
  // counters agree with the messages that this side sent and received. A publisher's count copies, so this side cannot
  // know them.
  void check_balance(const std::vector<Socket*>& sockets);
  [[nodiscard]] bool balanced() const noexcept { return balanced_; }
  [[nodiscard]] long handed() const noexcept { return handed_; }
  [[nodiscard]] long arrived() const noexcept { return arrived_; }

 private:
  void send_part(Socket& socket, Message part, More more, int style);
  [[nodiscard]] Message receive_part(Socket& socket, int style);

  Context& context_;
  const Job& job_;
  Link& link_;
  std::atomic<long> sent_{0};
  std::atomic<long> received_{0};
  std::atomic<long> given_{0};  // messages to and from the sockets, with those that control the role
  std::atomic<long> taken_{0};
  bool balanced_ = false;
  long handed_ = 0;
  long arrived_ = 0;
};

// Runs body(0) .. body(count - 1) at the same time; throws the first Failure once all have ended.
void in_threads(int count, const std::function<void(int)>& body);

void run_publisher(Side& side);  // roles_publish.cc
void run_subscribers(Side& side);
void run_xpub(Side& side);
void run_xsub(Side& side);

}  // namespace weft::interop
