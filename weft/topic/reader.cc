// SPDX-License-Identifier: MIT
#include "weft/topic/reader.h"

#include <utility>

#include "weft/topic/kept/hub_link.h"

namespace weft {

namespace {
constexpr Error kMoved(Errc::closed, "the reader was moved from");
}

Reader::Reader(std::shared_ptr<topic::HubLink> link, IntrusivePtr<topic::KeptChannel> channel) noexcept
    : link_(std::move(link)), channel_(std::move(channel)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&& other) noexcept {
  if (this != &other) {
    close();
    link_ = std::move(other.link_);
    channel_ = std::move(other.channel_);
  }
  return *this;
}
Reader::~Reader() { close(); }

void Reader::close() noexcept {
  if (channel_ != nullptr) {
    link_->end(*channel_);
  }
}

Result<void> Reader::wait_open() {
  return link_->wait(channel_->changed, kNever, [this] { return link_->opened(*channel_); });
}

Result<KeptMessage> Reader::next() { return next_until(kNever); }
Result<KeptMessage> Reader::next_until(Instant deadline) {
  if (channel_ == nullptr) {
    return kMoved;
  }
  return link_->wait(channel_->changed, deadline, [this] { return link_->try_next(*channel_); });
}
Result<KeptMessage> Reader::try_next() {
  if (channel_ == nullptr) {
    return kMoved;
  }
  const std::lock_guard lock(*link_);
  return link_->try_next(*channel_);
}
Result<std::optional<KeptMessage>> Reader::next_stored() {
  if (channel_ == nullptr) {
    return kMoved;
  }
  return link_->wait(channel_->changed, kNever, [this] { return link_->try_next_stored(*channel_); });
}

bool Reader::live() const noexcept {
  if (channel_ == nullptr) {
    return false;
  }
  const std::lock_guard lock(*link_);
  return channel_->live();
}

}  // namespace weft
