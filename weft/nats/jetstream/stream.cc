// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/stream.h"

#include <algorithm>

#include "weft/nats/jetstream/config_places.h"
#include "weft/nats/jetstream/json_fields.h"
#include "weft/nats/jetstream/json_object.h"
#include "weft/nats/jetstream/request_to.h"
#include "weft/nats/protocol/subject.h"

namespace weft::nats::jetstream {

namespace {

constexpr std::string_view kRetentions[] = {"limits", "interest", "workqueue"};
constexpr std::string_view kStorages[] = {"file", "memory"};
constexpr std::string_view kDiscards[] = {"old", "new"};
constexpr std::string_view kAsyncPersist = "async";

[[nodiscard]] std::string write_config(const StreamConfig& config) {
  JsonObject json;
  json.text("name", config.name);
  if (!config.description.empty()) {
    json.text("description", config.description);
  }
  if (!config.subjects.empty()) {
    json.texts("subjects", config.subjects);
  }
  json.text("retention", kRetentions[static_cast<std::size_t>(config.retention)])
      .text("storage", kStorages[static_cast<std::size_t>(config.storage)])
      .text("discard", kDiscards[static_cast<std::size_t>(config.discard)])
      .number("num_replicas", config.replicas);
  const auto bound = [&json](std::string_view name, std::int64_t value) {
    if (value != -1) {
      json.number(name, value);
    }
  };
  bound("max_consumers", config.consumers_max);
  bound("max_msgs", config.messages_max);
  bound("max_bytes", config.bytes_max);
  bound("max_msgs_per_subject", config.messages_per_subject_max);
  bound("max_msg_size", config.message_size_max);
  const auto duration = [&json](std::string_view name, Duration value) {
    if (value != Duration::zero()) {
      json.number(name, value);
    }
  };
  duration("max_age", config.age_max);
  duration("duplicate_window", config.duplicate_window);
  duration("subject_delete_marker_ttl", config.subject_delete_marker_ttl);
  const auto flag = [&json](std::string_view name, bool value) {
    if (value) {
      json.flag(name, true);
    }
  };
  flag("discard_new_per_subject", config.discard_refuse_per_subject);
  flag("no_ack", config.no_ack);
  flag("allow_direct", config.allow_direct);
  flag("mirror_direct", config.mirror_direct);
  flag("allow_rollup_hdrs", config.allow_rollup);
  flag("sealed", config.sealed);
  flag("deny_delete", config.deny_delete);
  flag("deny_purge", config.deny_purge);
  flag("allow_msg_ttl", config.allow_message_ttl);
  flag("allow_atomic", config.allow_atomic);
  flag("allow_msg_schedules", config.allow_schedules);
  flag("allow_msg_counter", config.allow_counter);
  if (config.async_persist) {
    json.text("persist_mode", kAsyncPersist);
  }
  if (config.first_sequence != 0) {
    json.number("first_seq", config.first_sequence);
  }
  if (!config.metadata.empty()) {
    json.pairs("metadata", config.metadata);
  }
  return std::move(json).take();
}

void add_config(JsonFields& fields, std::string_view object, StreamConfig& config) {
  fields.add(object, "name", config.name);
  fields.add(object, "description", config.description);
  fields.add(object, "subjects", config.subjects);
  fields.add_choice(object, "retention", kRetentions, config.retention);
  fields.add_choice(object, "storage", kStorages, config.storage);
  fields.add_choice(object, "discard", kDiscards, config.discard);
  fields.add(object, "discard_new_per_subject", config.discard_refuse_per_subject);
  fields.add(object, "max_consumers", config.consumers_max);
  fields.add(object, "max_msgs", config.messages_max);
  fields.add(object, "max_bytes", config.bytes_max);
  fields.add(object, "max_msgs_per_subject", config.messages_per_subject_max);
  fields.add(object, "max_msg_size", config.message_size_max);
  fields.add(object, "max_age", config.age_max);
  fields.add(object, "duplicate_window", config.duplicate_window);
  fields.add(object, "num_replicas", config.replicas);
  fields.add(object, "no_ack", config.no_ack);
  fields.add(object, "allow_direct", config.allow_direct);
  fields.add(object, "mirror_direct", config.mirror_direct);
  fields.add(object, "allow_rollup_hdrs", config.allow_rollup);
  fields.add(object, "sealed", config.sealed);
  fields.add(object, "deny_delete", config.deny_delete);
  fields.add(object, "deny_purge", config.deny_purge);
  fields.add(object, "first_seq", config.first_sequence);
  fields.add(object, "metadata", config.metadata);
  fields.add(object, "allow_msg_ttl", config.allow_message_ttl);
  fields.add(object, "subject_delete_marker_ttl", config.subject_delete_marker_ttl);
  fields.add(object, "allow_atomic", config.allow_atomic);
  fields.add(object, "allow_msg_schedules", config.allow_schedules);
  fields.add(object, "allow_msg_counter", config.allow_counter);
  fields.add_equal(object, "persist_mode", kAsyncPersist, config.async_persist);
  fields.add_usual(object, "compression", "none");
  fields.add_others(object, config.others);
}

// The paths of a stream's objects: in its own answer, or as an item of a list.
struct StreamPaths {
  std::string_view whole;
  std::string_view config;
  std::string_view state;
  ClusterPaths cluster;
};
constexpr StreamPaths kOneStream = {"", "config", "state", {"cluster", "cluster.replicas[]"}};
constexpr StreamPaths kListedStream = {
    "streams[]", "streams[].config", "streams[].state", {"streams[].cluster", "streams[].cluster.replicas[]"}};

void add_stream(JsonFields& fields, const StreamPaths& paths, StreamReport& info, Cluster::Replica& replica) {
  add_config(fields, paths.config, info.config);
  fields.add(paths.whole, "created", info.created);
  fields.add(paths.whole, "did_create", info.did_create);
  fields.add(paths.state, "messages", info.state.messages);
  fields.add(paths.state, "bytes", info.state.bytes);
  fields.add(paths.state, "first_seq", info.state.first_sequence);
  fields.add(paths.state, "last_seq", info.state.last_sequence);
  fields.add(paths.state, "first_ts", info.state.first_time);
  fields.add(paths.state, "last_ts", info.state.last_time);
  fields.add(paths.state, "consumer_count", info.state.consumers);
  fields.add(paths.state, "num_subjects", info.state.subjects);
  fields.add(paths.state, "num_deleted", info.state.deleted);
  add_cluster(fields, paths.cluster, info.cluster, replica);
}

[[nodiscard]] bool finish_stream(StreamReport& info) {
  erase_server_metadata(info.config.metadata);
  return is_name(info.config.name);
}

[[nodiscard]] Result<ApiRequest> declare_stream(std::string_view operation, const StreamConfig& config) {
  if (!std::all_of(config.subjects.begin(), config.subjects.end(),
                   [](const std::string& each) { return is_subject_filter(each); })) {
    return Error(Errc::invalid_argument, "not a subject of a stream");
  }
  if (config.retention == Retention::other || config.storage == Storage::other ||
      config.discard == DiscardPolicy::other) {
    return Error(Errc::invalid_argument, "a value of a newer server");
  }
  return request_to(operation, {config.name}, write_config(config));
}

[[nodiscard]] ApiRequest list_request(std::string_view operation, std::uint64_t offset, std::string_view subject) {
  JsonObject body;
  body.number("offset", offset);
  if (!subject.empty()) {
    body.text("subject", subject);
  }
  return {std::string(kApiPrefix).append(operation), std::move(body).take()};
}

}  // namespace

Result<ApiRequest> create_stream(const StreamConfig& config) { return declare_stream("STREAM.CREATE", config); }
Result<ApiRequest> update_stream(const StreamConfig& config) { return declare_stream("STREAM.UPDATE", config); }
Result<ApiRequest> stream_info(std::string_view stream) { return request_to("STREAM.INFO", {stream}); }
Result<ApiRequest> delete_stream(std::string_view stream) { return request_to("STREAM.DELETE", {stream}); }

Result<Reply<StreamReport>> read_stream_info(std::string_view json) {
  Cluster::Replica replica;
  return read_reply<StreamReport>(
      json, [&](JsonFields& fields, StreamReport& info) { add_stream(fields, kOneStream, info, replica); },
      finish_stream);
}

ApiRequest stream_names(std::uint64_t offset, std::string_view subject) {
  return list_request("STREAM.NAMES", offset, subject);
}

Result<Reply<Page<std::string>>> read_stream_names(std::string_view json) {
  return read_names(json, "streams", "io.nats.jetstream.api.v1.stream_names_response");
}

ApiRequest stream_list(std::uint64_t offset, std::string_view subject) {
  return list_request("STREAM.LIST", offset, subject);
}

Result<Reply<Page<StreamReport>>> read_stream_list(std::string_view json) {
  std::string type;
  StreamReport scratch;
  Cluster::Replica replica;
  return read_reply<Page<StreamReport>>(
      json,
      [&](JsonFields& fields, Page<StreamReport>& page) {
        add_page(fields, page.total, page.offset, type);
        fields.add("", "missing", page.missing);
        add_stream(fields, kListedStream, scratch, replica);
        fields.add_items(kListedStream.whole, scratch, page.items);
      },
      [&type](Page<StreamReport>& page) {
        return type == "io.nats.jetstream.api.v1.stream_list_response" &&
               std::all_of(page.items.begin(), page.items.end(), finish_stream);
      });
}

Result<ApiRequest> purge_stream(std::string_view stream, const Purge& purge) {
  if (!purge.filter.empty() && !is_subject_filter(purge.filter)) {
    return Error(Errc::invalid_argument, "not a filter of subjects");
  }
  if (purge.before != 0 && purge.keep != 0) {
    return Error(Errc::invalid_argument, "a purge has one of the bounds `before` and `keep`");
  }
  JsonObject body;
  if (!purge.filter.empty()) {
    body.text("filter", purge.filter);
  }
  if (purge.before != 0) {
    body.number("seq", purge.before);
  }
  if (purge.keep != 0) {
    body.number("keep", purge.keep);
  }
  return request_to("STREAM.PURGE", {stream}, std::move(body).take());
}

Result<Reply<std::uint64_t>> read_purged(std::string_view json) {
  bool success = false;
  return read_reply<std::uint64_t>(
      json,
      [&success](JsonFields& fields, std::uint64_t& purged) {
        fields.add("", "success", success);
        fields.add("", "purged", purged);
      },
      [&success](std::uint64_t&) { return success; });
}

}  // namespace weft::nats::jetstream
