// SPDX-License-Identifier: MIT
#include "tools/weft/keys.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "weft/base/bytes.h"
#include "weft/sys/call.h"
#include "weft/sys/fd.h"
#include "weft/zmtp/curve.h"
#include "weft/zmtp/z85.h"

namespace weft::cli {

namespace {

constexpr std::size_t kTextSize = 40;
constexpr std::size_t kFileMax = 4096;
constexpr std::size_t kKeysMax = 65'536;  // as many as a hub takes

std::string encode_key(const zmtp::CurveKey& key) {
  std::string text(kTextSize, ' ');
  need(z85_encode(key, text), "a key");
  return text;
}

// The word after `name` in lines such as "public KEY"; empty: there is none.
std::string read_field(const std::string& file, std::string_view name) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw Failure(file + ": the file cannot be read");
  }
  std::string text(kFileMax, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  std::istringstream words(text);
  for (std::string word, value; words >> word;) {
    if (word == name && words >> value) {
      return value;
    }
  }
  return {};
}

std::string need_field(const std::string& file, const char* name) {
  const std::string key = read_field(file, name);
  if (key.empty()) {
    throw Failure(file + " has no " + name + " key; `weft keygen --out FILE` writes one");
  }
  (void)decode_key(key);
  return key;
}

// The file must not be there: a key that is in use is never overwritten.
void write_file(const std::string& path, unsigned mode, const std::string& text) {
  const auto fd =
      sys::checked_call("open", [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode); });
  const sys::Fd file(need(fd, path));
  const auto written = sys::checked_call("write", [&] { return ::write(file.fd(), text.data(), text.size()); });
  if (need(written, path) != static_cast<ssize_t>(text.size())) {
    throw Failure(path + ": the disk is full");
  }
}

}  // namespace

KeyPair make_key_pair() {
  const zmtp::CurveKeyPair pair = need(zmtp::make_curve_key_pair(), "CURVE keys");
  return {encode_key(pair.public_key), encode_key(pair.secret_key)};
}

KeyPair read_key_pair(const std::string& file) { return {need_field(file, "public"), need_field(file, "secret")}; }

std::string read_public_key(const std::string& key_or_file) {
  if (key_or_file.size() == kTextSize && access(key_or_file.c_str(), F_OK) != 0) {
    return key_or_file;
  }
  return need_field(key_or_file, "public");
}

std::vector<std::string> read_public_keys(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<std::string> keys;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::istringstream words(line);
    std::string name;
    std::string key;
    std::string more;
    if (!(words >> name) || name.starts_with('#')) {  // a key may have a #
      continue;
    }
    if (name != "public" || !(words >> key) || words >> more) {
      throw Failure(printable(file) + ":" + std::to_string(number) +
                    ": a line is `public KEY`, or a comment that begins with #");
    }
    if (keys.size() == kKeysMax) {
      throw Failure(printable(file) + " has more than 65,536 keys");
    }
    (void)decode_key(key);
    keys.push_back(std::move(key));
  }
  if (!in.eof() || keys.empty()) {
    throw Failure(printable(file) + (in.eof() ? ": there is no key" : ": the file cannot be read"));
  }
  return keys;
}

std::string decode_key(const std::string& z85) {
  zmtp::CurveKey key{};
  if (z85.size() != kTextSize || !z85_decode(z85, key)) {
    throw Failure("a key is 40 characters of Z85, and '" + printable(z85.substr(0, kTextSize)) + "' is not");
  }
  return std::string(as_text(key));
}

int keygen(Console& console, const KeygenOptions& options) {
  if (!options.public_of.empty()) {
    const zmtp::CurveKey secret = [&] {
      const std::string bytes = decode_key(need_field(options.public_of, "secret"));
      zmtp::CurveKey key{};
      std::memcpy(key.data(), bytes.data(), key.size());
      return key;
    }();
    const std::string key = encode_key(need(zmtp::curve_public_key(secret), "the public key"));
    console.line(console.json ? to_json({{"public", key}}) : key);
    return 0;
  }
  const KeyPair pair = make_key_pair();
  if (options.out.empty()) {
    console.line(console.json ? to_json({{"public", pair.public_key}, {"secret", pair.secret_key}})
                              : "public " + pair.public_key + "\nsecret " + pair.secret_key);
    return 0;
  }
  write_file(options.out, 0600, "public " + pair.public_key + "\nsecret " + pair.secret_key + "\n");
  write_file(options.out + ".pub", 0644, "public " + pair.public_key + "\n");
  console.line(console.json ? to_json({{"public", pair.public_key}, {"file", options.out}}) : pair.public_key);
  return 0;
}

}  // namespace weft::cli
