// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/endian.h"
#include "weft/base/result.h"
#include "weft/mem/pool.h"
#include "weft/serve/client/owned_bytes.h"

namespace weft::serve::rpc {

// Scratch: room for one encoded body. Owner: the encoder's caller. Affinity: one thread.
// Cost: 128 bytes of its own; a larger body has a pooled block.
class Scratch {
 public:
  Scratch() noexcept = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { mem::pool_deallocate(block_); }

  // Returns room for `size` bytes; an earlier room ends. Fails with resource_exhausted if there is no memory.
  [[nodiscard]] Result<MutableBytes> take(std::size_t size) noexcept {
    if (size <= own_.size()) {
      return MutableBytes(own_).first(size);
    }
    mem::pool_deallocate(std::exchange(block_, nullptr));
    block_ = mem::pool_allocate(size);
    if (block_ == nullptr) {
      return Error(Errc::resource_exhausted, "no memory for the body of a call");
    }
    return MutableBytes(static_cast<std::uint8_t*>(block_), size);
  }

 private:
  alignas(std::max_align_t) std::array<std::uint8_t, 128> own_;
  void* block_ = nullptr;
};

// Body: how a T becomes the bytes of a call, and comes back. A program specialises it for its types:
//   template <> struct weft::serve::rpc::Body<Sum> {
//     static Result<Bytes> encode(const Sum& sum, rpc::Scratch& scratch);  // the bytes live as long as both arguments
//     static Result<Sum> decode(Bytes bytes);                              // the bytes are a peer's
//   };
// Both may fail and may throw. An error of decode() at the server is the answer Status::invalid_request, with its text.
template <typename T>
struct Body;

template <typename T>
concept HasBody = requires(const T& value, Scratch& scratch, Bytes bytes) {
  { Body<T>::encode(value, scratch) } -> std::same_as<Result<Bytes>>;
  { Body<T>::decode(bytes) } -> std::same_as<Result<T>>;
};

// Empty: a request or a response without contents.
struct Empty {
  friend bool operator==(const Empty&, const Empty&) = default;
};
template <>
struct Body<Empty> {
  static Result<Bytes> encode(const Empty& /*nothing*/, Scratch& /*scratch*/) noexcept { return Bytes(); }
  static Result<Empty> decode(Bytes bytes) noexcept {
    if (!bytes.empty()) {
      return Error(Errc::protocol_error, "the body is not empty");
    }
    return Empty();
  }
};

// A view. As a handler's request it lives as long as the handler. A response at a client owns its bytes: OwnedBytes.
template <>
struct Body<Bytes> {
  static Result<Bytes> encode(Bytes value, Scratch& /*scratch*/) noexcept { return value; }
  static Result<Bytes> decode(Bytes bytes) noexcept { return bytes; }
};

template <>
struct Body<OwnedBytes> {
  static Result<Bytes> encode(const OwnedBytes& value, Scratch& /*scratch*/) noexcept { return value.bytes(); }
  static Result<OwnedBytes> decode(Bytes bytes) noexcept {
    OwnedBytes copy;
    if (!copy.assign(bytes)) {
      return Error(Errc::resource_exhausted, "no memory for the body of a call");
    }
    return copy;
  }
};

template <>
struct Body<std::string> {
  static Result<Bytes> encode(const std::string& value, Scratch& /*scratch*/) noexcept { return as_bytes(value); }
  static Result<std::string> decode(Bytes bytes) { return std::string(as_text(bytes)); }
};

template <>
struct Body<std::vector<std::uint8_t>> {
  static Result<Bytes> encode(const std::vector<std::uint8_t>& value, Scratch& /*scratch*/) noexcept {
    return Bytes(value);
  }
  static Result<std::vector<std::uint8_t>> decode(Bytes bytes) {
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  }
};

// Integers of 16, 32 and 64 bits, big endian.
template <std::integral T>
  requires(!std::same_as<T, bool> && sizeof(T) > 1)
struct Body<T> {
  static Result<Bytes> encode(T value, Scratch& scratch) noexcept {
    const MutableBytes room = WEFT_TRY(scratch.take(sizeof value));
    store_big_endian(room.data(), value);
    return Bytes(room);
  }
  static Result<T> decode(Bytes bytes) noexcept {
    if (bytes.size() != sizeof(T)) {
      return Error(Errc::protocol_error, "the body is not an integer of this size");
    }
    return load_big_endian<T>(bytes.data());
  }
};

// A message of protobuf, known by its functions: Weft includes no header of protobuf.
template <typename T>
concept IsProtobuf = requires(T& message, const T& constant, std::uint8_t* to, const void* from, int size) {
  { constant.ByteSizeLong() } -> std::convertible_to<std::size_t>;
  { constant.SerializeWithCachedSizesToArray(to) } -> std::convertible_to<std::uint8_t*>;
  { message.ParsePartialFromArray(from, size) } -> std::same_as<bool>;
  { constant.IsInitialized() } -> std::same_as<bool>;
};
template <IsProtobuf T>
struct Body<T> {
  // Errors: invalid_argument (a required field is missing); resource_exhausted.
  static Result<Bytes> encode(const T& message, Scratch& scratch) {
    if (!message.IsInitialized()) {
      return Error(Errc::invalid_argument, "a required field of the message of protobuf is missing");
    }
    const MutableBytes room = WEFT_TRY(scratch.take(message.ByteSizeLong()));
    (void)message.SerializeWithCachedSizesToArray(room.data());
    return Bytes(room);
  }
  // ParsePartialFromArray() logs nothing where a field is missing, so that no peer can write lines into the log.
  static Result<T> decode(Bytes bytes) {
    T message;
    if (bytes.size() > std::size_t{std::numeric_limits<int>::max()} ||
        !message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) || !message.IsInitialized()) {
      return Error(Errc::protocol_error, "the body is not this message of protobuf");
    }
    return message;
  }
};

}  // namespace weft::serve::rpc
