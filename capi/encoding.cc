// SPDX-License-Identifier: MIT
// Z85 and CURVE keys. Without libsodium (WEFT_HAVE_SODIUM) keys answer ENOTSUP.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "capi/handles.h"
#include "weft/base/z85.h"

#ifdef WEFT_HAVE_SODIUM
#include <sodium.h>
#endif

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

char* zmq_z85_encode(char* dest, const uint8_t* data, size_t size) {
  if (dest == nullptr || (data == nullptr && size != 0)) {
    errno = EFAULT;
    return nullptr;
  }
  const std::size_t length = z85_encoded_size(size);
  if (!z85_encode(Bytes(data, size), {dest, length})) {
    errno = EINVAL;
    return nullptr;
  }
  dest[length] = '\0';
  return dest;
}

uint8_t* zmq_z85_decode(uint8_t* dest, const char* string) {
  if (dest == nullptr || string == nullptr) {
    errno = EFAULT;
    return nullptr;
  }
  const std::size_t length = std::strlen(string);
  if (length == 0 || !z85_decode({string, length}, {dest, z85_decoded_size(length)})) {
    errno = EINVAL;
    return nullptr;
  }
  return dest;
}
}

#ifdef WEFT_HAVE_SODIUM

namespace {

using Key = std::array<std::uint8_t, crypto_box_PUBLICKEYBYTES>;
static_assert(crypto_box_PUBLICKEYBYTES == crypto_box_SECRETKEYBYTES && crypto_box_SECRETKEYBYTES == 32);
constexpr std::size_t kKeyCharacters = z85_encoded_size(sizeof(Key));

void write_key(char* text, const Key& key) noexcept { (void)zmq_z85_encode(text, key.data(), key.size()); }

}  // namespace

extern "C" {

int zmq_curve_keypair(char* z85_public_key, char* z85_secret_key) {
  if (z85_public_key == nullptr || z85_secret_key == nullptr) {
    return fail(EFAULT);
  }
  Key public_key;
  Key secret_key;
  if (sodium_init() < 0 || crypto_box_keypair(public_key.data(), secret_key.data()) != 0) {
    return fail(ENOTSUP);
  }
  write_key(z85_public_key, public_key);
  write_key(z85_secret_key, secret_key);
  sodium_memzero(secret_key.data(), secret_key.size());
  return 0;
}

int zmq_curve_public(char* z85_public_key, const char* z85_secret_key) {
  if (z85_public_key == nullptr || z85_secret_key == nullptr) {
    return fail(EFAULT);
  }
  Key secret_key;
  if (std::strlen(z85_secret_key) != kKeyCharacters || !z85_decode({z85_secret_key, kKeyCharacters}, secret_key)) {
    return fail(EINVAL);
  }
  Key public_key;
  const bool derived = sodium_init() >= 0 && crypto_scalarmult_base(public_key.data(), secret_key.data()) == 0;
  sodium_memzero(secret_key.data(), secret_key.size());
  if (!derived) {
    return fail(ENOTSUP);
  }
  write_key(z85_public_key, public_key);
  return 0;
}
}

#else

extern "C" {
int zmq_curve_keypair(char* /*z85_public_key*/, char* /*z85_secret_key*/) { return fail(ENOTSUP); }
int zmq_curve_public(char* /*z85_public_key*/, const char* /*z85_secret_key*/) { return fail(ENOTSUP); }
}

#endif
