// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/nats/jetstream/json_fields.h"
#include "weft/nats/jetstream/stream.h"

// The parts that the answers about streams and those about consumers share.
namespace weft::nats::jetstream {

struct ClusterPaths {
  std::string_view whole;
  std::string_view replica;
};

inline void add_cluster(JsonFields& fields, const ClusterPaths& paths, Cluster& cluster, Cluster::Replica& replica) {
  fields.add(paths.whole, "name", cluster.name);
  fields.add(paths.whole, "leader", cluster.leader);
  fields.add(paths.replica, "name", replica.name);
  fields.add(paths.replica, "current", replica.current);
  fields.add(paths.replica, "offline", replica.offline);
  fields.add(paths.replica, "lag", replica.lag);
  fields.add(paths.replica, "active", replica.active);
  fields.add_items(paths.replica, replica, cluster.replicas);
}

// A server's own metadata, which no request has.
inline void erase_server_metadata(JsonFields::Pairs& metadata) {
  std::erase_if(metadata, [](const auto& each) { return each.first.starts_with("_nats."); });
}

inline void add_page(JsonFields& fields, std::uint64_t& total, std::uint64_t& offset, std::string& type) {
  fields.add("", "type", type);
  fields.add("", "total", total);
  fields.add("", "offset", offset);
}

[[nodiscard]] inline Result<Reply<Page<std::string>>> read_names(std::string_view json, std::string_view member,
                                                                 std::string_view type_expected) {
  std::string type;
  return read_reply<Page<std::string>>(
      json,
      [&](JsonFields& fields, Page<std::string>& page) {
        add_page(fields, page.total, page.offset, type);
        fields.add("", member, page.items);
      },
      [&](Page<std::string>&) { return type == type_expected; });
}

}  // namespace weft::nats::jetstream
