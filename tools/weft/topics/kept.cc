// SPDX-License-Identifier: MIT
#include "tools/weft/topics/kept.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <string_view>
#include <utility>

#include "weft/base/endian.h"
#include "weft/sys/clock.h"
#include "weft/topic/kept/channel.h"
#include "weft/topic/kept/stream_core.h"
#include "weft/topic/wire/batch.h"

namespace weft::cli {

namespace {

using Call = topic::HubCall;
using topic::HubLink;
using topic::StreamCore;

constexpr std::size_t kWindowMax = 4096;  // of the link

std::string stream_text(const std::string& name) { return "the stream " + printable(name); }

std::string wire_name(const KeptLink& kept, const std::string& name) {
  return need(kept.link()->names().encode(name), stream_text(name));
}

// A request of this command's own, with its answer.
IntrusivePtr<Call> run_op(KeptLink& kept, const topic::Op& op, const std::string& context) {
  return kept.ask(context, [&]() -> Result<IntrusivePtr<Call>> {
    auto call = HubLink::prepare(op, topic::OnLoss::resend, sys::now() + topic::kAnswerWait);
    if (call) {
      WEFT_TRY(kept.link()->run(*call));
    }
    return call;
  });
}

std::uint64_t number_from(const std::string& text, const std::string& what) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Usage(what + " is a whole number, not '" + printable(text) + "'");
  }
  return number;
}

From from_of(const std::string& text) {
  if (text == "first") {
    return From::first();
  }
  if (text == "last") {
    return From::last();
  }
  if (text == "next") {
    return From::next();
  }
  if (text == "last-per-topic") {
    return {From::Kind::last_per_topic};
  }
  if (text.starts_with('@')) {
    return {From::Kind::time,
            number_from(text.substr(1), "the time of --from, in seconds since 1970,") * 1'000'000'000};
  }
  return From::sequence(
      number_from(text, "--from is first, last, next, last-per-topic, @SECONDS or a sequence, which"));
}

template <typename Value>
Value setting(const Result<Value>& value, const std::string& option, const char* values) {
  if (!value) {
    throw Usage(option + " is " + values);
  }
  return *value;
}

std::string topics_text(const StreamInfo& info) {
  std::string text;
  for (const std::string& topic : info.settings.topics) {
    text += (text.empty() ? "" : " ") + printable(topic);
  }
  return text.empty() ? ">" : text;
}

Record record_of(const StreamInfo& info) {
  std::vector<Object> consumers;
  for (const StreamInfo::Consumer& each : info.consumers) {
    consumers.push_back({{{"name", each.name}, {"floor", each.floor}, {"waiting", each.waiting}}});
  }
  return {{"name", info.name},
          {"topics", info.settings.topics},
          {"keep", std::string(name_of(info.settings.keep))},
          {"survives", std::string(name_of(info.settings.survives))},
          {"when_full", std::string(name_of(info.settings.when_full))},
          {"bytes_max", info.settings.bytes_max},
          {"age_max_seconds", std::chrono::duration<double>(info.settings.age_max).count()},
          {"first", info.first},
          {"next", info.next},
          {"bytes", info.bytes},
          {"delayed", info.delayed},
          {"evicted", info.evicted},
          {"dropped_unread", info.dropped_unread},
          {"damaged", info.damaged},
          {"consumers", consumers}};
}

void print_stream(Console& console, const StreamInfo& info) {
  if (console.json) {
    console.record(record_of(info));
    return;
  }
  console.prose(printable(info.name) + " " + std::string(name_of(info.settings.keep)) + " " +
                    std::string(name_of(info.settings.survives)) + ", " + std::to_string(info.next - info.first) +
                    " messages from " + std::to_string(info.first) + ", " + std::to_string(info.bytes) + " bytes",
                4);
  for (const StreamInfo::Consumer& each : info.consumers) {
    console.prose("  " + printable(each.name) + " has all below " + std::to_string(each.floor) + ", " +
                      std::to_string(each.waiting) + " to acknowledge",
                  4);
  }
}

void print_kept(Console& console, const ShownOptions& options, const KeptMessage& message) {
  Record fields = {{"sequence", message.sequence()}, {"topic", std::string(message.topic())}};
  if (console.json) {
    fields.emplace_back("time",
                        format("%.6f", std::chrono::duration<double>(message.time().time_since_epoch()).count()));
    fields.emplace_back("tries", std::uint64_t{message.tries()});
    if (message.erased()) {
      fields.emplace_back("erased", true);
    }
  }
  show(console, options, fields, message.text(), message.headers());
}

}  // namespace

Stream open_stream(KeptLink& kept, const std::string& name, StreamInfo* info) {
  const std::string wire = wire_name(kept, name);
  const std::string what = stream_text(name);
  const auto call = run_op(kept, {.kind = topic::OpKind::info, .name = wire}, what);
  StreamInfo read = need(StreamCore::read_info(*call, wire), what);
  const auto core = std::make_shared<StreamCore>(kept.link(), wire, read.settings);
  (void)core->read_info(*call);  // its sequences are of this life of the stream
  if (info != nullptr) {
    *info = std::move(read);
  }
  return Stream(core);
}

int stream_add(Console& console, const StreamAddOptions& options) {
  StreamOptions stream;
  stream.name = options.name;
  stream.topics = options.topics;
  stream.keep = setting(keep_of(options.keep), "--keep", "log, work or latest");
  stream.survives = setting(survives_of(options.survives), "--survives", "nothing, process, machine or power");
  if (!options.when_full.empty()) {
    stream.when_full = setting(discard_of(options.when_full), "--when-full", "oldest or refuse");
  }
  stream.age_max = seconds(options.age_max);
  stream.bytes_max = options.bytes_max;
  stream.same_id_window = seconds(options.id_window);
  stream.redeclare = options.redeclare;
  if (stream.survives == Survives::nothing && !is_on_nats(options.fleet)) {
    throw Usage("a stream that survives nothing ends with the process that declares it, and this command ends now");
  }
  KeptLink kept(options.fleet);
  Stream made = kept.ask(stream_text(options.name), [&] { return Stream::declare(kept.link(), stream); });
  const StreamInfo info = kept.ask(stream_text(options.name), [&] { return made.info(); });
  print_stream(console, info);
  return 0;
}

int stream_ls(Console& console, const StreamOneOptions& options) {
  KeptLink kept(options.fleet);
  const std::string prefix = options.fleet.space.empty() ? "" : options.fleet.space + '.';
  const auto all = kept.ask("the streams", [&] { return Stream::list(kept.link(), prefix); });
  for (const StreamInfo& info : all) {
    print_stream(console, info);
  }
  return 0;
}

int stream_info(Console& console, const StreamOneOptions& options) {
  KeptLink kept(options.fleet);
  StreamInfo info;
  (void)open_stream(kept, options.name, &info);
  if (console.json) {
    console.record(record_of(info));
    return 0;
  }
  print_stream(console, info);
  console.prose("  topics " + topics_text(info), 4);
  console.prose("  at most " + std::to_string(info.settings.bytes_max) + " bytes, then " +
                    std::string(name_of(info.settings.when_full)) +
                    (info.settings.age_max == Duration::zero()
                         ? std::string()
                         : format(", for %g s", std::chrono::duration<double>(info.settings.age_max).count())),
                4);
  console.prose("  evicted " + std::to_string(info.evicted) + ", dropped unread " +
                    std::to_string(info.dropped_unread) + ", damaged " + std::to_string(info.damaged) +
                    (info.delayed == 0 ? std::string() : ", with a delay " + std::to_string(info.delayed)),
                4);
  return 0;
}

int stream_rm(Console& console, const StreamOneOptions& options) {
  (void)console;
  KeptLink kept(options.fleet);
  Stream stream = open_stream(kept, options.name);
  if (options.consumer.empty()) {
    kept.ask(stream_text(options.name), [&] { return stream.remove(); });
  } else {
    kept.ask("the consumer " + printable(options.consumer), [&] { return stream.remove_consumer(options.consumer); });
  }
  return 0;
}

namespace {

void print_published(Console& console, const Published& kept_as) {
  if (console.json) {
    console.record({{"sequence", kept_as.sequence}, {"duplicate", kept_as.duplicate}});
  } else {
    console.line(std::to_string(kept_as.sequence) + (kept_as.duplicate ? " stored before" : ""));
  }
}

// All messages of the source, or none.
void publish_batch(Console& console, KeptLink& kept, Stream& stream, Source& source, std::string_view topic,
                   const PublishOptions& how) {
  std::vector<std::string> bodies;
  for (auto parts = source.next(); parts; parts = source.next()) {
    bodies.emplace_back((*parts)[0]);
    if (bodies.size() > topic::kBatchMessagesMax) {
      throw Usage("--atomic publishes at most 1000 messages");
    }
  }
  std::vector<BatchMessage> batch;
  for (const std::string& body : bodies) {
    BatchMessage& message = batch.emplace_back();
    message.topic = topic;
    message.body = as_bytes(body);
    message.headers = how.headers;
    message.time_to_live = how.time_to_live;
    if (batch.size() == 1) {
      message.id = how.id;
      message.expect_last = how.expect_last;
    }
  }
  Published published =
      kept.once("publish a batch", [&] { return stream.publish_all(batch, {.deadline = kept.answer_deadline()}); });
  for (std::size_t i = 0; i < batch.size(); ++i, ++published.sequence) {
    print_published(console, published);
  }
}

}  // namespace

int stream_publish(Console& console, const StreamPublishOptions& options) {
  std::vector<std::string> words = options.words;
  std::string topic = options.topic;
  if (topic.empty()) {
    if (words.empty()) {
      throw Usage("a topic is missing");
    }
    topic = words.front();
    words.erase(words.begin());
  }
  if (words.size() > 1) {
    throw Usage("a message has one part; '" + printable(words[1]) + "' is one more");
  }
  if (options.window == 0 || options.window > kWindowMax) {
    throw Usage("--window is 1 to 4096");
  }
  SourceOptions messages = options.source;
  if (words.size() == 1 && words[0] == "-") {
    messages.files.insert(messages.files.begin(), "-");
  } else {
    messages.parts = words;
  }
  const Headers headers = headers_of(options.headers);
  Source source(messages);
  KeptLink kept(options.fleet);
  Stream stream = open_stream(kept, options.name);
  const std::string what = "publish to " + printable(options.name);
  std::deque<PendingPublish> pending;
  const auto settle = [&](bool wait) {
    const auto done = pending.front().try_result();
    if (!wait && !done && done.error() == Errc::would_block) {
      return false;
    }
    const Published kept_as = kept.once(what, [&] { return pending.front().wait(); });
    pending.pop_front();
    print_published(console, kept_as);
    return true;
  };
  PublishOptions how;
  how.id = options.id;
  how.headers = headers.block();
  how.expect_last = options.expect_last;
  how.time_to_live = seconds(options.time_to_live);
  how.delay = seconds(options.delay);
  if (options.atomic && options.delay != 0) {
    throw Usage("--atomic and --delay exclude each other");
  }
  if (options.atomic) {
    publish_batch(console, kept, stream, source, topic, how);
    return 0;
  }
  for (auto parts = source.next(); parts; parts = source.next()) {
    how.deadline = kept.answer_deadline();
    pending.push_back(kept.once(what, [&] { return stream.publish_later(topic, (*parts)[0], how); }));
    while (!pending.empty() && settle(pending.size() >= options.window)) {
    }
  }
  while (!pending.empty()) {
    (void)settle(true);
  }
  return 0;
}

int stream_read(Console& console, const StreamReadOptions& options) {
  ReadOptions how;
  how.filter = options.filter;
  how.from = from_of(options.from);
  KeptLink kept(options.fleet);
  Stream stream = open_stream(kept, options.name);
  Reader reader = kept.ask("read " + printable(options.name), [&] { return stream.read(how); });
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    if (!options.stored) {
      print_kept(console, options.shown, kept.await(stream_text(options.name), [&] { return reader.next(); }));
      continue;
    }
    const auto next = kept.ask(stream_text(options.name), [&] { return reader.next_stored(); });
    if (!next) {
      break;
    }
    print_kept(console, options.shown, *next);
  }
  return 0;
}

namespace {

// The settings of a consumer that is there; none: there is no such consumer. The member that asks has a connection of
// its own, gets no message, and leaves at once.
std::optional<ConsumerSettings> settings_of(const FleetOptions& fleet, const StreamConsumeOptions& options) {
  KeptLink kept(fleet);
  const std::string wire = wire_name(kept, options.name);
  const std::string context = "the consumer " + printable(options.consumer);
  const topic::Op op{.kind = topic::OpKind::consume, .name = wire, .key = options.consumer};
  const auto answer = kept.ask(context, [&]() -> Result<std::optional<std::string>> {
    const auto call = WEFT_TRY(HubLink::prepare(op, topic::OnLoss::resend, sys::now() + topic::kAnswerWait));
    const Result<void> ran = kept.link()->run(call);
    if (!ran) {
      return ran.error() == Errc::not_found ? Result<std::optional<std::string>>(std::optional<std::string>())
                                            : ran.error();
    }
    return std::optional(std::string(as_text(call->answer.body)));
  });
  return answer ? std::optional(need(parse_consumer_settings(*answer), context)) : std::nullopt;
}

Consumer open_consumer(KeptLink& kept, Stream& stream, const StreamConsumeOptions& options, const From& from) {
  if (options.priority && *options.priority > topic::kPriorityMax) {
    throw Usage("--priority is 0 to 9");
  }
  const std::string context = "the consumer " + printable(options.consumer);
  const auto settings = options.redeclare ? std::nullopt : settings_of(options.fleet, options);
  if (!settings) {
    ConsumerOptions how;
    how.filter = options.filter;
    how.from = from;
    how.ack_wait = seconds(options.ack_wait);
    how.tries_max = static_cast<std::uint32_t>(std::min<std::uint64_t>(options.tries_max, 1'000'000));
    how.dead_letters = options.dead_letters;
    how.queue_messages_max = 1;
    how.redeclare = options.redeclare;
    if (options.priority) {
      how.priority = static_cast<std::uint32_t>(*options.priority);
    }
    return kept.ask(context, [&] { return stream.consumer(options.consumer, how); });
  }
  return kept.ask(context, [&]() -> Result<Consumer> {
    std::optional<std::uint8_t> priority;
    if (options.priority) {
      priority = static_cast<std::uint8_t>(*options.priority);
    }
    const auto channel = IntrusivePtr<topic::KeptChannel>::adopt(new topic::KeptChannel(
        wire_name(kept, options.name), options.consumer, *settings, 1, std::size_t{8} << 20U, false, priority));
    channel->open_until = sys::now() + topic::kAnswerWait;
    WEFT_TRY(kept.link()->open(*channel));
    Consumer consumer(kept.link(), channel);
    WEFT_TRY(kept.link()->wait_open(*channel));
    return consumer;
  });
}

}  // namespace

int stream_consume(Console& console, const StreamConsumeOptions& options) {
  const From from = from_of(options.from);
  KeptLink kept(options.fleet);
  Stream stream = open_stream(kept, options.name);
  Consumer consumer = open_consumer(kept, stream, options, from);
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    Delivery delivery = kept.await("the consumer " + printable(options.consumer), [&] { return consumer.next(); });
    print_kept(console, options.shown, delivery);
    if (!options.no_ack) {
      kept.once("acknowledge " + std::to_string(delivery.sequence()), [&] { return delivery.ack_confirmed(); });
    }
  }
  return 0;
}

int stream_ack(Console& console, const StreamAckOptions& options) {
  std::vector<std::uint64_t> sequences;
  for (const std::string& text : options.sequences) {
    sequences.push_back(number_from(text, "a sequence"));
  }
  if (is_on_nats(options.fleet)) {
    throw Usage(
        "on NATS only the connection that got a message acknowledges it, and that of `weft stream consume --no-ack` "
        "has "
        "ended: use `weft stream consume` without --no-ack");
  }
  KeptLink kept(options.fleet);
  const std::string wire = wire_name(kept, options.name);
  std::uint64_t waited = 0;
  for (std::size_t at = 0; at < sequences.size();) {
    std::array<std::uint8_t, 8 * topic::KeptChannel::kAcksMax> body;
    const std::uint64_t first = sequences[at++];
    std::size_t size = 0;
    for (; at < sequences.size() && size < body.size(); size += 8) {
      store_big_endian(body.data() + size, sequences[at++]);
    }
    const auto call = run_op(kept,
                             {.kind = topic::OpKind::ack,
                              .number = first,
                              .name = wire,
                              .key = options.consumer,
                              .body = Bytes(body.data(), size)},
                             "the consumer " + printable(options.consumer));
    waited += call->answer.number;
  }
  if (console.json) {
    console.record({{"acknowledged", waited}});
  }
  if (waited < sequences.size()) {
    throw Failure(std::to_string(sequences.size() - waited) + " of " + std::to_string(sequences.size()) +
                  " messages did not wait for an acknowledgement");
  }
  return 0;
}

int stream_purge(Console& console, const StreamPurgeOptions& options) {
  (void)console;
  if (!options.topic.empty() && options.before) {
    throw Usage("--topic and --before exclude each other");
  }
  KeptLink kept(options.fleet);
  StreamInfo info;
  Stream stream = open_stream(kept, options.name, &info);
  kept.ask(stream_text(options.name), [&] {
    return options.topic.empty() ? stream.purge(options.before.value_or(info.next)) : stream.purge_topic(options.topic);
  });
  return 0;
}

}  // namespace weft::cli
