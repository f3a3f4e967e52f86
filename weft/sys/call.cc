// SPDX-License-Identifier: MIT
#include "weft/sys/call.h"

namespace weft::sys {
namespace {

Errc classify(int os_errno) noexcept {
  switch (os_errno) {
    case EAGAIN:
    case EINPROGRESS:
    case EALREADY: return Errc::would_block;
    case EINTR: return Errc::interrupted;
    case EINVAL:
    case EDOM: return Errc::invalid_argument;
    case EADDRINUSE: return Errc::address_in_use;
    case EADDRNOTAVAIL:
    case ENODEV:
    case ENOENT: return Errc::address_unavailable;
    case ENAMETOOLONG: return Errc::malformed_endpoint;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
    case EPIPE:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case ENETRESET: return Errc::connection_failed;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC: return Errc::resource_exhausted;
    case EMSGSIZE: return Errc::message_too_large;
    case EEXIST: return Errc::invalid_state;
    case ENOSYS:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
    case EPROTOTYPE:
    case ENOPROTOOPT:
    case EOPNOTSUPP: return Errc::not_supported;
    default: return Errc::system;
  }
}

}  // namespace

Error make_error(int os_errno, const char* what) noexcept { return {classify(os_errno), what, os_errno}; }

}  // namespace weft::sys
