// SPDX-License-Identifier: MIT
#include "tools/weft/admin_page.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "tools/weft/console.h"
#include "weft/sys/files/whole_file.h"

namespace weft::cli {

namespace {

constexpr std::size_t kHeadMax = 16 * 1024;  // bytes of an answer's status line and headers
constexpr std::size_t kTokenFileMax = 4096;

struct Answer {
  std::string name;  // of the endpoint, for texts
  std::string bytes;
  const char* kind = "admin port of Weft";

  [[noreturn]] void refuse(const std::string& why) const { throw Failure(name + " is no " + kind + ": " + why); }
};

// The request, with the token in the first line of the file.
std::string make_request(const AdminPort& port, std::string_view path) {
  std::string request = "GET " + std::string(path) +
                        (port.monitor ? " HTTP/1.0" : " HTTP/1.1") +  // in 1.0 no answer is chunked
                        "\r\nHost: " + host_of(port) + "\r\nConnection: close\r\n";
  if (!port.token_file.empty()) {
    const auto text = sys::read_whole_file(port.token_file, kTokenFileMax);
    if (!text) {
      throw Failure(printable(port.token_file) + ": " + text.error().message());
    }
    request += "Authorization: Bearer " + text->substr(0, text->find_first_of("\r\n")) + "\r\n";
  }
  return request + "\r\n";
}

void send_request(net::ByteStream& stream, Instant end, const std::string& name, const std::string& request) {
  for (Bytes left = as_bytes(request); !left.empty() || stream.state().unsent;) {
    const sys::IoResult wrote = stream.write({&left, 1});
    if (wrote.status == sys::IoResult::Status::done) {
      left = left.subspan(wrote.bytes);
    } else if (wrote.status != sys::IoResult::Status::would_block) {
      throw Failure(name + " closed the connection before it answered");
    } else if (!wait_stream(stream, sys::Interest::writable, end)) {
      throw Failure(name + " took no request in time");
    }
  }
}

// Returns false at the end of the stream.
bool read_more(net::ByteStream& stream, Instant end, Answer& answer) {
  std::array<std::uint8_t, 65536> block;
  MutableBytes into(block);
  for (;;) {
    const sys::IoResult got = stream.read({&into, 1});
    if (got.status == sys::IoResult::Status::done) {
      answer.bytes.append(as_text(Bytes(block).first(got.bytes)));
      return true;
    }
    if (const Error failure = stream.state().failure;
        got.status == sys::IoResult::Status::failed && !(failure == Errc::ok)) {
      throw Failure(answer.name + ": " + failure.message());
    }
    if (got.status != sys::IoResult::Status::would_block) {
      return false;
    }
    if (!wait_stream(stream, sys::Interest::readable, end)) {
      throw Failure(answer.name + " gave no whole answer in time");
    }
  }
}

std::optional<std::size_t> content_length(std::string_view head) {
  std::string lower(head);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  constexpr std::string_view kName = "\r\ncontent-length:";
  const std::size_t at = lower.find(kName);
  if (at == std::string::npos) {
    return std::nullopt;
  }
  const std::size_t first = lower.find_first_not_of(' ', at + kName.size());
  std::size_t length = 0;
  if (first == std::string::npos ||
      std::from_chars(lower.data() + first, lower.data() + lower.size(), length).ec != std::errc()) {
    return std::nullopt;
  }
  return length;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

std::string_view take_until(std::string_view& text, std::string_view ends) {
  const std::string_view taken = text.substr(0, text.find_first_of(ends));
  text.remove_prefix(taken.size());
  return taken;
}

// The value of a label after its opening quote, without its escapes, and the closing quote.
bool take_value(std::string_view& text, std::string& value) {
  while (!text.empty() && text[0] != '"') {
    if (text[0] == '\\') {
      text.remove_prefix(1);
      if (text.empty()) {
        return false;
      }
      value += text[0] == 'n' ? '\n' : text[0];
    } else {
      value += text[0];
    }
    text.remove_prefix(1);
  }
  return take(text, '"');
}

bool parse_sample(std::string_view line, Sample& out) {
  out.metric = take_until(line, "{ ");
  if (out.metric.empty()) {
    return false;
  }
  if (take(line, '{')) {
    while (!take(line, '}')) {
      const std::string name(take_until(line, "="));
      std::string value;
      if (name.empty() || !take(line, '=') || !take(line, '"') || !take_value(line, value)) {
        return false;
      }
      out.labels[name] = value;
      (void)take(line, ',');
    }
  }
  if (!take(line, ' ')) {
    return false;
  }
  (void)take(line, '+');  // +Inf
  const auto read = std::from_chars(line.data(), line.data() + line.size(), out.value);
  return read.ec == std::errc() && read.ptr == line.data() + line.size();
}

}  // namespace

bool parse_metrics(std::string_view text, std::vector<Sample>& out) {
  while (!text.empty()) {
    const std::string_view line = take_until(text, "\n");
    (void)take(text, '\n');
    if (line.empty() || line[0] == '#') {
      continue;
    }
    Sample sample;
    if (!parse_sample(line, sample)) {
      return false;
    }
    out.push_back(std::move(sample));
  }
  return true;
}

std::string read_page(const AdminPort& port, std::string_view path, Instant end) {
  check_admin_port(port);
  Answer answer{printable(port.endpoint), {}, port.monitor ? "monitor of a server of NATS" : "admin port of Weft"};
  const std::string request = make_request(port, path);
  const auto stream = dial_admin(port, end);
  send_request(*stream, end, answer.name, request);
  constexpr std::string_view kStatus = "HTTP/1.";
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  std::size_t head = std::string::npos;
  bool open = true;
  for (; open && head == std::string::npos; head = answer.bytes.find(kHeadEnd)) {
    if (!answer.bytes.starts_with(kStatus.substr(0, answer.bytes.size())) || answer.bytes.size() > kHeadMax) {
      answer.refuse("it answers no HTTP");
    }
    open = read_more(*stream, end, answer);
  }
  if (head == std::string::npos) {
    answer.refuse(!answer.bytes.empty()               ? "its answer has no end of headers"
                  : answer.name.starts_with("tcp://") ? "it closed the connection; with TLS it is tls+tcp://"
                                                      : "it closed the connection");
  }
  const std::string status = answer.bytes.substr(9, 3);
  if (answer.bytes.starts_with(kStatus) && status == "401") {
    throw Failure(answer.name + " needs " + (port.token_file.empty() ? "its token: --token-file" : "another token"));
  }
  if (answer.bytes.starts_with(kStatus) && status == "421") {
    throw Failure(answer.name + " answers nothing for the host " + printable(host_of(port)) +
                  ": add it to the port's hosts (AdminOptions::hosts, admin.hosts)");
  }
  if (!answer.bytes.starts_with(kStatus) || status != "200") {
    answer.refuse(std::string(path) + " has the status " + printable(status));
  }
  const std::size_t begin = head + kHeadEnd.size();
  const auto length = content_length(std::string_view(answer.bytes).substr(0, head + 2));
  if (!length && port.monitor) {
    while (answer.bytes.size() - begin <= kAdminPageMax && read_more(*stream, end, answer)) {
    }
    if (answer.bytes.size() - begin > kAdminPageMax) {
      answer.refuse("its answer is too long");
    }
    return answer.bytes.substr(begin);
  }
  if (!length || *length > kAdminPageMax) {
    answer.refuse("its answer has no length, or is too long");
  }
  while (answer.bytes.size() - begin < *length) {
    if (!read_more(*stream, end, answer)) {
      throw Failure(answer.name + " closed the connection in its answer");
    }
  }
  return answer.bytes.substr(begin, *length);
}

std::vector<Sample> read_metrics(const AdminPort& port, Instant end) {
  const std::string page = read_page(port, "/metrics", end);
  std::vector<Sample> samples;
  const auto ours = [](const Sample& sample) { return sample.metric.starts_with("weft_"); };
  if (!parse_metrics(page, samples) || std::none_of(samples.begin(), samples.end(), ours)) {
    Answer{printable(port.endpoint), {}, "admin port of Weft"}.refuse("/metrics has no counters of Weft");
  }
  return samples;
}

}  // namespace weft::cli
