/* Keeps the layer's library from being empty until its first source lands. */
typedef int pl_workloads_layer;
