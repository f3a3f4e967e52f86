// SPDX-License-Identifier: MIT
#include "tools/weft/topics/nats_acl.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "weft/base/filter.h"
#include "weft/nats/protocol/subject.h"

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
  if (of.publish.empty() && of.subscribe.empty() && of.request.empty() && of.serve.empty()) {
    of.publish = of.subscribe = of.request = of.serve = {">"};
  }
  Subjects publish;
  Subjects subscribe;
  add_all(of.publish, names, publish);
  add_all(of.request, names, publish);
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
