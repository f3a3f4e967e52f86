// SPDX-License-Identifier: MIT
#include "tools/weft/topics/move_export.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tools/weft/topics/kept.h"
#include "tools/weft/topics/move_file.h"
#include "tools/weft/topics/move_stored.h"
#include "weft/sys/call.h"
#include "weft/sys/clock.h"
#include "weft/sys/fd.h"

namespace weft::cli {

namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10U;  // bytes of one write
constexpr Duration kExportShowEvery = std::chrono::milliseconds(250);

// The consumers of the source, and the place of each in the file.
struct ConsumerPlace {
  std::string name;
  std::uint64_t floor = 0;    // in the source
  std::uint64_t waiting = 0;  // delivered and not acknowledged
  std::uint64_t from = 1;     // the number in the file of its next message: so its sequence in a new stream
};

// Output: the file, or standard output. Affinity: one thread.
class Output {
 public:
  Output(Console& console, const ExportOptions& options) : console_(console), name_(printable(options.file)) {
    if (options.file.empty() || options.file == "-") {
      return;
    }
    fd_ = sys::Fd(
        need(sys::checked_call(
                 "open", [&] { return ::open(options.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600); }),
             name_));
    const auto locked = sys::checked_call("lock", [&] { return ::flock(fd_.fd(), LOCK_EX | LOCK_NB); });
    if (!locked) {
      throw Failure(name_ + ": another program exports to it: " + locked.error().message());
    }
    const auto size = need(sys::checked_call("seek", [&] { return ::lseek(fd_.fd(), 0, SEEK_END); }), name_);
    empty_ = size == 0;
    if (!empty_ && !options.resume) {
      throw Failure(name_ + ": the file is not empty: --resume continues its export");
    }
  }

  [[nodiscard]] bool is_file() const noexcept { return fd_.fd() >= 0; }
  [[nodiscard]] bool empty() const noexcept { return empty_; }
  void cut(std::uint64_t size) {
    need(sys::checked_call("truncate", [&] { return ::ftruncate(fd_.fd(), static_cast<off_t>(size)); }), name_);
    need(sys::checked_call("seek", [&] { return ::lseek(fd_.fd(), 0, SEEK_END); }), name_);
  }
  void add(std::string_view line) {
    block_.append(line);
    if (block_.size() >= kBlock) {
      flush();
    }
  }
  void flush() {
    if (!is_file()) {
      console_.print(std::exchange(block_, {}));
      return;
    }
    for (std::string_view rest = block_; !rest.empty();) {
      const auto wrote = sys::checked_call("write", [&] { return ::write(fd_.fd(), rest.data(), rest.size()); });
      rest.remove_prefix(static_cast<std::size_t>(need(wrote, name_)));
    }
    block_.clear();
  }
  // The file is on the disk.
  void finish() {
    flush();
    if (is_file()) {
      const int synced = ::fsync(fd_.fd());
      if (synced != 0 && sys::last_errno() != EINVAL) {  // EINVAL: a device
        throw Failure(name_ + ": " + sys::make_error(sys::last_errno(), "fsync").message());
      }
    }
  }

 private:
  Console& console_;
  const std::string name_;
  sys::Fd fd_;
  std::string block_;
  bool empty_ = true;
};

// Export: the messages of one stream. Affinity: one thread.
class Export {
 public:
  Export(Console& console, const ExportOptions& options) : console_(console), options_(options), kept_(options.fleet) {}

  int run() {
    const std::string wire = options_.bucket ? "kv." + options_.name : options_.name;
    what_ = (options_.bucket ? "the bucket " : "the stream ") + printable(options_.name);
    stream_.emplace(open_stream(kept_, wire, &info_));
    output_.emplace(console_, options_);
    for (const StreamInfo::Consumer& each : info_.consumers) {
      places_.push_back({each.name, each.floor, each.waiting, 1});
    }
    header_.bucket = options_.bucket;
    header_.name = options_.name;
    header_.settings = info_.settings;
    for (std::string& topic : header_.settings.topics) {
      topic = kept_.link()->names().decode(topic);
    }
    header_.instance = info_.instance;
    header_.first = info_.first;
    if (output_->empty()) {
      output_->add(lines_.header(header_));
    } else {
      resume();
    }
    try {
      each_stored(kept_, *stream_, info_, last_, what_, [this](const KeptMessage& message) { add(message); });
      if (header_.settings.keep == Keep::log) {
        missing_ += missing_before(info_.next, last_, header_.first);
      }
      output_->add(lines_.end(messages_, missing_));
      output_->finish();
    } catch (...) {
      tell_stop();
      throw;
    }
    console_.progress("");
    tell();
    return 0;
  }

 private:
  // Cuts a part of a line off the file, and continues after its last message.
  void resume() {
    std::uint64_t size = 0;
    {
      MovedFile file(options_.file);
      const MovedHeader& was = file.header();
      if (was.bucket != header_.bucket || was.name != header_.name) {
        throw Failure(printable(options_.file) + " has " + (was.bucket ? "the bucket " : "the stream ") +
                      printable(was.name));
      }
      if (was.instance != header_.instance) {
        throw Failure(printable(options_.file) + " has messages of an earlier " + what_ +
                      ": it was removed and made again since");
      }
      header_.first = was.first;
      MovedMessage message;
      MovedFile::Got got = MovedFile::Got::cut;
      while ((got = file.next(message)) == MovedFile::Got::message) {
        throw_if_stopped();
        count(message.sequence);
      }
      size = file.whole_bytes();
      lines_ = MovedLines(file.sum(), header_.bucket);
      if (file.torn()) {
        console_.note(file.place() + ": a part of a line is cut off");
      }
    }
    before_ = messages_;
    if (last_ >= info_.next) {
      throw Failure(printable(options_.file) + " has message " + std::to_string(last_) + ", and " + what_ +
                    " only those before " + std::to_string(info_.next));
    }
    output_->cut(size);
  }

  void count(std::uint64_t sequence) {
    if (header_.settings.keep == Keep::log) {
      missing_ += missing_before(sequence, last_, header_.first);
    }
    last_ = sequence;
    ++messages_;
    for (ConsumerPlace& each : places_) {
      each.from = sequence < each.floor ? messages_ + 1 : each.from;
    }
  }

  void add(const KeptMessage& message) {
    if (message.sequence() <= last_) {
      return;
    }
    count(message.sequence());
    MovedMessage moved;
    moved.sequence = message.sequence();
    moved.time = message.time();
    moved.topic = header_.bucket ? message.wire_topic().substr(stream_->name().size() + 1) : message.topic();
    moved.id = message.id();
    moved.headers = message.headers();
    moved.body = message.text();
    moved.erased = message.erased();
    output_->add(lines_.message(moved));
    if (const Instant now = sys::now(); now >= show_at_) {
      throw_if_stopped();
      show_at_ = deadline_after(now, kExportShowEvery);
      console_.progress(std::to_string(messages_) + " messages, at " + std::to_string(last_) + " of " +
                        std::to_string(info_.next - 1));
    }
  }

  // A run that did not reach the end.
  void tell_stop() noexcept {
    console_.progress("");
    if (!output_->is_file()) {
      return;
    }
    try {
      output_->flush();
    } catch (const std::exception&) {  // the reason that is reported already
    }
    console_.note(printable(options_.file) +
                  " does not have all messages yet: the same command with --resume continues");
  }

  void tell() {
    std::vector<Object> consumers;
    for (const ConsumerPlace& each : places_) {
      consumers.push_back(
          {{{"name", each.name}, {"floor", each.floor}, {"waiting", each.waiting}, {"from", each.from}}});
    }
    const Record record = {{"name", options_.name}, {"messages", messages_},  {"new", messages_ - before_},
                           {"missing", missing_},   {"last_sequence", last_}, {"consumers", consumers}};
    if (missing_ != 0) {
      console_.note(std::to_string(missing_) +
                    " messages are not in the file: the stream dropped them after the export began, or they were "
                    "deleted one by one");
    }
    if (console_.json && output_->is_file()) {
      console_.record(record);
      return;
    }
    if (console_.json) {
      std::fprintf(stderr, "%s\n", to_json(record).c_str());
      return;
    }
    const auto say = [this](const std::string& text) {
      output_->is_file() ? console_.prose(text, 4) : console_.note(text);
    };
    say(std::to_string(messages_) + " messages" +
        (before_ == 0 ? std::string() : ", " + std::to_string(messages_ - before_) + " of them new"));
    for (const ConsumerPlace& each : places_) {
      say("not moved: the consumer " + printable(each.name) + ", which has all below " + std::to_string(each.floor) +
          "; in a new stream: weft stream consume NAME " + printable(each.name) + " --from " +
          std::to_string(each.from));
    }
  }

  Console& console_;
  const ExportOptions& options_;
  std::string what_;
  KeptLink kept_;
  std::optional<Stream> stream_;
  std::optional<Output> output_;
  StreamInfo info_;
  MovedHeader header_;
  MovedLines lines_;
  std::vector<ConsumerPlace> places_;
  std::uint64_t messages_ = 0;  // in the file
  std::uint64_t before_ = 0;    // of those, of an earlier run
  std::uint64_t missing_ = 0;
  std::uint64_t last_ = 0;
  Instant show_at_{};
};

}  // namespace

int export_stream(Console& console, const ExportOptions& options) { return Export(console, options).run(); }

}  // namespace weft::cli
