// SPDX-License-Identifier: MIT
// An idle process with connected sockets of each kind: idle_test.py counts its wake-ups.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "weft/weft.h"

namespace {

using weft::SocketType;

weft::Result<weft::Socket> open(weft::Context& context, SocketType type, bool heartbeats) {
  weft::Socket socket = WEFT_TRY(context.socket(type));
  if (!heartbeats) {
    WEFT_TRY(socket.set(weft::option::heartbeat_interval, weft::Duration(0)));
  }
  return socket;
}

struct Kind {
  SocketType binds;
  SocketType connects;
};
constexpr Kind kKinds[] = {{SocketType::pull, SocketType::push}, {SocketType::router, SocketType::dealer},
                           {SocketType::pub, SocketType::sub},   {SocketType::rep, SocketType::req},
                           {SocketType::pair, SocketType::pair}, {SocketType::xpub, SocketType::xsub}};

// Waits until a message went both ways or, for patterns of one way, in that way.
weft::Result<void> exchange(weft::Socket& binder, weft::Socket& connector) {
  switch (connector.type()) {
    case SocketType::push:
    case SocketType::dealer:
    case SocketType::pair:
      WEFT_TRY(connector.send("hello"));
      (void)WEFT_TRY(binder.recv_all());
      return {};
    case SocketType::req:
      WEFT_TRY(connector.send("hello"));
      (void)WEFT_TRY(binder.recv());
      WEFT_TRY(binder.send("hello"));
      (void)WEFT_TRY(connector.recv());
      return {};
    case SocketType::xsub:
      WEFT_TRY(connector.send(std::string_view("\1hello")));
      (void)WEFT_TRY(binder.recv());
      WEFT_TRY(binder.send("hello"));
      (void)WEFT_TRY(connector.recv());
      return {};
    case SocketType::sub: {
      WEFT_TRY(connector.subscribe(""));
      WEFT_TRY(connector.set(weft::option::receive_timeout, std::chrono::milliseconds(5)));
      for (;;) {
        WEFT_TRY(binder.send("hello"));
        if (connector.recv()) {
          return connector.set(weft::option::receive_timeout, weft::Duration(-1));
        }
      }
    }
    default: return weft::Errc::not_supported;
  }
}

weft::Result<void> run(bool heartbeats) {
  std::string directory = (std::filesystem::temp_directory_path() / "weft-idle-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) {
    return weft::Errc::system;
  }
  weft::Context context;
  std::vector<weft::Socket> sockets;
  int number = 0;
  for (const char* transport : {"tcp", "ipc", "inproc"}) {
    for (const Kind& kind : kKinds) {
      const std::string name = std::to_string(++number);
      const std::string endpoint = transport[0] == 't'   ? "tcp://127.0.0.1:*"
                                   : transport[1] == 'p' ? "ipc://" + directory + "/" + name
                                                         : "inproc://" + name;
      sockets.push_back(WEFT_TRY(open(context, kind.binds, heartbeats)));
      sockets.push_back(WEFT_TRY(open(context, kind.connects, heartbeats)));
      weft::Socket& binder = sockets[sockets.size() - 2];
      const std::string exact = WEFT_TRY(binder.bind(endpoint));
      WEFT_TRY(sockets.back().connect(exact));
      WEFT_TRY(exchange(binder, sockets.back()));
    }
  }
  // One thread waits for ever in recv on each transport: on the PULL sockets.
  std::vector<std::thread> parked;
  std::atomic<bool> wrong{false};
  const std::size_t per_transport = 2 * std::size(kKinds);
  for (std::size_t i = 0; i < sockets.size(); i += per_transport) {
    parked.emplace_back([&socket = sockets[i], &wrong] {
      const auto message = socket.recv();
      wrong = wrong || message || !(message.error() == weft::Errc::terminated);
    });
  }
  std::printf("ready %zu\n", (sockets.size() / 3) * 2);  // ends of connections with a stream
  std::fflush(stdout);
  char line[64];
  (void)std::fgets(line, sizeof line, stdin);  // until the test has counted
  context.shut_down();
  for (std::thread& thread : parked) {
    thread.join();
  }
  std::filesystem::remove_all(directory);
  return wrong ? weft::Result<void>(weft::Errc::invalid_state) : weft::Result<void>();
}

}  // namespace

int main(int argc, char** argv) {
  const bool heartbeats = argc == 2 && std::strcmp(argv[1], "--heartbeats") == 0;
  if (argc > 2 || (argc == 2 && !heartbeats)) {
    std::puts(
        "usage: idle_side [--heartbeats]: connects sockets of each kind, says \"ready CONNECTION-ENDS\", and waits");
    return argc == 2 && std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  if (const auto result = run(heartbeats); !result) {
    std::printf("failed %s\n", result.error().message().c_str());
    return 1;
  }
  return 0;
}
