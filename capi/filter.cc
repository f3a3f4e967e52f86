// SPDX-License-Identifier: MIT
#include "weft/base/filter.h"

#include <cerrno>
#include <string_view>

#include "capi/handles.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

namespace {

Result<void> change_filter(msg::SocketCore& core, int kind, std::string_view text, bool on) {
  if (kind == WEFT_FILTER_PREFIX) {
    return msg::set_up(core, &msg::SocketCore::subscribe, FilterView{FilterKind::prefix, text}, on);
  }
  if (kind == WEFT_FILTER_TOKENS) {  // a name without wildcards, too
    return msg::set_up(core, &msg::SocketCore::subscribe, WEFT_TRY(Filter::parse(text)), on);
  }
  if (kind != WEFT_FILTER_EXACT && kind != WEFT_FILTER_GLOB) {
    return Error(Errc::invalid_argument, "no such kind of filter");
  }
  return msg::set_up(core, &msg::SocketCore::subscribe, WEFT_TRY(Filter::make(static_cast<FilterKind>(kind), text)),
                     on);
}

int change(void* socket, int kind, const void* text, std::size_t size, bool on) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  if (text == nullptr && size != 0) {
    return fail(EINVAL);
  }
  const auto done = change_filter(*handle->core, kind, {static_cast<const char*>(text), size}, on);
  if (!done && done.error() == Errc::not_supported) {
    return fail(EINVAL);
  }
  return done ? 0 : fail(done.error());
}

int change_glob(void* socket, const char* glob, bool on) {
  if (glob == nullptr) {
    return fail(EINVAL);
  }
  return change(socket, WEFT_FILTER_GLOB, glob, std::string_view(glob).size(), on);
}

}  // namespace

int weft_socket_subscribe(void* socket, int kind, const void* text, size_t size) {
  return change(socket, kind, text, size, true);
}
int weft_socket_unsubscribe(void* socket, int kind, const void* text, size_t size) {
  return change(socket, kind, text, size, false);
}
int weft_socket_subscribe_glob(void* socket, const char* glob) { return change_glob(socket, glob, true); }
int weft_socket_unsubscribe_glob(void* socket, const char* glob) { return change_glob(socket, glob, false); }
