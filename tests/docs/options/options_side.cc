// SPDX-License-Identifier: MIT
// Asks the libzmq.so.5 that it loads for each socket option of standard input, one a line: NAME NUMBER. A line of
// output: the option, the socket types that answer alike, and the answers that are not EINVAL:
//   get4, get8, getN: reading 4, 8 and 255 bytes; the value, or the length of the text (L)
//   the other words: setting an int, a number of 64 bits (w), a text of so many bytes (s), nothing (null, empty); = and
//   the value that the first successful reading gives afterwards; =? when no reading succeeds
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/zmq.h"

namespace {

struct Type {
  int number;
  const char* name;
};
constexpr Type kTypes[] = {{ZMQ_PAIR, "PAIR"}, {ZMQ_PUB, "PUB"},       {ZMQ_SUB, "SUB"},       {ZMQ_REQ, "REQ"},
                           {ZMQ_REP, "REP"},   {ZMQ_DEALER, "DEALER"}, {ZMQ_ROUTER, "ROUTER"}, {ZMQ_XPUB, "XPUB"},
                           {ZMQ_XSUB, "XSUB"}, {ZMQ_STREAM, "STREAM"}, {ZMQ_SERVER, "SERVER"}, {ZMQ_RADIO, "RADIO"},
                           {ZMQ_DISH, "DISH"}};

struct Value {
  std::string name;
  std::string bytes;
  bool null = false;
};

template <typename Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::vector<Value> values() {
  std::vector<Value> all;
  for (const int number : {-2, -1, 0, 1, 2, 3, 100, 65'536}) {
    all.push_back({std::to_string(number), bytes_of(number)});
  }
  all.push_back({"max", bytes_of(INT_MAX)});
  for (const std::int64_t number : {-1, 1}) {
    all.push_back({"w" + std::to_string(number), bytes_of(number)});
  }
  all.push_back({"null", "", true});
  all.push_back({"empty", ""});
  for (const std::size_t size : {1, 3, 32, 40, 41, 255, 256}) {
    std::string text(size, 'a');
    if (size == 41) {
      text.back() = '\0';  // a key as text
    }
    all.push_back({"s" + std::to_string(size), text});
  }
  all.push_back({"X-a:b", "X-a:b"});
  return all;
}

std::string error() { return errno == EINVAL ? "EINVAL" : errno == ENOTSUP ? "ENOTSUP" : std::to_string(errno); }

std::string read_number(void* socket, int option, std::size_t wanted) {
  std::array<char, 8> bytes{};
  std::size_t size = wanted;
  if (zmq_getsockopt(socket, option, bytes.data(), &size) != 0) {
    return error();
  }
  std::int64_t number = 0;
  int narrow = 0;
  if (wanted == sizeof narrow) {
    std::memcpy(&narrow, bytes.data(), sizeof narrow);
    number = narrow;
  } else {
    std::memcpy(&number, bytes.data(), sizeof number);
  }
  // A descriptor's number is arbitrary.
  return option == ZMQ_FD ? "fd" : std::to_string(number);
}

std::string read_text(void* socket, int option) {
  std::array<char, 255> bytes{};
  std::size_t size = bytes.size();
  return zmq_getsockopt(socket, option, bytes.data(), &size) == 0 ? "L" + std::to_string(size) : error();
}

using Answers = std::vector<std::string>;

void add(Answers& answers, const std::string& what, const std::string& answer) {
  if (answer != "EINVAL") {
    answers.push_back(what + answer);
  }
}

std::string read_back(void* socket, int option) {
  for (const std::string& answer : {read_number(socket, option, sizeof(int)),
                                    read_number(socket, option, sizeof(std::int64_t)), read_text(socket, option)}) {
    if (answer != "EINVAL") {
      return answer;
    }
  }
  return "?";
}

std::string ask(const Type& type, int option) {
  static const std::vector<Value> kValues = values();
  void* const context = zmq_ctx_new();
  Answers answers;
  void* socket = zmq_socket(context, type.number);
  if (socket == nullptr) {
    return " no socket";
  }
  add(answers, "get4=", read_number(socket, option, sizeof(int)));
  add(answers, "get8=", read_number(socket, option, sizeof(std::int64_t)));
  add(answers, "getN=", read_text(socket, option));
  (void)zmq_close(socket);
  for (const Value& value : kValues) {
    socket = zmq_socket(context, type.number);
    const void* const bytes = value.null ? nullptr : value.bytes.data();
    if (zmq_setsockopt(socket, option, bytes, value.bytes.size()) == 0) {
      answers.push_back(value.name + "=" + read_back(socket, option));
    } else {
      add(answers, value.name + ":", error());
    }
    (void)zmq_close(socket);
  }
  (void)zmq_ctx_term(context);
  std::string line;
  for (const std::string& answer : answers) {
    line += " " + answer;
  }
  return line;
}

// In a process of its own: a library that the question ends has the answer "dies".
std::string ask_apart(const Type& type, int option) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) {
    return " no pipe";
  }
  const pid_t child = fork();
  if (child == 0) {
    const std::string line = ask(type, option);
    _exit(write(ends[1], line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0 : 1);
  }
  (void)close(ends[1]);
  std::string line;
  std::array<char, 4096> bytes{};
  for (ssize_t count = 0; (count = read(ends[0], bytes.data(), bytes.size())) > 0;) {
    line.append(bytes.data(), static_cast<std::size_t>(count));
  }
  (void)close(ends[0]);
  int status = 0;
  (void)waitpid(child, &status, 0);
  return status == 0 ? line : " dies";
}

}  // namespace

int main() {
  std::string name;
  for (int option = 0; std::cin >> name >> option;) {
    std::vector<std::pair<std::string, std::string>> groups;  // answers, types
    for (const Type& type : kTypes) {
      const std::string line = ask_apart(type, option);
      const auto same =
          std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == line; });
      if (same == groups.end()) {
        groups.emplace_back(line, type.name);
      } else {
        same->second += std::string(",") + type.name;
      }
    }
    for (const auto& [line, types] : groups) {
      if (!line.empty()) {
        std::cout << name << " " << (groups.size() == 1 ? "*" : types) << line << "\n";
      }
    }
  }
  return 0;
}
