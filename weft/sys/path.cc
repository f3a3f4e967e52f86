// SPDX-License-Identifier: MIT
#include "weft/sys/path.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "weft/sys/call.h"
#include "weft/sys/cpu.h"

namespace weft::sys {

Result<FileIdentity> identify_file(const std::string& path) noexcept {
  struct stat status{};
  WEFT_TRY(checked_call("stat", [&] { return ::lstat(path.c_str(), &status); }));
  return FileIdentity{status.st_dev, status.st_ino, S_ISSOCK(status.st_mode),
                      S_ISREG(status.st_mode) && status.st_size == 0};
}

Result<void> remove_file(const std::string& path) noexcept {
  WEFT_TRY(checked_call("unlink", [&] { return ::unlink(path.c_str()); }));
  return {};
}

Result<void> remove_directory(const std::string& path) noexcept {
  WEFT_TRY(checked_call("rmdir", [&] { return ::rmdir(path.c_str()); }));
  return {};
}

Result<std::string> make_private_directory() {
  constexpr std::size_t kLongestParent = 64;  // leaves room for a socket's name within sun_path
  const char* configured = std::getenv("TMPDIR");
  std::string path(configured != nullptr ? configured : "");
  if (path.empty() || path.size() > kLongestParent) {
    path = "/tmp";
  }
  path += "/weft-XXXXXX";
  const auto result = call_once([&] { return ::mkdtemp(path.data()) != nullptr ? 0 : -1; });
  if (result.failed()) {
    return make_error(result.os_errno, "make temporary directory");
  }
  return path;
}

Fd lock_parent_directory(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const char* directory = parent.empty() ? "." : parent.c_str();
  Fd fd(call([&] { return ::open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }).value);
  constexpr int kAttempts = 1000;  // a well-behaved holder needs about ten microseconds
  for (int attempt = 0; fd.valid() && attempt < kAttempts; ++attempt) {
    if (!call([&] { return ::flock(fd.fd(), LOCK_EX | LOCK_NB); }).failed()) {
      return fd;
    }
    yield();
  }
  return {};
}

Result<Fd> lock_file(const std::string& path) noexcept {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  Fd fd(WEFT_TRY(checked_call("open lock file", [&] { return ::open(path.c_str(), kFlags, 0600); })));
  WEFT_TRY(checked_call("lock file", [&] { return ::flock(fd.fd(), LOCK_EX | LOCK_NB); }));
  return fd;
}

Result<void> make_private_file(const std::string& path) noexcept {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  const Fd fd(WEFT_TRY(checked_call("make file", [&] { return ::open(path.c_str(), kFlags, 0600); })));
  return {};
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

}  // namespace weft::sys
