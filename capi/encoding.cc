// SPDX-License-Identifier: MIT
// Z85 and CURVE keys. Without libsodium, key functions return ENOTSUP.
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "capi/handles.h"
#include "weft/sys/call.h"
#include "weft/zmtp/curve.h"
#include "weft/zmtp/z85.h"

using namespace weft;        // NOLINT(google-build-using-namespace)
using namespace weft::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

char* zmq_z85_encode(char* dest, const uint8_t* data, size_t size) {
  if (size % 4 == 0 &&
      (dest == nullptr || (data == nullptr && size != 0))) {  // a bad size is reported first, as by libzmq
    (void)fail(EFAULT);
    return nullptr;
  }
  const std::size_t length = z85_encoded_size(size);
  if (!z85_encode(Bytes(data, size), {dest, length})) {
    (void)fail(EINVAL);
    return nullptr;
  }
  dest[length] = '\0';
  return dest;
}

uint8_t* zmq_z85_decode(uint8_t* dest, const char* string) {
  if (dest == nullptr || string == nullptr) {
    (void)fail(EFAULT);
    return nullptr;
  }
  const std::size_t length = std::strlen(string);
  if (length == 0 || !z85_decode({string, length}, {dest, z85_decoded_size(length)})) {
    (void)fail(EINVAL);
    return nullptr;
  }
  return dest;
}
}

namespace {

constexpr std::size_t kKeyCharacters = z85_encoded_size(zmtp::kCurveKeySize);

void write_key(char* text, const zmtp::CurveKey& key) noexcept { (void)zmq_z85_encode(text, key.data(), key.size()); }

}  // namespace

extern "C" {

int zmq_curve_keypair(char* z85_public_key, char* z85_secret_key) {
  if (z85_public_key == nullptr || z85_secret_key == nullptr) {
    return fail(EFAULT);
  }
  const sys::CancellationOff off;  // libsodium asks the system for random bytes
  auto keys = zmtp::make_curve_key_pair();
  if (!keys) {
    return fail(keys.error());
  }
  write_key(z85_public_key, keys->public_key);
  write_key(z85_secret_key, keys->secret_key);
  explicit_bzero(keys->secret_key.data(), keys->secret_key.size());
  return 0;
}

int zmq_curve_public(char* z85_public_key, const char* z85_secret_key) {
  if (z85_public_key == nullptr || z85_secret_key == nullptr) {
    return fail(EFAULT);
  }
  const sys::CancellationOff off;  // the same
  zmtp::CurveKey secret_key;
  if (std::strlen(z85_secret_key) != kKeyCharacters || !z85_decode({z85_secret_key, kKeyCharacters}, secret_key)) {
    return fail(EINVAL);
  }
  const auto public_key = zmtp::curve_public_key(secret_key);
  explicit_bzero(secret_key.data(), secret_key.size());
  if (!public_key) {
    return fail(public_key.error());
  }
  write_key(z85_public_key, *public_key);
  return 0;
}
}
