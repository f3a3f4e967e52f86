// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory_resource>
#include <new>

#include "weft/mem/arena.h"
#include "weft/mem/bump.h"
#include "weft/mem/pool.h"
#include "weft/mem/slab.h"

// std::pmr::memory_resource over each allocator, for containers of the standard library. A refusal is std::bad_alloc,
// as that interface requires. Owner: its user; a resource refers to its allocator, which outlives it. Affinity: that of
// the allocator.
namespace weft::mem {

// A request that fits into a block gets a block; a larger or more aligned one goes to `upstream`.
class SlabResource final : public std::pmr::memory_resource {
 public:
  explicit SlabResource(Slab& slab, std::pmr::memory_resource* upstream = std::pmr::null_memory_resource()) noexcept
      : slab_(&slab), upstream_(upstream) {}

 private:
  [[nodiscard]] bool fits(std::size_t size, std::size_t alignment) const noexcept {
    return size <= slab_->block_size() && alignment <= slab_->alignment();
  }
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    if (!fits(size, alignment)) {
      return upstream_->allocate(size, alignment);
    }
    void* const block = slab_->allocate();
    return block != nullptr ? block : throw std::bad_alloc();
  }
  void do_deallocate(void* block, std::size_t size, std::size_t alignment) override {
    if (fits(size, alignment)) {
      slab_->deallocate(block);
    } else {
      upstream_->deallocate(block, size, alignment);
    }
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  Slab* slab_;
  std::pmr::memory_resource* upstream_;
};

// Over a Bump or an Arena: deallocated memory stays allocated until reset().
template <typename Region>
class RegionResource final : public std::pmr::memory_resource {
 public:
  explicit RegionResource(Region& region) noexcept : region_(&region) {}

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    void* const bytes = region_->allocate(size, alignment);
    return bytes != nullptr ? bytes : throw std::bad_alloc();
  }
  void do_deallocate(void* bytes, std::size_t size, std::size_t /*alignment*/) override { poison(bytes, size); }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  Region* region_;
};
using BumpResource = RegionResource<Bump>;
using ArenaResource = RegionResource<Arena>;

// Over the calling thread's pool. Another thread may deallocate. Requests that are more aligned than
// std::max_align_t go to operator new. All PoolResources are equal.
class PoolResource final : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    if (alignment > alignof(std::max_align_t)) {
      return ::operator new(size, std::align_val_t{alignment});
    }
    void* const block = pool_allocate(size);
    return block != nullptr ? block : throw std::bad_alloc();
  }
  void do_deallocate(void* block, std::size_t /*size*/, std::size_t alignment) override {
    if (alignment > alignof(std::max_align_t)) {
      ::operator delete(block, std::align_val_t{alignment});
    } else {
      pool_deallocate(block);
    }
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return dynamic_cast<const PoolResource*>(&other) != nullptr;
  }
};

}  // namespace weft::mem
