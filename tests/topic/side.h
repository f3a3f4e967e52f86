// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

// Side: a running topic_side. Destruction ends its input, and waits for its end.
class Side {
 public:
  explicit Side(std::vector<std::string> arguments) {
    int in[2];
    int out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) {
      return;
    }
    std::vector<char*> argv;
    arguments.insert(arguments.begin(), WEFT_TOPIC_SIDE);
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::execv(WEFT_TOPIC_SIDE, argv.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = ::fdopen(out[0], "r");
  }
  Side(Side&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        input_(std::exchange(other.input_, -1)),
        output_(std::exchange(other.output_, nullptr)) {}
  Side& operator=(Side&&) = delete;
  ~Side() {
    if (input_ >= 0) {
      ::close(input_);
    }
    wait();
    if (output_ != nullptr) {
      std::fclose(output_);
    }
  }

  // The next line that the process writes; empty: it ended.
  std::string line() {
    std::string text;
    for (int c = std::fgetc(output_); c != EOF && c != '\n'; c = std::fgetc(output_)) {
      text += static_cast<char>(c);
    }
    return text;
  }
  void kill() { send_signal(SIGKILL); }
  void stop() {  // returns when the process has stopped
    send_signal(SIGSTOP);
    siginfo_t stopped;
    ::waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED);
  }
  void go_on() { send_signal(SIGCONT); }
  void wait() {
    if (pid_ > 0) {
      ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }
  }

 private:
  void send_signal(int number) {
    if (pid_ > 0) {  // -1 is every process of the user
      ::kill(pid_, number);
    }
  }

  pid_t pid_ = -1;
  int input_ = -1;
  std::FILE* output_ = nullptr;
};
