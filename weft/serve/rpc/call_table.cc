// SPDX-License-Identifier: MIT
#include "weft/serve/rpc/call_table.h"

#include <algorithm>
#include <new>
#include <utility>

#include "weft/serve/rpc/incoming.h"

namespace weft::serve::rpc {

Incoming* CallTable::find(std::uint64_t id) const noexcept {
  if (size_ == 0) {
    return nullptr;
  }
  Incoming* call = buckets_[id & (buckets_.size() - 1)];
  while (call != nullptr && call->id() != id) {
    call = call->next_in_bucket();
  }
  return call;
}

bool CallTable::add(Incoming& call) noexcept {
  if (size_ >= buckets_.size()) {
    grow();
  }
  if (buckets_.empty()) {
    return false;
  }
  Incoming*& bucket = bucket_of(call.id());
  call.set_next_in_bucket(std::exchange(bucket, &call));
  ++size_;
  return true;
}

void CallTable::remove(Incoming& call) noexcept {
  Incoming*& bucket = bucket_of(call.id());
  if (bucket == &call) {
    bucket = call.next_in_bucket();
  } else {
    Incoming* before = bucket;
    while (before->next_in_bucket() != &call) {
      before = before->next_in_bucket();
    }
    before->set_next_in_bucket(call.next_in_bucket());
  }
  call.set_next_in_bucket(nullptr);
  --size_;
}

// Without memory for more buckets the calls share those that there are.
void CallTable::grow() noexcept {
  std::vector<Incoming*> more;
  try {
    more.resize(std::max(kBucketsMin, 2 * buckets_.size()));
  } catch (const std::bad_alloc&) {
    return;
  }
  buckets_.swap(more);
  for (Incoming* call : more) {
    while (call != nullptr) {
      Incoming* const next = call->next_in_bucket();
      Incoming*& bucket = bucket_of(call->id());
      call->set_next_in_bucket(std::exchange(bucket, call));
      call = next;
    }
  }
}

}  // namespace weft::serve::rpc
