// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"

#include <algorithm>
#include <tuple>

namespace weft::model {

namespace {

struct Site {
  std::string_view file;
  std::string function;
  std::string_view name;
  std::uint_least32_t line = 0;
  std::uint_least32_t column = 0;
  std::memory_order order{};

  [[nodiscard]] auto place() const { return std::tie(file, line, column, name); }
  [[nodiscard]] bool is_fence() const { return name.ends_with("fence"); }
};

struct Mutation {
  Site site;
  std::memory_order order{};
  bool removed = false;
  std::string text;
};

std::vector<Site>* recording = nullptr;
const Mutation* weakened = nullptr;

// The plain name of a function, from the compiler's name of it.
std::string short_name(std::string_view function) {
  function = function.substr(0, function.find('('));
  return std::string(function.substr(function.find_last_of(" :*&") + 1));
}

std::string_view text_of(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed: return "relaxed";
    case std::memory_order_acquire: return "acquire";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    default: return "seq_cst";
  }
}

std::vector<std::memory_order> weaker_than(std::memory_order order) {
  switch (order) {
    case std::memory_order_acquire:
    case std::memory_order_release: return {std::memory_order_relaxed};
    case std::memory_order_acq_rel: return {std::memory_order_acquire, std::memory_order_release};
    case std::memory_order_seq_cst: return {std::memory_order_acq_rel};
    default: return {};
  }
}

std::vector<Mutation> mutations_of(std::vector<Site> sites) {
  std::sort(sites.begin(), sites.end(), [](const Site& a, const Site& b) { return a.place() < b.place(); });
  std::vector<Mutation> mutations;
  for (const Site& site : sites) {
    const auto twins = std::count_if(sites.begin(), sites.end(), [&](const Site& other) {
      return other.function == site.function && other.name == site.name && other.place() < site.place();
    });
    std::string text = site.function + " " + std::string(site.name);
    if (twins > 0) {
      text += "#" + std::to_string(twins + 1);
    }
    if (site.is_fence()) {
      mutations.push_back({site, site.order, true, text + " removed"});
      continue;
    }
    for (const std::memory_order order : weaker_than(site.order)) {
      mutations.push_back(
          {site, order, false, text + " " + std::string(text_of(site.order)) + " -> " + std::string(text_of(order))});
    }
  }
  return mutations;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

detail::Effective detail::effective(const char* name, std::memory_order order, const Where& where) {
  if (recording != nullptr) {
    const Site site{where.file_name(), short_name(where.function_name()), name, where.line(), where.column(), order};
    if (std::none_of(recording->begin(), recording->end(), [&](const Site& s) { return s.place() == site.place(); })) {
      recording->push_back(site);
    }
  }
  if (weakened != nullptr && weakened->site.line == where.line() && weakened->site.column == where.column() &&
      weakened->site.name == name && weakened->site.file == where.file_name()) {
    return {weakened->order, weakened->removed};
  }
  return {order, false};
}

Audit weaken_every_order(std::string_view header, std::span<const Scenario> scenarios,
                         std::span<const Harmless> harmless) {
  Audit audit;
  std::vector<Site> sites;
  recording = &sites;
  for (const Scenario& scenario : scenarios) {
    const Outcome outcome = explore(scenario.run, scenario.options);
    if (!outcome.complete) {
      audit.complaints.push_back(std::string(scenario.name) + " does not pass as it is: " + outcome.failure);
    }
  }
  recording = nullptr;
  std::erase_if(sites, [&](const Site& site) { return !site.file.ends_with(header); });
  audit.sites = sites.size();
  if (!audit.complaints.empty()) {
    return audit;
  }

  std::vector<bool> used(harmless.size(), false);
  for (const Mutation& mutation : mutations_of(sites)) {
    weakened = &mutation;
    std::string found;
    for (const Scenario& scenario : scenarios) {
      const Outcome outcome = explore(scenario.run, scenario.options);
      if (!outcome.failure.empty()) {
        found = std::string(scenario.name) + ": " + first_line(outcome.failure);
        break;
      }
    }
    weakened = nullptr;
    const auto listed = std::find_if(harmless.begin(), harmless.end(),
                                     [&](const Harmless& entry) { return entry.mutation == mutation.text; });
    if (listed != harmless.end()) {
      used[static_cast<std::size_t>(listed - harmless.begin())] = true;
    }
    if (found.empty() && listed == harmless.end()) {
      audit.complaints.push_back(mutation.text + ": nothing fails; weaken the header, say why not, or test better");
    } else if (!found.empty() && listed != harmless.end()) {
      audit.complaints.push_back(mutation.text + " is listed as harmless, but fails: " + found);
    } else if (!found.empty()) {
      audit.noticed.push_back(mutation.text + ": " + found);
    }
  }
  for (std::size_t i = 0; i < harmless.size(); ++i) {
    if (!used[i]) {
      audit.complaints.push_back(std::string(harmless[i].mutation) +
                                 " is listed as harmless, but there is no such site");
    }
  }
  return audit;
}

}  // namespace weft::model
