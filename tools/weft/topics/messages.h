// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/weft/source.h"
#include "tools/weft/topics/fleet.h"
#include "tools/weft/topics/shown.h"

// topic pub, sub, tap and ls; request and reply: the volatile topics of a fleet.
namespace weft::cli {

struct TopicPubOptions {
  FleetOptions fleet{};
  SourceOptions source{};
  std::vector<std::string> words{};  // TOPIC BODY, or BODY beside `topic`
  std::string topic{};
  std::vector<std::string> headers{};
  std::uint64_t wait = 1;  // subscriptions
};
int topic_pub(Console& console, const TopicPubOptions& options);

struct TopicSubOptions {
  FleetOptions fleet{};
  ShownOptions shown{};
  std::vector<std::string> filters{};  // arguments
  std::vector<std::string> topics{};   // of --topic: further filters
  bool prefix = false;
  bool glob = false;
  std::uint64_t count = 0;  // 0: no end
};
int topic_sub(Console& console, const TopicSubOptions& options);

struct TopicLsOptions {
  FleetOptions fleet{};
  std::string filter{};  // of owned topics; empty: every one
};
int topic_ls(Console& console, const TopicLsOptions& options);

struct RequestOptions {
  FleetOptions fleet{};
  SourceOptions source{};
  ShownOptions shown{};
  std::vector<std::string> words{};
  std::string topic{};
  std::vector<std::string> headers{};
};
int request(Console& console, const RequestOptions& options);

struct ReplyOptions {
  FleetOptions fleet{};
  ShownOptions shown{};
  std::vector<std::string> words{};
  std::string topic{};
  std::string group{};
  std::uint64_t count = 0;  // 0: no end
};
int reply(Console& console, const ReplyOptions& options);

}  // namespace weft::cli
