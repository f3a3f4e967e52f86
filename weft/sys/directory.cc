// SPDX-License-Identifier: MIT
#include "weft/sys/directory.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "weft/sys/call.h"

namespace weft::sys {

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

int process_id() noexcept { return static_cast<int>(::getpid()); }

}  // namespace weft::sys
