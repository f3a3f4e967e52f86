// SPDX-License-Identifier: MIT
#include "tools/weft/lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "tools/weft/console.h"
#include "weft/sys/call.h"
#include "weft/sys/poll.h"

namespace weft::cli {

Input::Input(const std::string& name) : name_(name == "-" ? "standard input" : printable(name)) {
  if (name == "-") {
    fd_ = STDIN_FILENO;
    return;
  }
  owned_ = sys::Fd(need(sys::checked_call("open", [&] { return ::open(name.c_str(), O_RDONLY | O_CLOEXEC); }), name_));
  fd_ = owned_.fd();
}

bool Input::read(std::string& into) {
  std::array<sys::PollFd, 2> fds{
      {{.fd = fd_, .want = sys::Interest::readable}, {.fd = stop_fd(), .want = sys::Interest::readable}}};
  (void)sys::poll_fds(fds, Duration(-1));  // a signal shows in the next line, an error in the read
  throw_if_stopped();
  std::array<char, 65536> block;
  const auto size = sys::checked_call("read", [&] { return ::read(fd_, block.data(), block.size()); });
  into.append(block.data(), static_cast<std::size_t>(need(size, name_)));
  return *size > 0;
}

bool LineReader::open_next() {
  if (next_file_ == files_.size()) {
    return false;
  }
  name_ = printable(files_[next_file_]);
  input_ = Input(files_[next_file_++]);
  return true;
}

std::optional<std::string> LineReader::next() {
  std::size_t searched = begin_;
  for (;;) {
    if (!input_.is_open() && !open_next()) {
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
    searched = buffer_.size() - begin_;
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (!input_.read(buffer_)) {
      input_ = Input();
      std::string rest = buffer_;
      buffer_.clear();
      searched = 0;
      if (!rest.empty()) {
        return rest;
      }
    }
  }
}

std::string read_whole(const std::string& name) {
  Input input(name);
  std::string bytes;
  while (input.read(bytes)) {
    if (bytes.size() > LineReader::kLineMax) {
      throw Failure(printable(name) + ": a message of more than 1 GiB");
    }
  }
  return bytes;
}

}  // namespace weft::cli
