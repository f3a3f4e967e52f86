// SPDX-License-Identifier: MIT
// Consumers, and the outcomes of their messages.
#include "capi/topics/call.h"
#include "capi/topics/kept_options.h"
#include "capi/topics/message_handle.h"
#include "capi/topics/objects.h"

using namespace weft;                // NOLINT(google-build-using-namespace)
using namespace weft::capi::topics;  // NOLINT(google-build-using-namespace)

namespace {

Result<ConsumerOptions> consumer_options_of(const weft_topics_consume_options* given) {
  const weft_topics_consume_options c = WEFT_TRY(options_of(given));
  ConsumerOptions options;
  options.filter = text_or_empty(c.filter);
  options.from = WEFT_TRY(from_of(c.from, c.from_value));
  options.tries_max = c.tries_max;
  const Duration ack_wait = WEFT_TRY(duration_of(c.ack_wait_ms));
  options.ack_wait = ack_wait == Duration::zero() ? options.ack_wait : ack_wait;
  if (c.retry_wait_count > ConsumerSettings::kRetryWaitsMax ||
      (c.retry_waits_ms == nullptr && c.retry_wait_count != 0)) {
    return Error(Errc::invalid_argument, "a consumer has at most 32 waits");
  }
  for (std::size_t i = 0; i < c.retry_wait_count; ++i) {
    options.retry_waits.push_back(WEFT_TRY(duration_of(c.retry_waits_ms[i])));
  }
  options.dead_letters = text_or_empty(c.dead_letters);
  options.unacked_max = c.unacked_max == 0 ? options.unacked_max : c.unacked_max;
  options.queue_messages_max = c.queue_messages_max == 0 ? options.queue_messages_max : c.queue_messages_max;
  options.queue_bytes_max = c.queue_bytes_max == 0 ? options.queue_bytes_max : c.queue_bytes_max;
  options.redeclare = c.redeclare != 0;
  if (c.prioritized != 0) {
    options.priority = c.priority;
  }
  return options;
}

// Gives a message of a consumer its outcome, which is the only one.
template <typename Give>
int settle(weft_topics_message* message, bool is_outcome, Give give) {
  return call([&]() -> Result<void> {
    MessageHandle* const handle = WEFT_TRY(delivery_of(message));
    handle->settled = is_outcome;  // also when the hub refuses the outcome
    return give(std::get<Delivery>(handle->content));
  });
}

}  // namespace

extern "C" {

int weft_topics_consume(weft_topics_stream* stream, const char* name, const weft_topics_consume_options* options,
                        weft_topics_consumer** consumer) {
  if (consumer == nullptr) {
    return code_of(kNullPointer);
  }
  *consumer = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<StreamObject>(stream));
    const ConsumerOptions how = WEFT_TRY(consumer_options_of(options));
    Consumer made = WEFT_TRY(own->value.consumer(WEFT_TRY(text_of(name)), how));
    return open_handle<ConsumerObject>(consumer, own->context, std::move(made));
  });
}

int weft_topics_consumer_close(weft_topics_consumer* consumer) {
  return call([&] { return HandleTable::instance().close(consumer, Kind::consumer); });
}

int weft_topics_consumer_next(weft_topics_consumer* consumer, int64_t timeout_ms, weft_topics_message** message) {
  return next_of<ConsumerObject>(consumer, timeout_ms, message);
}

int weft_topics_consumer_fd(weft_topics_consumer* consumer) { return descriptor_of<ConsumerObject>(consumer); }

int weft_topics_ack(weft_topics_message* message) {
  return settle(message, true, [](Delivery& delivery) -> Result<void> {
    delivery.ack();
    return {};
  });
}

int weft_topics_ack_confirmed(weft_topics_message* message) {
  return settle(message, true, [](Delivery& delivery) { return delivery.ack_confirmed(); });
}

int weft_topics_nak(weft_topics_message* message, int64_t after_ms) {
  return settle(message, true, [after_ms](Delivery& delivery) -> Result<void> {
    if (after_ms < 0) {
      delivery.retry();
    } else {
      delivery.retry(WEFT_TRY(duration_of(after_ms)));
    }
    return {};
  });
}

int weft_topics_reject(weft_topics_message* message, const char* why) {
  return settle(message, true, [why](Delivery& delivery) -> Result<void> {
    delivery.reject(text_or_empty(why));
    return {};
  });
}

int weft_topics_working(weft_topics_message* message) {
  return settle(message, false, [](Delivery& delivery) -> Result<void> {
    delivery.working();
    return {};
  });
}
}
