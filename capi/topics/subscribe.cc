// SPDX-License-Identifier: MIT
// Subscriptions.
#include "capi/topics/call.h"
#include "capi/topics/message_handle.h"
#include "capi/topics/objects.h"

using namespace weft;                // NOLINT(google-build-using-namespace)
using namespace weft::capi::topics;  // NOLINT(google-build-using-namespace)

namespace {

static_assert(WEFT_TOPICS_DROP_OLDEST == static_cast<int>(Full::drop_oldest));
static_assert(WEFT_TOPICS_DROP_NEWEST == static_cast<int>(Full::drop_newest));
static_assert(WEFT_TOPICS_NEWEST_PER_TOPIC == static_cast<int>(Full::newest_per_topic));
static_assert(WEFT_TOPICS_END == static_cast<int>(Full::end));

Result<SubscriptionOptions> subscription_options_of(const weft_topics_subscribe_options* given) {
  const weft_topics_subscribe_options c = WEFT_TRY(options_of(given));
  if (c.full < WEFT_TOPICS_DROP_OLDEST || c.full > WEFT_TOPICS_END) {
    return Error(Errc::invalid_argument, "no such policy of a full queue");
  }
  return SubscriptionOptions{static_cast<Full>(c.full), c.queue_messages_max, c.queue_bytes_max};
}

}  // namespace

extern "C" {

int weft_topics_subscribe(weft_topics* topics, const char* filter, const weft_topics_subscribe_options* options,
                          weft_topics_subscription** subscription) {
  if (subscription == nullptr) {
    return code_of(kNullPointer);
  }
  *subscription = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<TopicsObject>(topics));
    const SubscriptionOptions how = WEFT_TRY(subscription_options_of(options));
    Subscription made = WEFT_TRY(own->value.subscribe(WEFT_TRY(text_of(filter)), how));
    return open_handle<SubscriptionObject>(subscription, own->context, std::move(made));
  });
}

int weft_topics_unsubscribe(weft_topics_subscription* subscription) {
  return call([&] { return HandleTable::instance().close(subscription, Kind::subscription); });
}

int weft_topics_subscription_drain(weft_topics_subscription* subscription) {
  return call([&]() -> Result<void> {
    WEFT_TRY(pin<SubscriptionObject>(subscription))->value.drain();
    return {};
  });
}

int weft_topics_subscription_add(weft_topics_subscription* subscription, const char* filter) {
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<SubscriptionObject>(subscription));
    return own->value.add(WEFT_TRY(text_of(filter)));
  });
}

int weft_topics_subscription_remove(weft_topics_subscription* subscription, const char* filter) {
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<SubscriptionObject>(subscription));
    return own->value.remove(WEFT_TRY(text_of(filter)));
  });
}

int weft_topics_next(weft_topics_subscription* subscription, int64_t timeout_ms, weft_topics_message** message) {
  return next_of<SubscriptionObject>(subscription, timeout_ms, message);
}

int weft_topics_subscription_fd(weft_topics_subscription* subscription) {
  return descriptor_of<SubscriptionObject>(subscription);
}

int weft_topics_subscription_missed(weft_topics_subscription* subscription, uint64_t* missed) {
  if (missed == nullptr) {
    return code_of(kNullPointer);
  }
  *missed = 0;
  return call([&]() -> Result<void> {
    *missed = WEFT_TRY(pin<SubscriptionObject>(subscription))->value.missed();
    return {};
  });
}
}
