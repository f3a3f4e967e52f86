// SPDX-License-Identifier: MIT
#include "tools/weft/topics/nats_acl.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/filter.h"
#include "weft/nats/jetstream/api.h"
#include "weft/nats/jetstream/key_value.h"
#include "weft/nats/protocol/subject.h"
#include "weft/topic/jetstream/stream_names.h"
#include "weft/topic/wire/name.h"

namespace weft::cli {

namespace {

// Of each handle: probes of subscriptions, presence. Replies come to an inbox of the handle.
constexpr const char* kControl = "_WEFT.>";
constexpr const char* kInbox = "_INBOX.>";

using Subjects = std::vector<std::string>;

void add(const std::string& subject, Subjects& to) {
  if (std::find(to.begin(), to.end(), subject) == to.end()) {
    to.push_back(subject);
  }
}

void add_all(const std::vector<std::string>& topics, const nats::SubjectNames& names, Subjects& to) {
  for (const std::string& topic : topics) {
    std::string subject;
    const auto filter = Filter::parse(topic);
    const Result<void> named = filter ? names.append_filter(*filter, subject) : filter.error();
    if (!named) {
      throw Usage(printable(topic) + ": " + named.error().message());
    }
    add(subject, to);
  }
}

// The name on NATS.
topic::StreamNames named(const std::string& space, const std::string& name, bool bucket) {
  const std::string text = (bucket ? "the bucket " : "the stream ") + printable(name);
  const auto spaces = need(topic::Names::make(space, '.'), "--space " + printable(space));
  const std::string wire = bucket ? need(spaces.encode("kv"), text) + '.' + name : need(spaces.encode(name), text);
  auto names = need(topic::StreamNames::of(wire), text);
  if (bucket != names.is_bucket()) {
    throw Usage(text + (bucket ? ": a bucket's name is one token" : ": a bucket is --bucket or --watch"));
  }
  return names;
}

// The requests of weft/topic/jetstream to the servers.
void add_kept(const FleetAclOptions& options, const std::string& name, bool bucket, bool owns, Subjects& publish) {
  const topic::StreamNames names = named(options.space, name, bucket);
  const std::string& stream = names.stream();
  const auto api = [&](const char* operation, const char* rest = "") {
    add(std::string(nats::jetstream::kApiPrefix) + operation + "." + stream + rest, publish);
  };
  api("STREAM.INFO");
  if (owns) {
    api("STREAM.CREATE");
    api("STREAM.UPDATE");
    api("STREAM.DELETE");
    api("STREAM.PURGE");
  }
  api("STREAM.MSG.GET");
  api("CONSUMER.CREATE", ".*");
  api("CONSUMER.INFO", ".*");
  api("CONSUMER.DELETE", ".*");
  api("CONSUMER.LIST");
  api("CONSUMER.MSG.NEXT", ".*");
  add("$JS.ACK." + stream + ".>", publish);
  if (bucket && owns) {
    std::string values;
    nats::jetstream::append_key_subject(names.bucket(), ">", values);
    add(values, publish);
  }
}

// A subject has no byte below 0x21; a quote or a backslash is escaped as in JSON, which the configuration reads.
std::string list(const Subjects& subjects) {
  std::string all;
  for (const std::string& each : subjects) {
    all += (all.empty() ? "" : ", ") + nlohmann::json(each).dump();
  }
  return "[" + all + "]";
}

}  // namespace

int fleet_acl(Console& console, const FleetAclOptions& options) {
  const auto names = need(nats::SubjectNames::make(options.space), "--space " + printable(options.space));
  FleetAclOptions of = options;
  const bool keeps = !of.streams.empty() || !of.consumed.empty() || !of.buckets.empty() || !of.watched.empty();
  if (!keeps && of.publish.empty() && of.subscribe.empty() && of.request.empty() && of.serve.empty()) {
    of.publish = of.subscribe = of.request = of.serve = {">"};
  }
  Subjects publish;
  Subjects subscribe;
  add_all(of.publish, names, publish);
  add_all(of.request, names, publish);
  struct Kept {
    const Subjects& all;
    bool bucket;
    bool owns;
  };
  for (const Kept& kept : {Kept{of.streams, false, true}, Kept{of.consumed, false, false}, Kept{of.buckets, true, true},
                           Kept{of.watched, true, false}}) {
    for (const std::string& name : kept.all) {
      add_kept(of, name, kept.bucket, kept.owns, publish);
    }
  }
  add_all(of.subscribe, names, subscribe);
  add_all(of.serve, names, subscribe);
  add(kControl, publish);
  add(kControl, subscribe);
  add(kInbox, subscribe);
  if (!of.serve.empty()) {
    add(kInbox, publish);
  }
  if (console.json) {
    console.line(nlohmann::json({{"publish", publish}, {"subscribe", subscribe}}).dump());
  } else {
    console.line("permissions: {\n  publish: { allow: " + list(publish) +
                 " }\n  subscribe: { allow: " + list(subscribe) + " }\n}");
  }
  return 0;
}

}  // namespace weft::cli
