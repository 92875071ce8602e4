/* Launch files: scripts, TOML, YAML and JSON become a job and a strategy; everything in them is taken, known to be
 * harmless, or reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/launch/launch.h"

static pl_arena arena;

static pl_launch parse(const char *name, const char *text) {
  pl_launch launch;
  pl_error error = PL_ERROR_INIT;
  if (pl_launch_parse(name, text, strlen(text), &arena, &launch, &error) != PL_OK) fail_msg("%s", error.message);
  return launch;
}

static const char *strategy_of(pl_launch *launch, uint32_t n_gpus, int64_t n_layers) {
  const char *text;
  pl_error error = PL_ERROR_INIT;
  if (pl_launch_strategy(launch, n_gpus, n_layers, &arena, &text, &error) != PL_OK) fail_msg("%s", error.message);
  return text;
}

static void refuses(const char *name, const char *text, const char *says) {
  pl_launch launch;
  pl_error error = PL_ERROR_INIT;
  assert_int_equal(pl_launch_parse(name, text, strlen(text), &arena, &launch, &error), PL_BAD_INPUT);
  if (strstr(error.message, says) == NULL) fail_msg("'%s' lacks '%s'", error.message, says);
}

static bool is_unknown(const pl_launch *launch, const char *key) {
  for (uint32_t i = 0; i < launch->settings.n; i++)
    if (strcmp(launch->settings.list[i].key, key) == 0) return launch->settings.list[i].use == PL_SETTING_UNKNOWN;
  return false;
}

/* ---- scripts ---- */

static const char script[] =
    "#!/bin/bash\n"
    "export TP=${TP:-4} # ranks\n"
    "NODES=2; GPUS=8\n"
    "WORLD=$((GPUS * $NODES))\n"
    "PP=$((WORLD / (TP * 2)))\n"
    "SIZE=${1:-\"8b\"}\n"
    "if [[ $SIZE == \"70b\" ]]; then\n  HIDDEN=8192\nelif [ \"$SIZE\" = 8b ] && [ $TP -eq 4 ]; then\n"
    "  HIDDEN=4096\nelse\n  HIDDEN=1\nfi\n"
    "case $SIZE in\n  1b | 3b) LAYERS=16 ;;\n  8b)\n    LAYERS=32\n    ;;\n  *) LAYERS=1 ;;\nesac\n"
    "MODEL=(\n  --num-layers $LAYERS # all\n  --hidden-size ${HIDDEN}\n  \"--swiglu\"\n"
    "  --num-attention-heads 32 # --num-attention-heads 16\n)\n"
    "MODEL+=( --seq-length 2048 --normalization RMSNorm --position-embedding-type rope )\n"
    "cat <<EOF >notes\n--num-layers 99\nEOF\n"
    "OPTIONS=\" \\\n  --bf16 \\\n  --vocab-size 32000\"\n"
    "[ -z \"$UNSET\" ] && EXTRA=\"--sequence-parallel --lr 1e-4\"\n"
    "[ -n \"$UNSET\" ] && EXTRA=\"--fp16\"\n"
    "torchrun --nproc_per_node $GPUS --nnodes=$NODES pretrain_gpt.py ${MODEL[@]} $OPTIONS $EXTRA \\\n"
    "  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP "
    "--micro-batch-size 2 --global-batch-size 64 --foo-bar 3 2>&1 | tee log.txt\n";

static void a_script_is_read_without_being_run(void **state) {
  (void)state;
  pl_launch launch = parse("train.sh", script);
  assert_int_equal(launch.form, PL_LAUNCH_MEGATRON);
  assert_int_equal(launch.model.n_layers, 32);
  assert_int_equal(launch.model.hidden, 4096);
  assert_int_equal(launch.model.n_heads, 32);
  assert_int_equal(launch.model.vocab, 32000);
  assert_int_equal(launch.n_gpus, 16);
  assert_int_equal(launch.gbs, 64);
  assert_int_equal(launch.seq, 2048);
  assert_true(launch.dtype_is_stated && launch.dtype == PL_DTYPE_BF16);
  assert_true(launch.strategy.sp);
  assert_true(is_unknown(&launch, "foo_bar"));
  assert_false(is_unknown(&launch, "lr"));
  assert_string_equal(strategy_of(&launch, 32, 32),
                      "pp=2,dp=4,tmp=4,mbs=2,cp=1,cp_comm=p2p,ep=1,schedule=1f1b,vpp=1,sp=1,recompute=none,zero=0,"
                      "order=tdp,overlap=0");
}

static void a_setting_says_where_it_stands(void **state) {
  (void)state;
  refuses("t.sh", "A=(\n --num-layers x\n)\npython pretrain_gpt.py ${A[@]}\n", "t.sh:2: 'num_layers' is 'x'");
  refuses("t.sh", "python pretrain_gpt.py --num-layers $1 --hidden-size 8\n", "t.sh:1: 'num_layers' has no value");
  refuses("t.sh", "echo hello\n", "t.sh: no command with --num-layers");
  refuses("t.sh",
          "false && python pretrain_gpt.py --num-layers 4\nif [ a = b ]; then\n python x.py --num-layers 3\nfi\n",
          "no command");
}

static void degrees_must_divide_the_gpus(void **state) {
  (void)state;
  pl_launch launch = parse("t.sh", "python x.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 8 "
                                   "--tensor-model-parallel-size 3 --micro-batch-size 1\n");
  pl_error error = PL_ERROR_INIT;
  const char *text;
  assert_int_equal(pl_launch_strategy(&launch, 16, 4, &arena, &text, &error), PL_BAD_INPUT);
  assert_non_null(strstr(error.message, "multiple of 3 GPUs is needed, and the platform has 16"));
}

/* What a script exports and no setting says; what it unsets or does not reach is not said. */
static void a_debugging_environment_is_told_of(void **state) {
  (void)state;
  static const struct {
    const char *line;
    bool told;
  } lines[] = {{"export TORCH_DISTRIBUTED_DEBUG=DETAIL\n", true},
               {"LEVEL=DETAIL\nexport TORCH_DISTRIBUTED_DEBUG=$LEVEL\n", true},
               {"export TORCH_DISTRIBUTED_DEBUG=INFO\n", false},
               {"# export TORCH_DISTRIBUTED_DEBUG=DETAIL\n", false},
               {"export TORCH_DISTRIBUTED_DEBUG=DETAIL\nexport TORCH_DISTRIBUTED_DEBUG=\n", false}};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "%spython x.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 8 "
             "--micro-batch-size 1\n",
             lines[i].line);
    pl_launch launch = parse("t.sh", text);
    bool told = false;
    for (uint32_t a = 0; a < launch.n_assumed; a++)
      told = told || strstr(launch.assumed[a], "TORCH_DISTRIBUTED_DEBUG=DETAIL") != NULL;
    if (told != lines[i].told || is_unknown(&launch, "env_TORCH_DISTRIBUTED_DEBUG")) fail_msg("%s", lines[i].line);
  }
}

static void no_script_is_too_wild(void **state) {
  (void)state;
  static const char *const wild[] = {"((((",
                                     "if if if",
                                     "case x in",
                                     "A=(",
                                     "A=$((",
                                     "${",
                                     "\"",
                                     "'",
                                     "esac fi done",
                                     "<<EOF",
                                     "A=${A:-${A:-${A:-x}}}",
                                     "$(((((((",
                                     "--num-layers",
                                     "x ;; y",
                                     "\\"};
  for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++)
    refuses("t.sh", wild[i], "t.sh");
}

/* ---- documents ---- */

static void of_repeated_arguments_the_last_counts_and_that_is_said(void **state) {
  (void)state;
  pl_launch launch = parse("model_config.yaml", "MODEL_ARGS:\n  --num-layers: 12\n  --hidden-size: 512\n"
                                                "  --num-attention-heads: 8\n  --num-layers: 24\n  --seq-length: 1024\n"
                                                "  --max-position-embeddings: 1024\n  --micro-batch-size: 4\n");
  assert_int_equal(launch.model.n_layers, 24);
  uint32_t n = 0;
  for (uint32_t i = 0; i < launch.n_assumed; i++)
    n += strcmp(launch.assumed[i], "'--num-layers' as line 5 has it, the last of several") == 0;
  assert_int_equal(n, 1);
}

static const char toml[] = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 4 # per rank\n"
                           "seq_len = 8_192\n[parallelism]\ndata_parallel_shard_degree = -1\n"
                           "tensor_parallel_degree = 2\npipeline_parallel_degree = 2\n"
                           "pipeline_parallel_schedule = \"Interleaved1F1B\"\n"
                           "[activation_checkpoint]\nmode = 'full'\n[optimizer]\nlr = 3e-4\n"
                           "[parallelism.more]\nlist = [1,\n 2]\n";

static void torchtitan_is_read(void **state) {
  (void)state;
  pl_launch launch = parse("job.toml", toml);
  assert_string_equal(launch.model_name, "llama-3.1-8b");
  assert_int_equal(launch.seq, 8192);
  assert_true(is_unknown(&launch, "parallelism.more.list"));
  assert_string_equal(strategy_of(&launch, 16, 32),
                      "pp=2,dp=4,tmp=2,mbs=1,cp=1,cp_comm=gather,ep=1,schedule=interleaved,vpp=2,sp=1,recompute=full,"
                      "zero=1,order=tdp,overlap=1");
  assert_int_equal(launch.gbs, 16); /* four microbatches for each of four replicas */
}

static void toml_errors_have_a_line(void **state) {
  (void)state;
  refuses("j.toml", "[a]\nb = \"x\n", "j.toml:2: a text is not closed on its line");
  refuses("j.toml", "[a\n", "j.toml:1: ']' is missing");
  refuses("j.toml", "a = [1,\n2\n", "j.toml:1: a bracket is not closed");
  refuses("j.toml", "a = 1 # one\n= 2\n", "j.toml:2: a key is expected");
  refuses("j.toml", "a =\n", "j.toml:1: a value is missing");
  refuses("j.toml", "a = \"b\" c\n", "j.toml:1: this is more than one value");
}

static void nemo_is_read(void **state) {
  (void)state;
  pl_launch launch =
      parse("gpt.yaml", "trainer:\n  devices: 8\n  num_nodes: 4\n  precision: bf16\nmodel:\n"
                        "  micro_batch_size: 1\n  global_batch_size: 32\n  num_layers: 24\n"
                        "  hidden_size: 1024\n  num_attention_heads: 16\n  encoder_seq_length: 2048\n"
                        "  tensor_model_parallel_size: 2\n  activations_checkpoint_granularity: selective\n"
                        "  optim:\n    name: distributed_fused_adam\n    lr: 2e-4\n  odd: 1\n");
  assert_int_equal(launch.form, PL_LAUNCH_NEMO);
  assert_int_equal(launch.n_gpus, 32);
  assert_int_equal(launch.strategy.zero, 1);
  assert_int_equal(launch.strategy.recompute, PL_RECOMPUTE_SELECTIVE);
  assert_true(is_unknown(&launch, "model.odd"));
  refuses("x.yaml", "a: 1\n", "no configuration of NeMo's");
  refuses("x.yaml", "- 1\n", "a mapping of settings is expected");
}

static void references_are_followed(void **state) {
  (void)state;
  pl_launch launch = parse(
      "gpt.yaml", "trainer: {precision: bf16}\nmodel:\n  micro_batch_size: 1\n  num_layers: 24\n"
                  "  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n  hidden_size: 1024\n  num_attention_heads: 16\n"
                  "  max_position_embeddings: ${.encoder_seq_length}\n  encoder_seq_length: ${model.data.seq_length}\n"
                  "  global_batch_size: ${.data.global}\n  data: {seq_length: 512, global: '${..pair.a}4'}\n"
                  "  pair: {a: '${.b}', b: 6}\n");
  assert_int_equal(launch.model.ffn, 4096);
  assert_int_equal(launch.model.positions, 512);
  assert_int_equal(launch.seq, 512);
  assert_int_equal(launch.gbs, 64);
  /* what leads nowhere, out of the file or back to itself is no value; many of these end */
  const char *const bad[] = {"${.no}",
                             "${.....hidden_size}",
                             "${.num_layers}",
                             "${multiply:2, ${.num_layers}}",
                             "${.num_layers}${.num_layers}${.num_layers}${.num_layers}",
                             "${optim.x",
                             "${}",
                             "${.}"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char text[256];
    snprintf(text, sizeof text, "model:\n  hidden_size: 8\n  optim: 1\n  num_layers: '%s'\n", bad[i]);
    refuses("x.yaml", text, "num_layers");
  }
}

static void deepspeed_is_read(void **state) {
  (void)state;
  pl_launch launch = parse("ds.json", "{\"train_batch_size\": 64, \"gradient_accumulation_steps\": 2, "
                                      "\"zero_optimization\": {\"stage\": 2}, \"fp16\": {\"enabled\": \"auto\"}}");
  assert_false(launch.has_model);
  assert_string_equal(strategy_of(&launch, 8, 12),
                      "pp=1,dp=8,tmp=1,mbs=4,cp=1,cp_comm=p2p,ep=1,schedule=1f1b,vpp=1,sp=0,recompute=none,zero=2,"
                      "order=tdp,overlap=1");
  refuses("ds.json", "{\"zero_optimization\": {\"stage\": 7}}", "ds.json:1: ZeRO has stages 0 to 3");
}

static int begin(void **state) {
  (void)state;
  pl_arena_init(&arena, 0);
  return 0;
}

static int end(void **state) {
  (void)state;
  pl_arena_release(&arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_script_is_read_without_being_run),
                                     cmocka_unit_test(a_setting_says_where_it_stands),
                                     cmocka_unit_test(degrees_must_divide_the_gpus),
                                     cmocka_unit_test(a_debugging_environment_is_told_of),
                                     cmocka_unit_test(no_script_is_too_wild),
                                     cmocka_unit_test(torchtitan_is_read),
                                     cmocka_unit_test(toml_errors_have_a_line),
                                     cmocka_unit_test(nemo_is_read),
                                     cmocka_unit_test(references_are_followed),
                                     cmocka_unit_test(of_repeated_arguments_the_last_counts_and_that_is_said),
                                     cmocka_unit_test(deepspeed_is_read)};
  return cmocka_run_group_tests(tests, begin, end);
}
