// SPDX-License-Identifier: MIT
#include "weft/topic/jetstream/batches.h"

#include <algorithm>
#include <utility>

#include "weft/nats/jetstream/publish.h"
#include "weft/topic/jetstream/appends.h"
#include "weft/topic/wire/batch.h"

namespace weft::topic {

namespace {

namespace js = nats::jetstream;

constexpr Duration kBatchAckMost = std::chrono::seconds(10);  // a server forgets a batch that stands still for so long
constexpr Error kNoBatches(Errc::not_supported,
                           "a batch on NATS: servers since 2.12, and a stream that was declared since then or again");
constexpr Error kBatchUnsent(Errc::timed_out, "no server took the batch in time");
constexpr Error kBatchUnknown(Errc::outcome_unknown, "the servers did not acknowledge the batch: they may have it");

}  // namespace

Result<std::vector<Batches::Part>> Batches::parts_of(const Asked& asked, const KeptStream& stream,
                                                     std::string_view id) const {
  const std::vector<Op> messages = WEFT_TRY(parse_batch(asked.op.body));
  std::vector<Part> parts;
  for (const Op& message : messages) {
    WEFT_TRY(streams_.check(stream, message, asked.op.second));
    Part& part = parts.emplace_back();
    WEFT_TRY(stream.names.append_subject(message.key, part.subject));
    const bool again =
        std::any_of(parts.begin(), parts.end() - 1, [&part](const Part& each) { return each.subject == part.subject; });
    if (again && message.has(OpFlags::expect_last)) {
      return Error(Errc::invalid_argument, "the batch has an earlier message of a topic with an expectation");
    }
    js::PublishHeaders headers;
    headers.message_id = message.message_id;
    headers.expected_stream = stream.names.stream();
    if (message.has(OpFlags::expect_last)) {
      headers.expected_last_subject_sequence = message.number;
    }
    headers.ttl = message.time_to_live();
    headers.batch = id;
    headers.batch_sequence = parts.size();
    headers.batch_ends = parts.size() == messages.size();
    nats::Headers own;
    WEFT_TRY(headers.add_to(own));
    part.headers = WEFT_TRY(join_headers(own, message.headers));
    part.body = message.body;
  }
  return parts;
}

rt::Task<void> Batches::append(Batches* self, std::unique_ptr<Asked> asked) {
  Engine& engine = self->engine_;
  const auto stream = self->streams_.find(asked->op.name);
  if (!stream) {
    engine.refuse(*asked, stream.error());
    co_return;
  }
  const Instant deadline = deadline_after(engine.now(), std::min((*stream)->id_window / 2, Engine::kAskMost));
  const KeptStreams::Look found = co_await KeptStreams::look(&self->streams_, *stream);
  if (!found || !found->ok()) {
    engine.refuse(*asked, error_of(found), text_of(found));
    co_return;
  }
  const auto parts = (*stream)->takes_batches ? self->parts_of(*asked, **stream, engine.fresh_name())
                                              : Result<std::vector<Part>>(kNoBatches);
  if (!parts) {
    engine.refuse(*asked, parts.error());
    co_return;
  }
  std::vector<std::string_view> subjects;
  for (const Part& part : *parts) {
    subjects.push_back(part.subject);
  }
  for (std::size_t i = 0; i + 1 < parts->size(); ++i) {
    const Part& part = parts->at(i);
    const auto published = engine.client().publish(part.subject, part.body, {{}, as_bytes(part.headers)});
    if (!published) {
      engine.refuse(*asked, published.error() == Errc::closed ? kBatchUnsent : published.error());
      co_return;
    }
  }
  const Part& last = parts->back();
  const Instant ack_by = std::min(deadline, deadline_after(engine.now(), kBatchAckMost));
  Engine::Question question(subjects);
  rt::Task<Result<nats::Answer>> request =
      engine.client().request(last.subject, last.body, ack_by, as_bytes(last.headers));
  const auto answer = co_await Engine::answer_to(&engine, &question, std::move(request));
  if (question.refused != Errc::ok) {  // the server stores none
    engine.refuse(*asked, question.refused, text_of_refusal(question.refused_subject, question.refused));
    co_return;
  }
  if (!answer) {
    engine.refuse(*asked, answer.error().fate() == Fate::not_sent ? kBatchUnsent : kBatchUnknown);
    co_return;
  }
  const auto ack = js::read_publish_ack(as_text(answer->body()));
  if (!ack || !ack->ok()) {
    engine.refuse(*asked, error_of(ack), text_of(ack));
    co_return;
  }
  const std::string instance = (*stream)->other_life(asked->op.second);
  const std::uint64_t count = parts->size();
  engine.answer(*asked, {.number = ack->value.sequence + 1 - count, .second = count, .message_id = instance});
}

}  // namespace weft::topic
