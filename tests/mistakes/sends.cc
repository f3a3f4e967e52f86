// SPDX-License-Identifier: MIT
// Sends that would read invalid memory, or that have no sense.
#include "weft/weft.h"

using namespace weft;

Result<void> whole(Socket& socket) {
  WEFT_TRY(socket.send({"topic", "body"}));
  return socket.send("text");
}

// MISTAKE a number: no matching function for call to 'weft::Socket::send(int)'
Result<void> wrong(Socket& socket) { return socket.send(1); }

// MISTAKE a message that the caller keeps: cannot bind
Result<void> wrong(Socket& socket) {
  Message message("text");
  return socket.send(message);
}
