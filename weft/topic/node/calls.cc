// SPDX-License-Identifier: MIT
#include "weft/topic/node/calls.h"

#include <algorithm>
#include <new>

#include "weft/topic/mesh/requests.h"
#include "weft/topic/wire/control.h"

namespace weft::topic {

void Calls::open_inboxes(std::function<void(TopicMessage&&)> on_reply, std::function<void(TopicMessage&&)> on_request) {
  replies_inbox_ = make_intrusive<SubscriptionCore>(std::move(on_reply));
  requests_inbox_ = make_intrusive<SubscriptionCore>(std::move(on_request));
}

Result<void> Calls::begin(std::uint64_t id, IntrusivePtr<SubscriptionCore> replies, std::string subject) {
  const sync::LockGuard lock(mutex_);
  if (closed_ != Errc::ok) {
    return closed_;
  }
  if (replies_refused_ != Errc::ok) {
    return replies_refused_.with_fate(Fate::not_sent);
  }
  if (asked_.size() >= Requests::kRequestsMax) {
    return Error(Errc::resource_exhausted, "65,536 requests are under way");
  }
  const auto place = asked_.emplace(id, Asked{std::move(replies), std::move(subject)}).first;
  try {
    if (!place->second.subject.empty()) {
      by_subject_.emplace(place->second.subject, id);
    }
  } catch (const std::bad_alloc&) {
    asked_.erase(place);
    throw;
  }
  return {};
}

void Calls::end(std::uint64_t id) noexcept {
  const sync::LockGuard lock(mutex_);
  if (const auto found = asked_.find(id); found != asked_.end()) {
    by_subject_.erase({found->second.subject, id});
    asked_.erase(found);
  }
}

void Calls::fail(std::uint64_t id, const Error& why) noexcept {
  const IntrusivePtr<SubscriptionCore> replies = replies_of(id);
  end(id);
  if (replies != nullptr) {
    replies->end(why);
  }
}

IntrusivePtr<SubscriptionCore> Calls::replies_of(std::uint64_t id) noexcept {
  const sync::LockGuard lock(mutex_);
  const auto found = asked_.find(id);
  return found == asked_.end() ? IntrusivePtr<SubscriptionCore>() : found->second.replies;
}

void Calls::fail_all(const Error& why) noexcept {
  const sync::LockGuard lock(mutex_);
  for (const auto& [id, asked] : asked_) {
    asked.replies->end(why);
  }
}

void Calls::fail_subject(std::string_view subject, const Error& why) noexcept {
  const sync::LockGuard lock(mutex_);
  auto each = by_subject_.lower_bound({subject, 0});
  while (each != by_subject_.end() && each->first == subject) {
    asked_.at(each->second).replies->end(why);
    each = by_subject_.erase(each);
  }
}

void Calls::refuse_replies(const Error& why) noexcept {
  const sync::LockGuard lock(mutex_);
  replies_refused_ = why;
}

void Calls::refuse_answers(const Error& why) noexcept {
  const sync::LockGuard lock(mutex_);
  answers_refused_ = why;
}

void Calls::permit() noexcept {
  const sync::LockGuard lock(mutex_);
  replies_refused_ = answers_refused_ = Error();
}

Result<void> Calls::answers() noexcept {
  const sync::LockGuard lock(mutex_);
  return answers_refused_ == Errc::ok ? Result<void>() : Result<void>(answers_refused_);
}

Result<void> Calls::add_service(std::uint64_t id, Service service) {
  const sync::LockGuard lock(mutex_);
  if (closed_ != Errc::ok) {
    return closed_;
  }
  if (services_.size() >= Roster::kServicesMax) {
    return Error(Errc::resource_exhausted, "the handle has 1,024 services");
  }
  services_.emplace(id, std::move(service));
  return {};
}

void Calls::remove_service(std::uint64_t id) noexcept {
  const sync::LockGuard lock(mutex_);
  services_.erase(id);
}

std::uint64_t Calls::take_out(const SubscriptionCore& requests) noexcept {
  const sync::LockGuard lock(mutex_);
  const auto found = std::find_if(services_.begin(), services_.end(),
                                  [&](const auto& each) { return each.second.requests.get() == &requests; });
  if (found == services_.end()) {
    return 0;
  }
  const std::uint64_t id = found->first;
  services_.erase(found);
  return id;
}

Calls::Service Calls::service(std::uint64_t id) noexcept {
  const sync::LockGuard lock(mutex_);
  const auto found = services_.find(id);
  return found == services_.end() ? Service() : found->second;
}

void Calls::fail_service(std::uint64_t id, const Error& why) noexcept {
  const sync::LockGuard lock(mutex_);
  if (const auto found = services_.find(id); found != services_.end()) {
    found->second.requests->end(why);
  }
}

void Calls::close(const Error& reason) noexcept {
  const sync::LockGuard lock(mutex_);
  closed_ = reason;
  for (const auto& [id, asked] : asked_) {
    asked.replies->close(reason);
  }
  for (const auto& [id, service] : services_) {
    service.requests->close(reason);
  }
}

}  // namespace weft::topic
