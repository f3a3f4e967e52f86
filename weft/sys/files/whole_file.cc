// SPDX-License-Identifier: MIT
#include "weft/sys/files/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "weft/sys/call.h"
#include "weft/sys/fd.h"
#include "weft/sys/files/file_tree.h"

namespace weft::sys {

namespace {

Error open_error(int os_errno) noexcept {
  switch (os_errno) {
    case ENOENT:
    case ENOTDIR: return Error(Errc::not_found, "there is no such file");
    case EACCES:
    case EPERM: return Error(Errc::not_permitted, "the file may not be read");
    default: return make_error(os_errno, "open a file");
  }
}

}  // namespace

Result<std::string> read_whole_file(const std::string& path, std::size_t most) {
  constexpr std::size_t kStep = 64 * 1024;
  constexpr Error kTooLarge(Errc::message_too_large, "the file is larger than its bound");
  // A FIFO without a writer and a terminal do not hold the call up.
  const auto opened = call([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); });
  if (opened.failed()) {
    return open_error(opened.os_errno);
  }
  const Fd file(opened.value);
  struct stat status{};
  WEFT_TRY(checked_call("stat", [&] { return ::fstat(file.fd(), &status); }));
  if (!S_ISREG(status.st_mode)) {
    return Error(Errc::not_found, "not a regular file");
  }
  // The size of the file may change meanwhile, and a file of /proc has none.
  std::string text;
  for (;;) {
    const std::size_t have = text.size();
    text.resize(have + std::min(kStep, most - have + 1));
    const std::size_t more = WEFT_TRY(read_file_at(
        file.fd(), have, MutableBytes(reinterpret_cast<std::uint8_t*>(text.data()) + have, text.size() - have)));
    const bool ended = more < text.size() - have;
    text.resize(have + more);
    if (text.size() > most) {
      return kTooLarge;
    }
    if (ended) {
      return text;
    }
  }
}

}  // namespace weft::sys
