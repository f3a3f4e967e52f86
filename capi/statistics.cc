// SPDX-License-Identifier: MIT
#include "weft/msg/message/statistics.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>

#include "capi/handles.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

int weft_socket_statistics(void* socket, uint64_t* values, size_t count) {
  SocketHandle* handle = socket_of(socket);
  if (handle == nullptr) {
    return -1;
  }
  if (values == nullptr && count != 0) {
    return fail(EFAULT);
  }
  return or_enomem([&] {
    const auto all = sync::read_counters(handle->core->statistics());
    std::copy_n(all.begin(), std::min(count, all.size()), values);
    return static_cast<int>(all.size());
  });
}

const char* weft_socket_statistic_name(size_t index) {
  const std::span<const CounterRow> rows = kSocketTable.rows;
  return index < rows.size() ? rows[index].member.data() : nullptr;  // a literal, which ends with a zero byte
}
