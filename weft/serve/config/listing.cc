// SPDX-License-Identifier: MIT
#include "weft/serve/config/listing.h"

#include <utility>

#include "weft/serve/config/table.h"

namespace weft::serve::config {

namespace {

std::string origin_of(const Snapshot* now, const std::string& name) {
  if (now == nullptr) {
    return "";
  }
  const auto at = now->origins().find(name);
  return at == now->origins().end() ? "" : at->second.text();
}

template <typename Of>
void list_rows(std::span<const Row<Of>> rows, const std::string& path, const Of& values, const Snapshot* now,
               std::vector<Entry>& into) {
  const Of fallback;
  for (const Row<Of>& row : rows) {
    std::string name = path + row.key.name;
    std::string origin = origin_of(now, name);
    into.push_back(
        {std::move(name), &row.key, to_text(row.read(fallback)), to_text(row.read(values)), std::move(origin)});
  }
}

}  // namespace

std::vector<Entry> list_entries(const Snapshot* now, const ProgramKeys& program) {
  std::vector<Entry> entries;
  const Settings defaults;
  list_rows<Settings>(settings_rows(), "", now != nullptr ? *now : defaults, now, entries);
  if (now == nullptr) {
    list_rows<ListenerSettings>(listener_rows(), "listener[].", ListenerSettings(), now, entries);
  } else {
    for (std::size_t i = 0; i < now->listeners.size(); ++i) {
      list_rows<ListenerSettings>(listener_rows(), "listener[" + std::to_string(i) + "].", now->listeners[i], now,
                                  entries);
    }
  }
  for (std::size_t i = 0; i < program.keys().size(); ++i) {
    std::string name = "app." + program.keys()[i].name;
    std::string origin = origin_of(now, name);
    const std::string fallback = to_text(program.defaults()[i]);
    std::string value = now != nullptr && i < now->program().size() ? to_text(now->program()[i]) : fallback;
    entries.push_back({std::move(name), &program.keys()[i], fallback, std::move(value), std::move(origin)});
  }
  if (now != nullptr) {
    for (const auto& [name, value] : now->others()) {
      entries.push_back({"app." + name, nullptr, "", value, origin_of(now, "app." + name)});
    }
  }
  return entries;
}

}  // namespace weft::serve::config
