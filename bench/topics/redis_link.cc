// SPDX-License-Identifier: MIT
#include "bench/topics/redis_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "bench/cell.h"

namespace bench {
namespace {

[[noreturn]] void refuse(const char* what) {
  fail(std::string("redis: ") + what + ": " + std::generic_category().message(errno));
}

std::string encode_words(std::initializer_list<std::string_view> words, std::size_t count) {
  std::string text("*");
  text.append(std::to_string(count)).append("\r\n");
  for (const std::string_view word : words) {
    text.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
  }
  return text;
}

}  // namespace

RedisLink::RedisLink(const std::string& path)
    : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), in_(new char[capacity_]) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (fd_ < 0 || path.size() >= sizeof address.sun_path) {
    fail("redis: no socket for " + path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    refuse("connect");
  }
}

RedisLink::~RedisLink() { close(fd_); }

std::string RedisLink::encode(std::initializer_list<std::string_view> words) {
  return encode_words(words, words.size());
}

std::string RedisLink::head_of(std::initializer_list<std::string_view> words, std::size_t size) {
  std::string text = encode_words(words, words.size() + 1);
  text.append("$").append(std::to_string(size)).append("\r\n");
  return text;
}

void RedisLink::add(std::string_view head, const void* data, std::size_t size) {
  out_.append(head);
  out_.append(static_cast<const char*>(data), size);
  out_.append("\r\n", 2);
}

void RedisLink::write() {
  for (std::size_t written = 0; written < out_.size();) {
    const ssize_t count = ::send(fd_, out_.data() + written, out_.size() - written, MSG_NOSIGNAL);
    if (count > 0) {
      written += static_cast<std::size_t>(count);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) {
      refuse("write");
    }
    pollfd event{fd_, POLLIN | POLLOUT, 0};
    poll(&event, 1, -1);
    if ((event.revents & POLLIN) != 0) {
      read_some(false);
    }
  }
  out_.clear();
}

void RedisLink::read_some(bool wait) {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (capacity_ - end_ < kBlock) {
    ensure(end_ - begin_ + kBlock);
  }
  while (true) {
    const ssize_t count = recv(fd_, in_.get() + end_, capacity_ - end_, 0);
    if (count > 0) {
      end_ += static_cast<std::size_t>(count);
      return;
    }
    if (count == 0) {
      fail("redis: the server closed the connection");
    }
    if (errno != EAGAIN && errno != EINTR) {
      refuse("read");
    }
    if (!wait) {
      return;
    }
    pollfd event{fd_, POLLIN, 0};
    poll(&event, 1, -1);
  }
}

// Room for `size` bytes from begin_ on.
void RedisLink::ensure(std::size_t size) {
  if (size <= capacity_) {
    std::memmove(in_.get(), in_.get() + begin_, end_ - begin_);
  } else {
    capacity_ = 2 * size;
    std::unique_ptr<char[]> larger(new char[capacity_]);
    std::memcpy(larger.get(), in_.get() + begin_, end_ - begin_);
    in_ = std::move(larger);
  }
  end_ -= begin_;
  begin_ = 0;
}

std::string_view RedisLink::line() {
  std::size_t searched = 0;
  while (true) {
    const void* const found = std::memchr(in_.get() + begin_ + searched, '\n', end_ - begin_ - searched);
    if (found != nullptr) {
      const std::size_t size = static_cast<std::size_t>(static_cast<const char*>(found) - (in_.get() + begin_));
      const std::string_view text(in_.get() + begin_, size - 1);
      begin_ += size + 1;
      return text;
    }
    searched = end_ - begin_;
    read_some(true);
  }
}

std::string_view RedisLink::element() {
  const std::string_view text = line();
  if (text.empty() || text.front() == '-') {
    fail("redis: " + std::string(text));
  }
  if (text.front() != '$') {
    return text;
  }
  std::size_t size = 0;
  for (const char digit : text.substr(1)) {
    size = size * 10 + static_cast<std::size_t>(digit - '0');
  }
  while (end_ - begin_ < size + 2) {
    read_some(true);
  }
  const std::string_view content(in_.get() + begin_, size);
  begin_ += size + 2;
  return content;
}

}  // namespace bench
