// SPDX-License-Identifier: MIT
#include "bench/server/rpc/rpc_wire.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace bench {
namespace {

// The header of a call, big endian: version u8, type u8, flags u8, name size u8, status u16, state size u16, id u64,
// time u64 in us, number u32, body size u32.
constexpr std::size_t kHead = 32;
constexpr std::uint8_t kRpcVersion = 4;
constexpr std::uint8_t kRequest = 1;
constexpr std::uint8_t kAnswer = 2;
constexpr std::uint64_t kTimeUs = 10'000'000;

class RpcWire final : public WebWire {
 public:
  explicit RpcWire(std::uint32_t size) : request_(kHead + size) {
    std::mt19937_64 random(size);
    std::generate(request_.begin() + kHead, request_.end(), [&] { return static_cast<std::uint8_t>(random()); });
    filling_ = hash_of(Bytes(request_).subspan(kHead + kBodyMin));
    request_[0] = answer_[0] = kRpcVersion;
    request_[1] = kRequest;
    answer_[1] = kAnswer;
    store_big(request_.data() + 16, kTimeUs);
    store_big(request_.data() + 24, kEcho);
    store_big(request_.data() + 28, size);
    store_big(answer_ + 28, size);
  }

  [[nodiscard]] std::string_view greeting() const override { return {}; }
  [[nodiscard]] Answer take_greeting(Bytes) const override { return {0, false, "a greeting"}; }
  [[nodiscard]] Bytes farewell() const override { return {}; }
  [[nodiscard]] Bytes answer_to_farewell() const override { return {}; }
  [[nodiscard]] std::size_t request_size() const override { return request_.size(); }

  void encode(std::uint64_t tag, std::uint8_t* to) const override {
    const std::uint64_t checksum = checksum_of(tag, filling_);
    std::memcpy(to, request_.data(), request_.size());
    store_big(to + 8, id_of(tag));
    std::memcpy(to + kHead, &tag, sizeof tag);
    std::memcpy(to + kHead + 8, &checksum, sizeof checksum);
  }

  [[nodiscard]] Answer take(Bytes bytes, std::uint64_t tag, std::size_t&) const override {
    if (bytes.size() < kHead) {
      return {};
    }
    std::uint8_t expected[kHead];
    std::memcpy(expected, answer_, kHead);
    store_big(expected + 8, id_of(tag));
    if (std::memcmp(bytes.data(), expected, kHead) != 0) {
      return {0, false, "an answer has a wrong header"};
    }
    if (bytes.size() < request_.size()) {
      return {};
    }
    const Bytes body = bytes.subspan(kHead, request_.size() - kHead);
    return {request_.size(), true,
            !intact(body)         ? "an answer is damaged"
            : tag_of(body) != tag ? "an answer was lost or overtaken, or came twice"
                                  : nullptr};
  }

 private:
  static std::uint64_t id_of(std::uint64_t tag) { return tag + 1; }  // an id is not 0

  std::vector<std::uint8_t> request_;
  std::uint8_t answer_[kHead]{};  // how each answer begins, without its id
  std::uint64_t filling_ = 0;
};

}  // namespace

std::unique_ptr<const WebWire> make_rpc_wire(std::uint32_t size) { return std::make_unique<RpcWire>(size); }

}  // namespace bench
