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
  replies_in_ = make_intrusive<SubscriptionCore>([this](TopicMessage&& message) { handle_reply(std::move(message)); });
  requests_in_ = make_intrusive<SubscriptionCore>([this](TopicMessage&& message) {
    const auto handled = or_no_memory([&]() -> Result<void> {
      handle_request(std::move(message));
      return {};
    });
    counters_.control_lost += handled ? 0 : 1;  // the asker's deadline passes
  });
  const Filter replies = WEFT_TRY(Filter::prefix(inbox()));
  const Filter requests = WEFT_TRY(Filter::exact(request_topic(instance_)));
  WEFT_TRY(add(*replies_in_, "_INBOX", replies));
  return add(*requests_in_, "_REQ", requests);
}

// --- asking ---

Result<Node::Request> Node::begin_request(std::string_view topic, Bytes body, std::string_view headers) {
  std::string wire = WEFT_TRY(names_.encode(topic));
  if (gate_ != nullptr) {
    return begin_gate_request(std::move(wire), body, headers);
  }
  std::vector<Requests::Member> members;
  Request request;
  {
    const sync::LockGuard lock(mesh_mutex_);
    if (closed()) {
      return Error(Errc::closed, "the handle of topics was closed");
    }
    members = WEFT_TRY(mesh_.choose_members(wire));
    request.id = mesh_.next_id();
    request.replies = make_intrusive<SubscriptionCore>(Full::drop_newest, members.size(), options_.queue_bytes_max);
    mesh_.requests().begin(request.id, members);
    try {
      replies_.emplace(request.id, Asked{request.replies});
    } catch (const std::bad_alloc&) {
      mesh_.requests().end(request.id);
      throw;
    }
  }
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
  const sync::LockGuard lock(mesh_mutex_);
  mesh_.requests().end(id);
  if (const auto found = replies_.find(id); found != replies_.end()) {
    asked_.erase({found->second.subject, id});
    replies_.erase(found);
  }
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
  IntrusivePtr<SubscriptionCore> replies;
  {
    const sync::LockGuard lock(mesh_mutex_);
    if (const auto found = replies_.find(id); found != replies_.end()) {
      replies = found->second.replies;
    }
  }
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
  IntrusivePtr<SubscriptionCore> service;
  std::size_t queue_max = 0;
  {
    const sync::LockGuard lock(mesh_mutex_);
    const auto found = services_.find(mesh_.requests().next_service(topic, group));
    if (found != services_.end()) {
      queue_max = found->second.queue_max;
      service = found->second.requests;
    }
  }
  offer_request(std::move(service), queue_max, std::move(message));
}

// `service` is null if this handle does not serve the topic.
void Node::offer_request(IntrusivePtr<SubscriptionCore> service, std::size_t queue_max, TopicMessage&& message) {
  bool full = false;
  if (service != nullptr) {
    TopicsStatistics counts;
    service->add_counts(counts);
    full = counts.queued >= queue_max;
  }
  if (service != nullptr && !full) {
    service->offer(std::move(message));
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
      return serve_at_gate(std::move(wire), group, queue_max);
    }
    auto requests = make_intrusive<SubscriptionCore>(Full::drop_newest, 2 * queue_max, options_.queue_bytes_max);
    {
      const sync::LockGuard lock(mesh_mutex_);
      if (closed()) {
        return Error(Errc::closed, "the handle of topics was closed");
      }
      const std::uint64_t id = mesh_.next_id();
      const auto place = services_.emplace(id, Service{requests, queue_max}).first;
      const Result<void> served =
          or_no_memory([&] { return in_mesh(), mesh_.serve(id, std::move(wire), std::string(group)); });
      if (!served) {
        services_.erase(place);
        return served.error();
      }
    }
    send_roster(0);
    return requests;
  });
}

void Node::stop_serving(SubscriptionCore& service) noexcept {
  std::uint64_t id = 0;
  {
    const sync::LockGuard lock(mesh_mutex_);
    const auto found = std::find_if(services_.begin(), services_.end(),
                                    [&](const auto& each) { return each.second.requests.get() == &service; });
    if (found == services_.end()) {
      return;  // it was stopped before
    }
    id = found->first;
    mesh_.stop_serving(id);
    services_.erase(found);
  }
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
