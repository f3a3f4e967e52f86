// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

extern char** environ;

// For tests: network namespaces. A process of its own has them, and one thread makes them.
namespace weft::topic {

// Runs `ip` in the network of the calling thread.
inline bool ip(std::vector<std::string> words) {
  words.insert(words.begin(), "ip");
  std::vector<char*> pointers;
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  pid_t pid = -1;
  int status = -1;
  return ::posix_spawnp(&pid, "ip", nullptr, nullptr, pointers.data(), environ) == 0 &&
         ::waitpid(pid, &status, 0) == pid && status == 0;
}

// A descriptor of the network of the calling thread.
inline int this_network() { return ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC); }

// The name of such a descriptor, for `ip ... netns`.
inline std::string file_of_network(int network) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(network);
}

// A process of one thread gets a user namespace, in which it may make networks.
inline bool enter_new_network() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWNET) == 0) {
    return true;
  }
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
    return false;
  }
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return true;
}

// Runs the function in the network `there`. A thread, a process or a socket stays in the one in which it began.
template <typename Function>
auto in_network(int there, const Function& function) {
  struct Return {
    int here = this_network();
    ~Return() {
      (void)::setns(here, CLONE_NEWNET);
      ::close(here);
    }
  };
  const Return back;
  (void)::setns(there, CLONE_NEWNET);
  return function();
}

}  // namespace weft::topic
