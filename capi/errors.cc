// SPDX-License-Identifier: MIT
#include <cerrno>
#include <cstring>

#include "capi/handles.h"

namespace weft::capi {

namespace {

struct ErrorRow {
  Errc code;
  int number;
};

// One row per code, in the order of Errc.
constexpr ErrorRow kErrors[] = {
    {Errc::ok, 0},
    {Errc::would_block, EAGAIN},
    {Errc::timed_out, EAGAIN},
    {Errc::interrupted, EINTR},
    {Errc::terminated, ETERM},
    {Errc::closed, ENOTSOCK},
    {Errc::invalid_argument, EINVAL},
    {Errc::invalid_state, EFSM},
    {Errc::not_supported, ENOTSUP},
    {Errc::unknown_option, EINVAL},
    {Errc::malformed_endpoint, EINVAL},
    {Errc::unknown_transport, EPROTONOSUPPORT},
    {Errc::address_in_use, EADDRINUSE},
    {Errc::address_unavailable, ENODEV},
    {Errc::name_unresolved, ENODEV},
    {Errc::no_such_endpoint, ENOENT},
    {Errc::unreachable, EHOSTUNREACH},
    {Errc::too_many_sockets, EMFILE},
    {Errc::resource_exhausted, ENOMEM},
    {Errc::message_too_large, EMSGSIZE},
    {Errc::buffer_too_small, EINVAL},
    {Errc::connection_closed, ECONNRESET},
    {Errc::connection_failed, ECONNREFUSED},
    {Errc::protocol_error, EPROTO},
    {Errc::incompatible_peer, ENOCOMPATPROTO},
    {Errc::handshake_refused, EPROTO},
    {Errc::system, EIO},
    {Errc::other, EIO},
    {Errc::cancelled, ECANCELED},  // no function of libzmq runs a task
    {Errc::job_threw, EIO},
    {Errc::not_found, ENOENT},  // no function of libzmq keeps topics
    {Errc::conflict, EEXIST},
    {Errc::not_permitted, EPERM},
    {Errc::outcome_unknown, EIO},
    {Errc::corrupt, EIO},
};

constexpr bool rows_in_order() {
  for (std::size_t i = 0; i < std::size(kErrors); ++i) {
    if (static_cast<std::size_t>(kErrors[i].code) != i) {
      return false;
    }
  }
  return std::size(kErrors) == static_cast<std::size_t>(Errc::corrupt) + 1;
}
static_assert(rows_in_order(), "a new Errc needs a row here");

}  // namespace

int errno_of(const Error& error) noexcept {
  if (error.os_errno() != 0) {
    return error.os_errno();  // libzmq passes on the system's errno
  }
  return kErrors[static_cast<std::size_t>(error.code())].number;
}

int fail(const Error& error) noexcept { return fail(error, errno_of(error)); }
int fail(const Error& error, int code) noexcept {
  note(error);
  errno = code;
  return -1;
}

}  // namespace weft::capi

extern "C" {

int zmq_errno(void) { return errno; }

const char* zmq_strerror(int errnum) {
  switch (errnum) {
    // libzmq's words: programs and tests compare them.
    case EFSM: return "Operation cannot be accomplished in current state";
    case ENOCOMPATPROTO: return "The protocol is not compatible with the socket type";
    case ETERM: return "Context was terminated";
    case EMTHREAD: return "No thread available";
    case EHOSTUNREACH: return "Host unreachable";
    default: return std::strerror(errnum);
  }
}
}
