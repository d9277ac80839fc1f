// Tables.
#include "capi/boundary.h"
#include "capi/convert.h"

using namespace ropewalk;
using namespace ropewalk::capi;

ropewalk_status ropewalk_table_create(const ropewalk_plan* plan, int64_t rows, int32_t dtype,
                                      ropewalk_table** table) {
  return guarded([&] {
    ropewalk_table*& result = deref(table, "table");
    result = new ropewalk_table{RotaryTable(deref(plan, "plan").plan, rows, dtype_from(dtype))};
  });
}

ropewalk_status ropewalk_table_from_values(const ropewalk_plan* plan, const float* cosines,
                                           const float* sines, int64_t rows, int32_t dtype,
                                           ropewalk_table** table) {
  return guarded([&] {
    ropewalk_table*& result = deref(table, "table");
    const RotaryPlan& of = deref(plan, "plan").plan;
    constexpr int64_t kMostRows = int64_t{1} << 31;
    require(rows >= 1 && rows <= kMostRows, "rows must be between 1 and {}, got {}", kMostRows,
            rows);
    const std::size_t count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(of.pairs());
    const std::span cosine_values(&deref(cosines, "cosines"), count);
    const std::span sine_values(&deref(sines, "sines"), count);
    result = new ropewalk_table{RotaryTable(of, cosine_values, sine_values, dtype_from(dtype))};
  });
}

ropewalk_status ropewalk_table_save(const ropewalk_table* table, const char* path) {
  return guarded([&] { deref(table, "table").table.save(&deref(path, "path")); });
}

ropewalk_status ropewalk_table_load(const char* path, const ropewalk_plan* plan, int32_t dtype,
                                    ropewalk_table** table) {
  return guarded([&] {
    ropewalk_table*& result = deref(table, "table");
    result = new ropewalk_table{
        RotaryTable::load(&deref(path, "path"), deref(plan, "plan").plan, dtype_from(dtype))};
  });
}

void ropewalk_table_destroy(ropewalk_table* table) { delete table; }

int64_t ropewalk_table_rows(const ropewalk_table* table) { return table->table.rows(); }
