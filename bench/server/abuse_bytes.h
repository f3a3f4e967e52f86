// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>

#include "bench/server/load.h"

namespace bench {

// Kinds of bad peers. Each kind takes so little of the machine that good clients need not notice it:
enum class Abuse {
  none,
  wrong_version,  // 500 connections a second, whose first frame has version 9
  oversized,      // 500 connections a second, whose first header announces a body of 4 GiB
  half_open,      // 256 connections that send half a header and then nothing
  slow_loris,     // 256 connections that send a byte of a frame five times a second
  flood,          // 2,000 connections a second from one address, which stay open
  fd_exhaustion,  // 512 connections that stay open: more than the server may have files
  // Of HTTP:
  malformed,  // 500 connections a second, whose request has two lengths
  slow_head,  // 256 connections that send a byte of a head five times a second
  slow_body,  // the same of a body, after its head
  // Of WebSocket:
  bad_upgrade,   // 500 connections a second that ask for another version
  slow_frame,    // 256 connections that upgrade, then send a byte of a frame five times a second
  bomb,          // 100 connections a second, whose compressed message expands to a megabyte
  idle_upgrade,  // 10,000 connections that upgrade and send nothing: no server has to end them
};

Abuse parse_abuse(const std::string& name);  // throws LoadError for an unknown name
LoadWire wire_of(Abuse kind);                // the protocol of the peers

// The bytes of a bad peer: one text at once, then a byte of the other one five times a second, to its end.
struct AbuseBytes {
  std::string opening;
  std::string dribble;
};

AbuseBytes bytes_of(Abuse kind);

// The body of a compressed WebSocket message (RFC 7692) that expands to `size` times 'x'; about a 160th of that.
std::string deflate_bomb(std::size_t size);

}  // namespace bench
