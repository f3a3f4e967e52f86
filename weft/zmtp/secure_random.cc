// SPDX-License-Identifier: MIT
#include "weft/zmtp/secure_random.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <random>

#ifdef WEFT_HAVE_SODIUM
#include <sodium.h>
#endif

#include "weft/base/endian.h"

namespace weft::zmtp {

namespace {
void ask_system(MutableBytes bytes) {
  std::random_device device;
  while (!bytes.empty()) {
    const std::uint32_t word = device();
    const std::size_t size = std::min(bytes.size(), sizeof word);
    std::memcpy(bytes.data(), &word, size);
    bytes = bytes.subspan(size);
  }
}
}  // namespace

SecureRandom::SecureRandom() { ask_system(key_); }

#ifdef WEFT_HAVE_SODIUM

SecureRandom::~SecureRandom() { sodium_memzero(key_.data(), key_.size()); }

void SecureRandom::fill(MutableBytes bytes) {
  static const int kChoosesTheFastestCode = sodium_init();
  (void)kChoosesTheFastestCode;
  static_assert(sizeof key_ == crypto_stream_chacha20_KEYBYTES);
  std::uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
  store_big_endian<std::uint64_t>(nonce, calls_++);
  (void)crypto_stream_chacha20(bytes.data(), bytes.size(), nonce, key_.data());  // never fails
}

#else

SecureRandom::~SecureRandom() = default;

void SecureRandom::fill(MutableBytes bytes) {
  try {
    ask_system(bytes);
  } catch (const std::exception&) {
    throw std::bad_alloc();
  }
}

#endif

}  // namespace weft::zmtp
