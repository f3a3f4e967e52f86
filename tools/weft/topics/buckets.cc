// SPDX-License-Identifier: MIT
#include "tools/weft/topics/buckets.h"

#include <memory>
#include <utility>
#include <vector>

#include "weft/sys/clock.h"
#include "weft/topic/kept/key_value_core.h"
#include "weft/topic/kept/stream_core.h"

namespace weft::cli {

namespace {

std::string bucket_text(const BucketOptions& options) { return "the bucket " + printable(options.bucket); }
std::string key_text(const BucketOptions& options) {
  return "the key " + printable(options.key) + " of " + bucket_text(options);
}

// The bucket with the settings that it has. Only `makes` makes one.
KeyValue open_bucket(KeptLink& kept, const BucketOptions& options, bool makes) {
  const auto survives = survives_of(options.survives);
  if (!survives || *survives == Survives::nothing) {
    throw Usage("--survives is process, machine or power");
  }
  KeyValueOptions made;
  made.survives = *survives;
  return kept.ask(bucket_text(options), [&]() -> Result<KeyValue> {
    const auto core = WEFT_TRY(topic::KeyValueCore::make(kept.link(), options.bucket, {}));
    const std::string& wire = core->stream().wire();
    const auto call = WEFT_TRY(topic::StreamCore::info_of(wire));
    const Result<void> there = kept.link()->run(call);
    if (!there) {
      return makes && there.error() == Errc::not_found ? KeyValue::declare(kept.link(), options.bucket, made)
             : there.error() == Errc::not_found        ? Error(Errc::not_found, "there is no such bucket")
                                                       : there.error();
    }
    const StreamInfo info = WEFT_TRY(topic::StreamCore::read_info(*call, wire));
    auto stream = std::make_shared<topic::StreamCore>(kept.link(), wire, info.settings);
    WEFT_TRY(stream->read_info(*call));
    return KeyValue(std::make_shared<const topic::KeyValueCore>(options.bucket, std::move(stream)));
  });
}

void print_revision(Console& console, std::uint64_t revision) {
  if (console.json) {
    console.record({{"revision", revision}});
  } else {
    console.line(std::to_string(revision));
  }
}

std::string filter_of(const BucketOptions& options) { return options.filter.empty() ? ">" : options.filter; }

}  // namespace

int kv_get(Console& console, const BucketOptions& options) {
  KeptLink kept(options.fleet);
  KeyValue bucket = open_bucket(kept, options, false);
  const KeyValueEntry entry = kept.ask(key_text(options), [&] { return bucket.value(options.key); });
  Record fields;
  if (console.json) {
    fields = {{"key", std::string(entry.key())}, {"revision", entry.revision()}};
  }
  show(console, options.shown, fields, entry.text(), {});
  return 0;
}

int kv_put(Console& console, const BucketOptions& options) {
  if (options.absent && options.revision) {
    throw Usage("--if-absent and --revision exclude each other");
  }
  const std::string value = value_of(options.value, "VALUE");
  KeptLink kept(options.fleet);
  KeyValue bucket = open_bucket(kept, options, true);
  const PutOptions how{seconds(options.time_to_live)};
  print_revision(console, kept.ask(key_text(options), [&] {
    return options.absent     ? bucket.create(options.key, std::string_view(value), how)
           : options.revision ? bucket.update(options.key, std::string_view(value), *options.revision, how)
                              : bucket.put(options.key, std::string_view(value), how);
  }));
  return 0;
}

int kv_delete(Console& console, const BucketOptions& options) {
  KeptLink kept(options.fleet);
  KeyValue bucket = open_bucket(kept, options, false);
  print_revision(console, kept.ask(key_text(options), [&] { return bucket.erase(options.key, options.revision); }));
  return 0;
}

int kv_watch(Console& console, const BucketOptions& options) {
  KeptLink kept(options.fleet);
  KeyValue bucket = open_bucket(kept, options, false);
  KeyValueWatch changes = kept.ask(bucket_text(options), [&] { return bucket.watch(filter_of(options), options.all); });
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    const KeyValueEntry entry = kept.await(bucket_text(options), [&] { return changes.next(); });
    show(console, options.shown,
         {{"change", std::string(entry.erased() ? "delete" : "put")},
          {"key", std::string(entry.key())},
          {"revision", entry.revision()}},
         entry.text(), {});
  }
  return 0;
}

int kv_ls(Console& console, const BucketOptions& options) {
  KeptLink kept(options.fleet);
  std::vector<std::string> names;
  if (options.bucket.empty()) {
    const std::string prefix = (options.fleet.space.empty() ? "" : options.fleet.space + '.') + "kv.";
    const auto streams = kept.ask("the buckets", [&] { return Stream::list(kept.link(), prefix); });
    for (const StreamInfo& stream : streams) {
      names.push_back(stream.name.substr(prefix.size()));
    }
  } else {
    KeyValue bucket = open_bucket(kept, options, false);
    names = kept.ask(bucket_text(options), [&] { return bucket.keys(filter_of(options)); });
  }
  for (const std::string& name : names) {
    if (console.json) {
      console.record({{options.bucket.empty() ? "bucket" : "key", name}});
    } else {
      console.line(printable(name));
    }
  }
  return 0;
}

}  // namespace weft::cli
