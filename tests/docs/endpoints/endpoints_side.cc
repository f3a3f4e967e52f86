// SPDX-License-Identifier: MIT
// Asks the libzmq.so.5 that it loads for each text of an endpoint, one a line of standard input. A line of output: the
// answers of zmq_bind and zmq_connect, 0 or the name of an errno, separated by a blank.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include "capi/zmq.h"

namespace {

struct Name {
  int number;
  const char* text;
};
constexpr Name kNames[] = {{0, "0"},
                           {EINVAL, "EINVAL"},
                           {EADDRINUSE, "EADDRINUSE"},
                           {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
                           {ENODEV, "ENODEV"},
                           {ENOENT, "ENOENT"},
                           {EACCES, "EACCES"},
                           {EISDIR, "EISDIR"},
                           {ENOTDIR, "ENOTDIR"},
                           {ENAMETOOLONG, "ENAMETOOLONG"},
                           {ECONNREFUSED, "ECONNREFUSED"},
                           {EPROTONOSUPPORT, "EPROTONOSUPPORT"},
                           {ENOCOMPATPROTO, "ENOCOMPATPROTO"},
                           {ENOTSUP, "ENOTSUP"}};

std::string name_of(int number) {
  for (const Name& name : kNames) {
    if (name.number == number) {
      return name.text;
    }
  }
  return std::to_string(number);
}

// A port that the kernel gives to no other program until this process ends: bound without listening, and shared with
// the sockets that name it.
int reserve_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  const bool found = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                     bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  return found ? ntohs(address.sin_port) : 0;
}

void replace(std::string& text, std::string_view from, const std::string& to) {
  if (const std::size_t at = text.find(from); at != std::string::npos) {
    text.replace(at, from.size(), to);
  }
}

std::string fill_in(std::string text) {
  const std::string port = std::to_string(reserve_port());
  replace(text, "PORT", port);
  replace(text, "PORT", port);
  replace(text, "DIR", std::filesystem::current_path());
  constexpr std::string_view kLong = "LONG";
  if (const std::size_t at = text.find(kLong); at != std::string::npos) {
    const std::string number = text.substr(at + kLong.size(), 3);
    text.replace(at, kLong.size() + number.size(), std::stoul(number), 'x');
  }
  return text;
}

// Another program's file, which is not a socket.
bool keep_file() {
  const int fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  return fd >= 0 && write(fd, "kept", 4) == 4 && close(fd) == 0;
}

int ask(std::string text, bool binds) {
  constexpr std::string_view kTaken = "taken ";
  void* const context = zmq_ctx_new();
  const bool taken = text.starts_with(kTaken);
  text = fill_in(taken ? text.substr(kTaken.size()) : text);
  if (taken && zmq_bind(zmq_socket(context, ZMQ_PULL), text.c_str()) != 0) {
    return errno;
  }
  void* const socket = zmq_socket(context, binds ? ZMQ_PULL : ZMQ_PUSH);
  return (binds ? zmq_bind(socket, text.c_str()) : zmq_connect(socket, text.c_str())) == 0 ? 0 : errno;
}

// In a process and a folder of its own: a library that the question ends has the answer "dies".
std::string ask_apart(const std::string& text, bool binds) {
  std::string folder = "/tmp/weft-endpoint-XXXXXX";
  std::array<int, 2> ends{};
  if (mkdtemp(folder.data()) == nullptr || pipe(ends.data()) != 0) {
    return "no folder";
  }
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const bool ready = chdir(folder.c_str()) == 0 && keep_file();
    const int answer = ready ? ask(text, binds) : -1;
    _exit(write(ends[1], &answer, sizeof answer) == sizeof answer ? 0 : 1);
  }
  (void)close(ends[1]);
  int answer = 0;
  const bool answered = read(ends[0], &answer, sizeof answer) == sizeof answer;
  (void)close(ends[0]);
  (void)waitpid(child, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return answered ? name_of(answer) : "dies";
}

}  // namespace

int main() {
  for (std::string text; std::getline(std::cin, text);) {
    const std::string bound = ask_apart(text, true);
    std::cout << bound << " " << ask_apart(text, false) << "\n";
  }
  return 0;
}
