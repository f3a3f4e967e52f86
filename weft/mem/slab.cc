// SPDX-License-Identifier: MIT
#include "weft/mem/slab.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

namespace weft::mem {

namespace {

// The inverse of an odd number modulo 2^64. Each round doubles the number of correct bits.
std::uint64_t inverse_of(std::uint64_t odd) noexcept {
  std::uint64_t inverse = odd;  // correct in 3 bits
  for (int round = 0; round < 5; ++round) {
    inverse *= 2 - odd * inverse;
  }
  return inverse;
}

}  // namespace

Misuse misuse_of_this_build() noexcept {
#ifdef NDEBUG
  return Misuse::refuse;
#else
  return Misuse::name_it;
#endif
}

Result<Slab> Slab::make(const SlabOptions& options) noexcept {
  if (options.block_size == 0 || options.block_size > kBlockSizeMax) {
    return Error(Errc::invalid_argument, "a block has at least one byte and at most 4 GB");
  }
  if (!std::has_single_bit(options.alignment) || options.alignment > kAlignmentMax) {
    return Error(Errc::invalid_argument, "an alignment is a power of two, at most 64 KB");
  }
  if (options.blocks_max == 0 || options.blocks_max > kBlocksMax) {
    return Error(Errc::invalid_argument, "a slab has at least one block and at most 2^31");
  }
  Slab slab;
  slab.block_size_ = options.block_size;
  slab.alignment_ = options.alignment;
  slab.stride_ = (options.block_size + options.alignment - 1) & ~(options.alignment - 1);
  slab.stride_shift_ = std::countr_zero(slab.stride_);
  slab.stride_inverse_ = inverse_of(slab.stride_ >> slab.stride_shift_);
  slab.blocks_max_ = static_cast<std::uint32_t>(options.blocks_max);
  slab.first_blocks_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(options.first_blocks, 1, options.blocks_max));
  slab.misuse_ = options.misuse;
  return slab;
}

Slab::~Slab() {
  for (std::uint32_t index = 0; index < chunk_count_; ++index) {
    const Chunk& chunk = chunks_[index];
    const std::uint32_t end = index + 1 < chunk_count_ ? chunks_[index + 1].begin : capacity_;
    unpoison(chunk.blocks, (end - chunk.begin) * stride_);
    ::operator delete(chunk.blocks, std::align_val_t{alignment_});
  }
  std::free(free_);
  std::free(place_);
}

void Slab::swap(Slab& other) noexcept {
  std::swap(free_, other.free_);
  std::swap(place_, other.place_);
  std::swap(free_count_, other.free_count_);
  std::swap(fresh_, other.fresh_);
  std::swap(newest_begin_, other.newest_begin_);
  std::swap(stride_shift_, other.stride_shift_);
  std::swap(newest_, other.newest_);
  std::swap(stride_, other.stride_);
  std::swap(stride_inverse_, other.stride_inverse_);
  std::swap(block_size_, other.block_size_);
  std::swap(alignment_, other.alignment_);
  std::swap(capacity_, other.capacity_);
  std::swap(blocks_max_, other.blocks_max_);
  std::swap(first_blocks_, other.first_blocks_);
  std::swap(chunk_count_, other.chunk_count_);
  std::swap(retired_, other.retired_);
  std::swap(misuse_, other.misuse_);
  std::swap(chunks_, other.chunks_);
}

bool Slab::grow() noexcept {
  if (capacity_ >= blocks_max_) {
    return false;
  }
  const auto more = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(capacity_ == 0 ? first_blocks_ : std::uint64_t{3} * capacity_, blocks_max_ - capacity_));
  const std::uint32_t after = capacity_ + more;
  if (more > PTRDIFF_MAX / stride_) {
    return false;
  }
  auto* const blocks =
      static_cast<std::byte*>(::operator new(more * stride_, std::align_val_t{alignment_}, std::nothrow));
  // No block is free now, so both arrays start empty, but for the marks of blocks that are retired. They are zeroed
  // because is_free() also reads the places of blocks that were never given back.
  auto* const stack = static_cast<std::byte**>(std::calloc(after + std::size_t{1}, sizeof(std::byte*)));
  auto* const places = static_cast<std::uint32_t*>(std::calloc(after, sizeof(std::uint32_t)));
  if (blocks == nullptr || stack == nullptr || places == nullptr) {
    ::operator delete(blocks, std::align_val_t{alignment_});
    std::free(stack);
    std::free(places);
    return false;
  }
  if (retired_ != 0) {
    std::transform(place_, place_ + fresh_, places,
                   [this, after](std::uint32_t place) { return place == capacity_ ? after : place; });
  }
  std::free(free_);
  std::free(place_);
  free_ = stack;
  place_ = places;
  newest_ = blocks;
  newest_begin_ = capacity_;
  chunks_[chunk_count_++] = {blocks, capacity_};
  capacity_ = after;
  poison(blocks, more * stride_);
  return true;
}

std::uint32_t Slab::number_of_older(const void* block) const noexcept {
  for (std::uint32_t later = chunk_count_; later > 1; --later) {
    const Chunk& chunk = chunks_[later - 2];
    const std::uint64_t index = index_in(chunk.blocks, block);
    if (index < chunks_[later - 1].begin - chunk.begin) {
      return chunk.begin + static_cast<std::uint32_t>(index);
    }
  }
  return kNone;
}

bool Slab::misused(const char* what, const void* block) const noexcept {
  if (misuse_ == Misuse::name_it) {
    std::fprintf(stderr, "weft: a bug of the program: %s (%p, blocks of %zu bytes)\n", what, block, block_size_);
    std::abort();
  }
  return false;
}

}  // namespace weft::mem
