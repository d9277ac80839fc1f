#include "cli/report.h"

#include <fmt/format.h>

namespace ropewalk::cli {

Json machine_json(const measure::Machine& machine) {
  Json caches = Json::array();
  for (const measure::Cache& cache : machine.caches) {
    caches.push_back(
        {{"level", cache.level}, {"bytes", cache.bytes}, {"shared_by", cache.shared_by}});
  }
  return {{"cpu", machine.cpu},
          {"processors", machine.processors},
          {"isa", machine.isa},
          {"caches", caches},
          {"system", machine.system},
          {"compiler", machine.compiler},
          {"build_type", machine.build_type},
          {"version", machine.version},
          {"commit", machine.commit.empty() ? Json(nullptr) : Json(machine.commit)}};
}

Json measurement_json(const measure::Measurement& m) {
  Json json{{"verified", m.comparison.pass()},
            {"worst_error_to_bound", m.comparison.worst_ratio},
            {"worst_abs_error", m.comparison.worst_abs_error},
            {"correctly_rounded_share", m.comparison.correctly_rounded_share()},
            {"bytes", m.bytes},
            {"residence", m.residence}};
  if (!m.comparison.pass()) json["failure"] = m.comparison.detail;
  if (!m.timed) return json;
  json["us"] = m.rotation.median * 1e6;
  json["us_best"] = m.rotation.best * 1e6;
  json["spread"] = m.rotation.spread;
  json["samples"] = m.rotation.samples;
  json["gb_per_s"] = m.gigabytes_per_second();
  json["floor"] = m.floor_name;
  json["floor_us"] = m.floor.median * 1e6;
  json["floor_spread"] = m.floor.spread;
  json["ratio_to_floor"] = m.ratio_to_floor();
  return json;
}

std::string microseconds(double seconds) {
  const double us = seconds * 1e6;
  return us >= 1000 ? fmt::format("{:.0f}", us) : fmt::format("{:#.4g}", us);
}

}  // namespace ropewalk::cli
