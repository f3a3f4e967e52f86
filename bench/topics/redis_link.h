// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bench {

// RedisLink: one connection to a Redis at a unix socket, in batches: commands are encoded into a buffer, replies are
// parsed out of one. An error of the system or of Redis ends the program.
// Owner: an end or a run. Affinity: one thread.
class RedisLink {
 public:
  explicit RedisLink(const std::string& path);
  ~RedisLink();
  RedisLink(const RedisLink&) = delete;
  RedisLink& operator=(const RedisLink&) = delete;

  // Adds to the batch, without writing. `head` is a command already encoded up to its last argument's length.
  void add(std::string_view head, const void* data, std::size_t size);
  void add_raw(std::string_view bytes) { out_.append(bytes); }
  [[nodiscard]] std::size_t batched() const noexcept { return out_.size(); }
  void write();  // the whole batch; reads replies meanwhile, so that neither side waits for the other
  // The next element of a reply: of `$` its text, of others the line. Waits. Valid until the next call of this object.
  std::string_view element();
  [[nodiscard]] bool readable() const noexcept { return end_ > begin_; }  // some of a reply is here
  void read_some(bool wait);  // into the buffer; `wait` until there is something

  // A command of words, encoded.
  static std::string encode(std::initializer_list<std::string_view> words);
  // The same without its last word, whose length is `size`: a head of add().
  static std::string head_of(std::initializer_list<std::string_view> words, std::size_t size);
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  std::string_view line();
  void ensure(std::size_t size);

  static constexpr std::size_t kBlock = std::size_t{1} << 18U;

  int fd_;
  std::string out_;
  std::size_t capacity_ = 2 * kBlock;
  std::unique_ptr<char[]> in_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace bench
