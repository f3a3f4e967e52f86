// SPDX-License-Identifier: MIT
#include "tools/weft/topics/move_file.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "tools/weft/console.h"
#include "weft/base/bytes.h"
#include "weft/base/text/base64.h"
#include "weft/base/text/json_string.h"
#include "weft/base/text/utf8.h"
#include "weft/nats/jetstream/json_fields.h"
#include "weft/nats/jetstream/json_object.h"
#include "weft/nats/jetstream/wall_time.h"
#include "weft/nats/protocol/headers.h"
#include "weft/store/checksum.h"
#include "weft/topic/wire/headers.h"

namespace weft::cli {

namespace {

namespace js = nats::jetstream;
using js::JsonObject;

constexpr std::uint64_t kVersion = 1;
constexpr std::string_view kSum = ",\"sum\":\"";  // then 8 digits, a quote and a brace
constexpr std::size_t kSealSize = kSum.size() + 10;
constexpr const char* kTooLong = "the line is longer than 2 MiB";
constexpr const char* kNotMoved = "this is not a file of `weft stream export` or `weft kv export`";
constexpr std::string_view kFirstLine = "NATS/1.0\r\n";

// A text that JSON can hold; other bytes as base64 in the member with "64" after its name.
void add_text(JsonObject& to, std::string_view name, std::string_view text) {
  if (is_utf8(text)) {
    to.text(name, text);
  } else {
    to.text(std::string(name) + "64", encode_base64(text));
  }
}

std::string block_of(const std::vector<std::string>& lines) {
  std::string block(kFirstLine);
  for (const std::string& line : lines) {
    block.append(line).append("\r\n");
  }
  return block.append("\r\n");
}

void add_headers(JsonObject& to, std::string_view block) {
  std::vector<std::string> lines;
  bool fits = block.starts_with(kFirstLine) && is_utf8(block);
  for (std::string_view rest = block.substr(std::min(block.size(), kFirstLine.size())); fits;) {
    const std::size_t end = rest.find("\r\n");
    if (end == std::string_view::npos || end == 0) {
      break;
    }
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 2);
    fits = end <= js::kTextMax && lines.size() < js::kItemsMax;
  }
  if (fits && block_of(lines) == block) {
    to.texts("headers", lines);
  } else {
    to.text("headers64", encode_base64(block));
  }
}

std::string digits_of(std::uint32_t sum) {
  std::string digits;
  for (unsigned shift = 32; shift != 0; shift -= 4) {
    digits += "0123456789abcdef"[sum >> (shift - 4) & 0xFU];
  }
  return digits;
}

}  // namespace

std::uint64_t missing_before(std::uint64_t sequence, std::uint64_t last, std::uint64_t first) noexcept {
  const std::uint64_t due = std::max(last + 1, first);
  return sequence > due ? sequence - due : 0;
}

std::string plain_headers(std::string_view block) {
  std::string plain;
  nats::HeadersView(as_bytes(block)).for_each([&](const nats::HeadersView::Field& field) {
    plain.append(field.name).append(":").append(field.value).append("\n");
  });
  return plain;
}

// --- MovedLines ---

std::string MovedLines::seal(std::string line) {
  line.pop_back();  // the brace
  sum_ = store::crc32c(as_bytes(line), sum_);
  return line.append(kSum).append(digits_of(sum_)).append("\"}\n");
}

std::string MovedLines::header(const MovedHeader& header) {
  bucket_ = header.bucket;
  JsonObject line;
  line.text("weft", header.bucket ? "bucket" : "stream").number("version", kVersion);
  add_text(line, "name", header.name);
  if (!header.bucket) {
    line.texts("topics", header.settings.topics);
  }
  line.text("keep", name_of(header.settings.keep))
      .text("survives", name_of(header.settings.survives))
      .text("when_full", name_of(header.settings.when_full))
      .number("bytes_max", header.settings.bytes_max)
      .number("age_max_ns", header.settings.age_max)
      .number("id_window_ns", header.settings.same_id_window)
      .number("history", header.settings.history)
      .number("instance", header.instance)
      .number("first", header.first);
  return seal(std::move(line).take());
}

std::string MovedLines::message(const MovedMessage& message) {
  JsonObject line;
  line.number("sequence", message.sequence);
  std::string time;
  js::append_wall_time(message.time, time);
  line.text("time", time);
  add_text(line, bucket_ ? "key" : "topic", message.topic);
  if (!message.id.empty()) {
    add_text(line, "id", message.id);
  }
  if (!message.headers.empty()) {
    add_headers(line, message.headers);
  }
  if (message.erased) {
    line.flag("erased", true);
  }
  return seal(std::move(line.text("body", encode_base64(message.body))).take());
}

std::string MovedLines::end(std::uint64_t messages, std::uint64_t missing) {
  JsonObject line;
  return seal(std::move(line.text("weft", "end").number("messages", messages).number("missing", missing)).take());
}

// --- MovedFile ---

// Places: the members of the line that is read.
struct MovedFile::Places {
  js::JsonFields fields;
  std::string kind, name, name64, keep, survives, when_full, topic, topic64, key, key64, id, id64, headers64, body;
  std::vector<std::string> topics, headers;
  std::uint64_t version = 0, sequence = 0, messages = 0, missing = 0, instance = 0, first = 0, bytes_max = 0;
  std::uint32_t history = 1;
  Duration age_max{0}, id_window{0};
  WallTime time{};
  bool erased = false;

  Places() {
    for (const auto& [member, place] :
         std::initializer_list<std::pair<std::string_view, std::string*>>{{"weft", &kind},
                                                                          {"name", &name},
                                                                          {"keep", &keep},
                                                                          {"survives", &survives},
                                                                          {"when_full", &when_full},
                                                                          {"topic", &topic},
                                                                          {"key", &key},
                                                                          {"id", &id}}) {
      fields.add("", member, *place);
    }
    for (const auto& [member, place] :
         std::initializer_list<std::pair<std::string_view, std::string*>>{{"name64", &name64},
                                                                          {"topic64", &topic64},
                                                                          {"key64", &key64},
                                                                          {"id64", &id64},
                                                                          {"headers64", &headers64},
                                                                          {"body", &body}}) {
      fields.add_base64("", member, *place);
    }
    for (const auto& [member, place] :
         std::initializer_list<std::pair<std::string_view, std::uint64_t*>>{{"version", &version},
                                                                            {"sequence", &sequence},
                                                                            {"messages", &messages},
                                                                            {"missing", &missing},
                                                                            {"instance", &instance},
                                                                            {"first", &first},
                                                                            {"bytes_max", &bytes_max}}) {
      fields.add("", member, *place);
    }
    fields.add("", "topics", topics);
    fields.add("", "headers", headers);
    fields.add("", "history", history);
    fields.add("", "age_max_ns", age_max);
    fields.add("", "id_window_ns", id_window);
    fields.add("", "time", time);
    fields.add("", "erased", erased);
  }

  void clear() {
    for (std::string* const each : {&kind, &topic, &topic64, &key, &key64, &id, &id64, &headers64, &body}) {
      each->clear();
    }
    headers.clear();
    sequence = messages = missing = 0;
    time = {};
    erased = false;
  }
};

MovedFile::MovedFile(const std::string& name)
    : name_(name == "-" ? "standard input" : printable(name)), input_(name), places_(std::make_unique<Places>()) {
  take_header();
}
MovedFile::~MovedFile() = default;

std::string MovedFile::place() const {
  return name_ + ": line " + std::to_string(number_) + ", byte " + std::to_string(offset_);
}
void MovedFile::damaged(const std::string& why) const { throw Failure(place() + ": " + why); }

MovedFile::Raw MovedFile::read_line() {
  offset_ += number_ == 0 ? 0 : line_.size() + 1;
  ++number_;
  for (std::size_t searched = begin_;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      line_ = std::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = end + 1;
      if (line_.size() < kMovedLineMax) {
        return Raw::line;
      }
      damaged(kTooLong);
    }
    searched = buffer_.size() - begin_;
    if (searched >= kMovedLineMax) {
      damaged(kTooLong);
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (!input_.read(buffer_)) {
      line_ = buffer_;
      begin_ = buffer_.size();
      return line_.empty() ? Raw::nothing : Raw::torn;
    }
  }
}

// Whether the line is whole: its checksum counts all lines so far.
bool MovedFile::sealed() {
  if (line_.size() <= kSealSize || !line_.ends_with("\"}")) {
    return false;
  }
  const std::string_view text = line_.substr(0, line_.size() - kSealSize);
  const std::string_view digits = line_.substr(line_.size() - 10, 8);
  std::uint32_t sum = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), sum, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || !line_.substr(text.size()).starts_with(kSum)) {
    return false;
  }
  next_sum_ = store::crc32c(as_bytes(text), sum_);
  return next_sum_ == sum;
}

// Whether bytes follow the line.
bool MovedFile::more() {
  const std::size_t size = line_.size();
  const bool follows = begin_ < buffer_.size() || input_.read(buffer_);
  line_ = std::string_view(buffer_).substr(begin_ - size - 1, size);
  return follows;
}

void MovedFile::take_header() {
  Places& read = *places_;
  const Raw raw = read_line();
  const std::string_view begin = R"({"weft":")";
  if (raw == Raw::nothing) {
    damaged("the file is empty: no export began");
  }
  if (!line_.starts_with(begin.substr(0, std::min(begin.size(), line_.size())))) {
    damaged(kNotMoved);
  }
  if (raw == Raw::torn) {
    damaged("the file ends in its first line: remove it, and export again");
  }
  if (!sealed() || !read.fields.read(line_, kMovedLineMax)) {
    damaged("the checksum does not match: the file is damaged");
  }
  header_.bucket = read.kind == "bucket";
  if (!header_.bucket && read.kind != "stream") {
    damaged(kNotMoved);
  }
  if (read.version != kVersion) {
    damaged("the file has version " + std::to_string(read.version) + "; this program reads version 1");
  }
  header_.name = read.name.empty() ? read.name64 : read.name;
  StreamSettings& settings = header_.settings;
  settings.topics = read.topics;
  const auto keep = keep_of(read.keep);
  const auto survives = survives_of(read.survives);
  const auto when_full = discard_of(read.when_full);
  settings.age_max = read.age_max;
  settings.bytes_max = read.bytes_max;
  settings.same_id_window = read.id_window;
  settings.history = read.history;
  if (!keep || !survives || !when_full || header_.name.empty()) {
    damaged("a setting of the stream is missing, or has no such value");
  }
  settings.keep = *keep;
  settings.survives = *survives;
  settings.when_full = *when_full;
  if (const auto valid = check_settings(settings); !valid) {
    damaged(valid.error().message());
  }
  header_.instance = read.instance;
  header_.first = read.first;
  sum_ = next_sum_;
  whole_ = line_.size() + 1;
}

MovedFile::Got MovedFile::next(MovedMessage& into) {
  if (got_ == Got::message) {
    got_ = read_next(into);
  }
  return got_;
}

MovedFile::Got MovedFile::read_next(MovedMessage& into) {
  const Raw raw = read_line();
  torn_ = raw == Raw::torn;
  if (raw != Raw::line) {
    return Got::cut;
  }
  if (!sealed()) {
    if (more()) {
      damaged("the checksum does not match: the file is damaged here");
    }
    torn_ = true;
    return Got::cut;
  }
  Places& read = *places_;
  read.clear();
  if (!read.fields.read(line_, kMovedLineMax)) {
    damaged("the line has a member of another form");
  }
  if (read.kind == "end") {
    if (read.messages != messages_) {
      damaged("the file has " + std::to_string(messages_) + " messages, and its last line counts " +
              std::to_string(read.messages));
    }
    if (more()) {
      damaged("the file goes on after its last line");
    }
    return Got::end;
  }
  take_message(into);
  sum_ = next_sum_;
  whole_ += line_.size() + 1;
  return Got::message;
}

void MovedFile::take_message(MovedMessage& into) {
  Places& read = *places_;
  std::string& topic = header_.bucket ? read.key : read.topic;
  std::string& topic64 = header_.bucket ? read.key64 : read.topic64;
  if (!read.kind.empty() || read.sequence <= last_ || (topic.empty() && topic64.empty())) {
    damaged("the line is not a message with a topic and a greater sequence");
  }
  if (!read.headers.empty()) {
    into.headers = block_of(read.headers);
  } else {
    into.headers = std::move(read.headers64);
  }
  if (!into.headers.empty() && !is_header_block(into.headers)) {
    damaged("the headers are no block of headers");
  }
  into.sequence = read.sequence;
  into.time = read.time;
  into.topic = std::move(topic.empty() ? topic64 : topic);
  into.id = std::move(read.id.empty() ? read.id64 : read.id);
  into.body = std::move(read.body);
  into.erased = read.erased;
  ++messages_;
  if (header_.settings.keep == Keep::log) {
    missing_ += missing_before(into.sequence, last_, header_.first);
  }
  last_ = into.sequence;
}

}  // namespace weft::cli
