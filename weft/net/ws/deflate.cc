// SPDX-License-Identifier: MIT
#include "weft/net/ws/deflate.h"

#include <utility>

#ifdef WEFT_HAVE_ZLIB

#include <algorithm>
#include <cstdlib>

#define ZLIB_CONST  // a stream reads its input only
#include <zlib.h>

namespace weft::net::ws {

namespace {

constexpr std::uint8_t kDeflateTail[] = {0x00, 0x00, 0xFF,
                                         0xFF};  // of each payload, and not sent (RFC 7692 section 7.2.1)
constexpr std::size_t kFlushRoom = 64;           // more than a flush of zlib writes besides the data
constexpr std::size_t kInflatedMin = 4096;

}  // namespace

struct DeflateStream {
  z_stream z{};
  std::size_t allocated = 0;  // bytes that zlib has asked for

  DeflateStream() noexcept {
    z.opaque = this;
    z.zalloc = [](void* opaque, uInt items, uInt size) -> void* {
      static_cast<DeflateStream*>(opaque)->allocated += std::size_t{items} * size;
      return std::calloc(items, size);  // zlib reads bytes of a window that it has not written
    };
    z.zfree = [](void*, void* block) { std::free(block); };
  }
  DeflateStream(const DeflateStream&) = delete;
  DeflateStream& operator=(const DeflateStream&) = delete;
  ~DeflateStream() = default;
};

bool deflate_available() noexcept { return true; }

struct Deflater::ByteStream : DeflateStream {
  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ~ByteStream() { (void)deflateEnd(&z); }
};
struct Inflater::ByteStream : DeflateStream {
  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ~ByteStream() { (void)inflateEnd(&z); }

  bool between_blocks = true;
};

std::unique_ptr<Deflater> Deflater::make(int window_bits, int level, int memory_level) {
  auto stream = std::make_unique<ByteStream>();
  if (deflateInit2(&stream->z, level, Z_DEFLATED, -window_bits, memory_level, Z_DEFAULT_STRATEGY) != Z_OK) {
    return nullptr;
  }
  return std::unique_ptr<Deflater>(new Deflater(std::move(stream)));
}

Bytes Deflater::compress(Bytes message, std::vector<std::uint8_t>& room) {
  z_stream& z = stream_->z;
  const std::size_t bound = deflateBound(&z, static_cast<uLong>(message.size())) + kFlushRoom;
  if (room.size() < bound) {
    room.resize(bound);
  }
  z.next_in = message.data();
  z.avail_in = static_cast<uInt>(message.size());
  std::size_t made = 0;
  do {
    if (room.size() - made < kFlushRoom) {
      room.resize(2 * room.size());
    }
    z.next_out = room.data() + made;
    z.avail_out = static_cast<uInt>(room.size() - made);
    (void)deflate(&z, Z_SYNC_FLUSH);  // it can fail only for lack of room
    made = room.size() - z.avail_out;
  } while (z.avail_out == 0);
  z.next_in = nullptr;
  return Bytes(room).first(made - sizeof kDeflateTail);
}

void Deflater::reset() noexcept { (void)deflateReset(&stream_->z); }

std::unique_ptr<Inflater> Inflater::make(int window_bits) {
  auto stream = std::make_unique<ByteStream>();
  if (inflateInit2(&stream->z, -window_bits) != Z_OK) {
    return nullptr;
  }
  return std::unique_ptr<Inflater>(new Inflater(std::move(stream)));
}

Inflater::Outcome Inflater::take(Bytes payload, std::vector<std::uint8_t>& room) {
  if (payload.empty()) {
    return Outcome::ok;
  }
  payload_ += payload.size();
  z_stream& z = stream_->z;
  z.next_in = payload.data();
  z.avail_in = static_cast<uInt>(payload.size());
  for (;;) {
    std::size_t end = std::min(room.size(), most_ + 1);  // one byte more shows that the message is too large
    if (size_ == end) {
      end = std::min(most_ + 1, std::max(2 * size_, kInflatedMin));
      room.resize(end);
    }
    z.next_out = room.data() + size_;
    z.avail_out = static_cast<uInt>(end - size_);
    const int status = inflate(&z, Z_SYNC_FLUSH);
    size_ = end - z.avail_out;
    if (size_ > most_) {
      return Outcome::too_large;
    }
    // A block may be marked as the last one. Other blocks may follow nevertheless (RFC 7692 section 7.2.3.4): they
    // begin a stream of their own.
    const bool ended = status == Z_STREAM_END;
    if (ended && inflateReset(&z) != Z_OK) {
      return Outcome::malformed;
    }
    if (!ended && status != Z_OK && status != Z_BUF_ERROR) {
      return status == Z_MEM_ERROR ? Outcome::no_memory : Outcome::malformed;
    }
    stream_->between_blocks = ended || (z.data_type & 128) != 0;
    if (z.avail_in == 0 && (ended || z.avail_out != 0)) {
      return Outcome::ok;
    }
  }
}

// A message without a payload is empty: zlib writes nothing if it flushes twice.
Inflater::Outcome Inflater::finish(std::vector<std::uint8_t>& room) {
  if (payload_ == 0) {
    return Outcome::ok;
  }
  const Outcome outcome = take(kDeflateTail, room);
  return outcome == Outcome::ok && !stream_->between_blocks ? Outcome::malformed : outcome;
}

void Inflater::reset() noexcept { (void)inflateReset(&stream_->z); }

#else

namespace weft::net::ws {

bool deflate_available() noexcept { return false; }

struct DeflateStream {
  std::size_t allocated = 0;
};
struct Deflater::ByteStream : DeflateStream {};
struct Inflater::ByteStream : DeflateStream {};

std::unique_ptr<Deflater> Deflater::make(int /*window_bits*/, int /*level*/, int /*memory_level*/) { return nullptr; }
Bytes Deflater::compress(Bytes /*message*/, std::vector<std::uint8_t>& /*room*/) { return {}; }
void Deflater::reset() noexcept {}
std::unique_ptr<Inflater> Inflater::make(int /*window_bits*/) { return nullptr; }
Inflater::Outcome Inflater::take(Bytes /*payload*/, std::vector<std::uint8_t>& /*room*/) { return Outcome::no_memory; }
Inflater::Outcome Inflater::finish(std::vector<std::uint8_t>& /*room*/) { return Outcome::no_memory; }
void Inflater::reset() noexcept {}

#endif

Deflater::Deflater(std::unique_ptr<ByteStream> stream) noexcept : stream_(std::move(stream)) {}
Deflater::~Deflater() = default;
std::size_t Deflater::allocated() const noexcept { return stream_->allocated; }
Inflater::Inflater(std::unique_ptr<ByteStream> stream) noexcept : stream_(std::move(stream)) {}
Inflater::~Inflater() = default;
void Inflater::begin(std::size_t most) noexcept {
  most_ = most;
  size_ = 0;
  payload_ = 0;
}
std::size_t Inflater::allocated() const noexcept { return stream_->allocated; }

}  // namespace weft::net::ws
