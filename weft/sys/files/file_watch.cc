// SPDX-License-Identifier: MIT
#include "weft/sys/files/file_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "weft/sys/call.h"

namespace weft::sys {

namespace {

Result<void> add_directory(int events, const std::string& directory) {
  const auto watch = call([&] {
    return ::inotify_add_watch(events, directory.c_str(),
                               IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ONLYDIR);
  });
  if (!watch.failed()) {
    return {};
  }
  switch (watch.os_errno) {
    case ENOENT:
    case ENOTDIR: return Error(Errc::not_found, "there is no such directory");
    case ENOSPC: return Error(Errc::resource_exhausted, "no more watches of this user (inotify)", ENOSPC);
    default: return make_error(watch.os_errno, "watch a directory");
  }
}

}  // namespace

Result<FileWatch> FileWatch::open(std::span<const std::string> paths) {
  Fd events(WEFT_TRY(checked_call("watch a directory", [] { return ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC); })));
  std::vector<File> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    WEFT_TRY(add_directory(events.fd(), directory));  // once more for the same directory: no second watch
    files.push_back({path, slash == std::string::npos ? path : path.substr(slash + 1), identify(path)});
  }
  return FileWatch(std::move(events), std::move(files));
}

bool FileWatch::take_change() noexcept {
  bool changed = false;
  alignas(inotify_event) char events[4096];
  for (;;) {
    const auto some = call([&] { return ::read(events_.fd(), events, sizeof events); });
    if (some.failed() || some.value <= 0) {
      break;
    }
    const auto size = static_cast<std::size_t>(some.value);
    for (std::size_t at = 0; at + sizeof(inotify_event) <= size;) {
      inotify_event event;
      std::memcpy(&event, events + at, sizeof event);
      const std::string_view name = event.len == 0 ? std::string_view() : std::string_view(events + at + sizeof event);
      // Two texts of one size may be written in one tick of the file system's clock.
      changed = changed || (event.mask & IN_Q_OVERFLOW) != 0 ||
                std::any_of(files_.begin(), files_.end(), [name](const File& file) { return file.name == name; });
      at += sizeof event + event.len;
    }
  }
  for (File& file : files_) {
    const Identity now = identify(file.path);
    changed = changed || !(now == file.last);
    file.last = now;
  }
  return changed;
}

FileWatch::Identity FileWatch::identify(const std::string& path) noexcept {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return {};
  }
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace weft::sys
