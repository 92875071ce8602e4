/* See workloads/launch/readers.h: how Megatron Core exchanges tokens with experts, and what runs meanwhile. */
#include <string.h>

#include "workloads/launch/readers.h"

/* --moe-permute-fusion and --moe-grouped-gemm, both off unless they are given: PyTorch ops and an expert after the
 * other, as Megatron Core has them since 0.13 (workloads/fuse/kernel_dispatch.c). */
static void take_kernels(pl_launch *launch) {
  bool fused = false, grouped = false;
  pl_settings_flag(&launch->settings, "moe_permute_fusion", &fused);
  pl_settings_flag(&launch->settings, "moe_grouped_gemm", &grouped);
  if (launch->has_model && launch->model.n_experts <= 1) return;
  launch->permutation = fused ? PL_PERMUTATION_FUSED : PL_PERMUTATION_SCATTERED;
  launch->experts = grouped ? PL_EXPERTS_GROUPED : PL_EXPERTS_JOINED;
}

/* --moe-token-dispatcher-type, the backend of `flex`, and the multiprocessors that it takes: Megatron Core's own
 * defaults where a file leaves them out (transformer_config.py, token_dispatcher.py). */
pl_code pl_megatron_take_dispatcher(pl_launch *launch, pl_error *error) {
  static const char *const numbers[] = {"moe_flex_dispatcher_num_sms", "moe_deepep_num_sms", "moe_hybridep_num_sms"};
  const pl_setting *type = pl_settings_take(&launch->settings, "moe_token_dispatcher_type");
  const pl_setting *backend = pl_settings_take(&launch->settings, "moe_flex_dispatcher_backend");
  bool deepep = false;
  pl_settings_flag(&launch->settings, "moe_enable_deepep", &deepep);
  bool flex = deepep || (pl_setting_is_given(type) && strcmp(type->value, "flex") == 0);
  bool hybrid = flex && pl_setting_is_given(backend) && strcmp(backend->value, "hybridep") == 0;
  if (flex) {
    launch->sends_tokens_per_node = 1;
    launch->exchange_sms = hybrid ? 16 : 20;
  } else if (pl_setting_is_given(type)) {
    launch->sends_tokens_per_node = 0;
    launch->exchange_sms = 16;
    if (strcmp(type->value, "alltoall") != 0)
      PL_TRY(
          pl_launch_assume(launch, error, "moe_token_dispatcher_type alltoall: '%.64s' is not modelled", type->value));
  }
  take_kernels(launch);
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    int64_t taken = -1;
    PL_TRY(pl_settings_integer(&launch->settings, numbers[i], 0, &taken, error));
    if (taken >= 0) launch->exchange_sms = (double)taken;
  }
  return PL_OK;
}

/* What runs beside the exchange of tokens: another pass, with gradients of weights put off or not, or shared experts.
 * Megatron Core has the latter two with nothing else (transformer_config.py). */
pl_code pl_megatron_take_hidden_tokens(pl_launch *launch, pl_error *error) {
  pl_strategy *strategy = &launch->strategy;
  bool pairs = false, delays = false, shares = false;
  pl_settings_flag(&launch->settings, "overlap_moe_expert_parallel_comm", &pairs);
  pl_settings_flag(&launch->settings, "delay_wgrad_compute", &delays);
  if (!launch->has_model || launch->model.shared_ffn > 0)
    pl_settings_flag(&launch->settings, "moe_shared_expert_overlap", &shares);
  strategy->ep_overlap = pairs && delays ? PL_EP_OVERLAP_DELAYED : pairs ? PL_EP_OVERLAP_PASSES : PL_EP_OVERLAP_NONE;
  if (delays && !pairs) {
    pl_settings_set_aside(&launch->settings, "delay_wgrad_compute");
    PL_TRY(pl_launch_assume(launch, error, "no delay_wgrad_compute: it is of overlap_moe_expert_parallel_comm"));
  }
  if (!shares) return PL_OK;
  const char *against = pairs                                      ? "another pass runs beside the exchange"
                        : strategy->ep <= 1                        ? "one rank has all experts, and exchanges nothing"
                        : strategy->recompute >= PL_RECOMPUTE_FULL ? "not with full recomputation"
                        : strategy->etp > 1  ? "not where tensor ranks gather what came (expert_tensor_parallel_size)"
                        : !launch->has_model ? "the file does not say whether the model has any"
                                             : NULL;
  if (against == NULL) {
    strategy->ep_overlap = PL_EP_OVERLAP_SHARED;
    return PL_OK;
  }
  pl_settings_set_aside(&launch->settings, "moe_shared_expert_overlap");
  return pl_launch_assume(launch, error, "no moe_shared_expert_overlap: %s", against);
}
