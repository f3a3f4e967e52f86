// SPDX-License-Identifier: MIT
#include "weft/sys/files/group.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <vector>

#include "weft/sys/call.h"
#include "weft/sys/fd.h"
#include "weft/sys/path.h"

namespace weft::sys {

Result<std::uint32_t> group_id(const std::string& name) {
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  if (const auto parsed = std::from_chars(name.data(), end, number);
      parsed.ec == std::errc() && parsed.ptr == end && number != static_cast<std::uint32_t>(-1)) {
    return number;
  }
  constexpr std::size_t kFirst = 1024;
  constexpr std::size_t kMost = std::size_t{1} << 20U;  // of the names of its members
  group entry{};
  group* found = nullptr;
  int failed = ERANGE;
  for (std::size_t size = kFirst; failed == ERANGE && size <= kMost; size *= 4) {
    std::vector<char> texts(size);
    failed = ::getgrnam_r(name.c_str(), &entry, texts.data(), texts.size(), &found);
  }
  if (failed != 0 && failed != ENOENT) {
    return make_error(failed, "read the table of groups");
  }
  if (found == nullptr) {
    return Error(Errc::not_found, "the system has no such group");
  }
  return std::uint32_t{entry.gr_gid};
}

std::uint32_t own_group() noexcept { return ::getegid(); }

namespace {

Result<void> open_to_group(int directory, std::uint32_t group) {
  WEFT_TRY(checked_call("chown", [&] { return ::fchown(directory, static_cast<uid_t>(-1), group); }));
  WEFT_TRY(checked_call("chmod", [&] { return ::fchmod(directory, 0750); }));
  return {};
}

}  // namespace

Result<void> make_group_directory(const std::string& path, std::uint32_t group) {
  const auto made = call([&] { return ::mkdir(path.c_str(), 0700); });
  if (made.failed() && made.os_errno != EEXIST) {
    return make_error(made.os_errno, "make a directory");
  }
  const auto opened = call([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); });
  if (opened.failed()) {
    return opened.os_errno == ENOTDIR || opened.os_errno == ELOOP
               ? Error(Errc::invalid_state, "the path of a group's directory names no directory")
               : make_error(opened.os_errno, "open a directory");
  }
  const Fd directory(opened.value);
  if (!made.failed()) {
    if (const auto given = open_to_group(directory.fd(), group); !given) {
      (void)remove_directory(path);
      return given;
    }
  }
  struct stat status{};
  WEFT_TRY(checked_call("stat", [&] { return ::fstat(directory.fd(), &status); }));
  if (status.st_uid != ::geteuid() || status.st_gid != group || (status.st_mode & 0010) == 0 ||
      (status.st_mode & 0027) != 0) {
    return Error(Errc::invalid_state,
                 "the directory of a group's socket is not this user's, of the group, with mode 0750");
  }
  return {};
}

Result<void> give_to_group(const std::string& path, std::uint32_t group) {
  WEFT_TRY(checked_call("chown", [&] { return ::lchown(path.c_str(), static_cast<uid_t>(-1), group); }));
  WEFT_TRY(checked_call("chmod", [&] { return ::chmod(path.c_str(), 0660); }));
  return {};
}

}  // namespace weft::sys
