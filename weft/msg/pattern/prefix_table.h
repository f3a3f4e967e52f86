// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "weft/base/bytes.h"

namespace weft::msg {

// PrefixTree: the nodes of a PrefixTable, whatever its values: a tree in which each node adds a run of bytes to the
// prefix of its parent. PrefixTable is its only user.
// Invariants:
// 1. The paths of two children of a node begin with different bytes. Only the root's path may be empty.
// 2. A node without a value has children. erase() joins it with an only child whose path has room for both.
// 3. A node has `only` for one child, `links` for more whose first bytes are close together, else `fork`.
class PrefixTree {
 public:
  PrefixTree() noexcept = default;
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

 protected:
  static constexpr std::size_t kValueSize = 16;

  struct Fork;
  struct Node {
    std::uint8_t size = 0;      // of the path
    std::uint8_t capacity = 0;  // bytes for the path, which stand behind the node
    bool has_value = false;
    std::uint8_t low = 0;  // the byte of links[0]
    std::uint16_t children = 0;
    std::uint16_t span = 0;  // of `links`; 0: there are none
    union {
      Node* only = nullptr;
      Node** links;  // by first byte; null: no child
      Fork* fork;
    };
    alignas(8) std::byte value[kValueSize];

    [[nodiscard]] std::uint8_t* path() noexcept { return reinterpret_cast<std::uint8_t*>(this + 1); }
    [[nodiscard]] const std::uint8_t* path() const noexcept { return reinterpret_cast<const std::uint8_t*>(this + 1); }
    [[nodiscard]] bool begins(Bytes rest) const noexcept {
      return size <= rest.size() && (size == 0 || std::memcmp(path(), rest.data(), size) == 0);
    }
    // The same, of a child that was found by the first byte of `rest`.
    [[nodiscard]] bool goes_on(Bytes rest) const noexcept {
      return size <= rest.size() && (size <= 1 || std::memcmp(path() + 1, rest.data() + 1, size - 1u) == 0);
    }
    // The link to the child whose path begins with `byte`; null: there is none.
    [[nodiscard]] Node** child(std::uint8_t byte) noexcept {
      if (children > 1) {
        if (span == 0) {
          return fork->find(byte);
        }
        const auto place = static_cast<std::uint8_t>(byte - low);
        return place < span && links[place] != nullptr ? links + place : nullptr;
      }
      return children == 1 && only->path()[0] == byte ? &only : nullptr;
    }
  };
  // The children of a node, in the order of their first bytes. The links stand behind the fork. Groups of eight bytes,
  // because a table has the ones of eight bits. Counting the ones of 64 bits without the processor's instruction, a
  // match through four forks took half as long again.
  struct Fork {
    struct Group {
      std::uint8_t present = 0;  // a bit for the first byte of each child
      std::uint8_t before = 0;   // children in the groups before this one
    };
    Group groups[32];
    std::uint64_t capacity = 0;

    [[nodiscard]] Node** links() noexcept { return reinterpret_cast<Node**>(this + 1); }
    [[nodiscard]] std::size_t place(std::uint8_t byte) const noexcept {
      const Group group = groups[byte / 8];
      return std::size_t{group.before} + kOnes[group.present & ((1u << (byte % 8)) - 1)];
    }
    [[nodiscard]] Node** find(std::uint8_t byte) noexcept {
      const bool there = (groups[byte / 8].present >> (byte % 8) & 1) != 0;
      return there ? links() + place(byte) : nullptr;
    }
  };
  static constexpr std::array<std::uint8_t, 128> kOnes = [] {
    std::array<std::uint8_t, 128> ones{};
    for (unsigned bits = 0; bits < ones.size(); ++bits) {
      ones[bits] = static_cast<std::uint8_t>(std::popcount(bits));
    }
    return ones;
  }();

  using Destroy = void (*)(void* value) noexcept;

  ~PrefixTree() = default;
  void free_all(Destroy destroy) noexcept;
  // Null: no memory, and nothing changed. The caller constructs the value of a new prefix.
  [[nodiscard]] void* insert(Bytes prefix, bool& is_new) noexcept;
  [[nodiscard]] void* find(Bytes prefix) const noexcept;
  void erase(Bytes prefix, Destroy destroy) noexcept;
  void* first(std::string& prefix) const;

  Node* root_ = nullptr;
  std::size_t size_ = 0;

 private:
  struct Chain {
    Node* head;
    Node* tail;
  };
  [[nodiscard]] static Node* make_node(Bytes path) noexcept;
  [[nodiscard]] static Chain make_chain(Bytes rest) noexcept;
  static void free_chain(Node* head) noexcept;
  template <typename Visit>
  static void for_each_child(Node& node, Visit visit) noexcept;
  static void append(Fork& fork, std::size_t count, Node& child) noexcept;
  [[nodiscard]] static bool reshape(Node& node, Node* added) noexcept;
  [[nodiscard]] static bool add_child(Node& node, Node& child) noexcept;
  static void remove_child(Node& node, std::uint8_t byte) noexcept;
  [[nodiscard]] Node* split(Node*& link, std::size_t common, Bytes rest) noexcept;
  static void join(Node*& link) noexcept;
};

// PrefixTable<Value>: topic prefixes with a value each.
// Owner: a pattern. Affinity: the lock that its owner names.
// Cost: match() reads at most the topic, whatever is in the table, and a node for each branch and each prefix on the
// way. insert(), find() and erase() are O(prefix). A prefix costs about 64 bytes and those of its own that no other
// prefix has. Nothing is hashed, so a peer that chooses
// its prefixes can make no look-up slow.
template <typename Value>
class PrefixTable : private PrefixTree {
  static_assert(sizeof(Value) <= kValueSize && alignof(Value) <= 8);

 public:
  ~PrefixTable() { free_all(&destroy); }

  // Scope: the topics for which match() visits the same values: those that begin with the first `size` bytes of the
  // topic, or, with `whole`, only the topic of that size.
  struct Scope {
    std::size_t size = 0;
    bool whole = false;
  };

  // The value for `prefix`, which is value-initialized if the prefix is new. Null: no memory, and nothing changed.
  [[nodiscard]] Value* insert(Bytes prefix, bool& is_new) noexcept {
    void* const place = PrefixTree::insert(prefix, is_new);
    return place != nullptr && is_new ? new (place) Value() : static_cast<Value*>(place);
  }
  [[nodiscard]] Value* find(Bytes prefix) noexcept { return static_cast<Value*>(PrefixTree::find(prefix)); }
  void erase(Bytes prefix) noexcept { PrefixTree::erase(prefix, &destroy); }

  // Calls visit(value) for every prefix of `topic`, the shortest first; stops when `visit` returns false. The scope
  // counts only if it never does.
  template <typename Visit>
  Scope match(Bytes topic, Visit visit) {
    Node* node = root_;
    if (node == nullptr) {
      return {};
    }
    std::size_t at = 0;
    for (bool begins = node->begins(topic); begins; begins = node->goes_on(topic.subspan(at))) {
      at += node->size;
      if (node->has_value && !visit(*std::launder(reinterpret_cast<Value*>(node->value)))) {
        return {at, false};
      }
      if (node->children == 0) {
        return {at, false};
      }
      if (at == topic.size()) {
        return {at, true};
      }
      Node** const link = node->child(topic[at]);
      if (link == nullptr) {
        return {at + 1, false};
      }
      node = *link;
    }
    return {std::min(at + node->size, topic.size()), at + node->size > topic.size()};
  }
  [[nodiscard]] bool matches(Bytes topic) {
    bool found = false;
    match(topic, [&](Value&) { return !(found = true); });
    return found;
  }
  // Sets `prefix` to one that begins with no other, and returns its value. Null: the table is empty. Throws
  // std::bad_alloc.
  [[nodiscard]] Value* first(std::string& prefix) { return static_cast<Value*>(PrefixTree::first(prefix)); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  static void destroy(void* value) noexcept { static_cast<Value*>(value)->~Value(); }
};

}  // namespace weft::msg
