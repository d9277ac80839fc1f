/* Rotates the key of one new token in place, then takes the rotation back. Plain C11. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "ropewalk/capi.h"

enum { HEADS = 2, HEAD_DIM = 64 };

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, ropewalk_last_error());
  return 1;
}

int main(void) {
  ropewalk_plan* plan = NULL;
  if (ropewalk_plan_create(HEAD_DIM, 500000.0, 0, ROPEWALK_PAIRING_HALF, &plan) != ROPEWALK_OK) {
    return failed("plan");
  }
  printf("ropewalk %s: %s\n", ropewalk_version(), ropewalk_plan_description(plan));

  float key[HEADS * HEAD_DIM];
  for (int i = 0; i < HEADS * HEAD_DIM; ++i) key[i] = 1.0f;
  const ropewalk_rotation in_place =
      ropewalk_in_place(ropewalk_bthd(key, ROPEWALK_FLOAT32, 1, 1, HEADS, HEAD_DIM));
  const ropewalk_positions position = ropewalk_positions_from_offset(131071);

  if (ropewalk_rotate(plan, &in_place, 1, &position, NULL) != ROPEWALK_OK) return failed("rotate");
  printf("channel 0 at position 131071: %.7f\n", (double)key[0]);
  if (fabs((double)key[0] - (cos(131071.0) - sin(131071.0))) > 1e-6) {
    fprintf(stderr, "expected cos(131071) - sin(131071)\n");
    return 1;
  }

  ropewalk_rotate_options options = ROPEWALK_ROTATE_OPTIONS_INIT;
  options.direction = ROPEWALK_INVERSE;
  if (ropewalk_rotate(plan, &in_place, 1, &position, &options) != ROPEWALK_OK) {
    return failed("inverse");
  }
  for (int i = 0; i < HEADS * HEAD_DIM; ++i) {
    if (fabs((double)key[i] - 1.0) > 1e-6) {
      fprintf(stderr, "channel %d did not come back: %.9f\n", i, (double)key[i]);
      return 1;
    }
  }
  ropewalk_plan_destroy(plan);
  return 0;
}
