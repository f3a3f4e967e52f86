// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weft/console.h"
#include "tools/weft/source.h"
#include "weft/msg/context.h"

namespace weft::cli {

// The options of one socket.
struct LinkOptions {
  std::vector<std::string> bind;
  std::vector<std::string> connect;
  std::vector<std::string> settings;  // NAME=VALUE, rows of weft/msg/message/options.h
  double timeout = -1;                // seconds for each wait; negative: for ever
  bool verbose = false;

  bool curve_server = false;
  std::string curve_server_key;  // Z85, or a file that `weft keygen` wrote
  std::string curve_key;         // such a file: our own pair
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_authorities;
  std::string tls_name;
  bool tls_insecure = false;
};

// Sets everything except the endpoints. Throws Failure or Usage.
void configure(Socket& socket, const LinkOptions& options);

// Link: the one socket of a command, and the events of its connections.
// Affinity: one thread. Every wait also ends by Stopped.
class Link {
 public:
  Link(Console& console, SocketType type, const LinkOptions& options);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  [[nodiscard]] Socket& socket() noexcept { return socket_; }
  void open();                                          // binds and connects
  void subscribe(const std::string& topic, bool glob);  // Failure: a bound, with its option

  // Failure: the time-out, with the reason of the last failed connection; or a bound, with its option.
  void send(const Parts& parts);
  [[nodiscard]] Parts receive();  // likewise
  [[nodiscard]] bool try_receive(Parts& parts);
  void wait_for_peers(std::size_t count);
  void deliver();  // until nothing is queued. Failure: messages are left at the time-out (10 s without one)

 private:
  void wait(bool input, bool output, Instant deadline, const char* what);
  void read_events();
  [[noreturn]] void fail(const std::string& what);
  [[noreturn]] void refuse(const std::string& what, const Error& error, bool whole);
  void check_bounds(const Parts& parts);
  [[nodiscard]] Instant deadline() const;

  Console& console_;
  LinkOptions options_;
  Context context_;
  Socket socket_;
  std::string last_problem_;
  std::optional<Options> bounds_;  // of this end's own messages
  bool delivered_ = false;
};

}  // namespace weft::cli
