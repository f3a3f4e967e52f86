// SPDX-License-Identifier: MIT
#include "weft/zmtp/curve_box.h"

#ifdef WEFT_HAVE_SODIUM

#include <sodium.h>

#include <algorithm>

#include "weft/base/assert.h"
#include "weft/base/endian.h"

namespace weft::zmtp {

namespace {
constexpr std::size_t kPolyKey = crypto_onetimeauth_poly1305_KEYBYTES;  // the keystream's first bytes; then the box's
constexpr std::size_t kBlock = 64;                                      // of Salsa20

static_assert(BoxKey::kMac == crypto_box_MACBYTES);
static_assert(BoxKey::kMac == crypto_onetimeauth_poly1305_BYTES);
static_assert(kPolyKey == crypto_box_ZEROBYTES);
static_assert(kPolyKey == crypto_stream_salsa20_KEYBYTES);

// libsodium makes 512 or 256 bytes of keystream in the time of two single blocks, so a larger request takes
// less time.
constexpr std::size_t round_up(std::size_t size) noexcept {
  const std::size_t rest = size % 512;
  return rest <= 2 * kBlock ? size : size - rest + (rest <= 256 ? 256 : 512);
}
}  // namespace

// The keystream of one box: all of it if the box is short, otherwise its first block.
class BoxKey::Keystream {
 public:
  Keystream(const std::uint8_t* key, std::uint64_t number, std::size_t box_size) noexcept
      : key_(key), size_(kPolyKey + box_size <= kAtOnce ? round_up(kPolyKey + box_size) : kBlock) {
    store_big_endian<std::uint64_t>(nonce_, number);
    (void)crypto_stream_salsa20(bytes_, size_, nonce_, key_);  // never fails, nor does the next
  }
  Keystream(const Keystream&) = delete;
  Keystream& operator=(const Keystream&) = delete;
  ~Keystream() { sodium_memzero(bytes_, size_); }

  [[nodiscard]] const std::uint8_t* poly_key() const noexcept { return bytes_; }
  void mix_into(MutableBytes box) const noexcept {
    const std::size_t here = std::min(box.size(), size_ - kPolyKey);
    for (std::size_t i = 0; i < here; ++i) {
      box[i] = static_cast<std::uint8_t>(box[i] ^ bytes_[kPolyKey + i]);
    }
    if (here < box.size()) {
      std::uint8_t* const rest = box.data() + here;
      (void)crypto_stream_salsa20_xor_ic(rest, rest, box.size() - here, nonce_, 1, key_);
    }
  }

 private:
  static constexpr std::size_t kAtOnce = 2048;

  const std::uint8_t* key_;
  std::size_t size_;
  std::uint8_t nonce_[crypto_stream_salsa20_NONCEBYTES];
  alignas(kBlock) std::uint8_t bytes_[kAtOnce];
};

BoxKey::~BoxKey() { sodium_memzero(key_.data(), key_.size()); }

void BoxKey::derive(const Shared& shared, std::string_view prefix) noexcept {
  WEFT_DCHECK(prefix.size() == crypto_core_hsalsa20_INPUTBYTES);
  (void)crypto_core_hsalsa20(key_.data(), as_bytes(prefix).data(), shared.data(), nullptr);
}

void BoxKey::seal(std::uint8_t* mac, MutableBytes plain, std::uint64_t number) const noexcept {
  const Keystream stream(key_.data(), number, plain.size());
  stream.mix_into(plain);
  (void)crypto_onetimeauth_poly1305(mac, plain.data(), plain.size(), stream.poly_key());
}

bool BoxKey::open(const std::uint8_t* mac, MutableBytes box, std::uint64_t number) const noexcept {
  const Keystream stream(key_.data(), number, box.size());
  if (crypto_onetimeauth_poly1305_verify(mac, box.data(), box.size(), stream.poly_key()) != 0) {
    return false;
  }
  stream.mix_into(box);
  return true;
}

}  // namespace weft::zmtp

#endif
