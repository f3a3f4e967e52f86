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
#include <type_traits>

#include "weft/base/bytes.h"

namespace weft::msg {

// How many bits are set: a table is quicker than counting without the processor's instruction.
constexpr std::array<std::uint8_t, 128> kBitCounts = [] {
  std::array<std::uint8_t, 128> ones{};
  for (unsigned bits = 0; bits < ones.size(); ++bits) {
    ones[bits] = static_cast<std::uint8_t>(std::popcount(bits));
  }
  return ones;
}();

// PrefixTree: the nodes of a PrefixTable, with values of four or eight bytes: a tree in which each link adds a byte,
// and each node or leaf a path, to the prefix of its parent. PrefixTable is its only user.
// Invariants:
// 1. A node without children has a value.
// 2. A node without a value has two children at least. It may have one, if a path for both would exceed kPathMax, or if
//    there was no memory to join them.
// 3. A node, its children and its path are one block. The children have an eighth to spare at most, the block more only
//    if there was no memory to shrink it.
template <std::size_t kValueSize>
class PrefixTree {
  static_assert(kValueSize == 4 || kValueSize == 8);

 public:
  PrefixTree() noexcept = default;
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

 protected:
  struct Node;

  // Link: nothing, a node, or a leaf, which is a value of four bytes and a path of three at most.
  struct Link {
    static constexpr bool kHoldsLeaf = kValueSize == 4;
    static constexpr std::size_t kPathMax = 3;

    std::uint32_t low;   // half of the node's address; or 1 + 2 * size of the leaf's path, and the path
    std::uint32_t high;  // half of the node's address; or the leaf's value

    [[nodiscard]] bool empty() const noexcept { return (std::uint64_t{high} << 32 | low) == 0; }
    [[nodiscard]] bool is_leaf() const noexcept { return kHoldsLeaf && (low & 1) != 0; }
    [[nodiscard]] std::size_t leaf_size() const noexcept { return low >> 1 & kPathMax; }
    [[nodiscard]] std::uint8_t leaf_byte(std::size_t i) const noexcept {
      return static_cast<std::uint8_t>(std::uint64_t{low} >> (8 + 8 * i));
    }
    [[nodiscard]] Node* node() const noexcept {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): compilers load both halves at once
      return reinterpret_cast<Node*>(static_cast<std::uintptr_t>(std::uint64_t{high} << 32 | low));
    }
  };
  // Children: links by first byte. Behind it stand the links of `span` bytes from low() on; or a link for each byte of
  // `few`; or eight bytes of keys and a link for each; or a bit for each byte, in groups of eight, and a link for each
  // bit.
  struct alignas(8) Children {
    struct Group {
      std::uint8_t present;  // a bit for each of eight bytes
      std::uint8_t before;   // children in the groups before this one
    };
    static constexpr std::size_t kFewMax = 4;
    static constexpr std::size_t kKeysMax = 8;
    static constexpr std::size_t kKeysWords = 1;
    static constexpr std::size_t kGroups = 32;
    static constexpr std::size_t kGroupsWords = kGroups * sizeof(Group) / 8;

    std::uint16_t count;
    std::uint16_t span;  // 0: `few`, keys for more than kFewMax, or groups for more than kKeysMax
    std::uint32_t few;   // the bytes of the first kFewMax children, the first in the lowest eight bits

    [[nodiscard]] std::uint8_t low() const noexcept { return static_cast<std::uint8_t>(few); }  // of the first child
    [[nodiscard]] Link* behind() noexcept { return reinterpret_cast<Link*>(this + 1); }
    [[nodiscard]] std::uint64_t& keys() noexcept { return *reinterpret_cast<std::uint64_t*>(this + 1); }
    [[nodiscard]] Group* groups() noexcept { return reinterpret_cast<Group*>(this + 1); }
    // The first is that of the first child.
    [[nodiscard]] Link* links() noexcept { return behind() + index_words(count, span); }
    [[nodiscard]] std::size_t link_count() const noexcept { return span != 0 ? span : count; }
    // Of keys or groups.
    [[nodiscard]] static std::size_t index_words(std::size_t count, std::size_t span) noexcept {
      return span != 0 || count <= kFewMax ? 0 : count <= kKeysMax ? kKeysWords : kGroupsWords;
    }
    // Returns null if there is none.
    [[nodiscard]] Link* find(std::uint8_t byte) noexcept {
      if (span != 0) {
        const auto place = static_cast<std::uint8_t>(byte - low());
        return place < span && !behind()[place].empty() ? behind() + place : nullptr;
      }
      if (count <= kKeysMax) {
        constexpr std::uint64_t kEach = 0x0101010101010101;
        const bool are_few = count <= kFewMax;
        const std::uint64_t difference = (are_few ? few : keys()) ^ kEach * byte;
        const std::uint64_t zeros = (difference - kEach) & ~difference & kEach << 7;  // the lowest one is right
        const auto place = static_cast<std::size_t>(std::countr_zero(zeros)) / 8;
        return place < count ? behind() + (are_few ? 0 : kKeysWords) + place : nullptr;
      }
      const Group group = groups()[byte / 8];
      const unsigned bit = 1u << (byte % 8);
      const std::size_t place = std::size_t{group.before} + kBitCounts[group.present & (bit - 1)];
      return (group.present & bit) != 0 ? behind() + kGroupsWords + place : nullptr;
    }
    // A child's byte is greater than this one.
    [[nodiscard]] bool has_after(std::uint8_t byte) noexcept {
      if (span != 0) {
        return byte < low() + span - 1;  // the last link is a child's
      }
      if (count <= kKeysMax) {
        const std::uint64_t bytes = count <= kFewMax ? few : keys();
        return byte < (bytes >> (8 * (count - 1)) & 0xff);
      }
      const Group group = groups()[byte / 8];
      return group.before + std::popcount(group.present & ((2u << (byte % 8)) - 1)) < count;
    }
  };
  // Node: its children stand behind it, if there are any, then its path.
  struct Node {
    std::uint8_t size;  // of the path
    bool has_value;
    std::uint16_t path_at;  // words of eight bytes from the node to its path
    alignas(kValueSize) std::byte value[kValueSize];

    [[nodiscard]] bool has_children() const noexcept { return path_at > sizeof(Node) / 8; }
    [[nodiscard]] Children& children() noexcept { return *reinterpret_cast<Children*>(this + 1); }
    [[nodiscard]] std::uint8_t* path() noexcept {
      return reinterpret_cast<std::uint8_t*>(this) + std::size_t{path_at} * 8;
    }
    [[nodiscard]] bool begins(Bytes rest) noexcept {
      return size <= rest.size() && (size == 0 || std::memcmp(path(), rest.data(), size) == 0);
    }
  };

  ~PrefixTree() = default;
  // Calls visit(value) for each value, unless `visit` is null; then the tree is empty.
  void clear(void (*visit)(void* value)) noexcept;
  // Returns null if there is no memory, and nothing changed. The caller constructs the value of a new prefix.
  [[nodiscard]] void* insert(Bytes prefix, bool& is_new) noexcept;
  [[nodiscard]] void* find(Bytes prefix) noexcept;
  void erase(Bytes prefix) noexcept;
  void* first(std::string& prefix);
  void* next(std::string& prefix);

  [[nodiscard]] static bool begins(const Link& link, Bytes rest) noexcept {
    if (!link.is_leaf()) {
      return link.node()->begins(rest);
    }
    bool same = link.leaf_size() <= rest.size();
    for (std::size_t i = 0; same && i < link.leaf_size(); ++i) {
      same = link.leaf_byte(i) == rest[i];
    }
    return same;
  }
  [[nodiscard]] static std::size_t path_size(const Link& link) noexcept {
    return link.is_leaf() ? link.leaf_size() : link.node()->size;
  }
  [[nodiscard]] static bool has_children(const Link& link) noexcept {
    return !link.is_leaf() && link.node()->has_children();
  }
  // Returns null if the prefix that ends here has none.
  [[nodiscard]] static void* value(Link& link) noexcept {
    if (link.is_leaf()) {
      return &link.high;
    }
    return link.node()->has_value ? link.node()->value : nullptr;
  }

  Link root_{};
  std::size_t size_ = 0;

 private:
  struct Entries;
  struct Shape;
  using LeafPath = std::uint8_t[Link::kPathMax];

  [[nodiscard]] static Bytes path(const Link& link, LeafPath& room) noexcept;
  [[nodiscard]] static Link to_node(Node* node) noexcept;
  [[nodiscard]] static Link to_leaf(Bytes path, std::uint32_t value) noexcept;
  [[nodiscard]] static std::size_t bytes(const Node& node) noexcept;
  [[nodiscard]] static Node* make_node(Bytes path, std::size_t path_at) noexcept;
  static void make_from_leaf(Node& node, const Link& leaf) noexcept;
  [[nodiscard]] static bool make_chain(Bytes rest, Link& head) noexcept;
  static void free_chain(Link head) noexcept;
  template <typename Visit>
  static void for_each_child(Node& node, Visit visit);
  static void trim(Link& link) noexcept;
  [[nodiscard]] static bool add_child(Link& link, std::uint8_t byte, Link child) noexcept;
  static void remove_child(Link& link, std::uint8_t byte) noexcept;
  [[nodiscard]] static bool split(Link& link, std::size_t common, Bytes rest) noexcept;
  static void shorten(Link& link, std::size_t count) noexcept;
  static void join(Link& link) noexcept;
  static void* first_from(Link& link, std::string& prefix);
};

extern template class PrefixTree<4>;
extern template class PrefixTree<8>;

template <typename Value>
using PrefixTreeOf = PrefixTree<std::is_integral_v<Value> && sizeof(Value) == 4 ? 4 : 8>;

// PrefixTable<Value>: topic prefixes with a value each, which insert() and erase() may move.
// Owner: a pattern. Affinity: the lock that its owner names.
// Cost: match() reads at most the topic, whatever is in the table, and a node for each branch and each prefix on the
// way. insert(), find() and erase() are O(prefix), and arrange the children of one node, 256 at most, anew. A prefix
// costs 8 to 32 bytes beside its siblings, a block of 8 bytes (16 for values of eight bytes) and those of its own that
// no other prefix has, and a second such block where it branches off. Values of four bytes need no first block for
// three bytes of their own. Nothing is hashed, so a peer that chooses its prefixes can make no look-up slow.
template <typename Value>
class PrefixTable : private PrefixTreeOf<Value> {
  using Tree = PrefixTreeOf<Value>;
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) <= 8 && alignof(Value) <= 8);

 public:
  ~PrefixTable() { Tree::clear(nullptr); }

  // Scope: the topics for which match() visits the same values: those that begin with the first `size` bytes of the
  // topic, or, with `whole`, only the topic of that size.
  struct Scope {
    std::size_t size = 0;
    bool whole = false;
  };

  // The value for `prefix`, which is value-initialized if the prefix is new. Returns null if there is no memory, and
  // nothing changed.
  [[nodiscard]] Value* insert(Bytes prefix, bool& is_new) noexcept {
    void* const place = Tree::insert(prefix, is_new);
    return place != nullptr && is_new ? new (place) Value() : static_cast<Value*>(place);
  }
  [[nodiscard]] Value* find(Bytes prefix) noexcept { return static_cast<Value*>(Tree::find(prefix)); }
  void erase(Bytes prefix) noexcept { Tree::erase(prefix); }
  // Removes every prefix, after kVisit(value).
  template <void (*kVisit)(Value&) noexcept>
  void clear() noexcept {
    Tree::clear([](void* value) { kVisit(*static_cast<Value*>(value)); });
  }

  // Calls visit(value) for every prefix of `topic`, the shortest first; stops when `visit` returns false. The scope
  // counts only if it never does.
  template <typename Visit>
  Scope match(Bytes topic, Visit visit) {
    if (this->root_.empty()) {
      return {};
    }
    typename Tree::Link* link = &this->root_;
    std::size_t at = 0;
    for (;;) {
      const bool begins = Tree::begins(*link, topic.subspan(at));
      at += Tree::path_size(*link);
      if (!begins) {
        return {std::min(at, topic.size()), at > topic.size()};
      }
      if (void* const value = Tree::value(*link);
          value != nullptr && !visit(*std::launder(static_cast<Value*>(value)))) {
        return {at, false};
      }
      if (!Tree::has_children(*link)) {
        return {at, false};
      }
      if (at == topic.size()) {
        return {at, true};
      }
      link = link->node()->children().find(topic[at++]);
      if (link == nullptr) {
        return {at, false};
      }
    }
  }
  [[nodiscard]] bool matches(Bytes topic) {
    bool found = false;
    match(topic, [&](Value&) { return !(found = true); });
    return found;
  }
  // Sets `prefix` to one that begins with no other, and returns its value. Returns null if the table is empty. Throws
  // std::bad_alloc.
  [[nodiscard]] Value* first(std::string& prefix) { return static_cast<Value*>(Tree::first(prefix)); }
  // The same for the next prefix after `prefix`, which need not be in the table, in the order of their bytes.
  [[nodiscard]] Value* next(std::string& prefix) { return static_cast<Value*>(Tree::next(prefix)); }
  [[nodiscard]] std::size_t size() const noexcept { return this->size_; }
};

}  // namespace weft::msg
