// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "weft/base/endian.h"
#include "weft/base/filter.h"
#include "weft/msg/context.h"
#include "weft/sys/clock.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/test_time.h"
#include "weft/topic/wire/ops.h"
#include <gtest/gtest.h>

namespace weft::topic {

using namespace std::chrono_literals;

// FakeStore: the messages of a FakeHub. The store outlives hubs, as a file does.
struct FakeStore {
  struct Stored {
    std::string topic, id, headers, body;
    bool erased = false;
  };
  struct Stream {
    StreamSettings settings;
    std::vector<Stored> messages;  // sequence - 1
    std::map<std::string, std::uint64_t> last, ids;
    std::map<std::string, std::map<std::uint64_t, std::uint16_t>> waiting;  // consumer: sequence, deliveries
    std::map<std::string, std::uint64_t> next;
    std::map<std::string, ConsumerSettings> consumers;
  };
  std::map<std::string, Stream> streams;
};

// FakeHub: a hub in memory, in a thread of its own, that can also lie.
// Faults are set before it starts, or between ops by `on_op`.
class FakeHub {
 public:
  // Called with each op, before it is carried out. If it returns false, the op is lost.
  using OnOp = std::function<bool(FakeHub&, const Op&)>;

  FakeHub(Context& context, const std::string& endpoint, FakeStore& store, OnOp on_op = {})
      : store_(store), on_op_(std::move(on_op)) {
    socket_ = *context.socket(SocketType::router);
    EXPECT_TRUE(socket_.set(option::linger, Duration(0)));
    EXPECT_TRUE(socket_.set(option::send_high_water_mark, 0));  // a router drops messages to a member beyond its mark
    EXPECT_TRUE(socket_.set(option::receive_timeout, Duration(20ms)));
    EXPECT_TRUE(socket_.bind(endpoint));
    thread_ = std::thread([this] { run(); });
  }
  FakeHub(const FakeHub&) = delete;
  FakeHub& operator=(const FakeHub&) = delete;
  ~FakeHub() { stop(); }
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    socket_.close();
  }

  // For `on_op`: sends any op to the member whose op it is.
  void send(const Op& op) { send(member_, op); }
  std::atomic<bool> mute_answers{false};  // carries out and does not answer
  std::atomic<int> answer_times{1};
  std::atomic<std::uint64_t> appends{0};
  std::atomic<std::uint64_t> duplicates{0};
  std::atomic<std::uint64_t> given_back{0};  // messages that no program saw

  // For `on_op`: asks the members for messages that no program has seen.
  void recall(std::uint64_t count) {
    for (const auto& [at, channel] : channels_) {
      if (!channel.consumer.empty()) {
        send(channel.member, {.kind = OpKind::recall, .id = channel.id, .number = count});
      }
    }
  }
  // Between ops: how often the message was delivered; how many wait for their acknowledgement.
  std::uint16_t tries(const std::string& stream, const std::string& consumer, std::uint64_t sequence) {
    const std::lock_guard lock(mutex_);
    const auto& waiting = store_.streams[stream].waiting[consumer];
    return waiting.contains(sequence) ? waiting.at(sequence) : std::uint16_t{0};
  }
  std::size_t waiting(const std::string& stream, const std::string& consumer) {
    const std::lock_guard lock(mutex_);
    return store_.streams[stream].waiting[consumer].size();
  }

 private:
  struct Channel {
    std::string member, stream, consumer;
    std::uint32_t id = 0;
    std::uint64_t credit = 0, next = 1, stored = 0;
    std::optional<Filter> filter;
    bool newest_only = false, told = false;
    bool begins = false;             // a delivery counts when `begin` comes
    std::set<std::uint64_t> queued;  // delivered, and not begun
  };

  void run() {
    while (!stopping_) {
      auto parts = socket_.recv_all();
      if (!parts || parts->size() != 2) {
        continue;
      }
      member_ = (*parts)[0].text();
      const auto op = parse_op((*parts)[1].bytes());
      const std::lock_guard lock(mutex_);
      if (op && (!on_op_ || on_op_(*this, *op))) {
        handle(*op);
        deliver();
      }
    }
  }
  void send(const std::string& member, const Op& op) {
    std::vector<Message> parts;
    parts.push_back(*Message::copy_of(member));
    parts.push_back(*Message::with_size(encoded_size(op)));
    encode_op(op, parts[1].mutable_bytes());
    (void)socket_.send_all(parts);
  }
  void answer(const Op& to, Errc errc, Op with = {}) {
    with.kind = OpKind::answer;
    with.id = to.id;
    with.code = static_cast<std::uint16_t>(errc);
    if (mute_answers || (to.has(OpFlags::quiet) && errc == Errc::ok)) {
      return;
    }
    for (int i = 0; i < answer_times; ++i) {
      send(member_, with);
    }
  }
  void handle(const Op& op) {
    if (op.kind == OpKind::probe) {
      return answer(op, Errc::ok);
    }
    if (op.kind == OpKind::declare) {
      const auto settings = parse_stream_settings(as_text(op.body));
      const auto found = store_.streams.find(std::string(op.name));
      if (found != store_.streams.end() && !(found->second.settings == *settings)) {
        return answer(op, Errc::conflict);
      }
      store_.streams[std::string(op.name)].settings = *settings;
      return answer(op, Errc::ok);
    }
    if (op.kind == OpKind::credit || op.kind == OpKind::end) {
      const auto found = channels_.find({member_, op.id});
      if (found != channels_.end()) {
        found->second.credit += op.number;
        if (op.kind == OpKind::end) {
          const Channel ended = found->second;
          channels_.erase(found);
          for (const std::uint64_t sequence : ended.queued) {
            give_again(ended.stream, ended.consumer, sequence);
          }
          return answer(op, Errc::ok);
        }
      }
      return;
    }
    const auto found = store_.streams.find(std::string(op.name));
    if (found == store_.streams.end()) {
      return answer(op, Errc::not_found);
    }
    handle(found->second, op);
  }
  void handle(FakeStore::Stream& stream, const Op& op) {
    const std::string key(op.key);
    switch (op.kind) {
      case OpKind::append: {
        ++appends;
        const std::string id(op.message_id);
        if (const auto known = stream.ids.find(id); !id.empty() && known != stream.ids.end()) {
          ++duplicates;
          return answer(op, Errc::ok, {.flags = OpFlags::duplicate, .number = known->second});
        }
        const std::uint64_t last = stream.last.contains(key) ? stream.last[key] : 0;
        const bool absent = last == 0 || stream.messages[last - 1].erased;
        if ((op.has(OpFlags::expect_last) && last != op.number) || (op.has(OpFlags::expect_absent) && !absent)) {
          return answer(op, Errc::conflict);
        }
        stream.messages.push_back(
            {key, id, std::string(as_text(op.headers)), std::string(as_text(op.body)), op.has(OpFlags::erased)});
        const std::uint64_t sequence = stream.messages.size();
        stream.ids[id] = sequence;
        stream.last[key] = sequence;
        return answer(op, Errc::ok, {.number = sequence});
      }
      case OpKind::get: {
        const std::uint64_t at = op.has(OpFlags::by_sequence) ? op.number
                                 : stream.last.contains(key)  ? stream.last[key]
                                                              : 0;
        if (at == 0 || at > stream.messages.size()) {
          return answer(op, Errc::not_found);
        }
        const auto& stored = stream.messages[at - 1];
        return answer(op, Errc::ok,
                      {.flags = stored.erased ? OpFlags::erased : std::uint16_t{0},
                       .number = at,
                       .key = stored.topic,
                       .message_id = stored.id,
                       .headers = as_bytes(stored.headers),
                       .body = as_bytes(stored.body)});
      }
      case OpKind::list: {
        std::string names;
        std::uint16_t more = 0;
        int count = 0;
        for (const auto& [topic, last] : stream.last) {
          if (topic > key && !stream.messages[last - 1].erased) {
            if (++count > 3) {
              more = OpFlags::more;
              break;
            }
            names += topic + "\n";
          }
        }
        return answer(op, Errc::ok, {.flags = more, .body = as_bytes(names)});
      }
      case OpKind::info: {
        const std::string body = write_settings(stream.settings) +
                                 "first=1\nnext=" + std::to_string(stream.messages.size() + 1) +
                                 "\nbytes=0\nconsumer=c\nfloor=3\nwaiting=2\n";
        return answer(op, Errc::ok, {.body = as_bytes(body)});
      }
      case OpKind::remove:
        if (key.empty()) {
          store_.streams.erase(std::string(op.name));
        }
        return answer(op, Errc::ok);
      case OpKind::purge: return answer(op, Errc::ok);
      case OpKind::consume:
      case OpKind::read: return open(stream, op);
      case OpKind::ack: {
        auto& waiting = stream.waiting[key];
        const bool was = waiting.erase(op.number) != 0;
        for (std::size_t i = 0; i < sequence_count(op.body); ++i) {
          waiting.erase(sequence_at(op.body, i));
        }
        return answer(op, Errc::ok, {.number = was ? std::uint64_t{1} : 0});
      }
      case OpKind::begin: {
        const std::vector<std::uint64_t> begun = unqueue(op);
        for (const std::uint64_t sequence : begun) {
          if (const auto found = stream.waiting[key].find(sequence); found != stream.waiting[key].end()) {
            ++found->second;
          }
        }
        return answer(op, Errc::ok, {.number = begun.size(), .second = op.number});
      }
      case OpKind::nak:
        if (!op.has(OpFlags::unseen)) {
          give_again(op.name, key, op.number);
        }
        for (const std::uint64_t sequence : op.has(OpFlags::unseen) ? unqueue(op) : std::vector<std::uint64_t>()) {
          give_again(op.name, key, sequence);
          ++given_back;
        }
        return;
      case OpKind::reject: stream.waiting[key].erase(op.number); return;
      default: return;
    }
  }
  // The sequences of the op that the queue of its channel has: they leave it.
  std::vector<std::uint64_t> unqueue(const Op& op) {
    std::vector<std::uint64_t> found;
    const auto channel = channels_.find({member_, op.id});
    for (std::size_t i = 0; channel != channels_.end() && i <= sequence_count(op.body); ++i) {
      const std::uint64_t sequence = i == 0 ? op.number : sequence_at(op.body, i - 1);
      if (channel->second.queued.erase(sequence) != 0) {
        found.push_back(sequence);
      }
    }
    return found;
  }
  void give_again(std::string_view stream, std::string_view consumer, std::uint64_t sequence) {
    for (auto& [at, channel] : channels_) {
      if (channel.stream == stream && channel.consumer == consumer) {
        again_.insert({at.first, at.second, sequence});
        return;
      }
    }
  }
  void open(FakeStore::Stream& stream, const Op& op) {
    const auto settings = *parse_consumer_settings(as_text(op.body));
    Channel channel;
    channel.member = member_;
    channel.stream = op.name;
    channel.consumer = op.key;
    channel.id = op.id;
    channel.credit = op.number;
    channel.begins = op.has(OpFlags::begins);
    channel.stored = stream.messages.size();
    if (!settings.filter.empty()) {
      channel.filter = *Filter::parse(settings.filter);
    }
    const std::uint64_t end = stream.messages.size() + 1;
    switch (settings.from.kind) {
      case From::Kind::sequence: channel.next = settings.from.value; break;
      case From::Kind::next: channel.next = end; break;
      case From::Kind::last: channel.next = std::max<std::uint64_t>(end, 2) - 1; break;
      case From::Kind::last_per_topic: channel.newest_only = true; break;
      default: break;
    }
    if (op.kind == OpKind::consume) {
      const auto [at, made] = stream.consumers.emplace(channel.consumer, settings);
      if (!made && !(at->second == settings)) {
        return answer(op, Errc::conflict);
      }
      // A member that came again after its hub: its unacknowledged messages are delivered again.
      for (const auto& [sequence, tries] : stream.waiting[channel.consumer]) {
        again_.insert({member_, op.id, sequence});
      }
    }
    channels_[{member_, op.id}] = channel;
    answer(op, Errc::ok, {.number = channel.next});
  }
  void deliver() {
    for (auto& [at, channel] : channels_) {
      const auto found = store_.streams.find(channel.stream);
      if (found == store_.streams.end()) {
        continue;
      }
      FakeStore::Stream& stream = found->second;
      std::uint64_t& next = channel.consumer.empty() ? channel.next : stream.next[channel.consumer];
      next = std::max<std::uint64_t>(next, 1);
      while (channel.credit > 0) {
        const auto again = std::find_if(again_.begin(), again_.end(), [&](const auto& each) {
          return std::get<0>(each) == at.first && std::get<1>(each) == at.second;
        });
        std::uint64_t sequence = 0;
        if (again != again_.end()) {
          sequence = std::get<2>(*again);
          again_.erase(again);
        } else if (next <= stream.messages.size()) {
          sequence = next++;
          const auto& topic = stream.messages[sequence - 1].topic;
          if ((channel.filter && !channel.filter->matches(topic)) ||
              (channel.newest_only && sequence <= channel.stored && stream.last[topic] != sequence)) {
            continue;
          }
        } else {
          break;
        }
        std::uint16_t tries = 0;
        if (!channel.consumer.empty()) {
          std::uint16_t& counted = stream.waiting[channel.consumer][sequence];
          tries = channel.begins ? counted : counted++;
          channel.queued.insert(sequence);
        }
        --channel.credit;
        const auto& stored = stream.messages[sequence - 1];
        send(channel.member, {.kind = OpKind::delivery,
                              .flags = stored.erased ? OpFlags::erased : std::uint16_t{0},
                              .id = channel.id,
                              .number = sequence,
                              .code = tries,
                              .key = stored.topic,
                              .message_id = stored.id,
                              .headers = as_bytes(stored.headers),
                              .body = as_bytes(stored.body)});
      }
      if (!channel.told && next > channel.stored) {
        channel.told = true;
        send(channel.member, {.kind = OpKind::caught_up, .id = channel.id});
      }
    }
  }

  std::mutex mutex_;  // of the store and the channels
  FakeStore& store_;
  OnOp on_op_;
  Socket socket_;
  std::string member_;
  std::map<std::pair<std::string, std::uint32_t>, Channel> channels_;
  std::set<std::tuple<std::string, std::uint32_t, std::uint64_t>> again_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace weft::topic
