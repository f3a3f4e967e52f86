// SPDX-License-Identifier: MIT
#include "tools/weft/top.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "tools/weft/admin_page.h"
#include "weft/base/text/utf8.h"
#include "weft/sys/clock.h"

namespace weft::cli {

namespace {

// One column: the sum of a metric's samples. A counter shows its rate, if there are two reads.
struct Column {
  const char* head;
  const char* key;     // of JSON
  const char* metric;  // after "weft_THING_"
  const char* label;   // the sample has this label with this value; null: any
  const char* value;
  bool rate;
};

struct Section {
  const char* thing;
  const char* title;
  const char* key;  // of JSON
  std::span<const Column> columns;
};

constexpr Column kSocketColumns[] = {
    {"PEERS", "peers", "peers", nullptr, nullptr, false},
    {"IN", "messages_in", "messages_total", "direction", "in", true},
    {"OUT", "messages_out", "messages_total", "direction", "out", true},
    {"QUEUED IN", "queued_in", "messages_queued", "direction", "in", false},
    {"QUEUED OUT", "queued_out", "messages_queued", "direction", "out", false},
    {"DROPPED", "dropped", "messages_dropped_total", nullptr, nullptr, true},
    {"LOST", "connections_lost", "connections_lost_total", nullptr, nullptr, true},
};
constexpr Column kServerColumns[] = {
    {"SESSIONS", "sessions", "sessions", nullptr, nullptr, false},
    {"OPENED", "opened", "sessions_opened_total", nullptr, nullptr, true},
    {"FRAMES IN", "frames_in", "frames_total", "direction", "in", true},
    {"FRAMES OUT", "frames_out", "frames_total", "direction", "out", true},
    {"BYTES IN", "bytes_in", "bytes_total", "direction", "in", true},
    {"BYTES OUT", "bytes_out", "bytes_total", "direction", "out", true},
    {"DROPPED", "dropped", "frames_dropped_total", nullptr, nullptr, true},
    {"REJECTED", "rejected", "connections_rejected_total", nullptr, nullptr, true},
};
constexpr Column kCoreColumns[] = {
    {"POSTED", "posted", "messages_posted_total", nullptr, nullptr, true},
    {"EXECUTED", "executed", "messages_executed_total", nullptr, nullptr, true},
    {"FOREIGN", "foreign_posted", "foreign_messages_posted_total", nullptr, nullptr, true},
    {"WAKES", "wakes", "wakes_total", nullptr, nullptr, true},
    {"REFUSED", "refused", "messages_refused_total", nullptr, nullptr, true},
};
constexpr Column kTopicColumns[] = {
    {"PEERS", "peers", "peers", nullptr, nullptr, false},
    {"PUBLISHED", "published", "messages_published_total", nullptr, nullptr, true},
    {"RECEIVED", "received", "messages_received_total", nullptr, nullptr, true},
    {"DELIVERED", "delivered", "pairs_delivered_total", nullptr, nullptr, true},
    {"QUEUED", "queued", "pairs_queued", nullptr, nullptr, false},
    {"DROPPED", "dropped", "pairs_dropped_total", nullptr, nullptr, true},
    {"MISSED", "missed", "messages_dropped_total", nullptr, nullptr, true},
};
constexpr Section kSections[] = {{"socket", "SOCKET", "sockets", kSocketColumns},
                                 {"server", "SERVER", "servers", kServerColumns},
                                 {"core", "CORE", "cores", kCoreColumns},
                                 {"topics", "TOPICS", "topics", kTopicColumns}};

using Values = std::vector<double>;                                 // one a column
using Rows = std::map<std::map<std::string, std::string>, Values>;  // by the labels that name the thing
using Page = std::vector<Rows>;                                     // one a section
using Rates = std::vector<std::optional<double>>;                   // nothing: unknown, or no rate

bool splits(const std::string& label) { return label == "direction" || label == "reason" || label == "outcome"; }

void add(const Section& section, const Sample& sample, Rows& rows) {
  const std::string prefix = "weft_" + std::string(section.thing) + "_";
  if (!sample.metric.starts_with(prefix) || !sample.labels.contains(section.thing)) {
    return;
  }
  for (std::size_t i = 0; i < section.columns.size(); ++i) {
    const Column& column = section.columns[i];
    if (sample.metric.compare(prefix.size(), std::string::npos, column.metric) != 0) {
      continue;
    }
    if (column.label != nullptr) {
      const auto label = sample.labels.find(column.label);
      if (label == sample.labels.end() || label->second != column.value) {
        continue;
      }
    }
    auto names = sample.labels;
    std::erase_if(names, [](const auto& label) { return splits(label.first); });
    Values& values = rows[names];
    values.resize(section.columns.size());
    values[i] += sample.value;
  }
}

Page read_page(const TopOptions& options) {
  Page page(std::size(kSections));
  for (const Sample& sample : read_metrics(options.admin, deadline_after(sys::now(), seconds(options.timeout)))) {
    for (std::size_t i = 0; i < page.size(); ++i) {
      add(kSections[i], sample, page[i]);
    }
  }
  return page;
}

// A counter that went back belongs to a program that began again: its rate is unknown.
Rates rates_of(const Section& section, const Values& now, const Values* before, double elapsed) {
  Rates rates(now.size());
  for (std::size_t i = 0; before != nullptr && elapsed > 0 && i < now.size(); ++i) {
    if (section.columns[i].rate && now[i] >= (*before)[i]) {
      rates[i] = (now[i] - (*before)[i]) / elapsed;
    }
  }
  return rates;
}

std::uint64_t whole(double value) { return value > 0 && value < 1.8e19 ? static_cast<std::uint64_t>(value) : 0; }

std::string short_number(double value) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  if (value > 0 && value < 10 && value != std::floor(value)) {
    return format("%.1f", value);
  }
  std::size_t unit = 0;
  for (; value >= 10'000 && unit + 1 < std::size(kUnits); ++unit) {
    value /= 1000;
  }
  return format("%.0f", value) + kUnits[unit];
}

std::string name_of(const Section& section, const std::map<std::string, std::string>& labels) {
  std::string name = labels.at(section.thing);
  for (const auto& [label, value] : labels) {
    name += label == section.thing ? "" : " " + value;
  }
  return printable(name);
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string gap(width - std::min(width, width_of(text)), ' ');
  return right ? gap + text : text + gap;
}

using Cells = std::vector<std::vector<std::string>>;

// A table that is wider than `columns` is several, each with the first column; 0: no width is too much.
void append_table(const Cells& cells, std::size_t columns, std::vector<std::string>& lines) {
  std::vector<std::size_t> widths(cells[0].size());
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  }
  std::size_t begin = 1;
  do {
    std::size_t end = begin;
    for (std::size_t width = widths[0]; end < widths.size(); ++end) {
      width += 2 + widths[end];
      if (columns != 0 && width > columns && end > begin) {
        break;
      }
    }
    if (begin != 1) {
      lines.emplace_back();
    }
    for (const auto& row : cells) {
      std::string line = padded(row[0], widths[0], false);
      for (std::size_t i = begin; i < std::min(end, row.size()); ++i) {
        line += "  " + padded(row[i], widths[i], true);
      }
      lines.push_back(line);
    }
    begin = end;
  } while (begin < widths.size());
}

// The two last reads of a program's counters.
class Samples {
 public:
  explicit Samples(const TopOptions& options) : options_(options) {}

  void read() {
    before_ = std::move(now_);
    now_ = read_page(options_);
    const Instant at = sys::now();
    elapsed_ = before_.empty() ? 0 : std::chrono::duration<double>(at - at_).count();
    at_ = at;
  }

  [[nodiscard]] Record record() const;
  // The head of each table begins with its title.
  [[nodiscard]] std::vector<std::string> lines(std::size_t columns) const;

 private:
  [[nodiscard]] const Values* before(std::size_t section, const std::map<std::string, std::string>& labels) const {
    if (before_.empty()) {
      return nullptr;
    }
    const auto found = before_[section].find(labels);
    return found == before_[section].end() ? nullptr : &found->second;
  }

  const TopOptions& options_;
  Page before_;
  Page now_;
  Instant at_{};
  double elapsed_ = 0;
};

Record Samples::record() const {
  Record record;
  if (!before_.empty()) {
    record.emplace_back("seconds", elapsed_);
  }
  for (std::size_t s = 0; s < now_.size(); ++s) {
    std::vector<Object> rows;
    for (const auto& [labels, values] : now_[s]) {
      Record row{{"name", labels.at(kSections[s].thing)}};
      for (const auto& [label, value] : labels) {
        if (label != kSections[s].thing) {
          row.emplace_back(label, value);
        }
      }
      const Rates rates = rates_of(kSections[s], values, before(s, labels), elapsed_);
      for (std::size_t i = 0; i < values.size(); ++i) {
        row.emplace_back(kSections[s].columns[i].key, whole(values[i]));
        if (rates[i]) {
          row.emplace_back(std::string(kSections[s].columns[i].key) + "_per_second", *rates[i]);
        }
      }
      rows.push_back({std::move(row)});
    }
    record.emplace_back(kSections[s].key, std::move(rows));
  }
  return record;
}

std::vector<std::string> Samples::lines(std::size_t columns) const {
  const bool with_rates = !before_.empty();
  std::vector<std::string> lines;
  for (std::size_t s = 0; s < now_.size(); ++s) {
    const Section& section = kSections[s];
    if (now_[s].empty()) {
      continue;
    }
    Cells cells{{section.title}};
    for (const Column& column : section.columns) {
      cells[0].push_back(std::string(column.head) + (with_rates && column.rate ? "/s" : ""));
    }
    for (const auto& [labels, values] : now_[s]) {
      const Rates rates = rates_of(section, values, before(s, labels), elapsed_);
      cells.push_back({name_of(section, labels)});
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool unknown = with_rates && section.columns[i].rate && !rates[i];
        cells.back().push_back(unknown ? "-" : short_number(rates[i] ? *rates[i] : values[i]));
      }
    }
    if (!lines.empty()) {
      lines.emplace_back();
    }
    append_table(cells, columns, lines);
  }
  if (lines.empty()) {
    lines.emplace_back("no sockets, servers, cores or topics are on the page");
  }
  return lines;
}

// One sample, as an object of JSON and as lines.
struct View {
  Record record;
  std::vector<std::string> lines;
};

std::string milliseconds(double ms) { return format(ms < 10 ? "%.2f ms" : "%.0f ms", ms); }

// The slowest operations of the page /debug/traces.
View read_traces(const TopOptions& options, std::size_t columns) {
  const std::string page =
      read_page(options.admin, "/debug/traces", deadline_after(sys::now(), seconds(options.timeout)));
  std::vector<Object> rows;
  Cells cells{{"TRACE", "OPERATION", "TRACER", "KIND", "STATUS", "TOOK", "AGO"}};
  try {
    const nlohmann::json parsed = nlohmann::json::parse(page);
    for (const nlohmann::json& each : parsed.at("traces")) {
      Record row;
      std::vector<std::string> line;
      for (const char* key : {"trace_id", "name", "tracer", "kind", "status"}) {
        const std::string value = each.at(key);
        row.emplace_back(key, value);
        line.push_back(printable(value));
      }
      for (const char* key : {"ms", "age_ms"}) {
        const double value = each.at(key);
        row.emplace_back(key, value);
        line.push_back(milliseconds(value));
      }
      rows.push_back({std::move(row)});
      cells.push_back(std::move(line));
    }
  } catch (const nlohmann::json::exception&) {
    throw Failure(printable(options.admin.endpoint) + ": /debug/traces is not a page of Weft");
  }
  View view;
  if (rows.empty()) {
    view.lines.emplace_back("no operation was recorded in this minute and the one before");
  } else {
    append_table(cells, columns, view.lines);
  }
  view.record.emplace_back("traces", std::move(rows));
  return view;
}

bool is_head(const std::vector<std::string>& lines, std::size_t i) { return i == 0 || lines[i - 1].empty(); }

void show(Console& console, const View& view, const TopOptions& options, bool first) {
  if (console.json) {
    console.record(view.record);
    return;
  }
  std::vector<std::string> lines = view.lines;
  const Screen screen = options.once ? Screen{} : console.screen();
  std::string text = screen.rows == 0 && !first ? "\n" : "";
  if (screen.rows > 0) {
    const std::string title = "weft top " + printable(options.admin.endpoint) + ", every " +
                              format("%g", options.interval) + " s; Ctrl-C ends it";
    lines.insert(lines.begin(), {title, ""});
    text = first ? "\033[2J\033[H" : "\033[H";
    if (lines.size() > screen.rows) {
      lines.resize(screen.rows);
      lines.back() = "... more lines than the terminal has";
    }
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string line = screen.rows > 0 ? cut(lines[i], screen.columns) : lines[i];
    const bool last = screen.rows > 0 && i + 1 == screen.rows;  // a line feed there would scroll the terminal
    text += (is_head(lines, i) ? console.paint(Colour::bold, line) : line) + (screen.rows > 0 ? "\033[K" : "") +
            (last ? "" : "\n");
  }
  console.print(text + (screen.rows > 0 ? "\033[J" : ""));
}

}  // namespace

int top(Console& console, const TopOptions& options) {
  if (!(options.interval >= 0.01)) {
    throw Usage("--interval is at least 0.01 seconds");
  }
  if (options.once && options.count != 0) {
    throw Usage("--once is one sample, --count several");
  }
  Samples samples(options);
  const std::size_t columns = options.once ? console.screen().columns : 0;  // a live table is cut
  const auto look = [&samples, &options, columns] {
    if (options.traces) {
      return read_traces(options, columns);
    }
    samples.read();
    return View{samples.record(), samples.lines(columns)};
  };
  View view = look();
  if (options.once) {
    show(console, view, options, true);
    return 0;
  }
  Instant at = sys::now();
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    sleep_until(at + seconds(options.interval));
    view = look();
    at = sys::now();
    show(console, view, options, i == 0);
  }
  return 0;
}

}  // namespace weft::cli
