// SPDX-License-Identifier: MIT
#include "weft/msg/interest/prefix_table.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>

namespace weft::msg {

namespace {
constexpr std::size_t kPathMax = 255;  // a longer path is a chain of nodes
constexpr std::size_t kWord = 8;

// Many children have some room to spare: most children that come or go leave the block where it is.
constexpr std::size_t with_spare(std::size_t words) noexcept {
  const std::size_t step = std::max<std::size_t>(std::bit_floor(words) / 8, 1);
  return (words + step - 1) / step * step;
}
}  // namespace

// Entries: children of a node, in the order of their bytes, while their shape changes.
template <std::size_t kValueSize>
struct PrefixTree<kValueSize>::Entries {
  struct Entry {
    std::uint8_t byte;
    Link link;
  };

  void append(std::uint8_t byte, Link link) noexcept { all[count++] = {byte, link}; }
  void insert(std::uint8_t byte, Link link) noexcept {
    std::size_t place = count++;
    for (; place > 0 && all[place - 1].byte > byte; --place) {
      all[place] = all[place - 1];
    }
    all[place] = {byte, link};
  }

  std::size_t count = 0;
  Entry all[256];
};

// Shape: how the entries are arranged as the children of a node.
template <std::size_t kValueSize>
struct PrefixTree<kValueSize>::Shape {
  std::size_t span;
  std::size_t words;  // of the children

  // With one child less, keys or groups always have room in the words that the children had.
  explicit Shape(const Entries& entries, std::size_t words_max = SIZE_MAX) noexcept
      : span(entries.all[entries.count - 1].byte - entries.all[0].byte + std::size_t{1}) {
    // Links by byte are quicker. They never take more memory than keys or groups.
    if (span > entries.count + Children::index_words(entries.count, 0) || 1 + span > words_max) {
      span = 0;
    }
    const std::size_t links = span != 0 ? span : entries.count;
    words = std::min(with_spare(1 + Children::index_words(entries.count, span) + links), words_max);
  }

  [[nodiscard]] std::size_t path_at() const noexcept { return sizeof(Node) / kWord + words; }

  // The node's block has room for its path and the children.
  void arrange(Node& node, const Entries& entries) const noexcept {
    std::uint8_t path[kPathMax];
    copy_bytes(path, Bytes(node.path(), node.size));
    node.path_at = static_cast<std::uint16_t>(path_at());
    copy_bytes(node.path(), Bytes(path, node.size));
    Children& children = node.children();
    children.count = static_cast<std::uint16_t>(entries.count);
    children.span = static_cast<std::uint16_t>(span);
    children.few = 0;
    for (std::size_t i = 0; i < std::min(entries.count, Children::kFewMax); ++i) {
      children.few |= std::uint32_t{entries.all[i].byte} << (8 * i);
    }
    Link* const links = children.links();
    if (span != 0) {
      std::fill_n(links, span, Link{});
      for (std::size_t i = 0; i < entries.count; ++i) {
        links[entries.all[i].byte - children.low()] = entries.all[i].link;
      }
      return;
    }
    for (std::size_t i = 0; i < entries.count; ++i) {
      links[i] = entries.all[i].link;
    }
    if (entries.count <= Children::kFewMax) {
      return;
    }
    if (entries.count <= Children::kKeysMax) {
      std::uint64_t keys = 0;
      for (std::size_t i = 0; i < entries.count; ++i) {
        keys |= std::uint64_t{entries.all[i].byte} << (8 * i);
      }
      children.keys() = keys;
      return;
    }
    typename Children::Group* const groups = children.groups();
    for (std::size_t group = 0, i = 0; group < Children::kGroups; ++group) {
      groups[group] = {0, static_cast<std::uint8_t>(i)};
      for (; i < entries.count && entries.all[i].byte / 8u == group; ++i) {
        groups[group].present = static_cast<std::uint8_t>(groups[group].present | 1u << (entries.all[i].byte % 8));
      }
    }
  }
};

template <std::size_t kValueSize>
Bytes PrefixTree<kValueSize>::path(const Link& link, LeafPath& room) noexcept {
  if (!link.is_leaf()) {
    return {link.node()->path(), link.node()->size};
  }
  for (std::size_t i = 0; i < link.leaf_size(); ++i) {
    room[i] = link.leaf_byte(i);
  }
  return {room, link.leaf_size()};
}

template <std::size_t kValueSize>
typename PrefixTree<kValueSize>::Link PrefixTree<kValueSize>::to_node(Node* node) noexcept {
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(node);
  return {static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(address >> 32)};
}

template <std::size_t kValueSize>
typename PrefixTree<kValueSize>::Link PrefixTree<kValueSize>::to_leaf(Bytes path, std::uint32_t value) noexcept {
  std::uint64_t low = 1 + 2 * path.size();
  for (std::size_t i = 0; i < path.size(); ++i) {
    low |= std::uint64_t{path[i]} << (8 + 8 * i);
  }
  return {static_cast<std::uint32_t>(low), value};
}

template <std::size_t kValueSize>
std::size_t PrefixTree<kValueSize>::bytes(const Node& node) noexcept {
  return node.path_at * kWord + node.size;
}

// A node without a value, with its path so many words after it. Returns null if there is no memory.
template <std::size_t kValueSize>
typename PrefixTree<kValueSize>::Node* PrefixTree<kValueSize>::make_node(Bytes path, std::size_t path_at) noexcept {
  void* const block = std::malloc(path_at * kWord + path.size());
  if (block == nullptr) {
    return nullptr;
  }
  Node* const node = new (block) Node;
  node->size = static_cast<std::uint8_t>(path.size());
  node->has_value = false;
  node->path_at = static_cast<std::uint16_t>(path_at);
  copy_bytes(node->path(), path);
  return node;
}

// Sets `head` to the nodes for `rest`, the last of which is to have the value. Returns false if there is no memory.
template <std::size_t kValueSize>
bool PrefixTree<kValueSize>::make_chain(Bytes rest, Link& head) noexcept {
  head = {};
  Link* link = &head;
  for (; rest.size() > kPathMax; rest = rest.subspan(kPathMax + 1)) {
    Entries one;
    one.append(rest[kPathMax], Link{});
    const Shape shape(one);
    Node* const node = make_node(rest.first(kPathMax), shape.path_at());
    if (node == nullptr) {
      free_chain(head);
      return false;
    }
    shape.arrange(*node, one);
    *link = to_node(node);
    link = node->children().links();
  }
  if (Link::kHoldsLeaf && rest.size() <= Link::kPathMax) {
    *link = to_leaf(rest, 0);
    return true;
  }
  Node* const node = make_node(rest, sizeof(Node) / kWord);
  if (node == nullptr) {
    free_chain(head);
    return false;
  }
  *link = to_node(node);
  return true;
}

template <std::size_t kValueSize>
void PrefixTree<kValueSize>::free_chain(Link head) noexcept {
  while (!head.empty() && !head.is_leaf()) {
    Node* const node = head.node();
    head = has_children(head) ? *node->children().links() : Link{};
    std::free(node);
  }
}

// Calls visit(byte, link), in the order of the bytes.
template <std::size_t kValueSize>
template <typename Visit>
void PrefixTree<kValueSize>::for_each_child(Node& node, Visit visit) {
  if (!node.has_children()) {
    return;
  }
  Children& children = node.children();
  Link* link = children.links();
  if (children.span != 0) {
    for (std::size_t i = 0; i < children.span; ++i, ++link) {
      if (!link->empty()) {
        visit(static_cast<std::uint8_t>(children.low() + i), *link);
      }
    }
  } else if (children.count <= Children::kKeysMax) {
    const std::uint64_t keys = children.count <= Children::kFewMax ? children.few : children.keys();
    for (std::size_t i = 0; i < children.count; ++i) {
      visit(static_cast<std::uint8_t>(keys >> (8 * i)), *link++);
    }
  } else {
    for (std::size_t group = 0; group < Children::kGroups; ++group) {
      for (unsigned present = children.groups()[group].present; present != 0; present &= present - 1) {
        visit(static_cast<std::uint8_t>(group * 8 + static_cast<unsigned>(std::countr_zero(present))), *link++);
      }
    }
  }
}

// Gives back the memory that the node at `link` no longer needs.
template <std::size_t kValueSize>
void PrefixTree<kValueSize>::trim(Link& link) noexcept {
  Node* const node = link.node();
  if (Link::kHoldsLeaf && !node->has_children() && node->size <= Link::kPathMax) {
    std::uint32_t value = 0;
    std::memcpy(&value, node->value, sizeof value);
    link = to_leaf(Bytes(node->path(), node->size), value);
    std::free(node);
  } else if (void* const block = std::realloc(node, bytes(*node)); block != nullptr) {
    link = to_node(static_cast<Node*>(block));
  }
}

// The path may be changed afterwards.
template <std::size_t kValueSize>
void PrefixTree<kValueSize>::make_from_leaf(Node& node, const Link& leaf) noexcept {
  LeafPath room;
  const Bytes its = path(leaf, room);
  node.size = static_cast<std::uint8_t>(its.size());
  node.has_value = true;
  node.path_at = sizeof(Node) / kWord;
  std::memcpy(node.value, &leaf.high, sizeof leaf.high);
  copy_bytes(node.path(), its);
}

// Returns false if there is no memory, and nothing changed.
template <std::size_t kValueSize>
bool PrefixTree<kValueSize>::add_child(Link& link, std::uint8_t byte, Link child) noexcept {
  Entries entries;
  Node* const old = link.is_leaf() ? nullptr : link.node();
  if (old != nullptr) {
    for_each_child(*old, [&](std::uint8_t there, const Link& its) { entries.append(there, its); });
  }
  entries.insert(byte, child);
  const Shape shape(entries);
  const std::size_t before = old != nullptr ? bytes(*old) : 0;
  const std::size_t after = shape.path_at() * kWord + path_size(link);
  void* const block = std::realloc(old, std::max(before, after));
  if (block == nullptr) {
    return false;
  }
  Node* const node = static_cast<Node*>(block);
  if (old == nullptr) {
    make_from_leaf(*node, link);
  }
  shape.arrange(*node, entries);
  link = to_node(node);
  if (after < before) {
    trim(link);
  }
  return true;
}

// The node at `link` has a value or another child.
template <std::size_t kValueSize>
void PrefixTree<kValueSize>::remove_child(Link& link, std::uint8_t byte) noexcept {
  Node& node = *link.node();
  Entries entries;
  for_each_child(node, [&](std::uint8_t there, const Link& its) {
    if (there != byte) {
      entries.append(there, its);
    }
  });
  if (entries.count == 0) {
    const Bytes old(node.path(), node.size);
    node.path_at = sizeof(Node) / kWord;
    std::memmove(node.path(), old.data(), old.size());
  } else {
    Shape(entries, node.path_at - sizeof(Node) / kWord).arrange(node, entries);
    if (entries.count == 1 && !node.has_value) {
      join(link);
      return;
    }
  }
  trim(link);
}

// The path of `link` ends after `common` bytes, where `rest` continues beside the former rest of the path. Returns
// false if there is no memory, and nothing changed.
template <std::size_t kValueSize>
bool PrefixTree<kValueSize>::split(Link& link, std::size_t common, Bytes rest) noexcept {
  LeafPath room;
  const Bytes whole = path(link, room);
  const std::uint8_t byte = whole[common];
  Entries entries;
  entries.append(byte, link);
  Link chain{};
  if (!rest.empty()) {
    if (!make_chain(rest.subspan(1), chain)) {
      return false;
    }
    entries.insert(rest[0], chain);
  }
  const Shape shape(entries);
  Node* const upper = make_node(whole.first(common), shape.path_at());
  if (upper == nullptr) {
    free_chain(chain);
    return false;
  }
  shape.arrange(*upper, entries);
  shorten(*upper->children().find(byte), common + 1);
  link = to_node(upper);
  return true;
}

// Removes the first bytes of the path.
template <std::size_t kValueSize>
void PrefixTree<kValueSize>::shorten(Link& link, std::size_t count) noexcept {
  if (link.is_leaf()) {
    LeafPath room;
    link = to_leaf(path(link, room).subspan(count), link.high);
    return;
  }
  Node& node = *link.node();
  node.size = static_cast<std::uint8_t>(node.size - count);
  std::memmove(node.path(), node.path() + count, node.size);
  trim(link);
}

// The node at `link` has no value and one child. The two become one, if a path has room for both and there is memory.
template <std::size_t kValueSize>
void PrefixTree<kValueSize>::join(Link& link) noexcept {
  Node* const upper = link.node();
  const Link lower = *upper->children().links();
  LeafPath room;
  const Bytes rest = path(lower, room);
  const std::size_t before = upper->size + std::size_t{1};
  const std::size_t size = before + rest.size();
  if (size > kPathMax) {
    trim(link);
    return;
  }
  std::uint8_t whole[kPathMax];
  copy_bytes(whole, Bytes(upper->path(), upper->size));
  whole[upper->size] = upper->children().low();
  copy_bytes(whole + before, rest);
  Node* node = upper;  // has room for a leaf of three bytes, instead of its child
  if (lower.is_leaf()) {
    make_from_leaf(*node, lower);
  } else {
    node = static_cast<Node*>(std::realloc(lower.node(), bytes(*lower.node()) + before));
    if (node == nullptr) {
      trim(link);
      return;
    }
    std::free(upper);
  }
  node->size = static_cast<std::uint8_t>(size);
  copy_bytes(node->path(), Bytes(whole, size));
  link = to_node(node);
  trim(link);
}

template <std::size_t kValueSize>
void* PrefixTree<kValueSize>::insert(Bytes prefix, bool& is_new) noexcept {
  bool added = root_.empty();
  if (added && !make_chain(prefix, root_)) {
    return nullptr;
  }
  Link* link = &root_;
  for (Bytes rest = prefix;;) {
    LeafPath room;
    const Bytes here = path(*link, room);
    const auto common = static_cast<std::size_t>(
        std::mismatch(here.begin(), here.end(), rest.begin(), rest.end()).first - here.begin());
    rest = rest.subspan(common);
    if (common < here.size()) {
      if (!split(*link, common, rest)) {
        return nullptr;
      }
      added = true;
    }
    if (rest.empty()) {
      break;
    }
    Link* next = has_children(*link) ? link->node()->children().find(rest[0]) : nullptr;
    if (next == nullptr) {
      Link chain;
      if (!make_chain(rest.subspan(1), chain)) {
        return nullptr;
      }
      if (!add_child(*link, rest[0], chain)) {
        free_chain(chain);
        return nullptr;
      }
      added = true;
      next = link->node()->children().find(rest[0]);
    }
    link = next;
    rest = rest.subspan(1);
  }
  is_new = added || value(*link) == nullptr;
  size_ += is_new ? 1 : 0;
  if (link->is_leaf()) {
    return &link->high;
  }
  link->node()->has_value = true;
  return link->node()->value;
}

template <std::size_t kValueSize>
void* PrefixTree<kValueSize>::find(Bytes prefix) noexcept {
  Link* link = root_.empty() ? nullptr : &root_;
  for (Bytes rest = prefix; link != nullptr && begins(*link, rest); rest = rest.subspan(1)) {
    rest = rest.subspan(path_size(*link));
    if (rest.empty()) {
      return value(*link);
    }
    link = has_children(*link) ? link->node()->children().find(rest[0]) : nullptr;
  }
  return nullptr;
}

template <std::size_t kValueSize>
void PrefixTree<kValueSize>::erase(Bytes prefix) noexcept {
  Link* link = &root_;
  Link* keeper = nullptr;  // the link to the last node above that stays whatever goes below it
  Link* goes = &root_;     // its link: from here on nothing stays if the prefix is the only one after it
  std::uint8_t byte = 0;   // the byte of `goes`
  if (link->empty()) {
    return;
  }
  for (Bytes rest = prefix;; rest = rest.subspan(1)) {
    if (!begins(*link, rest)) {
      return;
    }
    rest = rest.subspan(path_size(*link));
    if (rest.empty()) {
      break;
    }
    Link* const next = has_children(*link) ? link->node()->children().find(rest[0]) : nullptr;
    if (next == nullptr) {
      return;
    }
    if (link->node()->has_value || link->node()->children().count > 1) {
      keeper = link;
      goes = next;
      byte = rest[0];
    }
    link = next;
  }
  if (value(*link) == nullptr) {
    return;
  }
  --size_;
  if (has_children(*link)) {
    link->node()->has_value = false;
    if (link->node()->children().count == 1) {
      join(*link);
    }
    return;
  }
  const Link head = *goes;
  if (keeper == nullptr) {
    root_ = {};
  } else {
    remove_child(*keeper, byte);
  }
  free_chain(head);
}

template <std::size_t kValueSize>
void* PrefixTree<kValueSize>::first(std::string& prefix) {
  prefix.clear();
  return root_.empty() ? nullptr : first_from(root_, prefix);
}

// The first prefix at `link` or below it; `prefix` has the bytes above.
template <std::size_t kValueSize>
void* PrefixTree<kValueSize>::first_from(Link& from, std::string& prefix) {
  for (Link* link = &from;;) {
    LeafPath room;
    prefix.append(as_text(path(*link, room)));
    if (void* const found = value(*link); found != nullptr) {
      return found;
    }
    prefix.push_back(static_cast<char>(link->node()->children().low()));
    link = link->node()->children().links();
  }
}

template <std::size_t kValueSize>
void* PrefixTree<kValueSize>::next(std::string& prefix) {
  Link* after = nullptr;  // the first link whose prefixes come after `prefix`
  Node* fork = nullptr;   // the deepest node above with a child that comes after `prefix`
  std::size_t above = 0;  // bytes of `prefix` that stand above `after`, or above the children of `fork`
  Link* link = root_.empty() ? nullptr : &root_;
  for (std::size_t at = 0; link != nullptr; ++at) {
    LeafPath room;
    const Bytes here = path(*link, room);
    const Bytes rest = as_bytes(prefix).subspan(at);
    const auto common = static_cast<std::size_t>(
        std::mismatch(here.begin(), here.end(), rest.begin(), rest.end()).first - here.begin());
    if (common < here.size()) {
      if (common == rest.size() || here[common] > rest[common]) {
        after = link;
        above = at;
      }
      break;
    }
    at += here.size();
    if (!has_children(*link)) {
      break;
    }
    Node& node = *link->node();
    const bool ends = at == prefix.size();
    if (ends || node.children().has_after(as_bytes(prefix)[at])) {
      fork = &node;
      above = at;
    }
    link = ends ? nullptr : node.children().find(as_bytes(prefix)[at]);
  }
  if (after == nullptr && fork == nullptr) {
    return nullptr;
  }
  const int byte = above < prefix.size() ? as_bytes(prefix)[above] : -1;
  prefix.resize(above);
  if (after == nullptr) {
    for_each_child(*fork, [&](std::uint8_t there, Link& child) {
      if (after == nullptr && there > byte) {
        prefix.push_back(static_cast<char>(there));
        after = &child;
      }
    });
  }
  return first_from(*after, prefix);
}

template <std::size_t kValueSize>
void PrefixTree<kValueSize>::clear(void (*visit)(void* value)) noexcept {
  // The tree may be as deep as a topic is long. The way back up goes through the links: while the children of a node
  // are visited, the last of its links that is left leads to its parent.
  const auto enter = [visit](Link& link) -> Node* {  // null: the link has no children
    if (void* const held = link.empty() ? nullptr : value(link); held != nullptr && visit != nullptr) {
      visit(held);
    }
    if (link.empty() || link.is_leaf()) {
      return nullptr;
    }
    Node* const node = link.node();
    if (!node->has_children()) {
      std::free(node);
      return nullptr;
    }
    Children& children = node->children();
    const std::size_t count = children.link_count();
    std::memmove(static_cast<void*>(children.behind()), children.links(), count * sizeof(Link));
    children.span = static_cast<std::uint16_t>(count);
    return node;
  };
  Node* node = enter(root_);
  for (Node* above = nullptr; node != nullptr;) {
    Children& children = node->children();
    if (children.span == 0) {
      std::free(node);
      node = above;
      if (node != nullptr) {
        above = node->children().behind()[--node->children().span].node();
      }
      continue;
    }
    Link& last = children.behind()[children.span - 1u];
    if (Node* const child = enter(last); child != nullptr) {
      last = to_node(above);
      above = node;
      node = child;
    } else {
      --children.span;
    }
  }
  root_ = {};
  size_ = 0;
}

template class PrefixTree<4>;
template class PrefixTree<8>;

}  // namespace weft::msg
