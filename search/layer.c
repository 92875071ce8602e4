/* Keeps the layer's library from being empty until its first source lands. */
typedef int pl_search_layer;
