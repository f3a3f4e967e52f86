// SPDX-License-Identifier: MIT
#include "weft/serve/web/files.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>

#include "weft/net/http/chars.h"
#include "weft/net/http/field.h"
#include "weft/serve/web/answer.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/date.h"
#include "weft/sys/clock.h"
#include "weft/sys/files/file_tree.h"

namespace weft::serve::web {

namespace {

namespace http = net::http;
using std::chrono::sys_seconds;

constexpr Error kNoFile(Errc::not_found, "there is no such file");

// RFC 9110 section 8.8.2.2: a date is a weak validator while the file may change again in the same second. The clock of
// a file system on another machine may differ, so that the second counts as over a minute later.
constexpr auto kSettledAfter = std::chrono::seconds(60);

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".htm", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".txt", "text/plain; charset=utf-8"},
    {".csv", "text/csv; charset=utf-8"},
    {".xml", "application/xml"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},
    {".webp", "image/webp"},
    {".avif", "image/avif"},
    {".ico", "image/x-icon"},
    {".woff", "font/woff"},
    {".woff2", "font/woff2"},
    {".ttf", "font/ttf"},
    {".wasm", "application/wasm"},
    {".pdf", "application/pdf"},
    {".zip", "application/zip"},
    {".gz", "application/gzip"},
    {".mp3", "audio/mpeg"},
    {".ogg", "audio/ogg"},
    {".mp4", "video/mp4"},
    {".webm", "video/webm"},
};

bool ends_with(std::string_view name, std::string_view end) noexcept {
  return name.size() >= end.size() && http::same_text(name.substr(name.size() - end.size()), end);
}

bool has_hidden(std::string_view path) noexcept {
  return path.starts_with('.') || path.find("/.") != std::string_view::npos;
}

// A file of which a request may want a part, or nothing because it has it.
struct Found {
  std::uint64_t size;
  std::string tag;
  sys_seconds modified;
  bool settled;  // the date is a strong validator
};
struct FilePart {
  std::uint64_t first = 0;
  std::uint64_t size = 0;
  unsigned status = 200;  // 200 the whole, 206 a part, 416 none
};
std::string hex_of(std::uint64_t number) {
  char digits[16];
  return {digits, std::to_chars(digits, digits + sizeof digits, number, 16).ptr};
}

std::string tag_of(const sys::OpenFile& file) {
  return "\"" + hex_of(file.size) + "-" + hex_of(static_cast<std::uint64_t>(file.modified_ns)) + "\"";
}

// RFC 9110 section 8.8.2.1: no date is later than that of the answer.
Found found_of(const sys::OpenFile& file) {
  const auto now = std::chrono::floor<std::chrono::seconds>(sys::wall_now());
  const sys_seconds second(std::chrono::floor<std::chrono::seconds>(std::chrono::nanoseconds(file.modified_ns)));
  return {file.size, tag_of(file), std::min(second, now), now - second >= kSettledAfter};
}

// Whether a list of tags has that of the file. `weak`: also as W/"x".
bool has_tag(std::string_view list, std::string_view tag, bool weak) {
  return list == "*" || http::any_element(list, [&](std::string_view one) {
           return one == tag || (weak && one.starts_with("W/") && one.substr(2) == tag);
         });
}

// Whether one of the fields of that name, which are one list, has the tag; none: there is no such field.
std::optional<bool> find_tag(const Request& request, std::string_view name, std::string_view tag, bool weak) {
  std::optional<bool> found;
  http::any_field(request.fields(), [&](const http::Field& field) {
    if (http::same_text(field.name, name)) {
      found = found.value_or(false) || has_tag(field.value, tag, weak);
    }
    return false;
  });
  return found;
}

std::optional<sys_seconds> date_in(const Request& request, std::string_view name) {
  const auto value = request.find(name);
  return value ? parse_http_date(*value, std::chrono::floor<std::chrono::seconds>(sys::wall_now())) : std::nullopt;
}

// RFC 9110 section 13.2.2: 304, 412, or 200: the conditions hold.
unsigned check_conditions(const Request& request, const Found& file) {
  if (const auto match = find_tag(request, "If-Match", file.tag, false)) {
    if (!*match) {
      return 412;
    }
  } else if (const auto unmodified = date_in(request, "If-Unmodified-Since");
             unmodified && file.modified > *unmodified) {
    return 412;
  }
  if (const auto known = find_tag(request, "If-None-Match", file.tag, true)) {
    return *known ? 304 : 200;
  }
  const auto modified = date_in(request, "If-Modified-Since");
  return modified && file.modified <= *modified ? 304 : 200;
}

// Takes digits off the text; none: there are none, or too many.
std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
  std::uint64_t number = 0;
  const auto taken = std::from_chars(text.data(), text.data() + text.size(), number);
  if (taken.ec != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(taken.ptr - text.data()));
  return number;
}

// RFC 9110 section 14: one range of bytes. A set of several, and a value that is not a range, is answered by the whole
// file.
FilePart part_of(const Request& request, const Found& file) {
  const FilePart whole{0, file.size, 200};
  const auto range = request.find("Range");
  if (!range || request.method() != "GET" || !range->starts_with("bytes=")) {
    return whole;
  }
  if (const auto only_if = request.find("If-Range"); only_if && *only_if != file.tag) {
    const auto date = date_in(request, "If-Range");
    if (!date || *date != file.modified || !file.settled) {
      return whole;
    }
  }
  std::string_view text = range->substr(6);
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    const auto last = take_number(text);
    if (!last || !text.empty()) {
      return whole;
    }
    const std::uint64_t size = std::min(*last, file.size);
    return size == 0 ? FilePart{0, 0, 416} : FilePart{file.size - size, size, 206};
  }
  const auto first = take_number(text);
  if (!first || !text.starts_with('-')) {
    return whole;
  }
  text.remove_prefix(1);
  const auto last = text.empty() ? std::optional(~std::uint64_t{0}) : take_number(text);
  if (!last || !text.empty() || *last < *first) {
    return whole;
  }
  return *first >= file.size ? FilePart{0, 0, 416} : FilePart{*first, std::min(*last, file.size - 1) - *first + 1, 206};
}

}  // namespace

struct Files::State {
  State(sys::FileTree of, FileOptions with) noexcept : tree(std::move(of)), options(std::move(with)) {}

  sys::FileTree tree;
  FileOptions options;
  mutable std::atomic<std::uint32_t> sending{0};  // files that are open for a body; relaxed: it guards nothing

  [[nodiscard]] std::string_view type_of(std::string_view name) const noexcept {
    for (const auto& [end, type] : options.types) {
      if (ends_with(name, end)) {
        return type;
      }
    }
    return content_type_of(name);
  }
};

// SentFile: a file that stays open while it is sent, and its place among open_max.
struct Files::SentFile {
  SentFile(std::shared_ptr<const State> of, sys::OpenFile opened) noexcept
      : state(std::move(of)),
        file(std::move(opened)),
        has_place(state->sending.fetch_add(1, std::memory_order_relaxed) < state->options.open_max) {}
  SentFile(const SentFile&) = delete;
  SentFile& operator=(const SentFile&) = delete;
  ~SentFile() { state->sending.fetch_sub(1, std::memory_order_relaxed); }

  // The answer with that part of the file.
  static Result<Response> answer(const std::shared_ptr<const State>& state, sys::OpenFile file, const FilePart& part,
                                 std::string_view type);

  std::shared_ptr<const State> state;
  sys::OpenFile file;
  bool has_place;
};

Result<Files> Files::open(const std::string& directory, FileOptions options) {
  auto tree = WEFT_TRY(sys::FileTree::open(directory));
  return Files(std::make_shared<const State>(std::move(tree), std::move(options)));
}

Result<Response> Files::SentFile::answer(const std::shared_ptr<const State>& state, sys::OpenFile file,
                                         const FilePart& part, std::string_view type) {
  if (part.size > std::min(state->options.whole_max, kBodyMax)) {
    const auto kept = std::make_shared<const SentFile>(state, std::move(file));
    if (!kept->has_place) {
      return status_response(503).set_cause(Response::Cause::files_busy);
    }
    return Response::stream([kept, first = part.first, size = part.size](
                                BodyWriter& out) { return out.send_file(kept->file.fd.fd(), first, size); },
                            type, part.size);
  }
  std::string text(static_cast<std::size_t>(part.size), '\0');
  const std::size_t size = WEFT_TRY(sys::read_file_at(
      file.fd.fd(), part.first, MutableBytes(reinterpret_cast<std::uint8_t*>(text.data()), text.size())));
  if (size != text.size()) {
    return Error(Errc::invalid_state, "the file is shorter than it was");
  }
  return Response(std::move(text), type);
}

Result<Response> Files::operator()(const Request& request) const {
  std::string path = request.param(state_->options.param);
  const bool to_index = path.empty() || path.ends_with('/');
  if ((!state_->options.hidden && has_hidden(path)) || (to_index && state_->options.index.empty())) {
    return kNoFile;
  }
  path += to_index ? state_->options.index : "";
  auto opened = state_->tree.open_file(path);
  if (!opened) {
    return opened.error() == Errc::invalid_argument ? kNoFile : opened.error();
  }
  if (opened->is_directory) {
    const std::string query = request.query().empty() ? "" : "?" + std::string(request.query());
    return to_index ? Result<Response>(kNoFile)
                    : Result<Response>(Response(301).set("Location", std::string(request.path()) + "/" + query));
  }
  const Found file = found_of(*opened);
  const auto modified = http_date(file.modified);
  const auto finish = [&](Response response) {
    response.set("ETag", file.tag).set("Last-Modified", {modified.data(), modified.size()});
    response.set("Accept-Ranges", "bytes").set("X-Content-Type-Options", "nosniff");
    if (!state_->options.cache_control.empty()) {
      response.set("Cache-Control", state_->options.cache_control);
    }
    return response;
  };
  if (const unsigned status = check_conditions(request, file); status != 200) {
    return finish(Response(status));
  }
  const FilePart part = part_of(request, file);
  if (part.status == 416) {
    return finish(Response(416).set("Content-Range", "bytes */" + std::to_string(file.size)));
  }
  Response response = WEFT_TRY(SentFile::answer(state_, *std::move(opened), part, state_->type_of(path)));
  if (response.status() == 503) {
    return response;
  }
  response.set_status(part.status);
  if (part.status == 206) {
    response.set("Content-Range", "bytes " + std::to_string(part.first) + "-" +
                                      std::to_string(part.first + part.size - 1) + "/" + std::to_string(file.size));
  }
  return finish(std::move(response));
}

std::string_view content_type_of(std::string_view name) noexcept {
  const auto* const at = std::find_if(std::begin(kTypes), std::end(kTypes),
                                      [name](const auto& type) { return ends_with(name, type.first); });
  return at == std::end(kTypes) ? "application/octet-stream" : at->second;
}

}  // namespace weft::serve::web
