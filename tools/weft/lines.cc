// SPDX-License-Identifier: MIT
#include "tools/weft/lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "tools/weft/console.h"
#include "weft/sys/call.h"
#include "weft/sys/poll.h"

namespace weft::cli {

bool LineReader::open_next() {
  if (next_file_ == files_.size()) {
    return false;
  }
  name_ = files_[next_file_++];
  if (name_ == "-") {
    fd_ = STDIN_FILENO;
    return true;
  }
  owned_ = sys::Fd(
      need(sys::checked_call("open", [&] { return ::open(name_.c_str(), O_RDONLY | O_CLOEXEC); }), printable(name_)));
  fd_ = owned_.fd();
  return true;
}

bool LineReader::read_block() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  std::array<sys::PollFd, 2> fds{
      {{.fd = fd_, .want = sys::Interest::readable}, {.fd = stop_fd(), .want = sys::Interest::readable}}};
  (void)sys::poll_fds(fds, Duration(-1));  // a signal shows in the next line, an error in the read
  throw_if_stopped();
  std::array<char, 65536> block;
  const auto size = sys::checked_call("read", [&] { return ::read(fd_, block.data(), block.size()); });
  buffer_.append(block.data(), static_cast<std::size_t>(need(size, name_ == "-" ? "standard input" : name_)));
  return *size > 0;
}

std::optional<std::string> LineReader::next() {
  std::size_t searched = begin_;
  for (;;) {
    if (fd_ < 0 && !open_next()) {
      return std::nullopt;
    }
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(begin_, end - begin_);
      begin_ = end + 1;
      return line;
    }
    if (buffer_.size() - begin_ > kLineMax) {
      throw Failure(name_ + ": a line is longer than 1 GiB");
    }
    searched = buffer_.size() - begin_;  // read_block() moves the rest to the front
    if (!read_block()) {
      fd_ = -1;
      owned_.close();
      std::string rest = buffer_.substr(begin_);
      buffer_.clear();
      begin_ = searched = 0;
      if (!rest.empty()) {
        return rest;
      }
    }
  }
}

}  // namespace weft::cli
