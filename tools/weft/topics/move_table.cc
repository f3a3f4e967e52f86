// SPDX-License-Identifier: MIT
// The rows of exports and imports.
#include <memory>

#include "tools/weft/topics/declare_topics.h"
#include "tools/weft/topics/move_export.h"
#include "tools/weft/topics/move_import.h"

namespace weft::cli {

namespace {

Run declare_export(CLI::App& app, bool bucket) {
  auto options = std::make_shared<ExportOptions>();
  options->bucket = bucket;
  text(app, "NAME", options->name, "NAME", bucket ? "The bucket" : "The stream")->required();
  text(app, "FILE", options->file, "FILE", "The file; - or without it standard output");
  declare_kept(app, options->fleet);
  app.add_flag("--resume", options->resume, "Continue FILE after its last message, with new messages too");
  return [options](Console& console) { return export_stream(console, *options); };
}

Run declare_import(CLI::App& app, bool bucket) {
  auto options = std::make_shared<ImportOptions>();
  auto bytes_max = std::make_shared<std::uint64_t>(0);
  auto id_window = std::make_shared<double>(0);
  options->bucket = bucket;
  text(app, "FILE", options->file, "FILE", "A file of an export; - is standard input")->required();
  text(app, "--as", options->as, "NAME", "The name there; else the name in the file");
  declare_kept(app, options->fleet);
  text(app, "--survives", options->survives, "nothing|process|machine|power",
       "Instead of the file's: on NATS process, or machine with three servers; at a hub process or power")
      ->group(kSettings);
  if (!bucket) {
    texts(app, "--topic", options->topics, "FILTER", "Of its topics, instead of the file's; repeatable")
        ->group(kSettings);
  }
  const CLI::Option* const max =
      bytes(app, "--bytes-max", *bytes_max, "Of all its messages, instead of the file's")->group(kSettings);
  const CLI::Option* const ids =
      number(app, "--id-window", *id_window, "SECONDS", "For which an id is known, instead of the file's")
          ->group(kSettings);
  app.add_flag("--resume", options->resume,
               "The target has none of its messages any longer, and all were of this file: continue after them");
  app.add_flag("--incomplete", options->incomplete, "Import a file whose export did not end, as far as it goes");
  if (!bucket) {
    app.add_flag("--beside-others", options->others, "The target, a log, has and gets other messages, too");
  }
  number(app, "--window", options->window, "N", "Messages under way (512)")->group(kMessages);
  return [options, bytes_max, id_window, max, ids](Console& console) {
    if (max->count() != 0) {
      options->bytes_max = *bytes_max;
    }
    if (ids->count() != 0) {
      options->id_window = *id_window;
    }
    return import_stream(console, *options);
  };
}

Run declare_stream_export(CLI::App& app) { return declare_export(app, false); }
Run declare_stream_import(CLI::App& app) { return declare_import(app, false); }
Run declare_kv_export(CLI::App& app) { return declare_export(app, true); }
Run declare_kv_import(CLI::App& app) { return declare_import(app, true); }

}  // namespace

std::vector<Command> stream_move_commands() {
  return {
      {"stream export",
       "Write the settings and the messages of a stream into a file",
       {{"weft stream export orders orders.jsonl", "all messages that it has now"},
        {"weft stream export orders orders.jsonl --resume", "after an interruption, or later: the messages since"},
        {"weft stream export orders - | weft stream import - --survives process --fleet nats://10.0.0.1:4222",
         "from a hub to NATS, without a file"}},
       declare_stream_export},
      {"stream import",
       "Store the messages of an exported file in a stream, each once",
       {{"weft stream import orders.jsonl --survives process --fleet nats://10.0.0.1:4222",
         "makes the stream; called again, it continues after the messages that are there"},
        {"weft stream import orders.jsonl --as old-orders --topic 'old.>'",
         "a stream of another name and other topics"}},
       declare_stream_import},
  };
}

std::vector<Command> bucket_move_commands() {
  return {
      {"kv export",
       "Write the settings, values and deletions of a bucket into a file",
       {{"weft kv export config config.jsonl", "the values by key, with those of its history"}},
       declare_kv_export},
      {"kv import",
       "Store the values of an exported file in a bucket",
       {{"weft kv import config.jsonl --survives process --fleet nats://10.0.0.1:4222", "revisions count anew"}},
       declare_kv_import},
  };
}

}  // namespace weft::cli
