// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/serve/metrics/prometheus.h"
#include "weft/serve/metrics/test_prometheus.h"

// The input gives names, labels, values and help texts. Whether the writer accepts or refuses them, the text is well
// formed and has as many samples as the writer accepted.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::serve;
  weft::Bytes rest(data, size);
  const auto take = [&rest] {
    const std::size_t count = rest.empty() ? 0 : std::min<std::size_t>(rest[0] % 16, rest.size() - 1);
    const std::string_view text = rest.empty() ? "" : weft::as_text(rest.subspan(1, count));
    rest = rest.subspan(rest.empty() ? 0 : count + 1);
    return text;
  };
  PrometheusWriter writer;
  std::size_t samples = 0;
  while (!rest.empty()) {
    const auto type = static_cast<PrometheusWriter::Type>(rest[0] % 3);
    const int count = rest[0] / 4 % 4;
    const bool keep = rest[0] >= 128;
    rest = rest.subspan(1);
    if (!keep) {
      (void)writer.family(take(), type, take());
    }
    std::vector<Label> labels;
    for (int i = 0; i < count; ++i) {
      const std::string_view name = take();
      labels.push_back({name, take()});
    }
    samples += writer.sample(labels, std::uint64_t{rest.size()}) ? 1 : 0;
    samples += writer.sample(labels, static_cast<double>(rest.size()) / 7) ? 1 : 0;
    LatencyHistogram durations;
    durations.add(rest.size() * rest.size());
    samples += writer.histogram(labels, durations, rest.size()) ? 28 : 0;
  }
  const auto scrape = test::ScrapeReader::read(writer.text());
  WEFT_ASSERT(scrape.mistake.empty());
  WEFT_ASSERT(scrape.samples.size() == samples);
  return 0;
}
