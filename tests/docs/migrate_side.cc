// SPDX-License-Identifier: MIT
// The blocks of docs/migrate-from-libzmq.md: the same client by libzmq's C functions, by cppzmq where it is installed,
// and by Weft. The exit code is 0 if each of them got its answer.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "capi/zmq.h"
#include "weft/weft.h"
#ifdef WEFT_HAS_CPPZMQ
#include <zmq.hpp>
#endif

namespace {

using namespace std::chrono_literals;

std::string answer;

void expect(bool good, const char* what) {
  if (!good) {
    std::fprintf(stderr, "migrate: %s\n", what);
    std::exit(1);
  }
}

void show(const char* text, int size) { answer.assign(text, static_cast<std::size_t>(size)); }

void by_libzmq(const char* endpoint) {
  void* context = zmq_ctx_new();
  void* socket = zmq_socket(context, ZMQ_REQ);
  int timeout = 20000;
  zmq_setsockopt(socket, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
  if (zmq_connect(socket, endpoint) != 0) {
    fprintf(stderr, "%s: %s\n", endpoint, zmq_strerror(zmq_errno()));
    exit(1);
  }
  zmq_send(socket, "hello", 5, 0);
  char reply[256];
  int size = zmq_recv(socket, reply, sizeof reply, 0);
  if (size >= 0 && size <= 256) {
    show(reply, size);
  }
  zmq_close(socket);
  zmq_ctx_term(context);
}

#ifdef WEFT_HAS_CPPZMQ
void by_cppzmq(const std::string& endpoint) {
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::req);
  socket.set(zmq::sockopt::rcvtimeo, 20000);
  socket.connect(endpoint);
  socket.send(zmq::str_buffer("hello"), zmq::send_flags::none);
  zmq::message_t reply;
  if (socket.recv(reply)) {
    answer = reply.to_string();
  }
}
#endif

weft::Result<void> by_weft(const std::string& endpoint) {
  weft::Context context;
  weft::Socket socket = WEFT_TRY(context.socket(weft::SocketType::req));
  WEFT_TRY(socket.set(weft::option::receive_timeout, 20s));
  WEFT_TRY(socket.connect(endpoint));
  WEFT_TRY(socket.send("hello"));
  const weft::Message reply = WEFT_TRY(socket.recv());
  answer = reply.to_string();
  return {};
}

// Takes one message of the left or the right, and sends it to the other side.
weft::Result<void> forward(weft::Socket& left, weft::Socket& right) {
  std::array<weft::PollItem, 2> items{weft::PollItem{.socket = &left, .want_input = true},
                                      weft::PollItem{.socket = &right, .want_input = true}};
  if (WEFT_TRY(weft::poll(items, 20s)) == 0) {
    return weft::Errc::timed_out;
  }
  weft::Socket& from = items[0].input ? left : right;
  weft::Socket& to = items[0].input ? right : left;
  std::vector<weft::Message> parts = WEFT_TRY(from.recv_all());
  return to.send_all(parts);
}

weft::Result<void> losses(weft::Socket& socket) {
  const weft::Statistics counts = WEFT_TRY(socket.statistics());
  std::printf("%llu lost, of them %llu because the peer was slow\n", static_cast<unsigned long long>(counts.dropped),
              static_cast<unsigned long long>(counts.dropped_full));
  return {};
}

weft::Result<void> as_libzmq(weft::Socket& socket) {
  WEFT_TRY(socket.set(weft::option::linger, weft::Duration(-1)));  // of a SUB or an XSUB: 0
  WEFT_TRY(socket.set(weft::option::reconnect_interval_max, 0s));
  WEFT_TRY(socket.set(weft::option::handshake_timeout, 30s));
  WEFT_TRY(socket.set(weft::option::heartbeat_interval, 0s));
  WEFT_TRY(socket.set(weft::option::max_message_size, -1));
  WEFT_TRY(socket.set(weft::option::max_send_size, -1));
  WEFT_TRY(socket.set(weft::option::connections_max, 0));
  WEFT_TRY(socket.set(weft::option::address_connections_max, 0));
  WEFT_TRY(socket.set(weft::option::address_rate_max, 0));
  WEFT_TRY(socket.set(weft::option::announce_filters, false));
  WEFT_TRY(socket.set(weft::option::reconnect_after_fault, false));
  return {};
}

// Answers each client once, behind a ROUTER and a DEALER between which forward() carries the messages.
weft::Result<void> run() {
  weft::Context context;
  weft::Socket front = WEFT_TRY(context.socket(weft::SocketType::router));
  weft::Socket back = WEFT_TRY(context.socket(weft::SocketType::dealer));
  weft::Socket server = WEFT_TRY(context.socket(weft::SocketType::rep));
  for (weft::Socket* socket : {&front, &back, &server}) {
    WEFT_TRY(as_libzmq(*socket));
    WEFT_TRY(socket->set(weft::option::linger, 0s));
  }
  const std::string endpoint = WEFT_TRY(front.bind("tcp://127.0.0.1:*"));
  WEFT_TRY(back.bind("inproc://workers"));
  WEFT_TRY(server.connect("inproc://workers"));

  const auto ask = [&](auto client) -> weft::Result<void> {
    answer.clear();
    std::jthread thread(client);
    WEFT_TRY(forward(front, back));
    const weft::Message request = WEFT_TRY(server.recv(20s));
    expect(request.text() == "hello", "the request is not hello");
    WEFT_TRY(server.send("world"));
    WEFT_TRY(forward(front, back));
    thread.join();
    expect(answer == "world", "the answer is not world");
    return {};
  };
  WEFT_TRY(ask([&] { by_libzmq(endpoint.c_str()); }));
#ifdef WEFT_HAS_CPPZMQ
  WEFT_TRY(ask([&] { by_cppzmq(endpoint); }));
#endif
  WEFT_TRY(ask([&] { expect(by_weft(endpoint).has_value(), "the client on Weft failed"); }));
  return losses(front);
}

}  // namespace

int main() {
  const auto result = run();
  if (!result) {
    std::fprintf(stderr, "migrate: %s\n", result.error().message().c_str());
    return 1;
  }
}
