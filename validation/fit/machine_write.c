/* See validation/fit/machine_write.h. */
#include "validation/fit/machine_write.h"

#include <math.h>

#include "core/text/json_writer.h"
#include "netmodel/collective/collective_profile_writer.h"

/* ---- the device ---- */

static void put_held_out(pl_json *json, const pl_held_out *held_out) {
  if (held_out->n == 0) return;
  pl_json_key(json, "held_out");
  pl_json_open_object(json);
  pl_json_put_integer(json, "calls", held_out->n);
  pl_json_put_number(json, "median_error", held_out->median_error);
  pl_json_put_number(json, "p90_error", held_out->p90_error);
  pl_json_close_object(json);
}

static double rounded(double value) {
  if (!(value > 0)) return 0;
  double scale = pow(10, 3 - floor(log10(value)));
  return round(value * scale) / scale;
}

static void put_ops(pl_json *json, const pl_machine_fit *fit) {
  pl_json_key(json, "programs");
  pl_json_open_object(json);
  for (uint32_t i = 0; i < fit->n_ops; i++) {
    const pl_program_kernel *op = &fit->ops[i];
    pl_json_key(json, op->op);
    pl_json_open_object(json);
    pl_json_put_number(json, "overhead", rounded(op->overhead_s));
    if (op->flops_rate > 0) pl_json_put_number(json, "flops", rounded(op->flops_rate));
    if (op->bytes_rate > 0) pl_json_put_number(json, "bandwidth", rounded(op->bytes_rate));
    put_held_out(json, &op->held_out);
    pl_json_close_object(json);
  }
  pl_json_close_object(json);
}

void pl_machine_write_device(const pl_machine_text *text, FILE *stream) {
  const pl_machine_fit *fit = text->fit;
  pl_json json;
  pl_json_init(&json, stream, true);
  pl_json_open_object(&json);
  pl_json_put_string(&json, "name", text->device);
  pl_json_put_string(&json, "architecture", "cpu");
  pl_json_put_number(&json, "memory", text->memory_bytes);
  pl_json_put_number(&json, "bandwidth", rounded(fit->bandwidth_Bps));
  pl_json_key(&json, "peak_flops");
  pl_json_open_object(&json);
  pl_json_put_number(&json, "fp32", rounded(fit->peak_flops));
  pl_json_close_object(&json);
  pl_json_key(&json, "efficiency");
  pl_json_open_object(&json);
  pl_json_put_number(&json, "compute", rounded(fit->compute_efficiency));
  pl_json_put_number(&json, "attention", rounded(fit->attention_efficiency));
  pl_json_put_number(&json, "bandwidth", rounded(fit->bandwidth_efficiency));
  pl_json_close_object(&json);
  pl_json_put_number(&json, "launch_overhead", rounded(fit->overhead_s));
  /* A core that sends does not compute: with a factor of 1 each way, two things at once take as long as one behind the
   * other. */
  pl_json_key(&json, "overlap");
  pl_json_open_object(&json);
  pl_json_put_number(&json, "compute", 1);
  pl_json_put_number(&json, "communication", 1);
  pl_json_close_object(&json);
  pl_json_key(&json, "provenance");
  pl_json_open_object(&json);
  pl_json_put_string(&json, "all", text->provenance);
  pl_json_close_object(&json);
  put_ops(&json, fit);
  pl_json_close_object(&json);
}

/* ---- moves ---- */

/* Links are as fast as the faster of the two kinds of moves; each has its share of that. */
static double link_Bps(const pl_machine_fit *fit) {
  double rate = fmax(fit->ring.rate_Bps, fit->direct.rate_Bps);
  return rounded((rate > 0 ? rate : fit->bandwidth_Bps) * 1.001);
}

static pl_protocol_cost cost_of(const pl_move_fit *move, double nominal_Bps) {
  double share = move->rate_Bps > 0 ? move->rate_Bps / nominal_Bps : 1;
  return (pl_protocol_cost){.known = true,
                            .start_us = rounded(1e6 * move->start_s),
                            .step_us = rounded(1e6 * move->step_s),
                            .rate = fmin(fmax(rounded(share), 1e-3), 1)};
}

void pl_machine_write_collectives(const pl_machine_text *text, FILE *stream) {
  double nominal = link_Bps(text->fit);
  pl_wiring inside = {.name = "ranks of one machine", .provenance = text->provenance, .most_GBps = 1e6, .local = 0};
  inside.cost[PL_TUNED_RING][PL_PROTOCOL_SIMPLE] = cost_of(&text->fit->ring, nominal);
  inside.cost[PL_TUNED_DIRECT][PL_PROTOCOL_SIMPLE] = cost_of(&text->fit->direct, nominal);
  const pl_collective_profile profile = {
      .library = "MPI", .provenance = text->provenance, .inside = &inside, .n_inside = 1};
  pl_collective_profile_write(stream, &profile);
}

void pl_machine_write_platform(const pl_machine_text *text, FILE *stream) {
  const pl_machine_fit *fit = text->fit;
  fprintf(stream,
          "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
          "<!-- %s.\n     A device is an MPI rank on one thread. Wires stand for copies through memory: one to and one "
          "from "
          "every rank. -->\n"
          "<platform version=\"4.1\">\n<zone id=\"here\" routing=\"Full\">\n",
          text->provenance);
  for (int i = 0; i < text->n_ranks; i++)
    fprintf(stream, "<host id=\"rank%d\" speed=\"%.6gf\"><prop id=\"device\" value=\"%s\"/></host>\n", i,
            rounded(fit->peak_flops), text->device);
  for (int i = 0; i < text->n_ranks; i++)
    fprintf(
        stream,
        "<link id=\"copy%d\" bandwidth=\"%.6gBps\" latency=\"1ns\" sharing_policy=\"SPLITDUPLEX\"><prop id=\"kind\" "
        "value=\"pcie\"/></link>\n",
        i, link_Bps(fit));
  for (int i = 0; i < text->n_ranks; i++)
    for (int j = i + 1; j < text->n_ranks; j++)
      fprintf(stream,
              "<route src=\"rank%d\" dst=\"rank%d\"><link_ctn id=\"copy%d\" direction=\"UP\"/><link_ctn id=\"copy%d\" "
              "direction=\"DOWN\"/></route>\n",
              i, j, i, j);
  fputs("</zone>\n</platform>\n", stream);
}
