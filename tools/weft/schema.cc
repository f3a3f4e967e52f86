// SPDX-License-Identifier: MIT
#include "tools/weft/schema.h"

#include "tools/weft/console.h"

#ifdef WEFT_CLI_FLATBUFFERS
#include <flatbuffers/idl.h>
#include <flatbuffers/reflection.h>

#include <fstream>
#include <iterator>
#endif

namespace weft::cli {

#ifdef WEFT_CLI_FLATBUFFERS

struct Schema::Parsed {
  static flatbuffers::IDLOptions options() {
    flatbuffers::IDLOptions options;
    options.strict_json = true;
    options.indent_step = -1;  // no line breaks
    options.output_default_scalars_in_json = true;
    return options;
  }

  void use(const std::string& table) {
    const bool found = table.empty() ? parser.root_struct_def_ != nullptr : parser.SetRootType(table.c_str());
    if (!found) {
      throw Usage(table.empty() ? "the schema has no root_type: name the table with --request and --response"
                                : "the schema has no table " + printable(table));
    }
  }

  std::string file;
  flatbuffers::Parser parser{options()};
  std::string binary;  // the schema itself, for the verifier
};

Schema::Schema(const std::string& file) : parsed_(std::make_unique<Parsed>()) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream || stream.bad()) {
    throw Failure("cannot read the schema " + printable(file));
  }
  const std::string folder = file.substr(0, file.rfind('/') == std::string::npos ? 0 : file.rfind('/'));
  const std::string here = folder.empty() ? "." : folder;
  const char* includes[] = {here.c_str(), nullptr};
  parsed_->file = file;
  flatbuffers::Parser& parser = parsed_->parser;
  if (!parser.Parse(text.c_str(), includes, file.c_str())) {
    throw Failure("the schema " + printable(file) + ": " + printable(parser.error_));
  }
  parser.Serialize();
  parsed_->binary.assign(reinterpret_cast<const char*>(parser.builder_.GetBufferPointer()), parser.builder_.GetSize());
}

Schema::~Schema() = default;

std::string Schema::to_bytes(std::string_view json, const std::string& table) {
  parsed_->use(table);
  flatbuffers::Parser& parser = parsed_->parser;
  if (json.find('\0') != std::string_view::npos || !parser.ParseJson(std::string(json).c_str())) {
    throw Usage("the request is not JSON of the table: " + printable(parser.error_));
  }
  return {reinterpret_cast<const char*>(parser.builder_.GetBufferPointer()), parser.builder_.GetSize()};
}

std::string Schema::to_json(std::string_view bytes, const std::string& table) {
  parsed_->use(table);
  flatbuffers::Parser& parser = parsed_->parser;
  const reflection::Schema& schema = *reflection::GetSchema(parsed_->binary.data());
  const std::string name =
      parser.root_struct_def_->defined_namespace->GetFullyQualifiedName(parser.root_struct_def_->name);
  const reflection::Object* const object = schema.objects()->LookupByKey(name.c_str());
  // A table is read only after all of its offsets were checked.
  std::string aligned(bytes);  // at the start of a block of the allocator
  const auto* const data = reinterpret_cast<const std::uint8_t*>(aligned.data());
  std::string text;
  if (object == nullptr || !flatbuffers::Verify(schema, *object, data, aligned.size()) ||
      !flatbuffers::GenerateText(parser, data, &text)) {
    throw Failure("the answer is not a table " + printable(name) + ": --raw or --hex shows its bytes");
  }
  return text;
}

#else

struct Schema::Parsed {};

Schema::Schema(const std::string& /*file*/) {
  throw Failure("this build has no FlatBuffers (Debian: libflatbuffers-dev), so it cannot read a schema");
}
Schema::~Schema() = default;
std::string Schema::to_bytes(std::string_view /*json*/, const std::string& /*table*/) { return {}; }
std::string Schema::to_json(std::string_view /*bytes*/, const std::string& /*table*/) { return {}; }

#endif

}  // namespace weft::cli
