// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/prefix_table.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace weft::msg {

namespace {
constexpr std::size_t kPathMin = 24;   // bytes: with its path a node of this capacity takes 64 bytes of the heap
constexpr std::size_t kPathMax = 255;  // a longer path is a chain of nodes
constexpr std::size_t kForkMin = 2;
}  // namespace

void PrefixTree::free_all(Destroy destroy) noexcept {
  // The tree may be as deep as a topic is long: the list of the nodes to free goes through their values.
  Node* listed = nullptr;
  const auto list = [&listed, destroy](Node* node) {
    if (node->has_value) {
      destroy(node->value);
    }
    new (node->value) Node*(listed);
    listed = node;
  };
  if (root_ != nullptr) {
    list(root_);
  }
  while (listed != nullptr) {
    Node* const node = listed;
    listed = *std::launder(reinterpret_cast<Node**>(node->value));
    if (node->children == 1) {
      list(node->only);
    } else if (node->children > 1) {
      std::for_each(node->fork->links(), node->fork->links() + node->children, list);
      std::free(node->fork);
    }
    std::free(node);
  }
}

PrefixTree::Node* PrefixTree::make_node(Bytes path) noexcept {
  const std::size_t capacity = std::max(path.size(), kPathMin);
  void* const block = std::malloc(sizeof(Node) + capacity);
  if (block == nullptr) {
    return nullptr;
  }
  Node* const node = new (block) Node;
  node->capacity = static_cast<std::uint8_t>(capacity);
  node->size = static_cast<std::uint8_t>(path.size());
  copy_bytes(node->path(), path);
  return node;
}

// The nodes for `rest`, the last of which will have the value. Null: no memory.
PrefixTree::Chain PrefixTree::make_chain(Bytes rest) noexcept {
  Chain chain{nullptr, nullptr};
  do {
    const std::size_t size = std::min(rest.size(), kPathMax);
    Node* const node = make_node(rest.first(size));
    if (node == nullptr) {
      free_chain(chain.head);
      return {nullptr, nullptr};
    }
    if (chain.head == nullptr) {
      chain.head = node;
    } else {
      chain.tail->only = node;
      chain.tail->children = 1;
    }
    chain.tail = node;
    rest = rest.subspan(size);
  } while (!rest.empty());
  return chain;
}

void PrefixTree::free_chain(Node* head) noexcept {
  while (head != nullptr) {
    Node* const node = head;
    head = node->children == 1 ? node->only : nullptr;
    std::free(node);
  }
}

// A new fork if `fork` is null. Null: no memory, and the old fork stays.
PrefixTree::Fork* PrefixTree::resize(Fork* fork, std::size_t capacity) noexcept {
  void* const block = std::realloc(fork, sizeof(Fork) + capacity * sizeof(Node*));
  if (block == nullptr) {
    return nullptr;
  }
  Fork* const resized = fork == nullptr ? new (block) Fork : static_cast<Fork*>(block);
  resized->capacity = capacity;
  return resized;
}

// The fork has `count` children, and room.
void PrefixTree::put(Fork& fork, std::size_t count, Node& child) noexcept {
  const std::uint8_t byte = child.path()[0];
  Node** const link = fork.links() + fork.place(byte);
  std::copy_backward(link, fork.links() + count, fork.links() + count + 1);
  *link = &child;
  fork.groups[byte / 8].present = static_cast<std::uint8_t>(fork.groups[byte / 8].present | 1u << (byte % 8));
  std::for_each(fork.groups + byte / 8 + 1, std::end(fork.groups), [](Fork::Group& group) { ++group.before; });
}

// False: no memory, and nothing changed.
bool PrefixTree::add_child(Node& node, Node& child) noexcept {
  if (node.children == 0) {
    node.only = &child;
  } else if (node.children == 1) {
    Fork* const fork = resize(nullptr, kForkMin);
    if (fork == nullptr) {
      return false;
    }
    put(*fork, 0, *node.only);
    put(*fork, 1, child);
    node.fork = fork;
  } else {
    if (node.children == node.fork->capacity) {
      Fork* const larger = resize(node.fork, std::size_t{node.children} * 2);
      if (larger == nullptr) {
        return false;
      }
      node.fork = larger;
    }
    put(*node.fork, node.children, child);
  }
  ++node.children;
  return true;
}

void PrefixTree::remove_child(Node& node, std::uint8_t byte) noexcept {
  if (node.children == 1) {
    node.only = nullptr;
    node.children = 0;
    return;
  }
  Fork& fork = *node.fork;
  Node** const link = fork.links() + fork.place(byte);
  std::copy(link + 1, fork.links() + node.children, link);
  fork.groups[byte / 8].present = static_cast<std::uint8_t>(fork.groups[byte / 8].present & ~(1u << (byte % 8)));
  std::for_each(fork.groups + byte / 8 + 1, std::end(fork.groups), [](Fork::Group& group) { --group.before; });
  --node.children;
  if (node.children == 1) {
    Node* const only = fork.links()[0];
    std::free(node.fork);
    node.only = only;
  } else if (std::size_t{node.children} * 4 <= fork.capacity) {
    if (Fork* const smaller = resize(node.fork, fork.capacity / 2); smaller != nullptr) {
      node.fork = smaller;
    }
  }
}

// Puts a node for the first `common` bytes of the path above the node at `link`; `rest` goes on behind them. Returns
// the node of the whole prefix. Null: no memory, and nothing changed.
PrefixTree::Node* PrefixTree::split(Node*& link, std::size_t common, Bytes rest) noexcept {
  Node& lower = *link;
  Node* const upper = make_node(Bytes(lower.path(), common));
  Chain chain{upper, upper};
  Fork* fork = nullptr;
  if (upper != nullptr && !rest.empty()) {
    fork = resize(nullptr, kForkMin);
    chain = fork != nullptr ? make_chain(rest) : Chain{nullptr, nullptr};
  }
  if (chain.tail == nullptr) {
    std::free(fork);
    std::free(upper);
    return nullptr;
  }
  lower.size = static_cast<std::uint8_t>(lower.size - common);
  std::memmove(lower.path(), lower.path() + common, lower.size);
  if (fork != nullptr) {
    put(*fork, 0, lower);
    put(*fork, 1, *chain.head);
    upper->fork = fork;
    upper->children = 2;
  } else {
    upper->only = &lower;
    upper->children = 1;
  }
  link = upper;
  return chain.tail;
}

// The node at `link` has no value and one child: the child takes its place, if it has room for both paths.
void PrefixTree::join(Node*& link) noexcept {
  Node& upper = *link;
  Node& lower = *upper.only;
  if (upper.size + lower.size > lower.capacity) {
    return;
  }
  std::memmove(lower.path() + upper.size, lower.path(), lower.size);
  copy_bytes(lower.path(), Bytes(upper.path(), upper.size));
  lower.size = static_cast<std::uint8_t>(lower.size + upper.size);
  link = &lower;
  std::free(&upper);
}

void* PrefixTree::insert(Bytes prefix, bool& is_new) noexcept {
  Node** link = &root_;
  Node* node = nullptr;
  for (Bytes rest = prefix; node == nullptr;) {
    if (*link == nullptr) {  // the first of all
      const Chain chain = make_chain(rest);
      *link = chain.head;
      node = chain.tail;
      break;
    }
    Node& here = **link;
    const std::size_t most = std::min<std::size_t>(here.size, rest.size());
    const auto common =
        static_cast<std::size_t>(std::mismatch(here.path(), here.path() + most, rest.data()).first - here.path());
    rest = rest.subspan(common);
    if (common < here.size) {
      node = split(*link, common, rest);
      break;
    }
    if (rest.empty()) {
      node = &here;
    } else if (Node** const next = here.child(rest[0]); next != nullptr) {
      link = next;
    } else {
      const Chain chain = make_chain(rest);
      if (chain.head != nullptr && !add_child(here, *chain.head)) {
        free_chain(chain.head);
        return nullptr;
      }
      node = chain.tail;
      break;
    }
  }
  if (node == nullptr) {
    return nullptr;
  }
  is_new = !node->has_value;
  node->has_value = true;
  size_ += is_new ? 1 : 0;
  return node->value;
}

void* PrefixTree::find(Bytes prefix) const noexcept {
  Node* node = root_;
  for (Bytes rest = prefix; node != nullptr;) {
    if (!node->begins(rest)) {
      return nullptr;
    }
    rest = rest.subspan(node->size);
    if (rest.empty()) {
      return node->has_value ? node->value : nullptr;
    }
    Node** const link = node->child(rest[0]);
    node = link != nullptr ? *link : nullptr;
  }
  return nullptr;
}

void PrefixTree::erase(Bytes prefix, Destroy destroy) noexcept {
  Node** link = &root_;
  Node** keeper = nullptr;  // the link to the last node above that stays whatever goes below it
  Node** goes = &root_;     // from here on nothing stays if the node of `prefix` has no child
  for (Bytes rest = prefix;;) {
    Node* const node = *link;
    if (node == nullptr || !node->begins(rest)) {
      return;
    }
    rest = rest.subspan(node->size);
    if (rest.empty()) {
      break;
    }
    Node** const next = node->child(rest[0]);
    if (next == nullptr) {
      return;
    }
    if (node->has_value || node->children > 1) {
      keeper = link;
      goes = next;
    }
    link = next;
  }
  Node& node = **link;
  if (!node.has_value) {
    return;
  }
  destroy(node.value);
  node.has_value = false;
  --size_;
  if (node.children == 1) {
    join(*link);
  } else if (node.children == 0) {
    Node* const head = *goes;
    if (keeper == nullptr) {
      root_ = nullptr;
    } else {
      remove_child(**keeper, head->path()[0]);
      if (!(*keeper)->has_value && (*keeper)->children == 1) {
        join(*keeper);
      }
    }
    free_chain(head);
  }
}

void* PrefixTree::first(std::string& prefix) const {
  prefix.clear();
  for (Node* node = root_; node != nullptr;) {
    prefix.append(as_text(Bytes(node->path(), node->size)));
    if (node->has_value) {
      return node->value;
    }
    node = node->children == 1 ? node->only : node->fork->links()[0];
  }
  return nullptr;
}

}  // namespace weft::msg
