// SPDX-License-Identifier: MIT
// Publishers.
#include "capi/topics/call.h"
#include "capi/topics/objects.h"

using namespace weft;                // NOLINT(google-build-using-namespace)
using namespace weft::capi::topics;  // NOLINT(google-build-using-namespace)

namespace {

Result<void> publish_by(Publisher& publisher, const void* data, std::size_t size,
                        const weft_topics_publish_options* options) {
  const Bytes body = WEFT_TRY(bytes_of(data, size));
  if (options == nullptr) {
    return publisher.publish(body);
  }
  const weft_topics_publish_options c = WEFT_TRY(options_of(options));
  const Headers headers = WEFT_TRY(headers_of(c.headers, c.header_count));
  const Patience patience = WEFT_TRY(patience_of(c.timeout_ms));
  if (c.waits_for_room == 0) {
    return publisher.publish(body, headers);
  }
  return patience.waits ? publisher.publish_until(patience.deadline, body, headers)
                        : publisher.try_publish(body, headers);
}

}  // namespace

extern "C" {

int weft_topics_publisher_open(weft_topics* topics, const char* topic, weft_topics_publisher** publisher) {
  if (publisher == nullptr) {
    return code_of(kNullPointer);
  }
  *publisher = nullptr;
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<TopicsObject>(topics));
    Publisher made = WEFT_TRY(own->value.publisher(WEFT_TRY(text_of(topic))));
    return open_handle<PublisherObject>(publisher, own->context, std::move(made));
  });
}

int weft_topics_publisher_close(weft_topics_publisher* publisher) {
  return call([&] { return HandleTable::instance().close(publisher, Kind::publisher); });
}

int weft_topics_publisher_publish(weft_topics_publisher* publisher, const void* data, size_t size,
                                  const weft_topics_publish_options* options) {
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<PublisherObject>(publisher));
    return publish_by(own->value, data, size, options);
  });
}

int weft_topics_wait_subscribers(weft_topics_publisher* publisher, size_t count, int64_t timeout_ms, size_t* ready) {
  if (ready != nullptr) {
    *ready = 0;
  }
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<PublisherObject>(publisher));
    const std::size_t found = WEFT_TRY(own->value.wait_subscribers(count, WEFT_TRY(patience_of(timeout_ms)).deadline));
    if (ready != nullptr) {
      *ready = found;
    }
    return {};
  });
}

int weft_topics_publish(weft_topics* topics, const char* topic, const void* data, size_t size,
                        const weft_topics_publish_options* options) {
  return call([&]() -> Result<void> {
    const auto own = WEFT_TRY(pin<TopicsObject>(topics));
    Publisher publisher = WEFT_TRY(own->value.publisher(WEFT_TRY(text_of(topic))));
    return publish_by(publisher, data, size, options);
  });
}
}
