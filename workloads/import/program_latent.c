/* Multi-head latent attention in the program language (DeepSeek-V2, section 2.1), up to queries, keys and values.
 *
 * A head of queries and keys holds its rotated share first (z of d numbers) and its own numbers (a) behind. The rotated
 * share of the keys is made once for all heads, beside the compressed key-values: both parts are laid into heads of
 * zeros, and the heads added up.
 */
#include "workloads/import/program_write.h"

static int32_t queries(pl_program_writer *to, int32_t x, int32_t positions) {
  const pl_model *model = to->model;
  double share = (double)model->attention.rope_size / (double)model->attention.head_size;
  int32_t q;
  if (model->attention.q_rank > 0) {
    int32_t low = pl_write_linear(to, "attention.q_down", x, "hq", "h", false);
    low = pl_write_norm(to, "attention.q_norm", low, "q");
    q = pl_write_linear(to, "attention.q_up", low, "qgrd", "q", false);
  } else {
    q = pl_write_linear(to, "attention.q", x, "hgrd", "h", false);
  }
  return pl_program_rotary(to, "queries", q, positions, share);
}

void pl_program_latent(pl_program_writer *to, int32_t x, int32_t positions, int32_t qkv[3]) {
  const pl_model *model = to->model;
  qkv[0] = queries(to, x, positions);
  int32_t turned = pl_write_rename(to, pl_write_linear(to, "attention.k_rotary", x, "hz", "h", false), "z", "d");
  turned = pl_program_rotary(to, "k_rotary", turned, positions, 1);
  turned = pl_write_padded(to, "k_rotary", turned, "d", 0, "bsd");
  int32_t low = pl_write_linear(to, "attention.kv_down", x, "hk", "h", false);
  low = pl_write_norm(to, "attention.kv_norm", low, "k");
  int32_t k = pl_write_linear(to, "attention.k_up", low, "kga", "k", false);
  k = pl_write_padded(to, "keys", pl_write_rename(to, k, "a", "d"), "d", model->attention.rope_size, "bsgd");
  qkv[1] = pl_write_rename(to, pl_write_two(to, "add", "keys", k, turned), "s", "t");
  qkv[2] = pl_write_rename(to, pl_write_linear(to, "attention.v_up", low, "kge", "k", false), "s", "t");
}
