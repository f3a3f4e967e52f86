// SPDX-License-Identifier: MIT
// A web server without a web library: STREAM sockets talk to any TCP program. The client here is a STREAM socket, too.
#include <cstdio>
#include <string>

#include "weft/weft.h"

namespace {

// Reads the bytes of connection `id` up to the next empty line, which ends a request.
weft::Result<std::string> read_head(weft::Socket& socket, std::string& id) {
  std::string head;
  while (head.find("\r\n\r\n") == std::string::npos) {
    id = WEFT_TRY(socket.recv()).text();
    head += WEFT_TRY(socket.recv()).text();  // empty when the connection is new, or gone
  }
  return head;
}

weft::Result<void> run() {
  weft::Context context;
  weft::Socket server = WEFT_TRY(context.socket(weft::SocketType::stream));
  const std::string endpoint = WEFT_TRY(server.bind("tcp://127.0.0.1:*"));

  weft::Socket client = WEFT_TRY(context.socket(weft::SocketType::stream));
  WEFT_TRY(client.connect(endpoint));
  const std::string to_server = WEFT_TRY(client.get(weft::option::routing_id));
  WEFT_TRY(client.send(to_server, weft::More::yes));
  WEFT_TRY(client.send("GET / HTTP/1.0\r\n\r\n"));

  std::string id;
  const std::string request = WEFT_TRY(read_head(server, id));
  WEFT_TRY(server.send(id, weft::More::yes));
  WEFT_TRY(server.send("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"));
  WEFT_TRY(server.send(id, weft::More::yes));
  WEFT_TRY(server.send(""));  // closes the connection once the answer is out

  const std::string answer = WEFT_TRY(read_head(client, id));
  std::printf("%s%s", request.c_str(), answer.c_str());
  return {};
}

}  // namespace

int main() {
  const auto result = run();
  if (!result) {
    std::fprintf(stderr, "http: %s\n", result.error().message().c_str());
    return 1;
  }
}
