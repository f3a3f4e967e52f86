// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

namespace weft {

// ListHook: the base class of a List's elements. The destructor unhooks the element.
class ListHook {
 public:
  ListHook() noexcept = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unhook(); }

  [[nodiscard]] bool hooked() const noexcept { return next_ != nullptr; }
  void unhook() noexcept {  // idempotent
    if (hooked()) {
      next_->previous_ = previous_;
      previous_->next_ = next_;
      next_ = previous_ = nullptr;
    }
  }

 private:
  template <typename T>
  friend class List;
  ListHook* next_ = nullptr;
  ListHook* previous_ = nullptr;
};

// List: a doubly linked list of objects that others own; T derives from ListHook.
// Affinity: one thread. Cost: every call O(1), no allocation. A T is on one list at most. The list's
// destructor unhooks the objects and leaves them alive.
template <typename T>
class List {
 public:
  List() noexcept { reset(); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    while (!empty()) {
      end_.next_->unhook();
    }
    end_.next_ = end_.previous_ = nullptr;
  }

  [[nodiscard]] bool empty() const noexcept { return end_.next_ == &end_; }
  [[nodiscard]] T& front() noexcept { return static_cast<T&>(*end_.next_); }  // the list is not empty
  // `item` is on no list.
  void push_back(T& item) noexcept {
    static_assert(std::is_base_of_v<ListHook, T>);
    ListHook& hook = item;
    hook.next_ = &end_;
    hook.previous_ = end_.previous_;
    end_.previous_->next_ = &hook;
    end_.previous_ = &hook;
  }
  // Returns null if the list is empty.
  [[nodiscard]] T* pop_front() noexcept {
    T* const first = at(end_.next_);
    if (first != nullptr) {
      static_cast<ListHook*>(first)->unhook();
    }
    return first;
  }
  [[nodiscard]] T* first() const noexcept { return at(end_.next_); }
  [[nodiscard]] T* next(const T& item) const noexcept { return at(static_cast<const ListHook&>(item).next_); }
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
  [[nodiscard]] T* at(ListHook* hook) const noexcept { return hook == &end_ ? nullptr : static_cast<T*>(hook); }
  void reset() noexcept { end_.next_ = end_.previous_ = &end_; }

  ListHook end_;  // stands before the first and after the last element
};

}  // namespace weft
