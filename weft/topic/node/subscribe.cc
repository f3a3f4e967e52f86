// SPDX-License-Identifier: MIT
// Node: subscriptions.
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sync/lock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

namespace {

constexpr Error kSubscriptionClosed(Errc::closed, "the subscription was closed");

}  // namespace

// The one place that defines a filter on the wire. Publishers of Weft send the messages that match the filter,
// any other one sends those that begin with its literal head.
Result<void> Node::want(const Filter& filter) { return sockets_.in().subscribe(filter); }
void Node::unwant(const Filter& filter) noexcept { (void)sockets_.in().unsubscribe(filter); }

Result<IntrusivePtr<SubscriptionCore>> Node::subscribe(std::span<const Filter> filters,
                                                       const SubscriptionOptions& options) {
  return or_no_memory([&]() -> Result<IntrusivePtr<SubscriptionCore>> {
    if (closed()) {
      return Error(Errc::closed, "the handle of topics was closed");
    }
    auto subscription = make_intrusive<SubscriptionCore>(
        options.full, options.queue_messages_max == 0 ? options_.queue_messages_max : options.queue_messages_max,
        options.queue_bytes_max == 0 ? options_.queue_bytes_max : options.queue_bytes_max);
    subscriptions_.add(subscription);
    for (const Filter& filter : filters) {
      if (auto added = add_filter(*subscription, filter); !added) {
        unsubscribe(*subscription);
        return added.error();
      }
    }
    if (closed()) {  // close() may have missed the subscription
      subscription->close(Error(Errc::closed, "the handle of topics was closed"));
    }
    return subscription;
  });
}

Result<void> Node::add_filter(SubscriptionCore& subscription, const Filter& filter) {
  return or_no_memory(
      [&]() -> Result<void> { return add(subscription, std::string(filter.text()), WEFT_TRY(names_.encode(filter))); });
}
Result<void> Node::add_text_filter(SubscriptionCore& subscription, std::string_view text) {
  return or_no_memory(
      [&]() -> Result<void> { return add(subscription, std::string(text), WEFT_TRY(names_.filter(text))); });
}

// The peers get the filter before the index does: a peer that finds the subscription in an answer to a probe has the
// filter, because both go over one connection.
Result<void> Node::add(SubscriptionCore& subscription, std::string text, const Filter& wire) {
  WEFT_TRY(subscription.status());
  auto own = make_intrusive<const OwnFilter>(std::move(text), wire);
  WEFT_TRY(want(wire));
  const auto added = interest_.add(subscription, std::move(own));
  if (!added || !*added) {
    unwant(wire);
    return added ? Result<void>() : Result<void>(added.error());
  }
  // The refusal of a server finds the subscription by its filter, which it has before the server gets it.
  if (const auto wanted = subscription.internal() ? Result<void>() : gate_want(wire); !wanted) {
    (void)interest_.remove(subscription, wire);
    unwant(wire);
    return wanted;
  }
  if (auto open = subscription.status(); !open && open.error() == Errc::closed) {  // by another thread, meanwhile
    if (interest_.remove(subscription, wire)) {
      unwant(wire);
      gate_unwant(wire);
    }
    return open;
  }
  interest_changed();
  return {};
}

Result<void> Node::remove_filter(SubscriptionCore& subscription, const Filter& filter) {
  const Filter wire = WEFT_TRY(names_.encode(filter));
  if (!interest_.remove(subscription, wire)) {
    return Error(Errc::invalid_argument, "the subscription does not have this filter");
  }
  unwant(wire);
  gate_unwant(wire);
  interest_changed();
  return {};
}
Result<void> Node::remove_text_filter(SubscriptionCore& subscription, std::string_view text) {
  return or_no_memory([&]() -> Result<void> {
    const Filter wire = WEFT_TRY(names_.filter(text));
    if (!interest_.remove(subscription, wire)) {
      return Error(Errc::invalid_argument, "the subscription does not have this filter");
    }
    unwant(wire);
    gate_unwant(wire);
    interest_changed();
    return {};
  });
}

void Node::unsubscribe(SubscriptionCore& subscription) noexcept {
  subscription.close(kSubscriptionClosed);
  forget_filters(subscription);
  subscriptions_.remove(subscription);
}
void Node::drain(SubscriptionCore& subscription) noexcept {
  subscription.end(kSubscriptionClosed);
  forget_filters(subscription);
}
void Node::forget_filters(SubscriptionCore& subscription) noexcept {
  for (const auto& [filter, own] : interest_.remove_all(subscription)) {
    unwant(filter);
    gate_unwant(filter);
  }
  interest_changed();
}

void Node::interest_changed() noexcept {
  const Result<bool> counted = probes_.count_again();
  if (!counted || *counted) {
    mesh_changed();
  }
  if (!counted) {
    repair_soon();  // counts again
  }
}

Result<std::uint64_t> Node::begin_probe(const PublisherCore& publisher, Instant deadline) noexcept {
  const Result<std::uint64_t> begun = probes_.begin(publisher.wire, deadline);
  if (begun) {
    repeat_probes_soon();
  }
  return begun;
}

// --- an event loop of the program ---

Result<int> Node::input_descriptor() {
  if (closed()) {
    return Error(Errc::closed, "the handle was closed");
  }
  return sockets_.in().core()->descriptor();
}

}  // namespace weft::topic
