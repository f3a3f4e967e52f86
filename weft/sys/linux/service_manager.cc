// SPDX-License-Identifier: MIT
#include "weft/sys/linux/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "weft/sys/call.h"
#include "weft/sys/fd.h"

namespace weft::sys {

namespace {

constexpr int kFirstPassed = 3;  // SD_LISTEN_FDS_START
constexpr int kPassedMax = 1024;

std::optional<int> number_in(const char* text) {
  int number = 0;
  const char* const end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

// NamesRemoved: the program's children must not take the descriptors for theirs.
struct NamesRemoved {
  NamesRemoved() = default;
  NamesRemoved(const NamesRemoved&) = delete;
  NamesRemoved& operator=(const NamesRemoved&) = delete;
  ~NamesRemoved() {
    for (const char* const name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) {
      ::unsetenv(name);
    }
  }
};

Result<std::vector<PassedSocket>> passed_sockets(int count, std::string_view names) {
  std::vector<PassedSocket> sockets;
  for (int i = 0; i < count; ++i) {
    const int fd = kFirstPassed + i;
    if (call([&] { return ::fcntl(fd, F_SETFD, FD_CLOEXEC); }).failed()) {
      return Error(Errc::invalid_argument, "LISTEN_FDS announces a descriptor that is not open");
    }
    const std::string_view name = names.substr(0, names.find(':'));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    sockets.push_back({fd, name.empty() ? "unknown" : std::string(name)});
  }
  return sockets;
}

}  // namespace

Result<std::vector<PassedSocket>> take_passed_sockets() {
  const NamesRemoved removed;
  const char* const pid = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  const char* const names = std::getenv("LISTEN_FDNAMES");
  if (pid == nullptr || count == nullptr || number_in(pid) != ::getpid()) {
    return std::vector<PassedSocket>();
  }
  const auto number = number_in(count);
  if (!number || *number < 0 || *number > kPassedMax) {
    return Error(Errc::invalid_argument, "LISTEN_FDS is no number of descriptors");
  }
  try {
    return passed_sockets(*number, names != nullptr ? names : "");
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for the passed sockets");
  }
}

Result<bool> notify_service_manager(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || *path == '\0') {
    return false;
  }
  const std::size_t size = std::strlen(path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if ((*path != '/' && *path != '@') || size >= sizeof address.sun_path) {
    return Error(Errc::invalid_argument, "NOTIFY_SOCKET holds no address of a unix socket");
  }
  std::memcpy(address.sun_path, path, size);
  if (*path == '@') {
    address.sun_path[0] = '\0';  // an abstract name
  }
  const auto opened = call([] { return ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); });
  if (opened.failed()) {
    return make_error(opened.os_errno, "cannot open a socket to the service manager");
  }
  const Fd socket(opened.value);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
  const auto sent = call([&] {
    return ::sendto(socket.fd(), state.data(), state.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(&address), length);
  });
  if (sent.failed()) {
    return make_error(sent.os_errno, "cannot notify the service manager");
  }
  return true;
}

}  // namespace weft::sys
