// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/engine/end.h"

namespace bench {
namespace {

// The files of this process, for both engines' processes.
struct Folder {
  Folder() = default;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!path.empty() && maker == getpid()) {
      std::filesystem::remove_all(path, ignored);
    }
  }
  std::string path;
  pid_t maker = 0;
};

void put(std::array<char, 128>& into, const std::string& text) {
  if (text.size() >= into.size()) {
    fail("the folder for temporary files has a long name: " + text);
  }
  std::copy(text.begin(), text.end(), into.begin());
}

}  // namespace

void make_certificate(Addresses& addresses) {
  static Folder folder;
  folder.maker = getpid();
  folder.path = std::filesystem::temp_directory_path() / ("weft-bench-" + std::to_string(folder.maker));
  std::filesystem::create_directories(folder.path);
  put(addresses.certificate, folder.path + "/certificate");
  put(addresses.key, folder.path + "/key");
  const std::string command =
      "openssl req -x509 -newkey ed25519 -nodes -days 1 -subj /CN=bench -addext subjectAltName=IP:127.0.0.1 -keyout '" +
      folder.path + "/key' -out '" + folder.path + "/certificate' 2> /dev/null";
  if (std::system(command.c_str()) != 0) {
    fail("no certificate: the program openssl failed");
  }
}

}  // namespace bench
