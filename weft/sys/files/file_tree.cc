// SPDX-License-Identifier: MIT
#include "weft/sys/files/file_tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "weft/sys/call.h"

namespace weft::sys {

namespace {

// A FIFO without a writer and a terminal do not hold the call up.
constexpr int kToRead = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

bool is_inside(std::string_view path) noexcept {
  if (path.empty() || path.find('\0') != std::string_view::npos) {
    return false;
  }
  for (;;) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, end);
    if (segment.empty() || segment == "." || segment == "..") {
      return false;
    }
    if (end == path.size()) {
      return true;
    }
    path.remove_prefix(end + 1);
  }
}

Error error_of(int os_errno) noexcept {
  switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:  // a symbolic link
    case EXDEV:  // out of the directory
    case ENXIO:  // a socket, or a device that is not there
    case ENODEV:
    case ENAMETOOLONG: return Error(Errc::not_found, "there is no such file");
    case EACCES:
    case EPERM: return Error(Errc::not_permitted, "the file may not be read");
    default: return make_error(os_errno, "open a file");
  }
}

Result<OpenFile> describe(Fd fd) noexcept {
  struct stat status{};
  const auto result = call([&] { return ::fstat(fd.fd(), &status); });
  if (result.failed()) {
    return error_of(result.os_errno);
  }
  OpenFile file;
  file.is_directory = S_ISDIR(status.st_mode);
  if (!file.is_directory && !S_ISREG(status.st_mode)) {
    return error_of(ENOENT);
  }
  file.fd = std::move(fd);
  file.size = static_cast<std::uint64_t>(std::max<decltype(status.st_size)>(status.st_size, 0));
  constexpr std::int64_t kSecondsMax = 9'223'372'035;  // in the year 2262; more nanoseconds have no room
  const std::int64_t seconds = std::clamp<std::int64_t>(status.st_mtim.tv_sec, -kSecondsMax, kSecondsMax);
  file.modified_ns = seconds * 1'000'000'000 + status.st_mtim.tv_nsec;
  return file;
}

constexpr Error kNotInside(Errc::invalid_argument, "a path below the directory has segments that name something");

}  // namespace

Result<FileTree> FileTree::open(const std::string& directory) noexcept {
  return FileTree(Fd(WEFT_TRY(checked_call(
      "open a directory", [&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }))));
}

Result<OpenFile> FileTree::open_file(const std::string& path) const noexcept {
  if (!is_inside(path)) {
    return kNotInside;
  }
  open_how how{};
  how.flags = static_cast<std::uint64_t>(kToRead);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const auto opened =
      call([&] { return static_cast<int>(::syscall(SYS_openat2, root_.fd(), path.c_str(), &how, sizeof how)); });
  switch (opened.os_errno) {
    case 0: return describe(Fd(opened.value));
    case ENOSYS:  // an old kernel
    case EPERM:   // a filter of system calls does not know it
    case EAGAIN:  // the tree changed meanwhile
      return open_by_segments(path);
    default: return error_of(opened.os_errno);
  }
}

Result<OpenFile> FileTree::open_by_segments(const std::string& path) const noexcept {
  if (!is_inside(path)) {
    return kNotInside;
  }
  char segment[256];  // NAME_MAX and a 0
  Fd held;
  int at = root_.fd();
  for (std::string_view rest = path;;) {
    const std::size_t size = std::min(rest.find('/'), rest.size());
    const bool last = size == rest.size();
    if (size >= sizeof segment) {
      return error_of(ENAMETOOLONG);
    }
    segment[rest.copy(segment, size)] = '\0';
    const int flags = O_NOFOLLOW | (last ? kToRead : O_PATH | O_DIRECTORY | O_CLOEXEC);
    const auto opened = call([&] { return ::openat(at, segment, flags); });
    if (opened.failed()) {
      return error_of(opened.os_errno);
    }
    held = Fd(opened.value);
    if (last) {
      return describe(std::move(held));
    }
    at = held.fd();
    rest.remove_prefix(size + 1);
  }
}

Result<std::size_t> read_file_at(int file, std::uint64_t offset, MutableBytes into) noexcept {
  std::size_t size = 0;
  while (size < into.size()) {
    const auto some = WEFT_TRY(checked_call("read a file", [&] {
      return ::pread(file, into.data() + size, into.size() - size, static_cast<off_t>(offset + size));
    }));
    if (some == 0) {
      break;
    }
    size += static_cast<std::size_t>(some);
  }
  return size;
}

// sendfile() has no MSG_NOSIGNAL: the signal is blocked meanwhile, and taken.
IoResult send_file(int socket, int file, std::uint64_t offset, std::size_t size) noexcept {
  sigset_t pipe;
  sigset_t before;
  sigset_t pending;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  ::sigpending(&pending);
  auto at = static_cast<off_t>(offset);
  const auto sent = call([&] { return ::sendfile(socket, file, &at, size); });
  // The call sends in pieces. If a later one fails, the count is short, and the signal is there without EPIPE.
  const bool whole = !sent.failed() && static_cast<std::size_t>(sent.value) == size;
  if (!whole && ::sigismember(&pending, SIGPIPE) == 0) {
    const timespec now{};
    (void)call([&] { return ::sigtimedwait(&pipe, nullptr, &now); });
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (sent.os_errno == EAGAIN || sent.os_errno == EWOULDBLOCK) {
    return {};
  }
  if (sent.failed()) {
    return {IoResult::Status::failed, 0, sent.os_errno};
  }
  return {IoResult::Status::done, static_cast<std::size_t>(sent.value), 0};
}

}  // namespace weft::sys
