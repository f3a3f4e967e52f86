// SPDX-License-Identifier: MIT
#include "weft/topic/jetstream/kept_streams.h"

#include <algorithm>
#include <utility>

#include "weft/nats/jetstream/consumer.h"
#include "weft/nats/jetstream/key_value.h"
#include "weft/nats/jetstream/message.h"
#include "weft/nats/jetstream/names.h"
#include "weft/nats/jetstream/publish.h"
#include "weft/topic/wire/headers.h"

namespace weft::topic {

namespace {

namespace js = nats::jetstream;

constexpr std::size_t kNamesOfPage = 256;
constexpr std::size_t kNamesMax = 65'536;
constexpr Error kNeverExpires(
    Errc::not_supported,
    "a time to live on NATS: servers since 2.11.3, a stream that was declared since then or again, and no history");
constexpr Error kOtherSettings(Errc::conflict, "the stream is there with other settings");

std::uint64_t next_of(const js::StreamCounts& state) noexcept { return state.last_sequence + 1; }
std::uint64_t first_of(const js::StreamCounts& state) noexcept {
  return state.messages == 0 ? next_of(state) : state.first_sequence;
}

void add_count(std::string& text, std::string_view name, std::uint64_t value) {
  text.append(name).append("=").append(std::to_string(value)).append("\n");
}

std::uint64_t wall_ns(js::WallTime time) noexcept {
  return static_cast<std::uint64_t>(std::max<Duration::rep>(0, time.time_since_epoch().count()));
}

// Those by which a program and a server speak about the message.
bool is_own_header(std::string_view name) noexcept {
  return name == js::kMessageIdHeader || name == js::kExpectedStreamHeader || name == js::kExpectedLastSequenceHeader ||
         name == js::kExpectedLastSubjectSequenceHeader || name == js::kExpectedLastMessageIdHeader ||
         name == js::kKeyOperationHeader || name == js::kTtlHeader || name == js::kMarkerReasonHeader ||
         name == js::kBatchHeader || name == js::kBatchSequenceHeader || name == js::kBatchEndsHeader;
}

// Whether a change lets the messages of the stream have a time to live, or come as batches. Weft before them made
// streams without it.
bool can_gain(const js::StreamConfig& there, const js::StreamConfig& config) noexcept {
  const bool gains =
      (config.allow_message_ttl && !there.allow_message_ttl) || (config.allow_atomic && !there.allow_atomic);
  return gains && there.others.empty();
}

}  // namespace

bool KeptStream::takes(std::string_view topic) const noexcept {
  return topics.empty() ||
         std::any_of(topics.begin(), topics.end(), [&](const Filter& each) { return each.matches(topic); });
}

std::string KeptStream::other_life(std::uint64_t asked) const {
  const bool other = asked != 0 && instance != 0 && asked != instance;
  return other ? std::to_string(instance) : std::string();
}

std::uint64_t instance_of(const js::StreamReport& info) noexcept { return wall_ns(info.created); }

StoredHeaders stored_headers(const nats::HeadersView& headers) {
  StoredHeaders stored;
  headers.for_each([&](const nats::HeadersView::Field& field) {
    if (field.name == js::kMessageIdHeader && stored.message_id.empty()) {
      stored.message_id = field.value.substr(0, kOpNameMax);
    }
    if (!is_own_header(field.name)) {
      stored.block.append(stored.block.empty() ? "NATS/1.0\r\n" : "");
      stored.block.append(field.name).append(": ").append(field.value).append("\r\n");
    }
  });
  stored.block.append(stored.block.empty() ? "" : "\r\n");
  if (!is_header_block(stored.block) || stored.block.size() > kOpHeadersMax) {
    stored.block.clear();  // of another program, with a line that no header has
  }
  stored.erased = js::read_key_operation(headers) != js::KeyOperation::put;
  return stored;
}

Result<std::shared_ptr<KeptStream>> KeptStreams::find(std::string_view wire) {
  if (const auto found = known_.find(wire); found != known_.end()) {
    return found->second;
  }
  StreamNames names = WEFT_TRY(StreamNames::of(wire));
  if (known_.size() >= kStreamsMax) {
    return Error(Errc::resource_exhausted, "65,536 streams of a handle");
  }
  auto stream = std::make_shared<KeptStream>(std::move(names));
  known_.emplace(wire, stream);
  return stream;
}

void KeptStreams::learn(KeptStream& stream, const js::StreamReport& info) {
  const std::uint64_t instance = instance_of(info);
  if (stream.instance != instance) {
    stream.last = 0;
  }
  stream.instance = instance;
  stream.id_window = info.config.duplicate_window;
  // With more than one value of a topic, an older one would come back after the end of a newer one.
  stream.takes_batches = info.config.allow_atomic;
  stream.lets_expire = info.config.allow_message_ttl && info.config.messages_per_subject_max <= 1;
  stream.topics.clear();
  for (const std::string& subject : info.config.subjects) {
    if (const auto filter = Filter::parse(stream.names.filter_of(subject))) {
      stream.topics.push_back(*filter);
    }
  }
}

Result<void> KeptStreams::check(const KeptStream& stream, const Op& message, std::uint64_t instance) const {
  if (!stream.takes(message.key)) {
    return kNotOfStream;
  }
  if (message.has(OpFlags::expires) && !(stream.lets_expire && ends_messages(engine_.client().server_version()))) {
    return kNeverExpires;
  }
  return expects_life(message, instance) && instance != stream.instance ? Result<void>(kOtherLife) : Result<void>();
}

// --- requests about a stream ---

rt::Task<KeptStreams::Look> KeptStreams::look(KeptStreams* self, std::shared_ptr<KeptStream> stream) {
  Look look = co_await Engine::call(&self->engine_, js::stream_info(stream->names.stream()), js::read_stream_info);
  if (look && look->ok()) {
    learn(*stream, look->value);
  }
  co_return look;
}

// Creates the stream, or compares the one that is there, or changes it.
rt::Task<KeptStreams::Look> KeptStreams::make(KeptStreams* self, std::shared_ptr<KeptStream> stream,
                                              js::StreamConfig config, bool redeclare) {
  constexpr int kRoundsMax = 3;  // another program creates or removes it meanwhile
  Look result = kOtherSettings;
  for (int i = 0; i < kRoundsMax; ++i) {
    result = co_await look(self, stream);
    const bool there = result && result->ok();
    if (!result || (!there && result->failure.number != js::kStreamNotFound)) {
      co_return result;
    }
    if (!ends_messages(self->engine_.client().server_version())) {
      config.allow_message_ttl = false;
      config.subject_delete_marker_ttl = Duration::zero();
    }
    config.allow_atomic = takes_batches(self->engine_.client().server_version());
    const bool same = there && same_stream(stream->names, result->value.config, config);
    if (same && !(redeclare && can_gain(result->value.config, config))) {
      co_return result;
    }
    if (there && !redeclare) {
      co_return kOtherSettings;
    }
    if (there && !result->value.config.others.empty()) {
      co_return Error(Errc::not_supported, "the stream has settings of another program, which a change would erase");
    }
    if (there && result->value.config.allow_message_ttl) {  // a server refuses to take it back
      config.allow_message_ttl = true;
      config.subject_delete_marker_ttl = result->value.config.subject_delete_marker_ttl;
    }
    auto request = there ? js::update_stream(config) : js::create_stream(config);
    result = co_await Engine::call(&self->engine_, std::move(request), js::read_stream_info);
    if (!result || result->ok()) {
      break;
    }
    const std::uint32_t number = result->failure.number;
    if (number != js::kStreamNameInUse && number != js::kStreamNotFound) {
      break;
    }
  }
  // A server that does not know a member leaves it out.
  if (result && result->ok()) {
    learn(*stream, result->value);
    if (!same_stream(stream->names, result->value.config, config)) {
      co_return Error(Errc::not_supported, "the servers keep the stream otherwise than declared");
    }
  }
  co_return result;
}

// --- ops ---

rt::Task<void> KeptStreams::declare(KeptStreams* self, std::unique_ptr<Asked> asked) {
  const auto settings = parse_stream_settings(as_text(asked->op.body));
  const auto stream = self->find(asked->op.name);
  if (!settings || !stream) {
    self->engine_.refuse(*asked, settings ? stream.error() : settings.error());
    co_return;
  }
  auto config = stream_config((*stream)->names, *settings);
  if (!config) {
    self->engine_.refuse(*asked, config.error());
    co_return;
  }
  const Look made = co_await make(self, *stream, *std::move(config), asked->op.has(OpFlags::redeclare));
  if (!made || !made->ok()) {
    self->engine_.refuse(*asked, made);
    co_return;
  }
  const js::StreamReport& info = made->value;
  const std::string body = write_settings(settings_of((*stream)->names, info.config));
  const std::string instance = std::to_string(instance_of(info));
  self->engine_.answer(
      *asked,
      {.number = first_of(info.state), .second = next_of(info.state), .message_id = instance, .body = as_bytes(body)});
}

rt::Task<void> KeptStreams::info(KeptStreams* self, std::unique_ptr<Asked> asked) {
  const auto stream = self->find(asked->op.name);
  if (!stream) {
    self->engine_.refuse(*asked, stream.error());
    co_return;
  }
  const Look found = co_await look(self, *stream);
  if (!found || !found->ok()) {
    self->engine_.refuse(*asked, found);
    co_return;
  }
  const js::StreamReport& info = found->value;
  std::string text = write_settings(settings_of((*stream)->names, info.config));
  add_count(text, "first", first_of(info.state));
  add_count(text, "next", next_of(info.state));
  add_count(text, "bytes", info.state.bytes);
  for (std::uint64_t offset = 0; offset < info.state.consumers && text.size() < kOpBodyMax / 2;) {
    const auto page = co_await Engine::call(&self->engine_, js::consumer_list((*stream)->names.stream(), offset),
                                            js::read_consumer_list);
    if (!page || !page->ok()) {
      self->engine_.refuse(*asked, page);
      co_return;
    }
    for (const js::ConsumerInfo& each : page->value.items) {
      std::string name;
      if (!each.config.durable) {
        continue;  // a reader
      }
      if (!js::append_text_of_name(each.name, name)) {
        name = each.name;
      }
      text.append("consumer=").append(name).append("\n");
      add_count(text, "floor", each.ack_floor.stream + 1);
      add_count(text, "waiting", each.ack_pending);
    }
    offset += page->value.items.size();
    if (page->value.items.empty()) {
      break;
    }
  }
  const std::string instance = std::to_string(instance_of(info));
  self->engine_.answer(*asked, {.number = first_of(info.state),
                                .second = next_of(info.state),
                                .message_id = instance,
                                .body = as_bytes(text).first(std::min(text.size(), kOpBodyMax))});
}

rt::Task<void> KeptStreams::names(KeptStreams* self, std::unique_ptr<Asked> asked) {
  std::vector<std::string> all;
  for (std::uint64_t offset = 0; all.size() < kNamesMax;) {
    const auto page = co_await Engine::call(&self->engine_, js::stream_names(offset), js::read_stream_names);
    if (!page || !page->ok()) {
      self->engine_.refuse(*asked, page);
      co_return;
    }
    for (const std::string& each : page->value.items) {
      if (auto wire = StreamNames::wire_of(each); wire && *wire > asked->op.key) {
        all.push_back(*std::move(wire));
      }
    }
    offset += page->value.items.size();
    if (page->value.items.empty() || offset >= page->value.total) {
      break;
    }
  }
  std::sort(all.begin(), all.end());
  const bool more = all.size() > kNamesOfPage;
  all.resize(std::min(all.size(), kNamesOfPage));
  std::string body;
  for (const std::string& each : all) {
    body.append(each).append("\n");
  }
  self->engine_.answer(*asked, {.flags = more ? OpFlags::more : std::uint16_t{0},
                                .number = all.size(),
                                .key = all.empty() ? std::string_view() : std::string_view(all.back()),
                                .body = as_bytes(body)});
}

rt::Task<void> KeptStreams::remove(KeptStreams* self, std::unique_ptr<Asked> asked) {
  const auto stream = self->find(asked->op.name);
  std::string consumer;
  Result<void> named = stream ? Result<void>() : stream.error();
  if (stream && !asked->op.key.empty()) {
    named = js::append_name(asked->op.key, consumer);
  }
  if (!named) {
    self->engine_.refuse(*asked, named.error());
    co_return;
  }
  auto request = consumer.empty() ? js::delete_stream((*stream)->names.stream())
                                  : js::delete_consumer((*stream)->names.stream(), consumer);
  const auto done = co_await Engine::call(&self->engine_, std::move(request), js::read_done);
  if (!done || !done->ok()) {
    self->engine_.refuse(*asked, done);
    co_return;
  }
  if (consumer.empty()) {
    if (const auto found = self->known_.find(asked->op.name); found != self->known_.end()) {
      self->known_.erase(found);
    }
  }
  self->engine_.answer(*asked, {});
}

rt::Task<void> KeptStreams::purge(KeptStreams* self, std::unique_ptr<Asked> asked) {
  const Op& op = asked->op;
  const auto stream = self->find(op.name);
  std::string subject;
  Result<void> named = stream ? Result<void>() : stream.error();
  if (stream && !op.key.empty()) {
    named = (*stream)->names.append_subject(op.key, subject);
  }
  if (!named) {
    self->engine_.refuse(*asked, named.error());
    co_return;
  }
  if (op.key.empty()) {
    const Look before = co_await look(self, *stream);
    if (!before || !before->ok()) {
      self->engine_.refuse(*asked, before);
      co_return;
    }
    if (op.second != 0 && op.second != instance_of(before->value)) {
      self->engine_.refuse(*asked, kOtherLife);
      co_return;
    }
  }
  if (!op.key.empty() || op.number != 0) {  // 0 would be every message
    auto request = js::purge_stream((*stream)->names.stream(), {.filter = subject, .before = op.number});
    const auto purged = co_await Engine::call(&self->engine_, std::move(request), js::read_purged,
                                              op.key.empty() ? Engine::Lost::again : Engine::Lost::outcome_unknown);
    if (!purged || !purged->ok()) {
      self->engine_.refuse(*asked, purged);
      co_return;
    }
  }
  const Look after = co_await look(self, *stream);
  const js::StreamCounts state = after && after->ok() ? after->value.state : js::StreamCounts();
  self->engine_.answer(*asked, {.number = first_of(state), .second = next_of(state)});
}

rt::Task<void> KeptStreams::get(KeptStreams* self, std::unique_ptr<Asked> asked) {
  const Op& op = asked->op;
  const auto stream = self->find(op.name);
  std::string subject;
  Result<void> named = stream ? Result<void>() : stream.error();
  if (stream && !op.has(OpFlags::by_sequence)) {
    named = (*stream)->names.append_subject(op.key, subject);
  }
  if (!named) {
    self->engine_.refuse(*asked, named.error());
    co_return;
  }
  if (op.second != 0 && op.second != (*stream)->instance) {  // it may be an older life
    const Look found = co_await look(self, *stream);
    if (!found || !found->ok()) {
      self->engine_.refuse(*asked, found);
      co_return;
    }
  }
  auto request = js::get_message((*stream)->names.stream(),
                                 op.has(OpFlags::by_sequence) ? js::Which::at(op.number) : js::Which::last_of(subject));
  const auto got = co_await Engine::call(&self->engine_, std::move(request), js::read_message);
  if (!got || !got->ok()) {
    self->engine_.refuse(*asked, got);
    co_return;
  }
  const js::StreamMessage& message = got->value;
  const StoredHeaders headers = stored_headers(message.headers());
  std::string topic;
  (*stream)->names.append_topic(message.subject, topic);
  const std::string instance = (*stream)->other_life(op.second);
  const Op result{.flags = headers.erased ? OpFlags::erased : std::uint16_t{0},
                  .number = message.sequence,
                  .second = wall_ns(message.time),
                  .name = instance,
                  .key = topic,
                  .message_id = headers.message_id,
                  .headers = as_bytes(headers.block),
                  .body = message.body()};
  if (const auto fits = check_op(result); !fits) {
    self->engine_.refuse(*asked, fits.error());
    co_return;
  }
  self->engine_.answer(*asked, result);
}

}  // namespace weft::topic
