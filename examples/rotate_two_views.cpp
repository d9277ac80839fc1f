// Rotates q and k of a packed QKV buffer, in place, by the plan of a model's config.json.
//
//   rotate_two_views path/to/config.json
#include <array>
#include <cstdio>
#include <exception>
#include <vector>

#include "ropewalk/config.h"
#include "ropewalk/error.h"
#include "ropewalk/rotate.h"

namespace {

void run(const char* config_path) {
  const ropewalk::RopeConfig config = ropewalk::load_config(config_path);
  const ropewalk::RotaryPlan plan = ropewalk::make_plan(config);

  // One buffer: for each of four tokens all heads of q, then k, then v.
  const std::int64_t tokens = 4, dim = plan.head_dim();
  const std::int64_t heads = config.query_heads + 2 * config.key_heads;
  std::vector<float> qkv(static_cast<std::size_t>(tokens * heads * dim), 1.0F);

  const std::array<std::int64_t, 4> stride = {0, heads * dim, dim, 1};
  const ropewalk::TensorView q = {
      qkv.data(), ropewalk::Dtype::float32, {1, tokens, config.query_heads, dim}, stride};
  const ropewalk::TensorView k = {qkv.data() + config.query_heads * dim,
                                  ropewalk::Dtype::float32,
                                  {1, tokens, config.key_heads, dim},
                                  stride};
  const std::array rotations = {ropewalk::Rotation::in_place(q), ropewalk::Rotation::in_place(k)};
  ropewalk::rotate(plan, rotations, ropewalk::Positions::from_offset(131'068));

  const auto last_token = static_cast<std::size_t>((tokens - 1) * heads * dim);
  std::printf("%s\nposition 131071, first head of q, channel 0: %.7f\n",
              ropewalk::to_string(plan).c_str(), static_cast<double>(qkv[last_token]));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: rotate_two_views config.json\n");
    return 2;
  }
  try {
    run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
