// SPDX-License-Identifier: MIT
#include "tools/weft/bridge/settings.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "weft/base/filter.h"
#include "weft/net/stream/endpoint.h"
#include "weft/serve/config/key.h"
#include "weft/serve/config/toml_file.h"

namespace weft::bridge {

namespace {

namespace config = serve::config;
using config::Key;
using config::Kind;
using config::Problems;
using config::TomlNode;
using config::Value;

constexpr std::array<Role, 4> kRoles{Role::publishers, Role::subscribers, Role::clients, Role::workers};
constexpr std::int64_t kEndpointsMax = 64;
constexpr std::int64_t kCountMax = 1'000'000;
constexpr std::int64_t kMessageBytesMax = std::int64_t{64} << 20;  // of a message of a fleet
constexpr std::int64_t kNameMax = 64;
constexpr std::int64_t kBytesMax = std::int64_t{1} << 32;  // of the messages that a section keeps
constexpr std::int64_t kGroupMax = 255;

constexpr unsigned bit(Role role) noexcept { return 1U << static_cast<unsigned>(role); }
constexpr unsigned kTopics = bit(Role::publishers) | bit(Role::subscribers);
constexpr unsigned kServices = bit(Role::clients) | bit(Role::workers);
constexpr unsigned kEach = kTopics | kServices;

// One key of a table, and where its value goes.
template <typename Of>
struct Row {
  Key key;
  std::function<void(Of&, Value&&)> write;
  unsigned roles = kEach;
};

template <typename Of, typename Member>
Row<Of> row(const char* name, Kind kind, std::int64_t least, std::int64_t most, Member Of::* member,
            unsigned roles = kEach) {
  Key key{name, kind};
  key.least = least;
  key.most = most;
  return {std::move(key),
          [member](Of& into, Value&& value) {
            if constexpr (std::is_same_v<Member, std::int64_t>) {
              if (const auto* const size = std::get_if<config::Size>(&value)) {
                into.*member = static_cast<std::int64_t>(size->bytes);
                return;
              }
            }
            into.*member = std::get<Member>(std::move(value));
          },
          roles};
}

template <typename Member>
Row<Section> curve_row(const char* name, Kind kind, Member Curve::* member) {
  Key key{name, kind};
  key.most = config::kTextMax;
  return {std::move(key),
          [member](Section& into, Value&& value) { into.curve.*member = std::get<Member>(std::move(value)); }, kEach};
}

Row<FleetSettings> text_row(const char* name, std::string FleetSettings::* member) {
  return row(name, Kind::text, 0, config::kTextMax, member);
}

std::vector<Row<Section>> section_rows() {
  const std::int64_t shortest = Duration(std::chrono::milliseconds(10)).count();
  const std::int64_t longest = Duration(std::chrono::hours(1)).count();
  return {
      row("name", Kind::text, 1, kNameMax, &Section::name),
      row("bind", Kind::texts, 0, kEndpointsMax, &Section::bind),
      row("connect", Kind::texts, 0, kEndpointsMax, &Section::connect),
      row("queue_messages", Kind::integer, 1, kCountMax, &Section::queue_messages),
      row("message_bytes", Kind::size, 1, kMessageBytesMax, &Section::message_bytes),
      curve_row("curve_key", Kind::text, &Curve::key_file),
      curve_row("curve_server", Kind::flag, &Curve::server),
      curve_row("curve_server_key", Kind::text, &Curve::server_key_text),
      row("prefix", Kind::text, 0, static_cast<std::int64_t>(kTopicBytesMax), &Section::prefix, kTopics),
      row("separator", Kind::text, 1, 1, &Section::separator, kTopics),
      row("subscribe", Kind::texts, 1, config::kTextsMax, &Section::subscribe, bit(Role::publishers)),
      row("network", Kind::text, 1, kNameMax, &Section::network, kTopics),
      row("headers", Kind::flag, 0, 0, &Section::headers, kTopics),
      row("newest", Kind::texts, 0, config::kTextsMax, &Section::newest, bit(Role::subscribers)),
      row("newest_topics", Kind::integer, 1, kCountMax, &Section::newest_topics, bit(Role::subscribers)),
      row("newest_bytes", Kind::size, 1, kBytesMax, &Section::newest_bytes, bit(Role::subscribers)),
      row("topic", Kind::text, 1, static_cast<std::int64_t>(kTopicBytesMax), &Section::topic, kServices),
      row("group", Kind::text, 0, kGroupMax, &Section::group, bit(Role::workers)),
      row("dealers", Kind::flag, 0, 0, &Section::dealers, bit(Role::workers)),
      row("deadline", Kind::duration, shortest, longest, &Section::deadline, kServices),
      row("pending", Kind::integer, 1, 65'536, &Section::pending, kServices),
      row("pending_bytes", Kind::size, 1, kBytesMax, &Section::pending_bytes, kServices),
  };
}

std::vector<Row<FleetSettings>> fleet_rows() {
  return {text_row("fleet", &FleetSettings::fleet),
          text_row("space", &FleetSettings::space),
          text_row("directory", &FleetSettings::directory),
          text_row("listen", &FleetSettings::listen),
          text_row("curve_key", &FleetSettings::curve_key),
          text_row("creds", &FleetSettings::credentials),
          text_row("tls_cert", &FleetSettings::tls_certificate),
          text_row("tls_key", &FleetSettings::tls_key),
          text_row("tls_ca", &FleetSettings::tls_authorities),
          text_row("tls_name", &FleetSettings::tls_name)};
}

std::vector<Row<Settings>> bridge_rows() {
  const std::int64_t hour = Duration(std::chrono::hours(1)).count();
  return {row("name", Kind::text, 1, kNameMax, &Settings::name),
          row("drain", Kind::duration, 0, hour, &Settings::drain)};
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

std::string shown(const std::string& name) { return is_word(name) && name.size() <= 64 ? name : config::quote(name); }

// SettingsReader: one file into settings.
class SettingsReader {
 public:
  SettingsReader(const std::string& source, Settings& into, Problems& problems)
      : source_(source), into_(into), problems_(problems) {}

  void read(const TomlNode& root) {
    static const std::array<std::string, 6> kTables{"bridge",      "fleet",   "publishers",
                                                    "subscribers", "clients", "workers"};
    for (const TomlNode& node : root.items) {
      if (node.name == "bridge") {
        read_table(node, "bridge", bridge_rows(), into_, kEach);
      } else if (node.name == "fleet") {
        read_table(node, "fleet", fleet_rows(), into_.fleet, kEach);
      } else if (const auto* const role =
                     std::find_if(kRoles.begin(), kRoles.end(), [&](Role each) { return name_of(each) == node.name; });
                 role != kRoles.end()) {
        read_sections(node, *role);
      } else {
        refuse(node.at, shown(node.name), "unknown table" + config::suggestion(node.name, kTables));
      }
    }
    if (into_.sections.empty() && problems_.empty()) {
      refuse(root.at, "", "there is no section: [[publishers]], [[subscribers]], [[clients]] or [[workers]]");
    }
    if (!into_.name.empty() && !is_word(into_.name)) {
      refuse(root.at, "bridge.name",
             config::quote(into_.name) + " has other characters than letters, digits, _, - and .");
    }
  }

 private:
  void refuse(config::Position at, std::string path, std::string text) {
    problems_.add({{source_, at}, std::move(path), std::move(text)});
  }

  template <typename Of>
  void read_table(const TomlNode& table, const std::string& path, const std::vector<Row<Of>>& rows, Of& into,
                  unsigned roles) {
    if (table.kind != TomlNode::Kind::table) {
      return refuse(table.at, path, std::string(config::describe(table.kind)) + ", and not a table");
    }
    std::vector<std::string> names;
    for (const Row<Of>& each : rows) {
      if ((each.roles & roles) != 0) {
        names.push_back(each.key.name);
      }
    }
    for (const TomlNode& node : table.items) {
      const std::string full = path + "." + shown(node.name);
      const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row<Of>& each) {
        return each.key.name == node.name && (each.roles & roles) != 0;
      });
      Value value;
      std::string why;
      if (found == rows.end()) {
        refuse(node.at, full, "unknown key" + config::suggestion(node.name, names));
      } else if (!config::read_value(found->key, node, value, why)) {
        refuse(node.at, full, std::move(why));
      } else {
        found->write(into, std::move(value));
        places_[node.name] = node.at;
      }
    }
  }

  void read_sections(const TomlNode& list, Role role) {
    static const std::vector<Row<Section>> kRows = section_rows();
    const std::string table(name_of(role));
    if (list.kind != TomlNode::Kind::list) {
      return refuse(list.at, table,
                    std::string(config::describe(list.kind)) + ", and not [[" + table + "]], with two brackets");
    }
    std::size_t index = 0;
    for (const TomlNode& node : list.items) {
      const std::string path = table + "[" + std::to_string(index) + "]";
      if (into_.sections.size() == kSectionsMax) {
        return refuse(node.at, path, "more than " + std::to_string(kSectionsMax) + " sections");
      }
      Section section;
      section.role = role;
      section.name = table + "-" + std::to_string(index++);
      section.at = node.at;
      const std::size_t before = problems_.list().size();
      places_.clear();
      read_table(node, path, kRows, section, bit(role));
      if (problems_.list().size() == before) {
        check(section, path);
      }
      into_.sections.push_back(std::move(section));
    }
  }

  // The values that depend on each other, and texts that are more than texts.
  void check(const Section& section, const std::string& path) {
    const auto wrong = [&](const std::string& key, std::string text) {
      const auto place = places_.find(key);
      refuse(place == places_.end() ? section.at : place->second, key.empty() ? path : path + "." + key,
             std::move(text));
    };
    if (section.bind.empty() && section.connect.empty()) {
      wrong("", "an endpoint is missing: bind or connect");
    }
    check_endpoints(section.bind, true, "bind", wrong);
    check_endpoints(section.connect, false, "connect", wrong);
    if (!is_word(section.name)) {
      wrong("name", config::quote(section.name) + " has other characters than letters, digits, _, - and .");
    }
    if (!section.network.empty() && !is_word(section.network)) {
      wrong("network", config::quote(section.network) + " has other characters than letters, digits, _, - and .");
    }
    if (std::any_of(into_.sections.begin(), into_.sections.end(),
                    [&](const Section& each) { return each.name == section.name; })) {
      wrong("name", config::quote(section.name) + " is the name of two sections");
    }
    check_curve(section, wrong);
    for (const std::string& filter : section.newest) {
      if (const auto parsed = Filter::parse(filter); !parsed) {
        wrong("newest", config::quote(filter) + ": " + parsed.error().message());
      }
    }
    if ((bit(section.role) & kServices) != 0) {
      if (section.topic.empty()) {
        wrong("topic", "the topic of the service is missing");
      } else if (const auto checked = check_topic(section.topic); !checked) {
        wrong("topic", config::quote(section.topic) + ": " + checked.error().message());
      }
    }
  }

  template <typename Wrong>
  void check_endpoints(const std::vector<std::string>& endpoints, bool bind, const char* key, const Wrong& wrong) {
    for (const std::string& each : endpoints) {
      if (const auto parsed = net::parse_endpoint(each, bind); !parsed) {
        wrong(key, config::quote(each) + ": " + parsed.error().message());
      } else if (parsed->transport == net::Transport::inproc) {
        wrong(key, config::quote(each) + ": no other program reaches an endpoint within this one");
      }
    }
  }

  template <typename Wrong>
  static void check_curve(const Section& section, const Wrong& wrong) {
    const Curve& curve = section.curve;
    if (curve.server && !curve.server_key_text.empty()) {
      wrong("curve_server", "one end is the server of CURVE, the other one has the server's key");
    } else if (curve.server && curve.key_file.empty()) {
      wrong("curve_server", "a server of CURVE needs curve_key, a file that `weft keygen --out FILE` makes");
    } else if (!curve.server && curve.server_key_text.empty() && !curve.key_file.empty()) {
      wrong("curve_key", "it belongs to curve_server or curve_server_key");
    }
  }

  const std::string& source_;
  Settings& into_;
  Problems& problems_;
  std::map<std::string, config::Position> places_;  // of the keys of the present table
};

}  // namespace

std::string_view name_of(Role role) noexcept {
  switch (role) {
    case Role::publishers: return "publishers";
    case Role::subscribers: return "subscribers";
    case Role::clients: return "clients";
    case Role::workers: return "workers";
  }
  return "";
}

Settings read_settings(std::string_view text, const std::string& source, Problems& problems) {
  Settings settings;
  config::Problem fault;
  const auto root = config::parse_toml(text, fault);
  if (!root) {
    fault.origin.source = source;
    problems.add(std::move(fault));
    return settings;
  }
  SettingsReader(source, settings, problems).read(*root);
  problems.sort();
  return settings;
}

}  // namespace weft::bridge
