// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "weft/topic/node/topic_message.h"

namespace weft::topic {

// MessageBlocks: memory for the messages of a queue, which are numbered one after the other. The messages are made and
// destroyed in place, and never move: a deep queue touches each place twice.
// Owner: a queue, which makes and destroys the messages. Affinity: one thread at a time.
// Cost: add() is a pop of a spare block, or an allocation for kMessages messages. Blocks that became free are taken
// again in the reverse order, while they are in the processor's cache.
// Invariants:
//   1. The places are those of the numbers from the oldest block's first one to end().
//   2. There are at most kSparesMax spare blocks.
class MessageBlocks {
 public:
  static constexpr std::size_t kMessages = 16;      // of a block
  static constexpr std::size_t kSparesMax = 63;     // with the last block of an empty queue: 1,024 messages
  static constexpr std::size_t kPointersMax = 256;  // kept by an empty queue

  MessageBlocks() noexcept = default;
  MessageBlocks(const MessageBlocks&) = delete;
  MessageBlocks& operator=(const MessageBlocks&) = delete;
  ~MessageBlocks();

  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  [[nodiscard]] TopicMessage* at(std::uint64_t number) noexcept {
    return blocks_[index_of(number)]->messages + number % kMessages;
  }
  // Adds the places of one block at end(). Returns false if there is no memory.
  [[nodiscard]] bool add() noexcept;
  // Frees the oldest block, that of the number. Its messages are destroyed.
  void free_block(std::uint64_t number) noexcept;
  // No message is left; that of the number was the last one. Returns the number of the next one, which is warm.
  [[nodiscard]] std::uint64_t restart(std::uint64_t number) noexcept;

 private:
  struct Block {
    Block() noexcept {}  // NOLINT(modernize-use-equals-default): the messages are not made
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() {}             // NOLINT(modernize-use-equals-default): nor destroyed
    Block* next = nullptr;  // of the spares
    union {
      TopicMessage messages[kMessages];
    };
  };

  [[nodiscard]] std::size_t index_of(std::uint64_t number) const noexcept {
    return static_cast<std::size_t>(number / kMessages) & (capacity_ - 1);
  }
  [[nodiscard]] bool grow() noexcept;

  std::unique_ptr<Block*[]> blocks_;
  std::size_t capacity_ = 0;  // of blocks_: a power of two
  std::size_t used_ = 0;      // blocks
  std::uint64_t end_ = 0;
  Block* spares_ = nullptr;
  std::size_t spare_count_ = 0;
};

}  // namespace weft::topic
