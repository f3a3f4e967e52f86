// SPDX-License-Identifier: MIT
#include "weft/sys/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>

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
  const auto made = call([&] { return ::mknod(path.c_str(), S_IFREG | 0600, 0); });
  if (!made.failed()) {
    return {};
  }
  if (made.os_errno != EEXIST) {
    return make_error(made.os_errno, "make file");
  }
  struct stat status{};
  WEFT_TRY(checked_call("stat", [&] { return ::lstat(path.c_str(), &status); }));
  return S_ISREG(status.st_mode) ? Result<void>() : Error(Errc::invalid_state, "the path names no plain file");
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

std::string runtime_directory() {
  const char* const configured = std::getenv("XDG_RUNTIME_DIR");
  if (configured != nullptr && configured[0] == '/') {
    return std::string(configured) + "/weft";
  }
  return "/tmp/weft-" + std::to_string(::getuid());
}

Result<void> make_owned_directory(const std::string& path) {
  const auto made = call([&] { return ::mkdir(path.c_str(), 0700); });
  if (made.failed() && made.os_errno != EEXIST) {
    return make_error(made.os_errno, "make a directory");
  }
  struct stat status{};
  WEFT_TRY(checked_call("stat", [&] { return ::lstat(path.c_str(), &status); }));
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::getuid() || (status.st_mode & 0077) != 0) {
    return Error(Errc::invalid_state, "the directory is another user's, or other users may enter it");
  }
  return {};
}

Result<std::string> make_state_directory() {
  std::string path;
  if (const char* const configured = std::getenv("XDG_STATE_HOME"); configured != nullptr && configured[0] == '/') {
    path = configured;
  } else if (const char* const home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    path = std::string(home) + "/.local/state";
  } else {
    return Error(Errc::invalid_state, "neither XDG_STATE_HOME nor HOME names a directory");
  }
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    const auto made = call([&] { return ::mkdir(parent.c_str(), 0700); });
    if (made.failed() && made.os_errno != EEXIST) {
      return make_error(made.os_errno, "make a directory");
    }
    if (slash == std::string::npos) {
      break;
    }
  }
  path += "/weft";
  WEFT_TRY(make_owned_directory(path));
  return path;
}

Result<std::vector<std::string>> list_directory(const std::string& path, std::size_t most) {
  std::unique_ptr<DIR, int (*)(DIR*)> directory(nullptr, &::closedir);
  const auto opened = call_once([&] {
    directory.reset(::opendir(path.c_str()));
    return directory != nullptr ? 0 : -1;
  });
  if (opened.failed()) {
    return make_error(opened.os_errno, "open a directory");
  }
  std::vector<std::string> names;
  while (names.size() < most) {
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr) {
      break;
    }
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  return names;
}

std::int64_t user_id() noexcept { return ::geteuid(); }

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (char** each = ::environ; each != nullptr && *each != nullptr; ++each) {
    variables.emplace_back(*each);
  }
  return variables;
}

int process_id() noexcept { return static_cast<int>(::getpid()); }

}  // namespace weft::sys
