#include "bench/cuda/cases.h"

#include <fmt/format.h>

namespace ropewalk::bench {
namespace {

std::string_view name_of_layout(Layout layout) {
  switch (layout) {
    case Layout::bthd: return "bthd";
    case Layout::bhtd: return "bhtd";
    case Layout::qkv: return "qkv";
  }
  return "?";
}

std::string_view short_name(Pairing pairing) {
  switch (pairing) {
    case Pairing::half: return "half";
    case Pairing::interleaved: return "interleaved";
    case Pairing::interleaved_to_half: return "interleaved-to-half";
  }
  return "?";
}

class List {
 public:
  void add(std::string_view group, const Case& c, std::string_view extra = {}) {
    Case named = c;
    named.name = fmt::format(
        "{} {} {} {} {} {}x{} {}+{} D{}{}{}{}{}", group, name_of(c.dtype), short_name(c.pairing),
        name_of_layout(c.layout), c.in_place ? "in" : "out", c.batch, c.tokens, c.query_heads,
        c.key_heads, c.head_dim,
        c.rotary_dim == c.head_dim ? "" : fmt::format(" R{}+{}", c.rotary_dim, c.offset),
        c.direction == Direction::inverse ? " inverse" : "", c.warm ? " warm" : "",
        extra.empty() ? "" : fmt::format(" {}", extra));
    cases.push_back(named);
  }
  std::vector<Case> cases;
};

void add_large(List& list) {
  Case c{.batch = 4, .tokens = 8192, .query_heads = 64, .key_heads = 8, .where = Where::offset};
  for (const Pairing pairing : {Pairing::half, Pairing::interleaved}) {
    for (const Layout layout : {Layout::bthd, Layout::bhtd, Layout::qkv}) {
      for (const bool in_place : {false, true}) {
        c.pairing = pairing;
        c.layout = layout;
        c.in_place = in_place;
        list.add("train", c);
      }
    }
  }
  c = {.pairing = Pairing::half,
       .direction = Direction::inverse,
       .batch = 4,
       .tokens = 8192,
       .query_heads = 64,
       .key_heads = 8,
       .where = Where::offset};
  list.add("train", c);
  c.pairing = Pairing::interleaved;
  list.add("train", c);
  c.direction = Direction::forward;
  c.pairing = Pairing::interleaved_to_half;
  list.add("train", c);

  c = {.dtype = Dtype::float32,
       .layout = Layout::bhtd,
       .batch = 4,
       .tokens = 8192,
       .query_heads = 32,
       .key_heads = 32,
       .where = Where::offset};
  list.add("train", c);
  const std::pair<Dtype, std::int64_t> others[] = {
      {Dtype::float16, 65536}, {Dtype::float32, 32768}, {Dtype::float64, 16384}};
  for (const auto& [dtype, tokens] : others) {
    for (const Pairing pairing : {Pairing::half, Pairing::interleaved}) {
      for (const bool in_place : {false, true}) {
        list.add("dtype",
                 {.dtype = dtype, .pairing = pairing, .in_place = in_place, .tokens = tokens});
      }
    }
    list.add("dtype", {.dtype = dtype, .layout = Layout::bhtd, .tokens = tokens});
    list.add("dtype", {.dtype = dtype, .layout = Layout::qkv, .tokens = tokens});
  }
}

void add_middle(List& list) {
  for (const Layout layout : {Layout::bthd, Layout::bhtd, Layout::qkv}) {
    for (const std::int64_t tokens : {6400, 3200, 1600, 800, 400}) {
      for (const Pairing pairing : {Pairing::half, Pairing::interleaved}) {
        Case c{.pairing = pairing, .layout = layout, .tokens = tokens};
        list.add("middle", c,
                 fmt::format("{:.0f}MB", static_cast<double>(necessary_bytes(c)) * 1e-6));
        if (layout == Layout::bhtd && pairing == Pairing::interleaved) continue;
        c.in_place = true;
        list.add("middle", c,
                 fmt::format("{:.0f}MB", static_cast<double>(necessary_bytes(c)) * 1e-6));
      }
    }
  }
  for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
    for (const std::int64_t tokens : {1600, 400})
      list.add("middle", {.dtype = dtype, .tokens = tokens});
  }
}

/// Each beside the plain case of the same shape.
void add_special(List& list) {
  const Case plain{.tokens = 65536};
  list.add("special", plain, "int64");
  Case c = plain;
  c.where = Where::offset;
  list.add("special", c, "offset");
  c.where = Where::tokens32;
  list.add("special", c, "int32");
  c.where = Where::packed;
  list.add("special", c, "packed-2401");
  c.layout = Layout::bhtd;
  list.add("special", c, "packed-2401");
  c = plain;
  c.where = Where::axes3;
  list.add("special", c, "mrope");
  c.pairing = Pairing::interleaved;
  list.add("special", c, "mrope");
  c = plain;
  c.rotary_dim = 64;
  list.add("special", c);
  c.in_place = true;
  list.add("special", c);
  c.offset = 64;
  list.add("special", c);
  for (const std::int64_t dim : {64, 80, 96, 256}) {
    for (const bool in_place : {false, true}) {
      list.add("special",
               {.in_place = in_place, .tokens = 32768, .head_dim = dim, .rotary_dim = dim});
    }
    list.add(
        "special",
        {.pairing = Pairing::interleaved, .tokens = 32768, .head_dim = dim, .rotary_dim = dim});
  }
  list.add("special", {.tokens = 32768, .query_heads = 63, .key_heads = 3});
  list.add("special", {.tokens = 32768, .query_heads = 71, .key_heads = 1});
  list.add("odd", {.tokens = 32768, .head_dim = 46, .rotary_dim = 46});
  list.add("odd", {.tokens = 32768, .head_dim = 20, .rotary_dim = 20});
  list.add("odd", {.tokens = 8192, .head_dim = 578, .rotary_dim = 578});
  list.add("odd",
           {.pairing = Pairing::interleaved, .tokens = 32768, .head_dim = 46, .rotary_dim = 46});
}

void add_decode(List& list) {
  for (const bool warm : {false, true}) {
    for (const std::int64_t tokens : {1, 8, 64, 256, 512}) {
      for (const Pairing pairing : {Pairing::half, Pairing::interleaved}) {
        for (const bool in_place : {false, true}) {
          list.add("decode",
                   {.pairing = pairing, .in_place = in_place, .tokens = tokens, .warm = warm});
        }
      }
    }
  }
  for (const std::int64_t tokens : {1, 8, 64, 256}) {
    for (const bool in_place : {false, true}) {
      list.add("pdl", {.in_place = in_place, .tokens = tokens, .warm = true, .programmatic = true});
    }
  }
  for (const std::int64_t tokens : {1, 8, 64, 256}) {
    for (const bool in_place : {false, true}) {
      list.add("triple", {.in_place = in_place, .tokens = tokens, .warm = true, .triple = true});
    }
  }
  for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
    for (const std::int64_t tokens : {8, 256})
      list.add("decode", {.dtype = dtype, .tokens = tokens});
  }
  for (const std::int64_t dim : {64, 256}) {
    for (const std::int64_t tokens : {8, 256}) {
      list.add("decode", {.tokens = tokens, .head_dim = dim, .rotary_dim = dim});
    }
  }
  for (const std::int64_t tokens : {8, 256, 1600}) {  // head counts that eight does not divide
    list.add("decode", {.tokens = tokens, .query_heads = 28, .key_heads = 4});
  }
  list.add("decode", {.in_place = true, .layout = Layout::qkv, .tokens = 8});
  list.add("decode", {.in_place = true, .layout = Layout::qkv, .tokens = 256});
}

}  // namespace

std::vector<Case> all_cases() {
  List list;
  add_large(list);
  add_special(list);
  add_middle(list);
  add_decode(list);
  return list.cases;
}

}  // namespace ropewalk::bench
