// SPDX-License-Identifier: MIT
// A socket over TLS beside the TLS of others: tls_peers_test.py reads its events and messages.
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

#include "weft/weft.h"

namespace {

using weft::Result;
using weft::Socket;

void print(std::string_view word, std::string_view rest) {
  std::printf("%.*s %.*s\n", static_cast<int>(word.size()), word.data(), static_cast<int>(rest.size()), rest.data());
  std::fflush(stdout);
}

void print_events(Socket& socket) {
  while (const auto event = socket.next_event(weft::Duration(-1))) {
    std::string line(weft::event_name(event->kind));
    if (event->reason.text() != nullptr) {
      line.append(" ").append(event->reason.text());
    }
    print("event", line);
  }
}

void print_messages(Socket& socket) {
  while (const auto message = socket.recv()) {
    print("message", message->text());
  }
}

Result<void> run(bool binds, const std::string& endpoint, int count, char** options) {
  weft::Context context;
  Socket socket = WEFT_TRY(context.socket(binds ? weft::SocketType::pull : weft::SocketType::push));
  WEFT_TRY(socket.set(weft::option::linger, weft::Duration(0)));
  for (int i = 0; i < count; ++i) {
    const std::string_view option = options[i];
    const std::size_t at = option.find('=');
    WEFT_TRY(socket.set(option.substr(0, at), option.substr(at + 1)));
  }
  WEFT_TRY(socket.watch_events());
  if (binds) {
    print("endpoint", WEFT_TRY(socket.bind(endpoint)));
  } else {
    WEFT_TRY(socket.connect(endpoint));
    WEFT_TRY(socket.send("hello"));
  }
  std::thread events([&socket] { print_events(socket); });
  std::thread messages([&socket, binds] {
    if (binds) {
      print_messages(socket);
    }
  });
  for (std::string line; std::getline(std::cin, line);) {
    const auto reloaded = socket.reload_certificates();
    print("reloaded", reloaded ? std::string("all") : reloaded.error().message());
  }
  context.shut_down();
  events.join();
  messages.join();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view role = argc > 2 ? argv[1] : "";
  if (role != "bind" && role != "connect") {
    std::puts("usage: tls_side bind|connect ENDPOINT [OPTION=VALUE ...]: prints events and messages; a line reloads");
    return 2;
  }
  if (const auto result = run(role == "bind", argv[2], argc - 3, argv + 3); !result) {
    print("failed", result.error().message());
    return 1;
  }
  return 0;
}
