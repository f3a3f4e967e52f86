// SPDX-License-Identifier: MIT
#include "tests/interop/link.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

namespace weft::interop {

Link::~Link() {
  if (owns_) {
    ::close(input_);
    if (output_ != input_) {
      ::close(output_);
    }
  }
}

void Link::send(const std::string& line) {
  const std::lock_guard lock(send_mutex_);
  const std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(output_, text.data() + sent, text.size() - sent);
    if (count < 0 && errno != EINTR) {
      return;  // the other side is gone: its wait for this line, or ours for the next one, fails
    }
    sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
}

bool Link::fill(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd item{input_, POLLIN, 0};
  const int ready = ::poll(&item, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
  if (ready == 0) {
    reason_ = "timed out";
    return false;
  }
  char block[512];
  const ssize_t count = ready < 0 ? -1 : ::read(input_, block, sizeof block);
  if (count < 0 && errno == EINTR) {
    return true;
  }
  if (count <= 0) {
    reason_ = "the other side is gone";
    return false;
  }
  received_.append(block, static_cast<std::size_t>(count));
  return true;
}

bool Link::wait_line(const std::string& word, std::chrono::milliseconds timeout, std::string* rest) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (received_.find('\n') == std::string::npos) {
    if (!fill(deadline)) {
      return false;
    }
  }
  const std::size_t end = received_.find('\n');
  const std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  if (line != word && !line.starts_with(word + " ")) {
    reason_ = "expected `" + word + "`, got `" + line + "`";
    return false;
  }
  if (rest != nullptr) {
    *rest = line.size() > word.size() ? line.substr(word.size() + 1) : "";
  }
  return true;
}

}  // namespace weft::interop
