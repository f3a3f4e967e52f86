// SPDX-License-Identifier: MIT
// From programs with PUB to the fleet.
#include <algorithm>
#include <string>
#include <unordered_map>

#include "tools/weft/bridge/names.h"
#include "tools/weft/bridge/unit.h"

namespace weft::bridge {

namespace {

constexpr std::size_t kPublishersMax = 4096;  // topics whose names stay checked and encoded

class Publishers final : public Unit {
 public:
  Publishers(Surroundings& around, Section section)
      : Unit(around, std::move(section)), names_(section_.prefix, section_.separator[0]) {}

  void start(rt::TaskScope& scope) override {
    (void)scope.spawn(take_each([this](std::vector<Message> frames) { publish(std::move(frames)).add(); }));
  }
  [[nodiscard]] bool idle() override { return has_taken(); }

 protected:
  [[nodiscard]] SocketType type() const noexcept override { return SocketType::xsub; }
  [[nodiscard]] Result<void> prepare(Socket& socket) override {
    for (const std::string& prefix : section_.subscribe) {
      WEFT_TRY(socket.subscribe(prefix));
    }
    return {};
  }

 private:
  // Gives the message to the fleet, and returns the counter of the outcome.
  Counters::Number& publish(std::vector<Message> frames) {
    Via via;
    if (const char* const property = frames[0].peer_property(kViaProperty); property != nullptr) {
      via.add_all(property);
    }
    Headers headers;
    if (section_.headers && frames.size() > 2 && is_header_block(frames.back().text())) {
      auto passing = passing_headers(frames.back().text());
      if (!passing) {
        return counters_->dropped_malformed;
      }
      headers = *std::move(passing);
      via.add_all(find_header(frames.back().text(), kViaHeader));
      frames.pop_back();
    }
    if (via.passed(around_.name) || via.has(section_.network) || via.full()) {
      return counters_->dropped_loop;  // the fleet had it already
    }
    via.add(section_.network);
    if (frames.size() > kPartsMax + 2) {
      return counters_->dropped_too_large;
    }
    if (!via.text().empty() && !headers.add(kViaHeader, via.text())) {
      return counters_->dropped_too_large;
    }
    if (frames.size() > 2 && !headers.add(kPartsHeader, encode_parts(std::span(frames).subspan(2)))) {
      return counters_->dropped_too_large;
    }
    AsyncPublisher* const publisher = publisher_of(names_.to_fleet(frames[0].text()));
    if (publisher == nullptr) {
      return counters_->dropped_name;
    }
    const Result<void> published = publisher->publish(frames.size() > 1 ? frames[1].bytes() : Bytes(), headers);
    if (published) {
      return counters_->given;
    }
    return published.error() == Errc::message_too_large ? counters_->dropped_too_large : counters_->dropped_refused;
  }

  // Null: no topic may have the name.
  AsyncPublisher* publisher_of(const std::string& topic) {
    const auto found = publishers_.find(topic);
    if (found != publishers_.end()) {
      return &found->second;
    }
    if (!check_topic(topic)) {
      return nullptr;
    }
    Result<AsyncPublisher> made = around_.topics.publisher(topic);
    if (!made) {
      return nullptr;
    }
    if (publishers_.size() == kPublishersMax) {
      publishers_.clear();
    }
    return &publishers_.emplace(topic, *std::move(made)).first->second;
  }

  Names names_;
  std::unordered_map<std::string, AsyncPublisher> publishers_;
};

}  // namespace

std::unique_ptr<Unit> make_publishers(Surroundings& around, Section section) {
  return std::make_unique<Publishers>(around, std::move(section));
}

}  // namespace weft::bridge
