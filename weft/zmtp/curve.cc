// SPDX-License-Identifier: MIT
#include "weft/zmtp/curve.h"

#include "weft/zmtp/mechanism.h"

#ifdef WEFT_HAVE_SODIUM

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/assert.h"
#include "weft/base/endian.h"
#include "weft/zmtp/curve_box.h"

namespace weft::zmtp {
namespace {

constexpr std::size_t kMac = crypto_box_MACBYTES;            // 16
constexpr std::size_t kNonce = crypto_box_NONCEBYTES;        // 24: a prefix that names the command, and a tail
constexpr std::size_t kShortTail = 8;                        // a counter
constexpr std::size_t kLongTail = 16;                        // random
constexpr std::size_t kCookie = 96;                          // RFC 26 "WELCOME"
constexpr std::size_t kVouchBox = 2 * kCurveKeySize + kMac;  // C', S
constexpr std::size_t kHelloData = 2 + 72 + kCurveKeySize + kShortTail + 64 + kMac;
constexpr std::size_t kWelcomeData = kLongTail + kCurveKeySize + kCookie + kMac;
constexpr std::size_t kInitiateFixed = kCurveKeySize + kLongTail + kVouchBox;  // in front of the metadata
constexpr std::size_t kInitiateDataMin = kCookie + kShortTail + kInitiateFixed + kMac;
constexpr std::size_t kReadyDataMin = kShortTail + kMac;
constexpr std::string_view kMessageName = "\x07MESSAGE";
static_assert(kMessageName.size() + kShortTail + kMac + 1 == kSealOverhead);

// A message's flags inside its box differ from those of a frame.
constexpr std::uint8_t kBoxMore = 0x01;
constexpr std::uint8_t kBoxCommand = 0x02;

using Buffer = std::vector<std::uint8_t>;
using SharedKey = BoxKey::Shared;
static_assert(sizeof(SharedKey) == crypto_box_BEFORENMBYTES);

bool sodium_ready() noexcept {
  static const bool ready = sodium_init() >= 0;
  return ready;
}

Mechanism::Step failed(StaticText text, Breach breach) {
  return {Mechanism::Step::Kind::failed, {}, {Errc::protocol_error, text, static_cast<std::uint32_t>(breach)}};
}

void append(Buffer& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

struct Nonce {
  std::uint8_t bytes[kNonce];

  Nonce(std::string_view prefix, Bytes tail) noexcept {
    WEFT_DCHECK(prefix.size() + tail.size() == kNonce);
    copy_bytes(bytes, as_bytes(prefix));
    copy_bytes(bytes + prefix.size(), tail);
  }
  Nonce(std::string_view prefix, std::uint64_t tail) noexcept {
    WEFT_DCHECK(prefix.size() + sizeof(tail) == kNonce);
    copy_bytes(bytes, as_bytes(prefix));
    store_big_endian<std::uint64_t>(bytes + prefix.size(), tail);
  }
  [[nodiscard]] Bytes tail(std::size_t size) const noexcept { return Bytes(bytes).last(size); }
};

std::array<std::uint8_t, kLongTail> random_tail() noexcept {
  std::array<std::uint8_t, kLongTail> tail;
  randombytes_buf(tail.data(), tail.size());
  return tail;
}

// Appends the box of `plain`. Returns false if the key is not valid for encryption.
[[nodiscard]] bool append_box(Buffer& to, Bytes plain, const Nonce& nonce, const CurveKey& theirs,
                              const CurveKey& ours) {
  const std::size_t at = to.size();
  to.resize(at + plain.size() + kMac);
  return crypto_box_easy(to.data() + at, plain.data(), plain.size(), nonce.bytes, theirs.data(), ours.data()) == 0;
}
[[nodiscard]] bool open_box(Buffer& plain, Bytes box, const Nonce& nonce, const CurveKey& theirs,
                            const CurveKey& ours) {
  plain.resize(box.size() - kMac);
  return crypto_box_open_easy(plain.data(), box.data(), box.size(), nonce.bytes, theirs.data(), ours.data()) == 0;
}

// The part that both sides share: the keys of this connection, and its traffic.
class CurveMechanism : public Mechanism {
 public:
  CurveMechanism(std::string_view sends, std::string_view receives) noexcept : sends_(sends), receives_(receives) {}
  CurveMechanism(const CurveMechanism&) = delete;
  CurveMechanism& operator=(const CurveMechanism&) = delete;
  ~CurveMechanism() override {
    sodium_memzero(session_.secret_key.data(), session_.secret_key.size());
    sodium_memzero(shared_.data(), shared_.size());
  }

  std::string_view name() const noexcept override { return "CURVE"; }
  bool encrypts() const noexcept override { return true; }

  void seal(std::uint8_t* to, std::uint8_t flags, Bytes body) noexcept override {
    copy_bytes(to, as_bytes(kMessageName));
    store_big_endian<std::uint64_t>(to + kMessageName.size(), ++sent_);
    std::uint8_t* const mac = to + kMessageName.size() + kShortTail;
    std::uint8_t* const plain = mac + kMac;
    plain[0] =
        static_cast<std::uint8_t>(((flags & kMore) != 0 ? kBoxMore : 0) | ((flags & kCommand) != 0 ? kBoxCommand : 0));
    copy_bytes(plain + 1, body);
    sending_.seal(mac, MutableBytes(plain, 1 + body.size()), sent_);
  }

  Breach open(MutableBytes sealed, std::uint8_t& flags) noexcept override {
    if (sealed.size() < 2 || sealed.size() <= sealed[0]) {
      return Breach::malformed_command;
    }
    if (as_text(sealed.first(std::min(sealed.size(), kMessageName.size()))) != kMessageName) {
      return Breach::unexpected_command;
    }
    if (sealed.size() < kSealOverhead) {
      return Breach::malformed_message;
    }
    std::uint8_t* const tail = sealed.data() + kMessageName.size();
    const auto number = load_big_endian<std::uint64_t>(tail);
    if (number <= received_) {
      return Breach::invalid_sequence;  // a repetition
    }
    std::uint8_t* const mac = tail + kShortTail;
    std::uint8_t* const plain = mac + kMac;
    if (!receiving_.open(mac, MutableBytes(plain, sealed.size() - kSealOverhead + 1), number)) {
      return Breach::cryptographic;
    }
    received_ = number;
    const std::uint8_t inside = plain[0];
    flags = static_cast<std::uint8_t>(((inside & kBoxMore) != 0 ? kMore : 0) |
                                      ((inside & kBoxCommand) != 0 ? kCommand : 0));
    return inside < (kBoxMore | kBoxCommand) ? Breach::none : Breach::malformed_message;
  }

 protected:
  void begin(Bytes our_metadata) noexcept {
    our_metadata_ = our_metadata;
    sent_ = received_ = 0;
    (void)crypto_box_keypair(session_.public_key.data(), session_.secret_key.data());
  }
  [[nodiscard]] bool agree() noexcept {
    if (crypto_box_beforenm(shared_.data(), peer_session_.data(), session_.secret_key.data()) != 0) {
      return false;
    }
    sending_.derive(shared_, sends_);
    receiving_.derive(shared_, receives_);
    return true;
  }
  // Appends the counter and a box with the keys of the connection.
  void append_session_box(Buffer& to, std::string_view prefix, Bytes plain) {
    const Nonce nonce(prefix, ++sent_);
    append(to, nonce.tail(kShortTail));
    const std::size_t at = to.size();
    to.resize(at + plain.size() + kMac);
    (void)crypto_box_easy_afternm(to.data() + at, plain.data(), plain.size(), nonce.bytes, shared_.data());
  }
  // The reverse: opens such a box into plain_.
  [[nodiscard]] bool open_session_box(std::string_view prefix, Bytes data) {
    const Nonce nonce(prefix, data.first(kShortTail));
    const Bytes box = data.subspan(kShortTail);
    received_ = load_big_endian<std::uint64_t>(data.data());
    plain_.resize(box.size() - kMac);
    return crypto_box_open_easy_afternm(plain_.data(), box.data(), box.size(), nonce.bytes, shared_.data()) == 0;
  }

  Bytes our_metadata_;
  CurveKeyPair session_;     // ours, for this connection only
  CurveKey peer_session_{};  // the peer's
  SharedKey shared_{};
  Buffer plain_;                // the content of the last box that was opened
  std::uint64_t sent_ = 0;      // the last counter that we used
  std::uint64_t received_ = 0;  // the last counter that the peer used

 private:
  const std::string_view sends_;
  const std::string_view receives_;
  BoxKey sending_;  // for messages, as is the next
  BoxKey receiving_;
};

class CurveClient final : public CurveMechanism {
 public:
  CurveClient(const CurveKeyPair& ours, const CurveKey& server) noexcept
      : CurveMechanism("CurveZMQMESSAGEC", "CurveZMQMESSAGES"), ours_(ours), server_(server) {}
  ~CurveClient() override { sodium_memzero(ours_.secret_key.data(), ours_.secret_key.size()); }

  void start(Bytes our_metadata) override {
    begin(our_metadata);
    state_ = State::owes_hello;
  }

  bool poll_command(Buffer& body) override {
    if (state_ == State::owes_hello) {
      append_hello(body);
      state_ = State::awaits_welcome;
      return true;
    }
    if (state_ == State::owes_initiate) {
      append_initiate(body);
      state_ = State::awaits_ready;
      return true;
    }
    return false;
  }

  Step handle_command(const Command& command) override {
    if (state_ == State::awaits_welcome && command.name == "WELCOME") {
      return handle_welcome(command.data);
    }
    if (state_ == State::awaits_ready && command.name == "READY") {
      if (command.data.size() < kReadyDataMin) {
        return failed("malformed READY command", Breach::malformed_ready);
      }
      if (!open_session_box("CurveZMQREADY---", command.data)) {
        return failed("READY cannot be decrypted", Breach::cryptographic);
      }
      state_ = State::done;
      return {Step::Kind::ready, plain_, {}};
    }
    return failed("unexpected command in a CURVE handshake", Breach::unexpected_command);
  }

 private:
  enum class State : std::uint8_t { owes_hello, awaits_welcome, owes_initiate, awaits_ready, done };

  // An invalid server key gives a box that the server cannot open, and so refuses.
  void append_hello(Buffer& body) {
    append_command_name(body, "HELLO");
    body.push_back(1);                   // version 1.0
    body.insert(body.end(), 1 + 72, 0);  // minor version, and padding: the reply must not be larger than the request
    append(body, session_.public_key);
    const Nonce nonce("CurveZMQHELLO---", ++sent_);
    append(body, nonce.tail(kShortTail));
    const std::array<std::uint8_t, 64> zeros{};
    (void)append_box(body, zeros, nonce, server_, session_.secret_key);
  }

  Step handle_welcome(Bytes data) {
    if (data.size() != kWelcomeData) {
      return failed("malformed WELCOME command", Breach::cryptographic);  // libzmq reports it so
    }
    const Nonce nonce("WELCOME-", data.first(kLongTail));
    if (!open_box(plain_, data.subspan(kLongTail), nonce, server_, session_.secret_key)) {
      return failed("WELCOME cannot be decrypted", Breach::cryptographic);
    }
    copy_bytes(peer_session_.data(), Bytes(plain_).first(kCurveKeySize));
    copy_bytes(cookie_.data(), Bytes(plain_).subspan(kCurveKeySize));
    // The vouch: the holder of our long-term key confirms this connection's key.
    vouch_tail_ = random_tail();
    Buffer keys;
    append(keys, session_.public_key);
    append(keys, server_);
    vouch_.clear();
    if (!agree() || !append_box(vouch_, keys, Nonce("VOUCH---", vouch_tail_), peer_session_, ours_.secret_key)) {
      return failed("the server's key is none", Breach::cryptographic);
    }
    state_ = State::owes_initiate;
    return {};
  }

  void append_initiate(Buffer& body) {
    append_command_name(body, "INITIATE");
    append(body, cookie_);
    Buffer plain;
    append(plain, ours_.public_key);
    append(plain, vouch_tail_);
    append(plain, vouch_);
    append(plain, our_metadata_);
    append_session_box(body, "CurveZMQINITIATE", plain);
  }

  CurveKeyPair ours_;
  const CurveKey server_;
  std::array<std::uint8_t, kCookie> cookie_{};
  std::array<std::uint8_t, kLongTail> vouch_tail_{};
  Buffer vouch_;
  State state_ = State::done;
};

class CurveServer final : public CurveMechanism {
 public:
  explicit CurveServer(const CurveKey& secret_key) noexcept
      : CurveMechanism("CurveZMQMESSAGES", "CurveZMQMESSAGEC"), secret_(secret_key) {
    (void)crypto_scalarmult_base(public_.data(), secret_.data());
  }
  ~CurveServer() override { sodium_memzero(secret_.data(), secret_.size()); }

  void start(Bytes our_metadata) override {
    begin(our_metadata);
    question_.credentials.clear();
    state_ = State::awaits_hello;
  }

  bool poll_command(Buffer& body) override {
    if (state_ == State::owes_welcome) {
      append_command_name(body, "WELCOME");
      append(body, welcome_);
      state_ = State::awaits_initiate;
      return true;
    }
    if (state_ == State::owes_ready) {
      append_command_name(body, "READY");
      append_session_box(body, "CurveZMQREADY---", our_metadata_);
      state_ = State::done;
      return true;
    }
    return false;
  }

  Step handle_command(const Command& command) override {
    if (state_ == State::awaits_hello && command.name == "HELLO") {
      return handle_hello(command.data);
    }
    if (state_ == State::awaits_initiate && command.name == "INITIATE") {
      return handle_initiate(command.data);
    }
    return failed("unexpected command in a CURVE handshake", Breach::unexpected_command);
  }

  const Question* question() const noexcept override { return state_ == State::asks ? &question_ : nullptr; }

  Step admit() override {
    state_ = State::owes_ready;
    return {Step::Kind::ready, Bytes(plain_).subspan(kInitiateFixed), {}};
  }

 private:
  enum class State : std::uint8_t { awaits_hello, owes_welcome, awaits_initiate, asks, owes_ready, done };

  Step handle_hello(Bytes data) {
    if (data.size() != kHelloData || data[0] != 1 || data[1] != 0) {
      return failed("malformed HELLO command", Breach::malformed_hello);
    }
    const Bytes key = data.subspan(2 + 72, kCurveKeySize);
    const Bytes tail = data.subspan(2 + 72 + kCurveKeySize, kShortTail);
    copy_bytes(peer_session_.data(), key);
    if (!open_box(plain_, data.subspan(2 + 72 + kCurveKeySize + kShortTail), Nonce("CurveZMQHELLO---", tail),
                  peer_session_, secret_)) {
      return failed("HELLO cannot be decrypted: the client has another server key", Breach::cryptographic);
    }
    // RFC 26 lets a server forget the client here and recover it from the cookie. This server remembers the
    // client. For the client a cookie is any 96 bytes, so random ones suffice.
    randombytes_buf(cookie_.data(), cookie_.size());
    Buffer plain;
    append(plain, session_.public_key);
    append(plain, cookie_);
    const auto random = random_tail();
    welcome_.clear();
    append(welcome_, random);
    if (!agree() || !append_box(welcome_, plain, Nonce("WELCOME-", random), peer_session_, secret_)) {
      return failed("the client's key is none", Breach::cryptographic);
    }
    state_ = State::owes_welcome;
    return {};
  }

  Step handle_initiate(Bytes data) {
    if (data.size() < kInitiateDataMin) {
      return failed("malformed INITIATE command", Breach::malformed_initiate);
    }
    if (sodium_memcmp(data.data(), cookie_.data(), kCookie) != 0) {
      return failed("INITIATE has another cookie", Breach::cryptographic);
    }
    if (!open_session_box("CurveZMQINITIATE", data.subspan(kCookie))) {
      return failed("INITIATE cannot be decrypted", Breach::cryptographic);
    }
    const Bytes plain(plain_);
    CurveKey client;
    copy_bytes(client.data(), plain.first(kCurveKeySize));
    const Nonce nonce("VOUCH---", plain.subspan(kCurveKeySize, kLongTail));
    Buffer vouch;
    if (!open_box(vouch, plain.subspan(kCurveKeySize + kLongTail, kVouchBox), nonce, client, session_.secret_key)) {
      return failed("the client's vouch cannot be decrypted", Breach::cryptographic);
    }
    if (sodium_memcmp(vouch.data(), peer_session_.data(), kCurveKeySize) != 0 ||
        sodium_memcmp(vouch.data() + kCurveKeySize, public_.data(), kCurveKeySize) != 0) {
      return failed("the client's vouch is for other keys", Breach::key_exchange);
    }
    question_.credentials = {std::string(as_text(client))};
    state_ = State::asks;
    return {};
  }

  CurveKey secret_;
  CurveKey public_{};
  std::array<std::uint8_t, kCookie> cookie_{};
  Buffer welcome_;
  Question question_;
  State state_ = State::done;
};

}  // namespace

bool curve_available() noexcept { return sodium_ready(); }

Result<CurveKeyPair> make_curve_key_pair() noexcept {
  if (!sodium_ready()) {
    return Error(Errc::not_supported, "libsodium does not start");
  }
  CurveKeyPair pair;
  (void)crypto_box_keypair(pair.public_key.data(), pair.secret_key.data());
  return pair;
}

Result<CurveKey> curve_public_key(const CurveKey& secret_key) noexcept {
  if (!sodium_ready()) {
    return Error(Errc::not_supported, "libsodium does not start");
  }
  CurveKey key;
  (void)crypto_scalarmult_base(key.data(), secret_key.data());
  return key;
}

Result<std::string> curve_proof(const CurveKey& secret_key, std::string_view purpose) {
  if (!sodium_ready()) {
    return Error(Errc::not_supported, "libsodium does not start");
  }
  std::array<std::uint8_t, crypto_generichash_BYTES> hash;
  (void)crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const std::uint8_t*>(purpose.data()),
                           purpose.size(), secret_key.data(), secret_key.size());
  std::array<char, 2 * crypto_generichash_BYTES + 1> text;
  (void)sodium_bin2hex(text.data(), text.size(), hash.data(), hash.size());
  return std::string(text.data());
}

std::unique_ptr<Mechanism> make_curve_client(const CurveKeyPair& ours, const CurveKey& server) {
  return sodium_ready() ? std::make_unique<CurveClient>(ours, server) : nullptr;
}
std::unique_ptr<Mechanism> make_curve_server(const CurveKey& secret_key) {
  return sodium_ready() ? std::make_unique<CurveServer>(secret_key) : nullptr;
}

}  // namespace weft::zmtp

#else

namespace weft::zmtp {

namespace {
constexpr Error kMissing(Errc::not_supported, "this build has no libsodium");
}

bool curve_available() noexcept { return false; }
Result<CurveKeyPair> make_curve_key_pair() noexcept { return kMissing; }
Result<CurveKey> curve_public_key(const CurveKey& /*secret_key*/) noexcept { return kMissing; }
Result<std::string> curve_proof(const CurveKey& /*secret_key*/, std::string_view /*purpose*/) { return kMissing; }
std::unique_ptr<Mechanism> make_curve_client(const CurveKeyPair& /*ours*/, const CurveKey& /*server*/) {
  return nullptr;
}
std::unique_ptr<Mechanism> make_curve_server(const CurveKey& /*secret_key*/) { return nullptr; }

}  // namespace weft::zmtp

#endif
