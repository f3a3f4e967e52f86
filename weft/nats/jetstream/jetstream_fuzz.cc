// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/assert.h"
#include "weft/nats/jetstream/api.h"
#include "weft/nats/jetstream/consumer.h"
#include "weft/nats/jetstream/delivery.h"
#include "weft/nats/jetstream/key_value.h"
#include "weft/nats/jetstream/message.h"
#include "weft/nats/jetstream/names.h"
#include "weft/nats/jetstream/publish.h"
#include "weft/nats/jetstream/stream.h"
#include "weft/nats/jetstream/wall_time.h"

// The first byte chooses the reader, the rest is its text. Checked besides the sanitizers: results keep to their
// bounds, and a result that is written and read again is the same.
namespace {

using namespace weft::nats;
using namespace weft::nats::jetstream;

template <typename Value>
void check_failure(const Reply<Value>& reply) {
  WEFT_ASSERT(reply.failure.description.size() <= kTextMax);
  WEFT_ASSERT(reply.ok() == (reply.failure.error() == weft::Error()));
}

void check_stream(std::string_view text) {
  const auto info = read_stream_info(text);
  if (!info) {
    return;
  }
  check_failure(*info);
  StreamConfig config = info->value.config;
  WEFT_ASSERT(config.subjects.size() <= kItemsMax && info->value.cluster.replicas.size() <= kItemsMax);
  config.others.clear();
  const auto request = create_stream(config);
  if (info->ok() && request) {
    const auto again = read_stream_info(R"({"config":)" + request->body + '}');
    WEFT_ASSERT(again && again->ok() && again->value.config == config);
  }
}

void check_consumer(std::string_view text) {
  const auto info = read_consumer_info(text);
  if (!info) {
    return;
  }
  check_failure(*info);
  ConsumerConfig config = info->value.config;
  config.others.clear();
  config.start_sequence = config.deliver == Deliver::by_start_sequence ? config.start_sequence : 0;
  config.start_time =
      config.deliver == Deliver::by_start_time && config.start_time > WallTime() ? config.start_time : WallTime();
  const auto request = create_consumer("S", config);
  if (info->ok() && request) {
    const auto again = read_consumer_info(R"({"name":")" + config.name + R"(",)" + request->body.substr(1));
    WEFT_ASSERT(again || config.name.find_first_of("\"\\") != std::string::npos);
    WEFT_ASSERT(!again || again->value.config == config || config.name.find('\\') != std::string::npos);
  }
}

void check_message(std::string_view text) {
  const auto message = read_message(text);
  if (message) {
    check_failure(*message);
    WEFT_ASSERT(message->value.content.size() + message->value.header_block.size() <= text.size());
  }
}

void check_acknowledgement(std::string_view text) {
  const auto ack = read_publish_ack(text);
  // A blank in front leads to the general reader.
  const auto same = read_publish_ack(' ' + std::string(text));
  WEFT_ASSERT(ack.has_value() == same.has_value());
  if (ack) {
    check_failure(*ack);
    WEFT_ASSERT(ack->ok() == same->ok() && ack->value.stream == same->value.stream);
    WEFT_ASSERT(ack->value.sequence == same->value.sequence && ack->value.duplicate == same->value.duplicate);
    (void)actual_last_sequence(ack->failure);
  }
}

void check_lists(std::string_view text) {
  if (const auto names = read_stream_names(text)) {
    WEFT_ASSERT(names->value.items.size() <= kItemsMax);
  }
  if (const auto streams = read_stream_list(text)) {
    WEFT_ASSERT(streams->value.items.size() <= kItemsMax);
  }
  if (const auto consumers = read_consumer_list(text)) {
    WEFT_ASSERT(consumers->value.items.size() <= kItemsMax);
  }
  (void)read_consumer_names(text);
  (void)read_account_info(text);
  (void)read_purged(text);
  (void)read_done(text);
}

void check_headers(std::string_view text) {
  const HeadersView headers(weft::as_bytes(text));
  const PullStatus status = read_pull_status(headers);
  WEFT_ASSERT((status.code == 0) == (status.kind == PullStatus::Kind::message));
  const auto direct = read_direct(headers, {});
  WEFT_ASSERT(!direct || status.code == 0);
  (void)read_key_operation(headers);
}

void check_names(std::string_view text) {
  std::string name;
  std::string back;
  if (append_name(text, name)) {
    WEFT_ASSERT(is_name(name) && append_text_of_name(name, back) && back == text);
  }
  name.clear();
  back.clear();
  if (append_text_of_name(text, back)) {
    WEFT_ASSERT(append_name(back, name) && name == text);
  }
  name.clear();
  back.clear();
  if (append_key(text, name)) {
    WEFT_ASSERT(is_key(name) && append_topic_of_key(name, back) && back == text);
  }
  name.clear();
  back.clear();
  if (append_topic_of_key(text, back)) {
    WEFT_ASSERT(append_key(back, name) && name == text);
  }
}

void check_time(std::string_view text) {
  const auto time = read_wall_time(text);
  if (time && *time > WallTime::min() + std::chrono::seconds(1)) {
    std::string written;
    append_wall_time(*time, written);
    const auto again = read_wall_time(written);
    WEFT_ASSERT(again && *again == *time);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const std::string_view text = weft::as_text(weft::Bytes(data + 1, size - 1));
  switch (data[0] % 9) {
    case 0: check_stream(text); break;
    case 1: check_consumer(text); break;
    case 2: check_message(text); break;
    case 3: check_acknowledgement(text); break;
    case 4: check_lists(text); break;
    case 5: check_headers(text); break;
    case 6: check_names(text); break;
    case 7: check_time(text); break;
    default: (void)read_delivery(text);
  }
  return 0;
}
