// SPDX-License-Identifier: MIT
#include <cstdio>

#include "weft/weft.h"

weft::Result<void> run() {
  weft::Context context;
  weft::Socket server = WEFT_TRY(context.socket(weft::SocketType::rep));
  weft::Socket client = WEFT_TRY(context.socket(weft::SocketType::req));
  const std::string endpoint = WEFT_TRY(server.bind("tcp://127.0.0.1:*"));
  WEFT_TRY(client.connect(endpoint));

  WEFT_TRY(client.send("hello"));
  const weft::Message request = WEFT_TRY(server.recv());
  WEFT_TRY(server.send("world"));
  const weft::Message reply = WEFT_TRY(client.recv());
  std::printf("%.*s, %.*s\n", int(request.size()), request.text().data(), int(reply.size()), reply.text().data());
  return {};
}

int main() {
  const auto result = run();
  if (!result) {
    std::fprintf(stderr, "hello: %s\n", result.error().message().c_str());
    return 1;
  }
}
