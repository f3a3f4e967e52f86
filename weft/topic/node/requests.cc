// SPDX-License-Identifier: MIT
// Node: requests and services.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/sync/kept_text.h"
#include "weft/sync/lock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

namespace {

constexpr Error kNobody(Errc::unreachable, "nobody serves this topic");
constexpr const char* kError = "Weft-Error";
constexpr const char* kGroup = "Weft-Group";

}  // namespace

// Both subscriptions exist before any peer does: a peer that has this handle has them.
Result<void> Node::open_inbox() {
  calls_.open_inboxes([this](TopicMessage&& message) { handle_reply(std::move(message)); },
                      [this](TopicMessage&& message) {
                        const auto handled = or_no_memory([&]() -> Result<void> {
                          handle_request(std::move(message));
                          return {};
                        });
                        counters_.control_lost += handled ? 0 : 1;  // the asker's deadline passes
                      });
  const Filter replies = WEFT_TRY(Filter::prefix(inbox()));
  const Filter requests = WEFT_TRY(Filter::exact(request_topic(instance())));
  WEFT_TRY(add(calls_.replies_inbox(), "_INBOX", replies));
  return add(calls_.requests_inbox(), "_REQ", requests);
}

// --- asking ---

Result<Node::Request> Node::begin_request(std::string_view topic, Bytes body, std::string_view headers) {
  std::string wire = WEFT_TRY(names_.encode(topic));
  if (gate_ != nullptr) {
    return begin_gate_request(wire, body, headers);
  }
  if (closed()) {
    return Error(Errc::closed, "the handle of topics was closed");
  }
  std::vector<Requests::Member> members;
  Request request;
  WEFT_TRY(with_mesh([&](MeshState& mesh) -> Result<void> {
    members = WEFT_TRY(mesh.choose_members(wire));
    request.id = mesh.next_id();
    request.replies = make_intrusive<SubscriptionCore>(Full::drop_newest, members.size(), options_.queue_bytes_max);
    mesh.requests().begin(request.id, members);
    const Result<void> begun = or_no_memory([&] { return calls_.begin(request.id, request.replies); });
    if (!begun) {
      mesh.requests().end(request.id);
    }
    return begun;
  }));
  ++counters_.requests;
  const auto send = [&](const Requests::Member& each) -> Result<void> {
    auto block = with_header(headers, kReplyHeader, inbox() + std::to_string(request.id));
    block = block ? with_header(*block, kServiceHeader, wire) : std::move(block);
    block = block && !each.group.empty() ? with_header(*block, kGroup, each.group) : std::move(block);
    const auto to = make_wire_publisher(request_topic(each.instance), false);
    return !block ? Result<void>(block.error()) : (!to ? Result<void>(to.error()) : publish(**to, body, *block, false));
  };
  for (const Requests::Member& each : members) {
    const Result<void> sent = or_no_memory([&] { return send(each); });
    if (!sent) {
      end_request(request.id);
      return sent.error();
    }
  }
  return request;
}

void Node::end_request(std::uint64_t id) noexcept {
  with_mesh([&](MeshState& mesh) { mesh.requests().end(id); });
  calls_.end(id);
}

Result<TopicMessage> Node::reply_of(Result<TopicMessage> received) {
  if (!received) {
    return received;
  }
  const std::string_view text = received->header(kError);
  if (text.empty()) {
    return received;
  }
  std::uint32_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  const ErrorDomain domain(static_cast<std::uint16_t>(number >> 16U));
  const auto value = static_cast<std::uint16_t>(number);
  const bool known = value != 0 && (domain != ErrorDomain() || describe(static_cast<Errc>(value)) != "unknown error");
  const std::string_view reason = text.substr(std::min(text.size(), text.find(' ') + 1));
  const StaticText kept = sync::keep_peer_text({reason}, "the service answered with an error");
  return known ? Error(domain, value, kept) : Error(Errc::other, kept);
}

// On the thread that brings the message.
void Node::handle_reply(TopicMessage&& message) {
  const std::string_view topic = message.topic();
  const std::size_t dot = topic.rfind('.');
  std::uint64_t id = 0;
  (void)std::from_chars(topic.data() + dot + 1, topic.data() + topic.size(), id);
  const IntrusivePtr<SubscriptionCore> replies = calls_.replies_of(id);
  if (replies == nullptr) {
    ++counters_.late_replies;
    return;
  }
  ++counters_.replies;
  replies->offer(std::move(message));
  if (replies->lost() != 0) {
    TopicsStatistics counts;
    replies->add_counts(counts);
    if (counts.queued == 0 && counts.delivered == 0 && counts.dropped_no_memory != 0) {
      replies->close(Error(Errc::resource_exhausted, "no memory for the reply"));
    }
  }
}

// --- serving ---

// On the thread that brings the message; it may hold the publish lock, so a refusal is sent by the loop.
void Node::handle_request(TopicMessage&& message) {
  const std::string topic(message.header(kServiceHeader));
  const std::string group(message.header(kGroup));
  const Calls::Service service =
      calls_.service(with_mesh([&](MeshState& mesh) { return mesh.requests().next_service(topic, group); }));
  offer_request(service, std::move(message));
}

// `service` is null if this handle does not serve the topic.
void Node::offer_request(const Calls::Service& service, TopicMessage&& message) {
  bool full = false;
  if (service.requests != nullptr) {
    TopicsStatistics counts;
    service.requests->add_counts(counts);
    full = counts.queued >= service.queue_max;
  }
  if (service.requests != nullptr && !full) {
    service.requests->offer(std::move(message));
    return;
  }
  const Error error = full ? Error(Errc::resource_exhausted, "the service has too many requests") : kNobody;
  loop_.post(
      [this, refused = std::make_shared<TopicMessage>(std::move(message)), error] { reply_error(*refused, error); });
}

Result<IntrusivePtr<SubscriptionCore>> Node::serve(std::string_view topic, std::string_view group,
                                                   std::size_t queue_max) {
  return or_no_memory([&]() -> Result<IntrusivePtr<SubscriptionCore>> {
    std::string wire = WEFT_TRY(names_.encode(topic));
    if (group.size() > 255 || group.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
      return Error(Errc::invalid_argument, "a group's name has at most 255 bytes, of one line");
    }
    if (gate_ != nullptr) {
      return serve_at_gate(wire, group, queue_max);
    }
    auto requests = make_intrusive<SubscriptionCore>(Full::drop_newest, 2 * queue_max, options_.queue_bytes_max);
    if (closed()) {
      return Error(Errc::closed, "the handle of topics was closed");
    }
    WEFT_TRY(with_mesh([&](MeshState& mesh) -> Result<void> {
      const std::uint64_t id = mesh.next_id();
      WEFT_TRY(mesh.serve(id, std::move(wire), std::string(group)));
      const Result<void> added = or_no_memory([&] { return calls_.add_service(id, {requests, queue_max}); });
      if (!added) {
        mesh.stop_serving(id);
      }
      return added;
    }));
    send_roster(0);
    return requests;
  });
}

void Node::stop_serving(SubscriptionCore& service) noexcept {
  const std::uint64_t id = calls_.take_out(service);
  if (id == 0) {
    return;  // it was stopped before
  }
  with_mesh([&](MeshState& mesh) { mesh.stop_serving(id); });
  if (gate_ != nullptr) {
    gate_->stop_serving(*this, id);
  }
  try {
    if (gate_ == nullptr) {
      send_roster(0);
    }
    while (const auto left = service.try_pop()) {
      reply_error(*left, kNobody);
    }
  } catch (const std::bad_alloc&) {
    mesh_changed();  // the askers' deadlines pass
  }
  service.close(Error(Errc::closed, "the service was stopped"));
}

void Node::reply(const TopicMessage& request, Bytes body, std::string_view headers) noexcept {
  const std::string_view to = request.reply_to();
  if (gate_ != nullptr) {
    const auto answered = or_no_memory([&] { return gate_->answer(to, headers, body); });
    counters_.control_unsent += answered ? 0 : 1;
    return;
  }
  if (!to.starts_with(kInboxes)) {
    return;  // no request waits
  }
  const auto sent = or_no_memory([&]() -> Result<void> {
    const auto publisher = WEFT_TRY(make_wire_publisher(std::string(to), false));
    return publish(*publisher, body, headers, false);
  });
  counters_.control_unsent += !sent && sent.error() == Errc::resource_exhausted ? 1 : 0;
}

void Node::reply_error(const TopicMessage& request, const Error& error) noexcept {
  (void)or_no_memory([&]() -> Result<void> {
    Headers headers;
    // The domain and the value in one number: of Weft's own domain the Errc.
    const std::string_view text = *error.text() != '\0' ? std::string_view(error.text()) : describe(error.code());
    std::string line = std::to_string(error.domain_and_value()) + " ";
    std::transform(text.begin(), text.end(), std::back_inserter(line),
                   [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c; });
    WEFT_TRY(headers.add(kError, line));
    reply(request, {}, headers.block());
    return {};
  });
}

}  // namespace weft::topic
