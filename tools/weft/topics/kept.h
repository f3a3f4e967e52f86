// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/weft/source.h"
#include "tools/weft/topics/fleet.h"
#include "tools/weft/topics/shown.h"
#include "weft/topic/kept/options.h"

// stream add, ls, info, publish, read, consume, ack, purge and rm: the kept topics of a local fleet, or of one on NATS.
namespace weft::cli {

struct StreamAddOptions {
  FleetOptions fleet{};
  std::string name{};
  std::vector<std::string> topics{};
  std::string keep = "log";
  std::string survives = "power";
  std::string when_full{};  // empty: the default of `keep`
  double age_max = 0;       // seconds
  std::uint64_t bytes_max = std::uint64_t{1} << 30U;
  double id_window = 120;  // seconds
  bool redeclare = false;
};
int stream_add(Console& console, const StreamAddOptions& options);

struct StreamOneOptions {  // ls, info, rm
  FleetOptions fleet{};
  std::string name{};
  std::string consumer{};  // rm
};
int stream_ls(Console& console, const StreamOneOptions& options);
int stream_info(Console& console, const StreamOneOptions& options);
int stream_rm(Console& console, const StreamOneOptions& options);

struct StreamPublishOptions {
  FleetOptions fleet{};
  SourceOptions source{};
  std::string name{};
  std::vector<std::string> words{};
  std::string topic{};
  std::vector<std::string> headers{};
  std::string id{};
  std::optional<std::uint64_t> expect_last{};
  double time_to_live = 0;   // s; 0: none
  double delay = 0;          // s
  bool atomic = false;       // one batch
  std::uint64_t window = 1;  // messages under way
};
int stream_publish(Console& console, const StreamPublishOptions& options);

struct StreamReadOptions {
  FleetOptions fleet{};
  ShownOptions shown{};
  std::string name{};
  std::string filter{};
  std::string from = "first";
  bool stored = false;  // ends after the stored messages
  std::uint64_t count = 0;
};
int stream_read(Console& console, const StreamReadOptions& options);

struct StreamConsumeOptions {
  FleetOptions fleet{};
  ShownOptions shown{};
  std::string name{};
  std::string consumer{};
  std::string filter{};
  std::string from = "first";
  double ack_wait = 30;         // seconds
  std::uint64_t tries_max = 0;  // 0: any number
  std::string dead_letters{};
  std::optional<std::uint64_t> priority{};  // of this member
  bool redeclare = false;
  bool no_ack = false;
  std::uint64_t count = 0;
};
int stream_consume(Console& console, const StreamConsumeOptions& options);

struct StreamAckOptions {
  FleetOptions fleet{};
  std::string name{};
  std::string consumer{};
  std::vector<std::string> sequences{};
};
int stream_ack(Console& console, const StreamAckOptions& options);

struct StreamPurgeOptions {
  FleetOptions fleet{};
  std::string name{};
  std::string topic{};
  std::optional<std::uint64_t> before{};
};
int stream_purge(Console& console, const StreamPurgeOptions& options);

// The stream or the bucket that is there, with its own settings. Failure: there is none.
[[nodiscard]] Stream open_stream(KeptLink& kept, const std::string& name, StreamInfo* info = nullptr);

}  // namespace weft::cli
