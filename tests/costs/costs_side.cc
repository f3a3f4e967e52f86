// SPDX-License-Identifier: MIT
// A process that strangers connect to, and the peer beside them: costs_test.py measures the cost of the strangers.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

#include "weft/weft.h"
#include "weft/zmtp/curve.h"

namespace {

using weft::Result;
using weft::Socket;
using weft::SocketType;
using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr auto kHour = std::chrono::hours(1);
constexpr auto kBetweenJoins = std::chrono::milliseconds(50);

std::string_view text_of(const weft::zmtp::CurveKey& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

std::string hexadecimal(const weft::zmtp::CurveKey& key) {
  std::string text;
  for (const std::uint8_t byte : key) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

std::string bytes_of(std::string_view hexadecimal) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hexadecimal.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hexadecimal.substr(at, 2)), nullptr, 16));
  }
  return bytes;
}

// --- the process that strangers connect to ---

// A PULL on which no thread receives. Each bound has its default, except those of time and of an address: all peers of
// a cell come from one address, and they stay until they are counted.
Result<std::string> open_door(Socket& door, std::string_view transport, const std::string& folder, bool curve) {
  WEFT_TRY(door.set(weft::option::handshake_timeout, kHour));
  WEFT_TRY(door.set(weft::option::heartbeat_interval, weft::Duration(0)));
  WEFT_TRY(door.set(weft::option::backlog, 4096));
  WEFT_TRY(door.set(weft::option::address_connections_max, 0));
  WEFT_TRY(door.set(weft::option::address_rate_max, 0));
  std::string key;
  if (curve) {
    const auto keys = WEFT_TRY(weft::zmtp::make_curve_key_pair());
    WEFT_TRY(door.set(weft::option::curve_secret_key, std::string(text_of(keys.secret_key))));
    WEFT_TRY(door.set(weft::option::curve_server, true));
    key = " " + hexadecimal(keys.public_key);
  }
  if (transport == "tls+tcp" || transport == "wss") {
    WEFT_TRY(door.set(weft::option::tls_certificate, folder + "/peer.crt"));
    WEFT_TRY(door.set(weft::option::tls_key, folder + "/peer.key"));
  }
  const std::string place = transport == "ipc" ? folder + "/door" : "127.0.0.1:*";
  return WEFT_TRY(door.bind(std::string(transport) + "://" + place)) + key;
}

Result<void> print_counts(Socket& door) {
  const weft::Statistics counts = WEFT_TRY(door.statistics());
  std::printf("count %llu %llu\n", static_cast<unsigned long long>(counts.accepted),
              static_cast<unsigned long long>(counts.peers));
  std::fflush(stdout);
  return {};
}

Result<void> be_door(std::string_view transport, const std::string& folder, bool curve) {
  weft::Context context;
  Socket door = WEFT_TRY(context.socket(SocketType::pull));
  Socket beside = WEFT_TRY(context.socket(SocketType::router));
  const std::string endpoint = WEFT_TRY(open_door(door, transport, folder, curve));
  std::printf("door %s\n", endpoint.c_str());
  std::printf("beside %s\n", WEFT_TRY(beside.bind("tcp://127.0.0.1:*")).c_str());
  std::fflush(stdout);
  std::thread answers([&beside] {
    while (auto message = beside.recv_all()) {
      if (!beside.send_all(*message)) {
        return;
      }
    }
  });
  Result<void> result;
  for (std::string line; result && std::getline(std::cin, line);) {
    result = print_counts(door);
  }
  context.shut_down();
  answers.join();
  return result;
}

// --- the peer beside ---

Result<microseconds> ask(Socket& socket) {
  const auto begin = Clock::now();
  WEFT_TRY(socket.send("question"));
  (void)WEFT_TRY(socket.recv());
  return std::chrono::duration_cast<microseconds>(Clock::now() - begin);
}

Result<Socket> connect(weft::Context& context, const std::string& endpoint) {
  Socket socket = WEFT_TRY(context.socket(SocketType::dealer));
  WEFT_TRY(socket.set(weft::option::linger, weft::Duration(0)));
  WEFT_TRY(socket.connect(endpoint));
  return socket;
}

// Asks for so long, and joins anew all the while; once at least.
Result<void> run(weft::Context& context, Socket& socket, const std::string& endpoint, std::chrono::milliseconds time) {
  microseconds longest_answer{0};
  microseconds longest_join{0};
  long answers = 0;
  const auto end = Clock::now() + time;
  auto next_join = Clock::now();
  do {
    longest_answer = std::max(longest_answer, WEFT_TRY(ask(socket)));
    ++answers;
    if (Clock::now() >= next_join) {
      const auto begin = Clock::now();
      Socket joins = WEFT_TRY(connect(context, endpoint));
      (void)WEFT_TRY(ask(joins));
      longest_join = std::max(longest_join, std::chrono::duration_cast<microseconds>(Clock::now() - begin));
      next_join = Clock::now() + kBetweenJoins;
    }
  } while (Clock::now() < end);
  std::printf("ran %ld %lld %lld\n", answers, static_cast<long long>(longest_answer.count()),
              static_cast<long long>(longest_join.count()));
  std::fflush(stdout);
  return {};
}

Result<void> be_beside(const std::string& endpoint) {
  weft::Context context;
  Socket socket = WEFT_TRY(connect(context, endpoint));
  for (std::string line; std::getline(std::cin, line);) {
    WEFT_TRY(run(context, socket, endpoint, std::chrono::milliseconds(std::atol(line.c_str()))));
  }
  return {};
}

// A client with CURVE, whose HELLO costs_test.py records.
Result<void> knock(const std::string& endpoint, std::string_view server_key) {
  weft::Context context;
  Socket socket = WEFT_TRY(context.socket(SocketType::push));
  const auto keys = WEFT_TRY(weft::zmtp::make_curve_key_pair());
  WEFT_TRY(socket.set(weft::option::linger, weft::Duration(0)));
  WEFT_TRY(socket.set(weft::option::curve_public_key, std::string(text_of(keys.public_key))));
  WEFT_TRY(socket.set(weft::option::curve_secret_key, std::string(text_of(keys.secret_key))));
  WEFT_TRY(socket.set(weft::option::curve_server_key, bytes_of(server_key)));
  WEFT_TRY(socket.connect(endpoint));
  std::string line;
  std::getline(std::cin, line);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view role = argc > 2 ? argv[1] : "";
  Result<void> result;
  if (role == "door" && (argc == 4 || argc == 5)) {
    result = be_door(argv[2], argv[3], argc == 5);
  } else if (role == "beside") {
    result = be_beside(argv[2]);
  } else if (role == "knock" && argc == 4) {
    result = knock(argv[2], argv[3]);
  } else {
    std::puts("usage: costs_side door TRANSPORT FOLDER [curve] | beside ENDPOINT | knock ENDPOINT KEY");
    return 2;
  }
  if (!result) {
    const bool without = result.error() == weft::Errc::unknown_transport || result.error() == weft::Errc::not_supported;
    std::printf("%s %s\n", without ? "without" : "failed", result.error().message().c_str());
    return without ? 0 : 1;
  }
  return 0;
}
