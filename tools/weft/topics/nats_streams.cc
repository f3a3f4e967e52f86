// SPDX-License-Identifier: MIT
#include "tools/weft/topics/nats_streams.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/weft/admin_page.h"
#include "tools/weft/console.h"
#include "weft/nats/jetstream/api.h"
#include "weft/rt/task/task_time.h"
#include "weft/sys/clock.h"

namespace weft::cli {

namespace {

namespace js = nats::jetstream;

constexpr std::size_t kStreamsMost = 256;
constexpr std::size_t kConsumersMost = 1024;
constexpr std::size_t kMonitorMax = std::size_t{1} << 20U;  // bytes of a report
constexpr std::uint32_t kCopiesOfMachine = 3;
constexpr std::int64_t kPendingDefault = 1000;  // of a consumer whose max_ack_pending is not set
constexpr Duration kFirstMost = std::chrono::seconds(5);
constexpr Duration kAnswerMost = std::chrono::seconds(2);  // then the request is sent again
constexpr Duration kListMost = std::chrono::seconds(6);    // a list waits for 4 s for leaders that are away
constexpr Duration kAskAgain = std::chrono::milliseconds(100);
constexpr Duration kSilentMost = std::chrono::seconds(5);  // of a copy, which answers its leader every second
constexpr double kNearlyFull = 0.9;
constexpr std::uint64_t kIntervalMax = 1'000'000'000'000'000'000;  // ns

// Null: it is not an object, or does not have the member.
nlohmann::json member(const nlohmann::json& of, const char* name) {
  const auto found = of.is_object() ? of.find(name) : of.end();
  return found == of.end() ? nlohmann::json() : *found;
}

std::string text_member(const nlohmann::json& of, const char* name) {
  const nlohmann::json found = member(of, name);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::string text_of(const js::ApiError& failure) {
  return failure.description.empty() ? failure.error().message() : printable(failure.description);
}

// Why a request to JetStream has no value.
template <typename T>
std::string trouble_of(const Result<js::Reply<T>>& reply, const std::string& subject) {
  if (reply) {
    return subject + ": " + text_of(reply->failure);
  }
  return subject + ": " + reply.error().message();
}

// Servers without a leader refuse a request, or do not answer it: it is sent again. A server without the permission for
// it does not answer, and names the subject.
template <typename T>
rt::Task<Result<js::Reply<T>>> ask(nats::Client* client, const KeptFacts* facts, js::ApiRequest request,
                                   Duration patience, Result<js::Reply<T>> (*read)(std::string_view),
                                   Duration answer_most = kAnswerMost) {
  const Instant end = deadline_after(sys::now(), patience);
  for (;;) {
    const auto answer = co_await client->request(request.subject, as_bytes(request.body),
                                                 std::min(end, deadline_after(sys::now(), answer_most)));
    auto reply = answer ? read(as_text(answer->body())) : Result<js::Reply<T>>(answer.error());
    const bool again = reply ? reply->failure.is_temporary() : reply.error() == Errc::timed_out;
    if (std::find(facts->refused.begin(), facts->refused.end(), request.subject) != facts->refused.end()) {
      co_return Error(Errc::not_permitted, "the server does not permit the request");
    }
    if (!again || sys::now() >= end) {
      co_return reply;
    }
    const auto slept = co_await rt::sleep(kAskAgain);
    if (!slept) {
      co_return slept.error();
    }
  }
}

bool near(std::uint64_t used, std::int64_t most) noexcept {
  return most > 0 && static_cast<double>(used) >= kNearlyFull * static_cast<double>(most);
}

std::string of_most(std::uint64_t used, std::int64_t most, const char* what) {
  return std::to_string(used) + (most > 0 ? " of " + std::to_string(most) : std::string()) + what;
}

std::string seconds_text(Duration time) { return format("%g s", std::chrono::duration<double>(time).count()); }

// The advices of a finding, one sentence after the other.
void add_advice(std::string& all, const std::string& sentence) { all.append(all.empty() ? "" : "; ").append(sentence); }

bool clustered(const js::Cluster& cluster) noexcept { return !cluster.name.empty() || !cluster.replicas.empty(); }

// The copies that are there and have every operation; `advice` gets the others.
std::size_t current_copies(const js::Cluster& cluster, std::string& advice) {
  if (!clustered(cluster)) {
    return 1;
  }
  std::size_t count = cluster.leader.empty() ? 0 : 1;
  for (const js::Cluster::Replica& each : cluster.replicas) {
    const std::string name = printable(each.name);
    if (each.offline) {
      add_advice(advice, name + " is offline");
    } else if (each.active >= kSilentMost) {  // also while the leader still counts it as current
      add_advice(advice, name + " has been silent for " +
                             seconds_text(std::chrono::floor<std::chrono::seconds>(each.active)) +
                             ": it is away, or its JetStream is off");
    } else if (!each.current) {
      add_advice(advice,
                 name + " is behind" + (each.lag == 0 ? "" : " by " + std::to_string(each.lag) + " operations"));
    } else {
      ++count;
    }
  }
  if (cluster.leader.empty()) {
    add_advice(advice, "no server leads it: nothing is stored or read until a majority of its servers is back");
  }
  return count;
}

// Whether every server of the copies writes to its disk before it acknowledges: yes, no, or unknown.
enum class Flushed : std::uint8_t { yes, no, unknown };
Flushed flushed(const js::StreamReport& stream, const std::vector<MonitorFacts>& monitors) {
  std::vector<std::string> servers;
  if (clustered(stream.cluster)) {
    servers.push_back(stream.cluster.leader);
    for (const js::Cluster::Replica& each : stream.cluster.replicas) {
      servers.push_back(each.name);
    }
  }
  const auto always = [](const MonitorFacts& each) { return each.keeps && each.tells_sync && each.sync_always; };
  const auto late = [](const MonitorFacts& each) { return each.keeps && each.tells_sync && !each.sync_always; };
  if (servers.empty()) {  // one server
    return monitors.size() != 1 || !monitors[0].tells_sync ? Flushed::unknown
           : always(monitors[0])                           ? Flushed::yes
                                                           : Flushed::no;
  }
  std::size_t known = 0;
  for (const std::string& server : servers) {
    for (const MonitorFacts& each : monitors) {
      if (each.server == server && late(each)) {
        return Flushed::no;
      }
      known += each.server == server && always(each) ? 1 : 0;
    }
  }
  return known >= servers.size() ? Flushed::yes : Flushed::unknown;
}

std::string survives_text(const js::StreamReport& stream, std::size_t copies,
                          const std::vector<MonitorFacts>& monitors) {
  if (stream.config.storage == js::Storage::memory) {
    return "nothing: it is in memory";
  }
  if (stream.config.async_persist) {
    return "nothing: its persist_mode acknowledges before the file has the message";
  }
  const Flushed disk = flushed(stream, monitors);
  if (disk == Flushed::yes) {
    return stream.config.replicas >= kCopiesOfMachine && copies >= kCopiesOfMachine ? "power, and the loss of a machine"
                                                                                    : "power";
  }
  const std::string power = disk == Flushed::no ? ", not power" : "";
  return (stream.config.replicas >= kCopiesOfMachine && copies > stream.config.replicas / 2 ? "machine" : "process") +
         power;
}

Finding of_stream(const js::StreamReport& stream, const std::vector<MonitorFacts>& monitors) {
  const js::StreamConfig& config = stream.config;
  std::string advice;
  const std::size_t copies = current_copies(stream.cluster, advice);
  if (copies < config.replicas) {
    add_advice(advice, std::to_string(config.replicas) + " copies were asked for, " + std::to_string(copies) +
                           (copies == 1 ? " is there and current" : " are there and current"));
  }
  const bool refuses = config.discard == js::DiscardPolicy::refuse;
  if (refuses && near(stream.state.bytes, config.bytes_max)) {
    add_advice(advice, "its bytes are nearly used up, and it then refuses messages: a larger bytes_max");
  }
  if (refuses && near(stream.state.messages, config.messages_max)) {
    add_advice(advice, "its messages are nearly used up, and it then refuses more: a larger max_msgs");
  }
  if (near(stream.state.consumers, config.consumers_max)) {
    add_advice(advice, "its consumers are nearly used up: a larger max_consumers");
  }
  if (config.async_persist) {
    add_advice(advice, "its persist_mode is async: an acknowledged message may be lost");
  }
  std::string subjects;
  for (std::size_t i = 0; i < config.subjects.size() && i < 3; ++i) {
    subjects += (i == 0 ? "" : " ") + printable(config.subjects[i]);
  }
  if (config.subjects.size() > 3) {
    subjects += " and " + std::to_string(config.subjects.size() - 3) + " more";
  }
  const std::string value =
      "survives " + survives_text(stream, copies, monitors) + "; " + std::to_string(copies) + " of " +
      std::to_string(config.replicas) + (config.replicas == 1 ? " copy" : " copies") +
      (stream.cluster.leader.empty() ? std::string() : ", led by " + printable(stream.cluster.leader)) + ", " +
      (config.storage == js::Storage::memory ? "memory" : "file") + "; " + subjects + "; " +
      of_most(stream.state.messages, config.messages_max, " messages") + ", " +
      of_most(stream.state.bytes, config.bytes_max, " bytes") + ", " + std::to_string(stream.state.consumers) +
      " consumers";
  return {"stream " + printable(config.name), advice.empty() ? State::good : State::warning, value, advice};
}

// A finding for a consumer with something to change only.
void add_consumer(const js::ConsumerInfo& consumer, Findings& all) {
  std::string advice;
  const std::int64_t most = consumer.config.ack_pending_max == 0 ? kPendingDefault : consumer.config.ack_pending_max;
  if (most > 0 && consumer.ack_pending >= static_cast<std::uint64_t>(most)) {
    add_advice(advice,
               "its delivery stands still until messages are acknowledged: are its members alive? A larger "
               "unacked_max, or a shorter ack_wait");
  } else if (near(consumer.ack_pending, most)) {
    add_advice(advice, "its delivery stands still at unacked_max: more members, or a larger bound");
  }
  (void)current_copies(consumer.cluster, advice);
  if (consumer.paused) {
    add_advice(advice, "another program has paused it");
  }
  if (!advice.empty()) {
    all.push_back({"consumer " + printable(consumer.stream) + " " + printable(consumer.name), State::warning,
                   of_most(consumer.ack_pending, most, " messages wait for an acknowledgement, ") +
                       std::to_string(consumer.pending) + " for a delivery",
                   advice});
  }
}

void add_account(const KeptFacts& facts, Findings& all) {
  const js::AccountInfo& account = facts.account;
  std::string advice;
  if (near(account.storage, account.storage_max) || near(account.memory, account.memory_max)) {
    add_advice(advice, "the account's storage is nearly used up: streams then refuse messages");
  }
  if (near(account.streams, account.streams_max) || near(account.consumers, account.consumers_max)) {
    add_advice(advice, "the account's streams or consumers are nearly used up");
  }
  all.push_back({"kept topics", advice.empty() ? State::good : State::warning,
                 of_most(account.streams, account.streams_max, " streams, ") +
                     of_most(account.consumers, account.consumers_max, " consumers, ") +
                     of_most(account.storage, account.storage_max, " bytes of files, ") +
                     of_most(account.memory, account.memory_max, " bytes of memory"),
                 advice});
}

}  // namespace

rt::Task<Result<void>> ask_kept(nats::Client* client, Duration patience, KeptFacts* facts) {
  // Servers of a cluster without JetStream do not answer at all, and others not while they choose a leader.
  const bool has = client->server_has_jetstream();
  const Duration first = has ? patience : std::min(patience, kFirstMost);
  const auto account = co_await ask(client, facts, js::account_info(), first, js::read_account_info);
  if (!account || !account->ok()) {
    const bool none =
        account ? account->failure.number == js::kNotEnabledForAccount : account.error() == Errc::unreachable;
    facts->trouble = none ? std::string() : trouble_of(account, "$JS.API.INFO");
    facts->silent = !account && account.error() == Errc::timed_out;
    facts->away = facts->silent && has;
    co_return Result<void>();
  }
  facts->answers = true;
  facts->account = account->value;
  for (std::uint64_t offset = 0; facts->streams.size() < kStreamsMost;) {
    auto page = co_await ask(client, facts, js::stream_list(offset), patience, js::read_stream_list, kListMost);
    if (!page || !page->ok()) {
      facts->trouble = trouble_of(page, "$JS.API.STREAM.LIST");
      co_return Result<void>();
    }
    facts->streams_total = page->value.total;
    facts->leaderless.insert(facts->leaderless.end(), page->value.missing.begin(), page->value.missing.end());
    offset += page->value.items.size() + page->value.missing.size();
    const bool last = page->value.items.empty() || offset >= page->value.total;
    for (js::StreamReport& each : page->value.items) {
      if (facts->streams.size() < kStreamsMost) {
        facts->streams.push_back(std::move(each));
      }
    }
    if (last) {
      break;
    }
  }
  for (const js::StreamReport& stream : facts->streams) {
    // The leader of a stream does not count the consumers of servers that are away.
    bool asks = clustered(stream.cluster);
    for (std::uint64_t offset = 0;
         (asks || offset < stream.state.consumers) && facts->consumers.size() < kConsumersMost;) {
      asks = false;
      auto request = js::consumer_list(stream.config.name, offset);
      if (!request) {
        break;
      }
      auto page = co_await ask(client, facts, *std::move(request), patience, js::read_consumer_list, kListMost);
      if (!page || !page->ok()) {
        facts->trouble = trouble_of(page, "$JS.API.CONSUMER.LIST." + printable(stream.config.name));
        co_return Result<void>();
      }
      for (std::string& each : page->value.missing) {
        facts->leaderless_consumers.emplace_back(stream.config.name, std::move(each));
      }
      offset += page->value.items.size() + page->value.missing.size();
      if (page->value.items.empty()) {
        break;
      }
      for (js::ConsumerInfo& each : page->value.items) {
        facts->consumers.push_back(std::move(each));
      }
    }
  }
  co_return Result<void>();
}

MonitorFacts read_monitor(const std::string& url, const AdminPort& tls, Instant end) {
  AdminPort port = tls;
  port.monitor = true;
  const bool encrypted = url.starts_with("https://");
  if (!encrypted && !url.starts_with("http://")) {
    throw Usage("--monitor is http://HOST:PORT or https://HOST:PORT, not " + printable(url));
  }
  const std::string rest = url.substr(encrypted ? 8 : 7);
  port.endpoint = (encrypted ? "tls+tcp://" : "tcp://") + rest.substr(0, rest.find('/'));
  if (!encrypted) {
    port.tls_certificate = port.tls_key = port.tls_authorities = port.tls_name = {};
  }
  const std::string page = read_page(port, "/varz", end);
  const auto report = page.size() > kMonitorMax ? nlohmann::json() : nlohmann::json::parse(page, nullptr, false);
  MonitorFacts facts;
  facts.server = text_member(report, "server_name");
  if (facts.server.empty() || text_member(report, "server_id").empty()) {
    throw Failure(printable(url) + " is no monitor of a server of NATS: /varz has no server_name");
  }
  const nlohmann::json config = member(member(report, "jetstream"), "config");
  facts.keeps = !text_member(config, "store_dir").empty();
  const nlohmann::json interval = member(config, "sync_interval");
  if (facts.keeps && interval.is_number_unsigned()) {
    facts.tells_sync = true;
    facts.sync_interval = Duration(static_cast<Duration::rep>(std::min(interval.get<std::uint64_t>(), kIntervalMax)));
    const nlohmann::json always = member(config, "sync_always");
    facts.sync_always = always.is_boolean() && always.get<bool>();
  }
  return facts;
}

void add_kept_findings(const KeptFacts& facts, const std::vector<MonitorFacts>& monitors, Findings& all) {
  if (facts.away) {
    all.push_back({"kept topics", State::warning, "no answer to $JS.API.INFO, from servers with JetStream",
                   "they have no leader now: a majority of them is needed"});
  } else if (facts.silent) {
    all.push_back(
        {"kept topics", State::information, "no answer to $JS.API.INFO: the servers run without JetStream", ""});
  } else if (!facts.answers) {
    all.push_back({"kept topics", facts.trouble.empty() ? State::information : State::warning,
                   facts.trouble.empty() ? "none: the servers run without JetStream" : facts.trouble,
                   facts.trouble.empty() ? "" : "without an answer of JetStream the streams are not compared"});
  } else {
    add_account(facts, all);
  }
  for (const MonitorFacts& each : monitors) {
    const std::string when = !each.keeps        ? "it runs without JetStream"
                             : !each.tells_sync ? "unknown: servers before 2.10 do not tell it"
                             : each.sync_always ? "always: before it acknowledges"
                                                : "every " + seconds_text(each.sync_interval) +
                                                      ": a loss of power loses what it acknowledged since";
    all.push_back({"disk of " + printable(each.server),
                   each.keeps && each.tells_sync && each.sync_always ? State::good : State::information, when, ""});
  }
  for (const js::StreamReport& each : facts.streams) {
    all.push_back(of_stream(each, monitors));
  }
  for (const std::string& each : facts.leaderless) {
    all.push_back({"stream " + printable(each), State::warning, "its leader does not answer",
                   "no server leads it: nothing is stored or read until a majority of its servers is back"});
  }
  for (const js::ConsumerInfo& each : facts.consumers) {
    add_consumer(each, all);
  }
  for (const auto& [stream, consumer] : facts.leaderless_consumers) {
    all.push_back({"consumer " + printable(stream) + " " + printable(consumer), State::warning,
                   "its leader does not answer",
                   "no server leads it: nothing is delivered until a majority of its servers is back"});
  }
  if (facts.answers && !facts.trouble.empty()) {
    all.push_back({"more streams", State::warning, facts.trouble, "the rest is not compared"});
  } else if (facts.streams_total > facts.streams.size() + facts.leaderless.size() ||
             facts.consumers.size() >= kConsumersMost) {
    all.push_back({"more streams", State::information,
                   std::to_string(facts.streams.size()) + " of " + std::to_string(facts.streams_total) +
                       " streams and " + std::to_string(facts.consumers.size()) + " consumers were compared",
                   ""});
  }
}

}  // namespace weft::cli
