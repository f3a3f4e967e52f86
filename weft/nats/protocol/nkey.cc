// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/nkey.h"

#include <algorithm>
#include <span>
#include <vector>

#ifdef WEFT_HAVE_SODIUM
#include <sodium.h>
#endif

#include "weft/mem/secret.h"

namespace weft::nats {

namespace {

constexpr std::uint8_t kSeedKind = 18 << 3;  // base32 'S'
constexpr std::size_t kSeedBytes = 2 + NKey::kSeedSize + 2;
constexpr std::size_t kPublicBytes = 1 + NKey::kSeedSize + 2;
constexpr std::string_view kBase32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr std::string_view kBase64Url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// CRC-16 of XMODEM: polynomial 0x1021, first value 0.
[[nodiscard]] std::uint16_t crc16(Bytes bytes) noexcept {
  std::uint16_t crc = 0;
  for (const std::uint8_t byte : bytes) {
    crc = static_cast<std::uint16_t>(crc ^ (byte << 8U));
    for (int bit = 0; bit < 8; ++bit) {
      crc = static_cast<std::uint16_t>((crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U);
    }
  }
  return crc;
}

// Base32 (RFC 4648) and base64 alike: `bits` bits for each character.
[[nodiscard]] std::string encode(Bytes bytes, std::string_view digits, unsigned bits) {
  std::string text;
  text.reserve((bytes.size() * 8 + bits - 1) / bits);
  std::uint32_t word = 0;
  unsigned held = 0;
  for (const std::uint8_t byte : bytes) {
    word = (word << 8U) | byte;
    held += 8;
    while (held >= bits) {
      held -= bits;
      text += digits[(word >> held) & (digits.size() - 1)];
    }
  }
  if (held != 0) {
    text += digits[(word << (bits - held)) & (digits.size() - 1)];
  }
  return text;
}

// Fills `out` exactly, and checks the CRC at its end. The bits after the last byte are zero.
[[nodiscard]] bool decode_checked(std::string_view text, std::span<std::uint8_t> out) noexcept {
  if (text.size() != (out.size() * 8 + 4) / 5) {
    return false;
  }
  std::uint32_t word = 0;
  unsigned held = 0;
  std::size_t filled = 0;
  for (const char c : text) {
    const std::size_t digit = kBase32.find(c);
    if (digit == std::string_view::npos) {
      return false;
    }
    word = (word << 5U) | static_cast<std::uint32_t>(digit);
    held += 5;
    if (held >= 8) {
      held -= 8;
      out[filled++] = static_cast<std::uint8_t>(word >> held);
    }
  }
  const Bytes data = Bytes(out).first(out.size() - 2);
  const std::uint16_t crc = crc16(data);
  return (word & ((1U << held) - 1)) == 0 && out[out.size() - 2] == (crc & 0xFFU) && out[out.size() - 1] == crc >> 8U;
}

void append_crc(std::vector<std::uint8_t>& bytes) {
  const std::uint16_t crc = crc16(bytes);
  bytes.push_back(static_cast<std::uint8_t>(crc));
  bytes.push_back(static_cast<std::uint8_t>(crc >> 8U));
}

[[nodiscard]] bool is_kind(std::uint8_t kind) noexcept {
  switch (static_cast<KeyKind>(kind)) {
    case KeyKind::server:
    case KeyKind::cluster:
    case KeyKind::operators:
    case KeyKind::account:
    case KeyKind::user: return true;
  }
  return false;
}

[[nodiscard]] std::string_view without_blanks(std::string_view text) noexcept {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Overwritten at its end.
struct SeedBytes {
  std::array<std::uint8_t, kSeedBytes> bytes{};
  SeedBytes() = default;
  SeedBytes(const SeedBytes&) = delete;
  SeedBytes& operator=(const SeedBytes&) = delete;
  ~SeedBytes() {
    volatile std::uint8_t* const place = bytes.data();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      place[i] = 0;
    }
  }
};

}  // namespace

NKey::NKey(NKey&& other) noexcept : kind_(other.kind_), public_(other.public_), secret_(other.secret_) {
  other.wipe_seed();
}

NKey& NKey::operator=(NKey&& other) noexcept {
  if (this != &other) {
    kind_ = other.kind_;
    public_ = other.public_;
    secret_ = other.secret_;
    other.wipe_seed();
  }
  return *this;
}

NKey::~NKey() { wipe_seed(); }

void NKey::wipe_seed() noexcept {
  volatile std::uint8_t* const place = secret_.data();  // the compiler keeps stores to volatile
  for (std::size_t i = 0; i < secret_.size(); ++i) {
    place[i] = 0;
  }
}

Result<NKey> NKey::from_seed(std::string_view text) {
  SeedBytes seed;
  if (!decode_checked(without_blanks(text), seed.bytes) || (seed.bytes[0] & 0xF8U) != kSeedKind) {
    return Error(Errc::invalid_argument, "this is not the seed of an nkey");
  }
  const auto kind = static_cast<std::uint8_t>((seed.bytes[0] & 7U) << 5U | seed.bytes[1] >> 3U);
  if (!is_kind(kind)) {
    return Error(Errc::invalid_argument, "the seed is of an unknown kind of nkeys");
  }
  return from_bytes(static_cast<KeyKind>(kind), std::span(seed.bytes).subspan<2, kSeedSize>());
}

#ifdef WEFT_HAVE_SODIUM

Result<NKey> NKey::from_bytes(KeyKind kind, std::span<const std::uint8_t, kSeedSize> seed) {
  static_assert(sizeof secret_ == crypto_sign_SECRETKEYBYTES && sizeof public_ == crypto_sign_PUBLICKEYBYTES);
  if (sodium_init() < 0) {
    return Error(Errc::system, "libsodium does not start");
  }
  NKey key;
  key.kind_ = kind;
  (void)crypto_sign_seed_keypair(key.public_.data(), key.secret_.data(), seed.data());  // never fails
  return key;
}

std::string NKey::sign(Bytes bytes) const {
  std::array<std::uint8_t, crypto_sign_BYTES> signature;
  (void)crypto_sign_detached(signature.data(), nullptr, bytes.data(), bytes.size(), secret_.data());  // never fails
  return base64_url(signature);
}

#else

Result<NKey> NKey::from_bytes(KeyKind /*kind*/, std::span<const std::uint8_t, kSeedSize> /*seed*/) {
  return Error(Errc::not_supported, "this build has no libsodium, which nkeys need");
}

std::string NKey::sign(Bytes /*bytes*/) const { return {}; }

#endif

std::string NKey::public_key() const {
  std::vector<std::uint8_t> bytes{static_cast<std::uint8_t>(kind_)};
  bytes.insert(bytes.end(), public_.begin(), public_.end());
  append_crc(bytes);
  return encode(bytes, kBase32, 5);
}

std::string NKey::seed() const {
  const auto kind = static_cast<std::uint8_t>(kind_);
  std::vector<std::uint8_t> bytes;
  bytes.reserve(kSeedBytes);
  bytes.push_back(static_cast<std::uint8_t>(kSeedKind | kind >> 5U));
  bytes.push_back(static_cast<std::uint8_t>((kind & 31U) << 3U));
  bytes.insert(bytes.end(), secret_.begin(), secret_.begin() + kSeedSize);
  append_crc(bytes);
  std::string text = encode(bytes, kBase32, 5);
  wipe(bytes);
  return text;
}

bool is_public_key(KeyKind kind, std::string_view text) noexcept {
  std::array<std::uint8_t, kPublicBytes> bytes;
  return decode_checked(text, bytes) && bytes[0] == static_cast<std::uint8_t>(kind);
}

std::string base64_url(Bytes bytes) { return encode(bytes, kBase64Url, 6); }

}  // namespace weft::nats
