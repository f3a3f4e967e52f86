// SPDX-License-Identifier: MIT
#include "tools/weft/source.h"

#include <utility>

#include "tools/weft/console.h"
#include "weft/sys/clock.h"

namespace weft::cli {

namespace {

bool reads_standard_input(const SourceOptions& options) {
  return options.parts.empty() && options.files.empty() && options.lines.empty();
}

}  // namespace

Source::Source(const SourceOptions& options)
    : options_(options), lines_(reads_standard_input(options) ? std::vector<std::string>{"-"} : options.lines) {
  const int kinds = (options.parts.empty() ? 0 : 1) + (options.files.empty() ? 0 : 1) + (options.lines.empty() ? 0 : 1);
  if (kinds > 1) {
    throw Usage("a message is an argument, a --file or a line of --lines: one of them");
  }
  if (options.rate > 0 && options.interval > 0) {
    throw Usage("--rate and --interval exclude each other");
  }
  interval_ = options.rate > 0 ? seconds(1 / options.rate) : seconds(options.interval);
  for (std::string& part : options_.parts) {
    part = options.hex ? from_hex(part) : std::move(part);
  }
  if (options_.count == 0 && !options_.parts.empty()) {
    options_.count = 1;
  }
}

std::optional<Parts> Source::take() {
  if (!options_.parts.empty()) {
    return options_.parts;
  }
  if (!options_.files.empty()) {
    return next_file_ == options_.files.size() ? std::nullopt
                                               : std::optional<Parts>(Parts{read_whole(options_.files[next_file_++])});
  }
  std::optional<std::string> line = lines_.next();
  if (!line) {
    return std::nullopt;
  }
  return Parts{options_.hex ? from_hex(*line) : *std::move(line)};
}

std::optional<Parts> Source::next() {
  if (options_.count != 0 && given_ == options_.count) {
    return std::nullopt;
  }
  std::optional<Parts> parts = take();
  if (parts) {
    pace();
    ++given_;
  }
  return parts;
}

void Source::pace() {
  if (interval_ <= Duration(0)) {
    return;
  }
  if (given_ == 0) {
    due_ = sys::now();
  }
  sleep_until(due_);
  due_ += interval_;
}

}  // namespace weft::cli
