// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/consumer.h"

#include <algorithm>

#include "weft/nats/jetstream/config_places.h"
#include "weft/nats/jetstream/json_fields.h"
#include "weft/nats/jetstream/json_object.h"
#include "weft/nats/jetstream/request_to.h"
#include "weft/nats/protocol/subject.h"

namespace weft::nats::jetstream {

namespace {

constexpr std::string_view kDelivers[] = {
    "all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"};
constexpr std::string_view kAckPolicies[] = {"none", "all", "explicit"};

void write_members(const ConsumerConfig& config, JsonObject& json) {
  if (!config.name.empty()) {
    json.text("name", config.name);
  }
  if (config.durable) {
    json.text("durable_name", config.name);
  }
  if (!config.description.empty()) {
    json.text("description", config.description);
  }
  json.text("deliver_policy", kDelivers[static_cast<std::size_t>(config.deliver)])
      .text("ack_policy", kAckPolicies[static_cast<std::size_t>(config.ack_policy)]);
  if (config.deliver == Deliver::by_start_sequence) {
    json.number("opt_start_seq", config.start_sequence);
  }
  if (config.deliver == Deliver::by_start_time) {
    std::string time;
    append_wall_time(config.start_time, time);
    json.text("opt_start_time", time);
  }
  if (config.filters.size() == 1) {
    json.text("filter_subject", config.filters.front());
  } else if (!config.filters.empty()) {
    json.texts("filter_subjects", config.filters);
  }
  if (config.deliver_max != -1) {
    json.number("max_deliver", config.deliver_max);
  }
  if (!config.backoff.empty()) {
    json.numbers("backoff", config.backoff);
  }
  const auto number = [&json](std::string_view name, auto value) {
    if (value != decltype(value)(0)) {
      json.number(name, value);
    }
  };
  number("ack_wait", config.ack_wait);
  number("max_ack_pending", config.ack_pending_max);
  number("max_waiting", config.pulls_waiting_max);
  number("max_batch", config.request_batch_max);
  number("max_bytes", config.request_bytes_max);
  number("max_expires", config.request_expires_max);
  number("inactive_threshold", config.inactive_threshold);
  number("num_replicas", config.replicas);
  if (config.memory_storage) {
    json.flag("mem_storage", true);
  }
  if (config.headers_only) {
    json.flag("headers_only", true);
  }
  if (!config.metadata.empty()) {
    json.pairs("metadata", config.metadata);
  }
  if (!config.priority_groups.empty()) {
    json.texts("priority_groups", config.priority_groups);
  }
  if (!config.priority_policy.empty()) {
    json.text("priority_policy", config.priority_policy);
  }
}

// The paths of a consumer's objects: in its own answer, or as an item of a list.
struct ConsumerPaths {
  std::string_view whole;
  std::string_view config;
  std::string_view delivered;
  std::string_view ack_floor;
  ClusterPaths cluster;
};
constexpr ConsumerPaths kOneConsumer = {"", "config", "delivered", "ack_floor", {"cluster", "cluster.replicas[]"}};
constexpr ConsumerPaths kListedConsumer = {"consumers[]",
                                           "consumers[].config",
                                           "consumers[].delivered",
                                           "consumers[].ack_floor",
                                           {"consumers[].cluster", "consumers[].cluster.replicas[]"}};

// ConsumerAnswer: an answer, whose durable name and filter are members of their own.
struct ConsumerAnswer {
  ConsumerInfo info{};
  std::string durable_name{};
  std::string filter{};
};

void add_config(JsonFields& fields, std::string_view object, ConsumerAnswer& answer) {
  ConsumerConfig& config = answer.info.config;
  fields.add(object, "durable_name", answer.durable_name);
  fields.add(object, "filter_subject", answer.filter);
  fields.add(object, "filter_subjects", config.filters);
  fields.add(object, "name", config.name);
  fields.add(object, "description", config.description);
  fields.add_choice(object, "deliver_policy", kDelivers, config.deliver);
  fields.add(object, "opt_start_seq", config.start_sequence);
  fields.add(object, "opt_start_time", config.start_time);
  fields.add_choice(object, "ack_policy", kAckPolicies, config.ack_policy);
  fields.add(object, "ack_wait", config.ack_wait);
  fields.add(object, "max_deliver", config.deliver_max);
  fields.add(object, "backoff", config.backoff);
  fields.add(object, "max_ack_pending", config.ack_pending_max);
  fields.add(object, "max_waiting", config.pulls_waiting_max);
  fields.add(object, "max_batch", config.request_batch_max);
  fields.add(object, "max_bytes", config.request_bytes_max);
  fields.add(object, "max_expires", config.request_expires_max);
  fields.add(object, "inactive_threshold", config.inactive_threshold);
  fields.add(object, "num_replicas", config.replicas);
  fields.add(object, "mem_storage", config.memory_storage);
  fields.add(object, "headers_only", config.headers_only);
  fields.add(object, "metadata", config.metadata);
  fields.add(object, "priority_groups", config.priority_groups);
  fields.add(object, "priority_policy", config.priority_policy);
  fields.add_usual(object, "replay_policy", "instant");
  fields.add_others(object, config.others);
}

void add_consumer(JsonFields& fields, const ConsumerPaths& paths, ConsumerAnswer& answer, Cluster::Replica& replica) {
  ConsumerInfo& info = answer.info;
  add_config(fields, paths.config, answer);
  fields.add(paths.whole, "stream_name", info.stream);
  fields.add(paths.whole, "name", info.name);
  fields.add(paths.whole, "created", info.created);
  const auto pair = [&fields](std::string_view object, SequencePair& into) {
    fields.add(object, "consumer_seq", into.consumer);
    fields.add(object, "stream_seq", into.stream);
    fields.add(object, "last_active", into.last_active);
  };
  pair(paths.delivered, info.delivered);
  pair(paths.ack_floor, info.ack_floor);
  fields.add(paths.whole, "num_ack_pending", info.ack_pending);
  fields.add(paths.whole, "num_redelivered", info.redelivered);
  fields.add(paths.whole, "num_waiting", info.pulls_waiting);
  fields.add(paths.whole, "num_pending", info.pending);
  fields.add(paths.whole, "paused", info.paused);
  add_cluster(fields, paths.cluster, info.cluster, replica);
}

[[nodiscard]] bool finish_consumer(ConsumerAnswer& answer) {
  ConsumerInfo& info = answer.info;
  info.config.durable = !answer.durable_name.empty();
  info.config.name = info.name;
  if (!answer.filter.empty()) {
    info.config.filters.clear();
    info.config.filters.push_back(std::move(answer.filter));
  }
  erase_server_metadata(info.config.metadata);
  return is_name(info.name) && is_name(info.stream);
}

[[nodiscard]] std::string offset_body(std::uint64_t offset) {
  JsonObject body;
  body.number("offset", offset);
  return std::move(body).take();
}

}  // namespace

Result<ApiRequest> create_consumer(std::string_view stream, const ConsumerConfig& config, ConsumerAction action) {
  if (config.name.empty() && (config.durable || action == ConsumerAction::update)) {
    return Error(Errc::invalid_argument, "a consumer without a name is a new one, and not durable");
  }
  if (!std::all_of(config.filters.begin(), config.filters.end(),
                   [](const std::string& each) { return is_subject_filter(each); })) {
    return Error(Errc::invalid_argument, "not a filter of subjects");
  }
  if (config.deliver == Deliver::other || config.ack_policy == AckPolicy::other) {
    return Error(Errc::invalid_argument, "a value of a newer server");
  }
  JsonObject body;
  body.text("stream_name", stream).open("config");
  write_members(config, body);
  body.close();
  if (action != ConsumerAction::either) {
    body.text("action", action == ConsumerAction::create ? "create" : "update");
  }
  // The filter is in the body only: a publish has no wildcards in its subject.
  return config.name.empty() ? request_to("CONSUMER.CREATE", {stream}, std::move(body).take())
                             : request_to("CONSUMER.CREATE", {stream, config.name}, std::move(body).take());
}

Result<ApiRequest> consumer_info(std::string_view stream, std::string_view consumer) {
  return request_to("CONSUMER.INFO", {stream, consumer});
}

Result<Reply<ConsumerInfo>> read_consumer_info(std::string_view json) {
  ConsumerAnswer answer;
  Cluster::Replica replica;
  return read_reply<ConsumerInfo>(
      json, [&](JsonFields& fields, ConsumerInfo&) { add_consumer(fields, kOneConsumer, answer, replica); },
      [&](ConsumerInfo& info) {
        const bool whole = finish_consumer(answer);
        info = std::move(answer.info);
        return whole;
      });
}

Result<ApiRequest> reset_consumer(std::string_view stream, std::string_view consumer, std::uint64_t sequence) {
  JsonObject body;
  if (sequence != 0) {
    body.number("seq", sequence);
  }
  return request_to("CONSUMER.RESET", {stream, consumer}, std::move(body).take());
}

Result<ApiRequest> delete_consumer(std::string_view stream, std::string_view consumer) {
  return request_to("CONSUMER.DELETE", {stream, consumer});
}

Result<ApiRequest> consumer_names(std::string_view stream, std::uint64_t offset) {
  return request_to("CONSUMER.NAMES", {stream}, offset_body(offset));
}

Result<Reply<Page<std::string>>> read_consumer_names(std::string_view json) {
  return read_names(json, "consumers", "io.nats.jetstream.api.v1.consumer_names_response");
}

Result<ApiRequest> consumer_list(std::string_view stream, std::uint64_t offset) {
  return request_to("CONSUMER.LIST", {stream}, offset_body(offset));
}

Result<Reply<Page<ConsumerInfo>>> read_consumer_list(std::string_view json) {
  std::string type;
  ConsumerAnswer scratch;
  std::vector<ConsumerAnswer> answers;
  Cluster::Replica replica;
  return read_reply<Page<ConsumerInfo>>(
      json,
      [&](JsonFields& fields, Page<ConsumerInfo>& page) {
        add_page(fields, page.total, page.offset, type);
        fields.add("", "missing", page.missing);
        add_consumer(fields, kListedConsumer, scratch, replica);
        fields.add_items(kListedConsumer.whole, scratch, answers);
      },
      [&](Page<ConsumerInfo>& page) {
        bool whole = type == "io.nats.jetstream.api.v1.consumer_list_response";
        for (ConsumerAnswer& each : answers) {
          whole = finish_consumer(each) && whole;
          page.items.push_back(std::move(each.info));
        }
        return whole;
      });
}

void append_pull(const PullRequest& request, std::string& out) {
  JsonObject body;
  body.number("batch", request.batch);
  if (request.bytes_max != 0) {
    body.number("max_bytes", request.bytes_max);
  }
  if (request.expires != Duration::zero()) {
    body.number("expires", request.expires);
  }
  if (request.no_wait) {
    body.flag("no_wait", true);
  }
  if (request.idle_heartbeat != Duration::zero()) {
    body.number("idle_heartbeat", request.idle_heartbeat);
  }
  if (!request.group.empty()) {
    body.text("group", request.group);
  }
  if (request.priority != 0) {
    body.number("priority", request.priority);
  }
  out += std::move(body).take();
}

Result<ApiRequest> pull(std::string_view stream, std::string_view consumer, const PullRequest& request) {
  std::string body;
  append_pull(request, body);
  return request_to("CONSUMER.MSG.NEXT", {stream, consumer}, std::move(body));
}

}  // namespace weft::nats::jetstream
