// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "tools/weft/console.h"

namespace weft::cli {

// A pair of CURVE keys in Z85: 40 characters each.
struct KeyPair {
  std::string public_key;
  std::string secret_key;
};

// All of these throw Failure.
[[nodiscard]] KeyPair make_key_pair();
[[nodiscard]] KeyPair read_key_pair(const std::string& file);               // as keygen writes it
[[nodiscard]] std::string read_public_key(const std::string& key_or_file);  // Z85, or a file that has a public key
[[nodiscard]] std::vector<std::string> read_public_keys(const std::string& file);  // each line `public KEY`
[[nodiscard]] std::string decode_key(const std::string& z85);                      // 32 bytes

struct KeygenOptions {
  std::string out;        // writes OUT (mode 600) and OUT.pub instead of printing
  std::string public_of;  // prints the public key of this file
};
int keygen(Console& console, const KeygenOptions& options);

}  // namespace weft::cli
