/* Features: what a learned cost model needs to know of a candidate beyond its row; computed on request (`sweep
 * --features`). All are doubles. PL_FEATURE_COLUMNS(X): one number per candidate; PL_STAGE_FEATURE_COLUMNS(X): one per
 * candidate and pipeline stage, NaN beyond its last stage. X(name, unit, description).
 *
 * Like the columns of results, this is the one list that the file, `show`, JSON and the docs use.
 */
#ifndef PL_CORE_FEATURES_H
#define PL_CORE_FEATURES_H

/* clang-format off */
#define PL_FEATURE_COLUMNS(X) \
  X(flops, "FLOP", "mean over devices: computed in an iteration, recomputation included") \
  X(traffic_bytes, "B", "mean over devices: moved to and from device memory by computing") \
  X(kernel_calls, "1", "mean over devices: ops that compute") \
  X(forward_s, "s", "mean over devices: forward passes, overlap slow-down included") \
  X(backward_s, "s", "mean over devices: backward passes, likewise") \
  X(recompute_s, "s", "mean over devices: recomputation, likewise") \
  X(gemm_s, "s", "mean over devices: matrix products, without overlap slow-down") \
  X(attention_s, "s", "mean over devices: fused attention, without overlap slow-down") \
  X(norm_s, "s", "mean over devices: norms, without overlap slow-down") \
  X(softmax_s, "s", "mean over devices: softmax, without overlap slow-down") \
  X(elementwise_s, "s", "mean over devices: elementwise ops, without overlap slow-down") \
  X(embedding_s, "s", "mean over devices: embedding look-ups, without overlap slow-down") \
  X(cross_entropy_s, "s", "mean over devices: cross-entropy, without overlap slow-down") \
  X(other_ops_s, "s", "mean over devices: ops of no kind above, without overlap slow-down") \
  X(optimizer_s, "s", "mean over devices: optimizer step, without overlap slow-down") \
  X(host_s, "s", "mean over devices: waiting for the host to launch work") \
  X(overlap_slowdown_s, "s", "mean over devices: what the overlap factor adds to computing; with the nine kinds and host_s: compute_s") \
  X(gemm_calls, "1", "mean over devices: matrix products") \
  X(attention_calls, "1", "mean over devices: fused attention") \
  X(norm_calls, "1", "mean over devices: norms") \
  X(softmax_calls, "1", "mean over devices: softmax") \
  X(elementwise_calls, "1", "mean over devices: elementwise ops") \
  X(embedding_calls, "1", "mean over devices: embedding look-ups") \
  X(cross_entropy_calls, "1", "mean over devices: cross-entropy") \
  X(gemm_flops, "FLOP", "mean over devices: matrix products") \
  X(attention_flops, "FLOP", "mean over devices: fused attention") \
  X(gemm_bytes, "B", "mean over devices: memory traffic of matrix products") \
  X(attention_bytes, "B", "mean over devices: memory traffic of fused attention") \
  X(norm_bytes, "B", "mean over devices: memory traffic of norms") \
  X(softmax_bytes, "B", "mean over devices: memory traffic of softmax") \
  X(elementwise_bytes, "B", "mean over devices: memory traffic of elementwise ops") \
  X(embedding_bytes, "B", "mean over devices: memory traffic of embedding look-ups") \
  X(cross_entropy_bytes, "B", "mean over devices: memory traffic of cross-entropy") \
  X(optimizer_bytes, "B", "mean over devices: memory traffic of the optimizer step") \
  X(tensor_comm_hidden_s, "s", "mean over devices: tensor-parallel communication beside computing or waiting, not exposed") \
  X(data_comm_hidden_s, "s", "mean over devices: data-parallel communication beside computing or waiting, not exposed") \
  X(pipeline_comm_hidden_s, "s", "mean over devices: pipeline communication beside computing or waiting, not exposed") \
  X(context_comm_hidden_s, "s", "mean over devices: context-parallel communication beside computing or waiting, not exposed") \
  X(expert_comm_hidden_s, "s", "mean over devices: expert-parallel communication beside computing or waiting, not exposed") \
  X(tensor_all_reduce_calls, "1", "mean over devices: tensor-parallel all-reduces") \
  X(tensor_all_reduce_bytes, "B", "mean over devices: sizes of tensor-parallel all-reduces") \
  X(tensor_all_reduce_alone_s, "s", "mean over devices: time of tensor-parallel all-reduces with nothing else on the links") \
  X(tensor_all_gather_calls, "1", "mean over devices: tensor-parallel all-gathers") \
  X(tensor_all_gather_bytes, "B", "mean over devices: sizes of tensor-parallel all-gathers") \
  X(tensor_all_gather_alone_s, "s", "mean over devices: time of tensor-parallel all-gathers with nothing else on the links") \
  X(tensor_reduce_scatter_calls, "1", "mean over devices: tensor-parallel reduce-scatters") \
  X(tensor_reduce_scatter_bytes, "B", "mean over devices: sizes of tensor-parallel reduce-scatters") \
  X(tensor_reduce_scatter_alone_s, "s", "mean over devices: time of tensor-parallel reduce-scatters with nothing else on the links") \
  X(data_all_reduce_calls, "1", "mean over devices: all-reduces of gradients") \
  X(data_all_reduce_bytes, "B", "mean over devices: sizes of all-reduces of gradients") \
  X(data_all_reduce_alone_s, "s", "mean over devices: time of all-reduces of gradients with nothing else on the links") \
  X(data_reduce_scatter_calls, "1", "mean over devices: reduce-scatters of gradients (ZeRO)") \
  X(data_reduce_scatter_bytes, "B", "mean over devices: sizes of reduce-scatters of gradients (ZeRO)") \
  X(data_reduce_scatter_alone_s, "s", "mean over devices: time of reduce-scatters of gradients (ZeRO) with nothing else on the links") \
  X(data_all_gather_calls, "1", "mean over devices: all-gathers of parameters (ZeRO)") \
  X(data_all_gather_bytes, "B", "mean over devices: sizes of all-gathers of parameters (ZeRO)") \
  X(data_all_gather_alone_s, "s", "mean over devices: time of all-gathers of parameters (ZeRO) with nothing else on the links") \
  X(pipeline_send_calls, "1", "mean over devices: sends between stages, in which a device takes part at either end") \
  X(pipeline_send_bytes, "B", "mean over devices: sizes of sends between stages") \
  X(pipeline_send_alone_s, "s", "mean over devices: time of sends between stages with nothing else on the links") \
  X(embedding_all_reduce_calls, "1", "mean over devices: all-reduces of a tied embedding's gradient") \
  X(embedding_all_reduce_bytes, "B", "mean over devices: sizes of all-reduces of a tied embedding's gradient") \
  X(embedding_all_reduce_alone_s, "s", "mean over devices: time of all-reduces of a tied embedding's gradient with nothing else on the links") \
  X(context_comm_calls, "1", "mean over devices: exchanges of keys and values") \
  X(context_comm_bytes, "B", "mean over devices: sizes of exchanges of keys and values") \
  X(context_comm_alone_s, "s", "mean over devices: time of exchanges of keys and values with nothing else on the links") \
  X(expert_all_to_all_calls, "1", "mean over devices: all-to-alls of tokens to experts and back") \
  X(expert_all_to_all_bytes, "B", "mean over devices: sizes of all-to-alls of tokens to experts and back") \
  X(expert_all_to_all_alone_s, "s", "mean over devices: time of all-to-alls of tokens to experts and back with nothing else on the links") \
  X(expert_data_reduce_calls, "1", "mean over devices: reductions of experts' gradients") \
  X(expert_data_reduce_bytes, "B", "mean over devices: sizes of reductions of experts' gradients") \
  X(expert_data_reduce_alone_s, "s", "mean over devices: time of reductions of experts' gradients with nothing else on the links") \
  X(expert_data_all_gather_calls, "1", "mean over devices: all-gathers of experts' parameters (ZeRO)") \
  X(expert_data_all_gather_bytes, "B", "mean over devices: sizes of all-gathers of experts' parameters (ZeRO)") \
  X(expert_data_all_gather_alone_s, "s", "mean over devices: time of all-gathers of experts' parameters (ZeRO) with nothing else on the links") \
  X(other_comm_calls, "1", "mean over devices: communication that has no column of its own") \
  X(other_comm_bytes, "B", "mean over devices: sizes of communication that has no column of its own") \
  X(other_comm_alone_s, "s", "mean over devices: time of communication that has no column of its own with nothing else on the links") \
  X(tensor_group_size, "1", "members of a tensor-parallel group") \
  X(tensor_group_nodes, "1", "nodes that the members of a tensor-parallel group are on, the most") \
  X(data_group_size, "1", "members of a data-parallel group") \
  X(data_group_nodes, "1", "nodes that the members of a data-parallel group are on, the most") \
  X(context_group_size, "1", "members of a context-parallel group") \
  X(context_group_nodes, "1", "nodes that the members of a context-parallel group are on, the most") \
  X(expert_group_size, "1", "members of an expert-parallel group") \
  X(expert_group_nodes, "1", "nodes that the members of an expert-parallel group are on, the most") \
  X(pipeline_group_nodes, "1", "2 if a send between stages leaves its node, 1 if none does, 0 without sends") \
  X(qkv_m, "1", "GEMM of the query, key and value projection, forward, on one device: rows") \
  X(qkv_n, "1", "GEMM of the query, key and value projection, forward, on one device: outputs") \
  X(qkv_k, "1", "GEMM of the query, key and value projection, forward, on one device: inputs") \
  X(attention_out_m, "1", "GEMM of the attention output projection, forward, on one device: rows") \
  X(attention_out_n, "1", "GEMM of the attention output projection, forward, on one device: outputs") \
  X(attention_out_k, "1", "GEMM of the attention output projection, forward, on one device: inputs") \
  X(mlp_up_m, "1", "GEMM of the first matrix of the MLP, forward, on one device: rows") \
  X(mlp_up_n, "1", "GEMM of the first matrix of the MLP, forward, on one device: outputs") \
  X(mlp_up_k, "1", "GEMM of the first matrix of the MLP, forward, on one device: inputs") \
  X(mlp_down_m, "1", "GEMM of the second matrix of the MLP, forward, on one device: rows") \
  X(mlp_down_n, "1", "GEMM of the second matrix of the MLP, forward, on one device: outputs") \
  X(mlp_down_k, "1", "GEMM of the second matrix of the MLP, forward, on one device: inputs") \
  X(expert_batch, "1", "GEMMs of the experts on one device: how many at once") \
  X(expert_up_m, "1", "GEMM of the first matrix of an expert, forward, on one device: rows") \
  X(expert_up_n, "1", "GEMM of the first matrix of an expert, forward, on one device: outputs") \
  X(expert_up_k, "1", "GEMM of the first matrix of an expert, forward, on one device: inputs") \
  X(expert_down_m, "1", "GEMM of the second matrix of an expert, forward, on one device: rows") \
  X(expert_down_n, "1", "GEMM of the second matrix of an expert, forward, on one device: outputs") \
  X(expert_down_k, "1", "GEMM of the second matrix of an expert, forward, on one device: inputs") \
  X(logits_m, "1", "GEMM of the head, forward, on one device: rows") \
  X(logits_n, "1", "GEMM of the head, forward, on one device: outputs") \
  X(logits_k, "1", "GEMM of the head, forward, on one device: inputs") \
  X(attention_batch, "1", "attention on one device: sequences times heads") \
  X(attention_seq, "1", "attention: length of the sequences") \
  X(attention_head_size, "1", "attention: width of a head") \
  X(n_transfer_classes, "1", "classes of transfers after folding") \
  X(n_group_classes, "1", "classes of communicators after folding") \
  X(n_events, "1", "events of the run, with those leapt over")

#define PL_STAGE_FEATURE_COLUMNS(X) \
  X(stage_flops, "FLOP", "of the stage's busiest device: computed in an iteration, recomputation included") \
  X(stage_traffic_bytes, "B", "likewise: moved to and from device memory by computing") \
  X(stage_parameters, "1", "parameters of a rank of the stage, before ZeRO's sharding") \
  X(stage_saved_bytes, "B", "activations that the stage keeps of one microbatch from forward to backward") \
  X(stage_layers, "1", "transformer layers of the stage") \
  X(stage_peak_mem_bytes, "B", "peak of the stage's device with the least memory left") \
  X(stage_compute_s, "s", "of the stage's busiest device: computing, overlap slow-down included") \
  X(stage_tensor_comm_s, "s", "likewise: exposed tensor-parallel communication") \
  X(stage_pipeline_comm_s, "s", "likewise: exposed pipeline communication") \
  X(stage_context_comm_s, "s", "likewise: exposed context-parallel communication") \
  X(stage_expert_comm_s, "s", "likewise: exposed expert-parallel communication") \
  X(stage_data_comm_s, "s", "likewise: exposed data-parallel communication") \
  X(stage_bubble_s, "s", "likewise: pipeline bubble and other waiting; the seven add up to iter_time_s")
/* clang-format on */

/* The numbers of one candidate, in this order; behind them the stages': [PL_N_STAGE_FEATURES][stages]. */
typedef struct pl_feature_values {
#define PL_FEATURE_FIELD(name, unit, description) double name;
  PL_FEATURE_COLUMNS(PL_FEATURE_FIELD)
#undef PL_FEATURE_FIELD
} pl_feature_values;

/* Which of the stages' numbers. */
enum {
#define PL_STAGE_FEATURE_INDEX(name, unit, description) PL_FEATURE_##name,
  PL_STAGE_FEATURE_COLUMNS(PL_STAGE_FEATURE_INDEX)
#undef PL_STAGE_FEATURE_INDEX
      PL_N_STAGE_FEATURES,
  PL_N_FEATURES = sizeof(pl_feature_values) / sizeof(double)
};

static inline double *pl_stage_feature(double *features, int index, int n_stages) {
  return features + PL_N_FEATURES + index * n_stages;
}

#endif
