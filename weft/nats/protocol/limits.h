// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/version.h"

namespace weft::nats {

// The bounds of the client protocol, in bytes.
inline constexpr std::size_t kControlLineMax = 4096;                // the server's max_control_line by default
inline constexpr std::size_t kInfoMax = std::size_t{64} * 1024;     // a line of INFO
inline constexpr std::size_t kHeadersMax = std::size_t{64} * 1024;  // the header block of a message
inline constexpr std::size_t kMessageMax = std::size_t{64}
                                           << 20;  // headers and body: the most that a server may permit
inline constexpr std::size_t kMessageMaxDefault = std::size_t{1} << 20;  // max_payload of a server that names none
inline constexpr std::size_t kSubjectMax = 1024;                         // that this end writes
inline constexpr std::size_t kReplyMax = 512;                            // the same, and the name of a group
inline constexpr std::size_t kCredentialsMax = std::size_t{64} * 1024;   // a file of credentials
inline constexpr std::size_t kNonceMax = 256;
inline constexpr std::size_t kServersMax = 64;  // not bytes: the given servers and those of connect_urls
inline constexpr std::size_t kServerTextMax = 512;

}  // namespace weft::nats
