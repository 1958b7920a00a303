// What is shipped beside a program: the .yml that says what happens to data before and after it.
#ifndef PDCC_FRONTEND_READ_CONFIG_H
#define PDCC_FRONTEND_READ_CONFIG_H

#include "ir/core/core.h"

typedef enum ConfigKind { CONFIG_SCALAR, CONFIG_LIST, CONFIG_MAP } ConfigKind;

// A value of the file. An alias shares the value that it names.
typedef struct ConfigNode ConfigNode;
struct ConfigNode {
	ConfigKind kind;
	const char *text;  // scalar
	bool plain;        // scalar without quotes, which may be a number, a truth value or null
	int n, cap;        // list, map
	const char **keys; // map
	const ConfigNode **items;
	const char *again; // map: a key that stands in it twice, of which the last holds; NULL: none
	int64_t size;      // values in it, those of aliases as often as they stand there
	int line;          // in the file, from 1
};

// A step of what happens before or after the program.
typedef struct ConfigStep {
	const char *name;
	const ConfigNode *parameters; // NULL: none
} ConfigStep;

typedef struct ModelConfig {
	const char *path;
	const char *name; // of the model; NULL: not said
	int npre, npost;
	ConfigStep *pre, *post;
	ConfigNode settings; // a map of what else stands at the top
} ModelConfig;

// The value of a key; NULL: not there, or no map.
const ConfigNode *config_get(const ConfigNode *map, const char *key);
// A plain null, or nothing at all.
bool config_is_null(const ConfigNode *n);

// Reads the .yml of a program, in the forms that PaddleX, PaddleOCR and PaddleClas (PreProcess),
// PaddleDetection (Preprocess) and PaddleSeg (Deploy) write: STEM.yml or STEM.yaml beside the
// program, infer_cfg.yml or deploy.yaml. False after a diagnostic; *config is NULL where there is
// no file.
bool config_read(Context *c, const char *program, ModelConfig **config);

// config_yaml.c: the values of a file, one map. NULL after a diagnostic.
const ConfigNode *config_parse(Context *c, const char *path);

#endif
