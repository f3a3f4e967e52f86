// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

namespace weft {

// ListLink: the base class of a List's elements. The destructor unlinks the element.
class ListLink {
 public:
  ListLink() noexcept = default;
  ListLink(const ListLink&) = delete;
  ListLink& operator=(const ListLink&) = delete;
  ~ListLink() { unlink(); }

  [[nodiscard]] bool linked() const noexcept { return next_ != nullptr; }
  void unlink() noexcept {  // idempotent
    if (linked()) {
      next_->previous_ = previous_;
      previous_->next_ = next_;
      next_ = previous_ = nullptr;
    }
  }

 private:
  template <typename T>
  friend class List;
  ListLink* next_ = nullptr;
  ListLink* previous_ = nullptr;
};

// List: a doubly linked list of objects that others own; T derives from ListLink.
// Affinity: one thread. Cost: every call O(1), no allocation. A T is on one list at most. The list's
// destructor unlinks the objects and leaves them alive.
template <typename T>
class List {
 public:
  List() noexcept { reset(); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    while (!empty()) {
      end_.next_->unlink();
    }
    end_.next_ = end_.previous_ = nullptr;
  }

  [[nodiscard]] bool empty() const noexcept { return end_.next_ == &end_; }
  [[nodiscard]] T& front() noexcept { return static_cast<T&>(*end_.next_); }  // the list is not empty
  // `item` is on no list.
  void push_back(T& item) noexcept {
    static_assert(std::is_base_of_v<ListLink, T>);
    ListLink& link = item;
    link.next_ = &end_;
    link.previous_ = end_.previous_;
    end_.previous_->next_ = &link;
    end_.previous_ = &link;
  }
  // Null: the list is empty.
  [[nodiscard]] T* pop_front() noexcept {
    T* const first = at(end_.next_);
    if (first != nullptr) {
      static_cast<ListLink*>(first)->unlink();
    }
    return first;
  }
  [[nodiscard]] T* first() const noexcept { return at(end_.next_); }
  [[nodiscard]] T* next(const T& item) const noexcept { return at(static_cast<const ListLink&>(item).next_); }
  // Moves every element of `other` to the end of this list.
  void splice_back(List& other) noexcept {
    if (!other.empty()) {
      other.end_.next_->previous_ = end_.previous_;
      other.end_.previous_->next_ = &end_;
      end_.previous_->next_ = other.end_.next_;
      end_.previous_ = other.end_.previous_;
      other.reset();
    }
  }

 private:
  [[nodiscard]] T* at(ListLink* link) const noexcept { return link == &end_ ? nullptr : static_cast<T*>(link); }
  void reset() noexcept { end_.next_ = end_.previous_ = &end_; }

  ListLink end_;  // stands before the first and behind the last element
};

}  // namespace weft
