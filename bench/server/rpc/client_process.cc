// SPDX-License-Identifier: MIT
#include "bench/server/rpc/client_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <vector>

#include "bench/server/load.h"

extern char** environ;

namespace bench {
namespace {

constexpr int kPatienceMs = 120'000;  // for an answer

[[noreturn]] void give_up_on(const std::string& what) {
  throw LoadError("the client: " + what + (errno == 0 ? "" : ": " + std::generic_category().message(errno)));
}

}  // namespace

ClientProcess::ClientProcess(const std::string& program, const Options& options) {
  std::vector<std::string> words{program,
                                 "--port",
                                 std::to_string(options.port),
                                 "--connections",
                                 std::to_string(options.connections),
                                 "--size",
                                 std::to_string(options.size),
                                 "--depth",
                                 std::to_string(options.depth),
                                 "--streams",
                                 options.streams ? "1" : "0"};
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  int input[2];
  int output[2];
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) {
    give_up_on("pipe");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  errno = posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ);
  const int failure = errno;
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  to_ = input[1];
  from_ = output[0];
  if (failure != 0) {
    pid_ = -1;
    errno = failure;
    give_up_on(program);
  }
  version_ = read_line().at("version");
}

ClientProcess::~ClientProcess() {
  close(to_);
  close(from_);
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    wait_for_end();
  }
}

Json ClientProcess::run(std::uint64_t count) {
  const std::string command = "run " + std::to_string(count) + "\n";
  if (write(to_, command.data(), command.size()) != static_cast<ssize_t>(command.size())) {
    give_up_on("it takes no command");
  }
  return read_line();
}

void ClientProcess::finish() {
  close(to_);
  to_ = -1;
  wait_for_end();
}

Json ClientProcess::read_line() {
  for (;;) {
    if (const std::size_t end = rest_.find('\n'); end != std::string::npos) {
      Json line = Json::parse(rest_.substr(0, end));
      rest_.erase(0, end + 1);
      return line;
    }
    pollfd ready{from_, POLLIN, 0};
    if (poll(&ready, 1, kPatienceMs) == 0) {
      errno = ETIMEDOUT;
      give_up_on("no answer");
    }
    char block[4096];
    const ssize_t got = read(from_, block, sizeof block);
    if (got == 0) {
      errno = 0;
      give_up_on("it has ended; its last words are above");
    }
    if (got < 0 && errno != EINTR) {
      give_up_on("read");
    }
    rest_.append(block, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
}

void ClientProcess::wait_for_end() {
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace bench
