// SPDX-License-Identifier: MIT
#include "weft/sys/files/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "weft/sys/call.h"
#include "weft/sys/poll.h"

namespace weft::sys {

namespace {

constexpr int kStandardError = 2;
// A pipe that is writable takes so many bytes without a wait (PIPE_BUF).
constexpr std::size_t kAtOnce = 4096;

Error append_error(int os_errno) noexcept {
  switch (os_errno) {
    case EPIPE: return Error(Errc::closed, "the pipe has no reader");
    case ENOSPC:
    case EDQUOT: return Error(Errc::resource_exhausted, "the disk is full", os_errno);
    case EFBIG: return Error(Errc::resource_exhausted, "the file is at its limit", os_errno);
    default: return make_error(os_errno, "append to a file");
  }
}

Error open_append_error(int os_errno) noexcept {
  switch (os_errno) {
    case ENOENT:
    case ENOTDIR: return Error(Errc::not_found, "there is no such directory");
    case ENXIO: return Error(Errc::not_found, "the FIFO has no reader");
    case EISDIR: return Error(Errc::invalid_argument, "a directory, and not a file");
    case EACCES:
    case EPERM:
    case EROFS: return Error(Errc::not_permitted, "the file may not be written", os_errno);
    default: return make_error(os_errno, "open a file");
  }
}

}  // namespace

Result<AppendFile> AppendFile::open(const std::string& path) noexcept {
  const auto opened = call(
      [&] { return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640); });
  if (opened.failed()) {
    return open_append_error(opened.os_errno);
  }
  Fd file(opened.value);
  struct stat status{};
  WEFT_TRY(checked_call("stat", [&] { return ::fstat(file.fd(), &status); }));
  const bool regular = S_ISREG(status.st_mode);
  const int fd = file.fd();
  return AppendFile(std::move(file), fd, regular, regular ? static_cast<std::uint64_t>(status.st_size) : 0);
}

AppendFile AppendFile::standard_error() noexcept { return {Fd(), kStandardError, false, 0}; }

Result<std::size_t> AppendFile::append(Bytes bytes, Duration wait) noexcept {
  if (!regular_) {
    PollFd room{fd_, Interest::writable};
    try {
      const auto ready = poll_fds(std::span(&room, 1), wait);
      if (!ready && !(ready.error() == Errc::interrupted)) {
        return ready.error();
      }
      if (!ready || *ready == 0) {
        return std::size_t{0};
      }
    } catch (...) {
      return Error(Errc::resource_exhausted, "no memory to wait for a file");
    }
    bytes = bytes.first(std::min(bytes.size(), kAtOnce));
  }
  const auto written = sys::call([&] { return ::write(fd_, bytes.data(), bytes.size()); });
  if (written.failed()) {
    return written.os_errno == EAGAIN ? Result<std::size_t>(std::size_t{0}) : append_error(written.os_errno);
  }
  const auto count = static_cast<std::size_t>(written.value);
  size_ += regular_ ? count : 0;
  return count;
}

bool AppendFile::leads_to_journal() const noexcept {
  const char* const stream = std::getenv("JOURNAL_STREAM");  // NOLINT(concurrency-mt-unsafe): read at a start
  struct stat status{};
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  return stream != nullptr && std::sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
         !call([&] { return ::fstat(fd_, &status); }).failed() && status.st_dev == device && status.st_ino == inode;
}

Result<void> rename_file(const std::string& from, const std::string& to) noexcept {
  const auto renamed = call([&] { return ::rename(from.c_str(), to.c_str()); });
  if (!renamed.failed()) {
    return {};
  }
  switch (renamed.os_errno) {
    case ENOENT: return Error(Errc::not_found, "there is no such file");
    case EACCES:
    case EPERM:
    case EROFS: return Error(Errc::not_permitted, "the file may not be renamed", renamed.os_errno);
    default: return make_error(renamed.os_errno, "rename a file");
  }
}

}  // namespace weft::sys
