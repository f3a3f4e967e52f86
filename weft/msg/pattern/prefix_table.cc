// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/prefix_table.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace weft::msg {

namespace {
constexpr std::size_t kPathMin = 24;   // bytes: with its path a node of this capacity takes 64 bytes of the heap
constexpr std::size_t kPathMax = 255;  // a longer path is a chain of nodes

// Links by byte are worth their memory up to this span.
constexpr std::size_t span_max(std::size_t children) noexcept { return 12 + 4 * children; }
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
    for_each_child(*node, list);
    std::free(node->children > 1 ? node->links : nullptr);
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

// In the order of their first bytes.
template <typename Visit>
void PrefixTree::for_each_child(Node& node, Visit visit) noexcept {
  Node** const links = node.children < 2 ? &node.only : node.span != 0 ? node.links : node.fork->links();
  std::size_t left = node.children;
  for (Node** link = links; left != 0; ++link) {
    if (*link != nullptr) {
      visit(*link);
      --left;
    }
  }
}

// `child` comes behind the `count` children of the fork, which has room.
void PrefixTree::append(Fork& fork, std::size_t count, Node& child) noexcept {
  const std::uint8_t byte = child.path()[0];
  fork.links()[count] = &child;
  fork.groups[byte / 8].present = static_cast<std::uint8_t>(fork.groups[byte / 8].present | 1u << (byte % 8));
  std::for_each(fork.groups + byte / 8 + 1, std::end(fork.groups), [](Fork::Group& group) { ++group.before; });
}

// Gives the node, which has two children at least or one and `added`, the shape that its children need. False: no
// memory, and nothing changed.
bool PrefixTree::reshape(Node& node, Node* added) noexcept {
  Node* children[256];
  std::size_t count = 0;
  for_each_child(node, [&](Node* child) {
    if (added != nullptr && added->path()[0] < child->path()[0]) {
      children[count++] = std::exchange(added, nullptr);
    }
    children[count++] = child;
  });
  if (added != nullptr) {
    children[count++] = added;
  }
  const std::uint8_t low = children[0]->path()[0];
  const std::size_t span = children[count - 1]->path()[0] - low + 1u;
  void* shape = nullptr;
  if (span <= span_max(count)) {
    auto* const links = static_cast<Node**>(std::calloc(span, sizeof(Node*)));
    if (links == nullptr) {
      return false;
    }
    std::for_each(children, children + count, [&](Node* child) { links[child->path()[0] - low] = child; });
    shape = links;
  } else {
    const std::size_t capacity = std::bit_ceil(count);
    void* const block = std::malloc(sizeof(Fork) + capacity * sizeof(Node*));
    if (block == nullptr) {
      return false;
    }
    auto* const fork = new (block) Fork;
    fork->capacity = capacity;
    for (std::size_t i = 0; i < count; ++i) {
      append(*fork, i, *children[i]);
    }
    shape = fork;
  }
  std::free(node.children > 1 ? node.links : nullptr);
  node.children = static_cast<std::uint16_t>(count);
  node.low = low;
  node.span = static_cast<std::uint16_t>(span <= span_max(count) ? span : 0);
  if (node.span != 0) {
    node.links = static_cast<Node**>(shape);
  } else {
    node.fork = static_cast<Fork*>(shape);
  }
  return true;
}

// False: no memory, and nothing changed.
bool PrefixTree::add_child(Node& node, Node& child) noexcept {
  const std::uint8_t byte = child.path()[0];
  if (node.children == 0) {
    node.only = &child;
  } else if (node.span != 0 && static_cast<std::uint8_t>(byte - node.low) < node.span) {
    node.links[static_cast<std::uint8_t>(byte - node.low)] = &child;
  } else if (node.children > 1 && node.span == 0 && node.children < node.fork->capacity) {
    Fork& fork = *node.fork;
    Node** const link = fork.links() + fork.place(byte);
    append(fork, node.children, child);
    std::rotate(link, fork.links() + node.children, fork.links() + node.children + 1);
  } else {
    return reshape(node, &child);
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
  if (node.span != 0) {
    node.links[static_cast<std::uint8_t>(byte - node.low)] = nullptr;
  } else {
    Fork& fork = *node.fork;
    Node** const link = fork.links() + fork.place(byte);
    std::copy(link + 1, fork.links() + node.children, link);
    fork.groups[byte / 8].present = static_cast<std::uint8_t>(fork.groups[byte / 8].present & ~(1u << (byte % 8)));
    std::for_each(fork.groups + byte / 8 + 1, std::end(fork.groups), [](Fork::Group& group) { --group.before; });
  }
  --node.children;
  if (node.children == 1) {
    Node** const links = node.span != 0 ? node.links : node.fork->links();
    Node* const only = *std::find_if(links, links + std::max<std::size_t>(node.span, 1),
                                     [](const Node* child) { return child != nullptr; });
    std::free(node.links);
    node.only = only;
    node.span = 0;
  } else if (node.span != 0 ? node.span > 2 * span_max(node.children)
                            : std::size_t{node.children} * 4 <= node.fork->capacity) {
    (void)reshape(node, nullptr);  // without memory the shape stays
  }
}

// Puts a node for the first `common` bytes of the path above the node at `link`; `rest` goes on behind them. Returns
// the node of the whole prefix. Null: no memory, and nothing changed.
PrefixTree::Node* PrefixTree::split(Node*& link, std::size_t common, Bytes rest) noexcept {
  Node& lower = *link;
  Node* const upper = make_node(Bytes(lower.path(), common));
  const Chain chain = upper == nullptr || rest.empty() ? Chain{upper, upper} : make_chain(rest);
  if (chain.tail == nullptr) {
    std::free(upper);
    return nullptr;
  }
  lower.size = static_cast<std::uint8_t>(lower.size - common);
  std::memmove(lower.path(), lower.path() + common, lower.size);
  upper->only = &lower;
  upper->children = 1;
  if (chain.head != upper && !add_child(*upper, *chain.head)) {
    std::memmove(lower.path() + common, lower.path(), lower.size);
    copy_bytes(lower.path(), Bytes(upper->path(), common));
    lower.size = static_cast<std::uint8_t>(lower.size + common);
    free_chain(chain.head);
    std::free(upper);
    return nullptr;
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
    Node* first = nullptr;
    for_each_child(*node, [&](Node* child) { first = first == nullptr ? child : first; });
    node = first;
  }
  return nullptr;
}

}  // namespace weft::msg
