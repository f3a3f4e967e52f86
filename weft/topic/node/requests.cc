// SPDX-License-Identifier: MIT
// Node: requests and services.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "weft/msg/socket/socket_core.h"
#include "weft/sync/kept_text.h"
#include "weft/sync/lock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

namespace {

constexpr Error kNobody(Errc::unreachable, "nobody serves this topic");
constexpr const char* kError = "Weft-Error";
constexpr const char* kService = "Weft-Service";
constexpr const char* kGroup = "Weft-Group";

// `headers` with one more in front, in NATS' form.
Result<std::string> with_header(std::string_view headers, std::string_view name, std::string_view value) {
  Headers more;
  WEFT_TRY(more.add(name, value));
  if (headers.empty()) {
    return std::string(more.block());
  }
  constexpr std::string_view kLineEnd = "\r\n";
  const std::size_t first = headers.find(kLineEnd);
  if (!is_header_block(headers) || first == std::string_view::npos) {
    return Error(Errc::invalid_argument, "the headers are no block");
  }
  std::string all(more.block().substr(0, more.block().size() - kLineEnd.size()));
  all += headers.substr(first + kLineEnd.size());
  return all;
}

}  // namespace

// Both subscriptions exist before any peer does: a peer that has this handle has them.
Result<void> Node::open_inbox() {
  replies_in_ = make_intrusive<SubscriptionCore>([this](TopicMessage&& message) { handle_reply(std::move(message)); });
  requests_in_ = make_intrusive<SubscriptionCore>([this](TopicMessage&& message) {
    const auto handled = msg::or_no_memory([&]() -> Result<void> {
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
  const std::string wire = WEFT_TRY(names_.encode(topic));
  struct Chosen {
    std::string group;
    std::uint64_t instance;
  };
  std::vector<Chosen> chosen;
  Request request;
  {
    const sync::LockGuard lock(mesh_mutex_);
    if (closed()) {
      return Error(Errc::closed, "the handle of topics was closed");
    }
    std::map<std::string, std::vector<std::uint64_t>> groups;
    for (const Service& service : services_) {
      if (service.topic == wire) {
        groups[service.group].push_back(instance_);
      }
    }
    for (const auto& [instance, peer] : peers_) {
      for (const Roster::Service& service : peer.roster.services) {
        if (peer.answered && service.topic == wire) {
          groups[service.group].push_back(instance);
        }
      }
    }
    if (groups.empty()) {
      return told_all() ? kNobody : Error(Errc::would_block);
    }
    if (requests_.size() >= kRequestsMax) {
      return Error(Errc::resource_exhausted, "65,536 requests are under way");
    }
    request.id = next_id_++;
    request.replies = make_intrusive<SubscriptionCore>(Full::drop_newest, groups.size(), options_.queue_bytes_max);
    Pending pending{request.replies, {}};
    const std::size_t turn = next_asked_++;
    for (const auto& [group, members] : groups) {
      chosen.push_back({group, members[turn % members.size()]});
      pending.members.push_back(chosen.back().instance);
    }
    requests_.emplace(request.id, std::move(pending));
  }
  ++counters_.requests;
  const auto send = [&](const Chosen& each) -> Result<void> {
    auto block = with_header(headers, "Weft-Reply", inbox() + std::to_string(request.id));
    block = block ? with_header(*block, kService, wire) : std::move(block);
    block = block && !each.group.empty() ? with_header(*block, kGroup, each.group) : std::move(block);
    const auto to = make_wire_publisher(request_topic(each.instance), false);
    return !block ? Result<void>(block.error()) : (!to ? Result<void>(to.error()) : publish(**to, body, *block, false));
  };
  for (const Chosen& each : chosen) {
    const Result<void> sent = msg::or_no_memory([&] { return send(each); });
    if (!sent) {
      end_request(request.id);
      return sent.error();
    }
  }
  return request;
}

bool Node::served(std::string_view topic) const {
  const auto wire = names_.encode(topic);
  const auto serves = [&](const auto& service) { return service.topic == *wire; };
  return wire && (std::any_of(services_.begin(), services_.end(), serves) ||
                  std::any_of(peers_.begin(), peers_.end(), [&](const auto& each) {
                    const auto& services = each.second.roster.services;
                    return each.second.answered && std::any_of(services.begin(), services.end(), serves);
                  }));
}

void Node::end_request(std::uint64_t id) noexcept {
  const sync::LockGuard lock(mesh_mutex_);
  requests_.erase(id);
}

void Node::end_requests_to(std::uint64_t instance) {
  for (auto& [id, pending] : requests_) {
    if (std::erase(pending.members, instance) != 0 && pending.members.empty()) {
      pending.replies->close(Error(Errc::connection_closed, "the handle that was asked is gone"));
    }
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
    if (const auto found = requests_.find(id); found != requests_.end()) {
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
  const std::string topic(message.header(kService));
  const std::string group(message.header(kGroup));
  IntrusivePtr<SubscriptionCore> service;
  bool full = false;
  {
    const sync::LockGuard lock(mesh_mutex_);
    std::vector<const Service*> able;
    for (const Service& each : services_) {
      if (each.topic == topic && each.group == group) {
        able.push_back(&each);
      }
    }
    if (!able.empty()) {
      const Service& one = *able[next_service_++ % able.size()];
      TopicsStatistics counts;
      one.requests->add_counts(counts);
      full = counts.queued >= one.queue_max;
      service = one.requests;
    }
  }
  if (service != nullptr && !full) {
    service->offer(std::move(message));
    return;
  }
  const Error error = full ? Error(Errc::resource_exhausted, "the service has too many requests") : kNobody;
  loop_->post([weak = weak_from_this(), refused = std::make_shared<TopicMessage>(std::move(message)), error] {
    if (const auto node = weak.lock(); node != nullptr && !node->closed()) {
      node->reply_error(*refused, error);
    }
  });
}

Result<IntrusivePtr<SubscriptionCore>> Node::serve(std::string_view topic, std::string_view group,
                                                   std::size_t queue_max) {
  return msg::or_no_memory([&]() -> Result<IntrusivePtr<SubscriptionCore>> {
    std::string wire = WEFT_TRY(names_.encode(topic));
    if (group.size() > 255 || group.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
      return Error(Errc::invalid_argument, "a group's name has at most 255 bytes, of one line");
    }
    auto requests = make_intrusive<SubscriptionCore>(Full::drop_newest, 2 * queue_max, options_.queue_bytes_max);
    {
      const sync::LockGuard lock(mesh_mutex_);
      if (closed()) {
        return Error(Errc::closed, "the handle of topics was closed");
      }
      if (services_.size() >= Roster::kServicesMax) {
        return Error(Errc::resource_exhausted, "a handle has at most 1,024 services");
      }
      services_.push_back({std::move(wire), std::string(group), requests, queue_max});
      ++revision_;
    }
    announce();
    return requests;
  });
}

void Node::stop_serving(SubscriptionCore& service) noexcept {
  {
    const sync::LockGuard lock(mesh_mutex_);
    std::erase_if(services_, [&](const Service& each) { return each.requests.get() == &service; });
    ++revision_;
  }
  try {
    announce();
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
  if (!to.starts_with(kInboxes)) {
    return;  // no request waits
  }
  const auto sent = msg::or_no_memory([&]() -> Result<void> {
    const auto publisher = WEFT_TRY(make_wire_publisher(std::string(to), false));
    return publish(*publisher, body, headers, false);
  });
  counters_.control_unsent += !sent && sent.error() == Errc::resource_exhausted ? 1 : 0;
}

void Node::reply_error(const TopicMessage& request, const Error& error) noexcept {
  (void)msg::or_no_memory([&]() -> Result<void> {
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
