// SPDX-License-Identifier: MIT
#include "capi/last_error.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include "capi/weft_error.h"
#include "capi/zmq.h"

namespace {

// Trivial: a thread that never fails pays nothing for it, and a call in a destructor of the thread is valid.
struct LastError {
  weft::Error::Parts parts;
  std::array<char, 257> text;  // Error::write_message() needs at most 256 bytes
};
thread_local constinit LastError last_error{};

}  // namespace

namespace weft::capi {

Error error_of_errno(int code) noexcept {
  switch (code) {
    case ETERM: return Error(Errc::terminated, "the context was shut down");
    case EFSM: return Errc::invalid_state;
    case ENOCOMPATPROTO: return Errc::incompatible_peer;
    case EMTHREAD: return Error(Errc::resource_exhausted, "the context has no I/O thread for it");
    case EFAULT: return Error(Errc::invalid_argument, "a pointer is null, or its object is closed");
    case ENOTSOCK: return Error(Errc::closed, "the pointer is not an open socket");
    case ENOTSUP: return Errc::not_supported;
    case EAGAIN: return Errc::would_block;
    case EINVAL: return Errc::invalid_argument;
    case ENOMEM: return Error(Errc::resource_exhausted, "no memory");
    case EMSGSIZE: return Errc::message_too_large;
    default: return Error(errc_of(code), {}, code);
  }
}

int fail(int code) noexcept {
  note(error_of_errno(code));
  errno = code;
  return -1;
}

}  // namespace weft::capi

void weft_note_error(const char* text, std::uint64_t number) { last_error.parts = {text, number}; }

extern "C" const char* weft_last_error_text(void) {
  const weft::Error error(last_error.parts);
  const std::string_view text = error == weft::Error()
                                    ? std::string_view()
                                    : error.write_message({last_error.text.data(), last_error.text.size() - 1});
  last_error.text[text.size()] = '\0';
  return last_error.text.data();
}
