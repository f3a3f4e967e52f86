// SPDX-License-Identifier: MIT
// For the demonstrations of examples whose programs talk to each other: another process of the same program.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"

// Child: a process, its standard input and its standard output.
// Owner: a move-only value; destruction ends its input, and waits until it ended.
// Affinity: say(), end_input(), kill() and signal() one thread, line() another one.
class Child {
 public:
  // This program with these arguments.
  static weft::Result<Child> start(std::vector<std::string> arguments) {
    int input[2];
    int output[2];
    if (::pipe2(input, O_CLOEXEC) != 0) {
      return weft::Error(weft::Errc::system, "make a pipe", errno);
    }
    if (::pipe2(output, O_CLOEXEC) != 0) {
      const int why = errno;
      ::close(input[0]);
      ::close(input[1]);
      return weft::Error(weft::Errc::system, "make a pipe", why);
    }
    std::string self = "/proc/self/exe";
    std::vector<char*> words = {self.data()};
    for (std::string& argument : arguments) {
      words.push_back(argument.data());
    }
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], 0);
    posix_spawn_file_actions_adddup2(&actions, output[1], 1);
    pid_t id = 0;
    const int refused = ::posix_spawn(&id, self.c_str(), &actions, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(input[0]);
    ::close(output[1]);
    if (refused != 0) {
      ::close(input[1]);
      ::close(output[0]);
      return weft::Error(weft::Errc::system, "start a process", refused);
    }
    return Child(id, input[1], ::fdopen(output[0], "r"));
  }
  Child(Child&& other) noexcept
      : id_(std::exchange(other.id_, 0)),
        input_(std::exchange(other.input_, -1)),
        output_(std::exchange(other.output_, nullptr)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    end_input();
    (void)wait();
    if (output_ != nullptr) {
      std::fclose(output_);
    }
  }

  void say(std::string_view line) {
    const std::string bytes = std::string(line) + '\n';
    (void)!::write(input_, bytes.data(), bytes.size());
  }
  void end_input() {
    if (input_ >= 0) {
      ::close(std::exchange(input_, -1));
    }
  }
  // The next line that the process wrote; empty: it ended.
  std::string line() {
    std::string text;
    for (int c = std::fgetc(output_); c != EOF && c != '\n'; c = std::fgetc(output_)) {
      text += static_cast<char>(c);
    }
    return text;
  }
  void kill() { signal(SIGKILL); }
  void signal(int number) { ::kill(id_, number); }
  // Whether it ended well.
  bool wait() {
    int status = 0;
    return id_ > 0 && ::waitpid(std::exchange(id_, 0), &status, 0) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  Child(pid_t id, int input, std::FILE* output) : id_(id), input_(input), output_(output) {}

  pid_t id_;
  int input_;
  std::FILE* output_;
};
