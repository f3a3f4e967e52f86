// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <mutex>
#include <string>

namespace weft::interop {

// Link: the channel beside the sockets under test by which the two sides of a cell coordinate: lines of text over a
// pair of descriptors. The other end may be a thread, a process or a Python program.
// Owner: a side. Affinity: send from any thread, wait_line from one at a time.
class Link {
 public:
  // The destructor closes the descriptors if the link owns them.
  Link(int input, int output, bool owns) noexcept : input_(input), output_(output), owns_(owns) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  void send(const std::string& line);
  // Waits for the next line, which must begin with `word`; `rest` gets the rest of it, without the blank. False after
  // `timeout`, when the other side is gone, or when another line came.
  bool wait_line(const std::string& word, std::chrono::milliseconds timeout, std::string* rest = nullptr);
  // Why wait_line was last false.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  bool fill(std::chrono::steady_clock::time_point deadline);

  const int input_;
  const int output_;
  const bool owns_;
  std::mutex send_mutex_;
  std::string received_;
  std::string reason_;
};

}  // namespace weft::interop
