// Bytes to structs: programs, parameter files, .npy arrays, .yml. Leaves a checked ProgramDesc, and
// tensors in the Context. Uses ir/core only.
#ifndef PDCC_FRONTEND_READ_READ_H
#define PDCC_FRONTEND_READ_READ_H

#include "ir/core/core.h"
#include "program_desc.pb-c.h"

// file.c

// A whole file, mapped read-only and unmapped with the arena; NULL after a diagnostic.
const uint8_t *file_map(Context *c, const char *path, size_t *size);
// Writes atomically: to a temporary file beside `path`, then renamed. `-` is standard output. False
// after a diagnostic, nothing left behind. Files written this way in one group appear all or none:
// file_write_group.
bool file_write(Context *c, const char *path, const void *data, size_t size);
typedef struct FilePiece {
	const char *path;
	const void *data;
	size_t size;
} FilePiece;
bool file_write_group(Context *c, int n, const FilePiece *pieces);

// folder.c

bool path_is_folder(const char *path);
bool path_is_file(const char *path); // there, and no folder
// The one program in a folder: .pdmodel, __model__, or a .json that is one. NULL after a
// diagnostic, which names the files where there are several.
const char *folder_program(Context *c, const char *folder);
// The one .pdiparams in a folder; *path is NULL where there is none. False after a diagnostic.
bool folder_params(Context *c, const char *folder, const char **path);

// model.c

// Reads `.pdmodel`, `__model__`, Paddle 3's `.json`, or a folder that holds one of them. Checks
// what the wire format does not: block indices, parents without cycles. NULL after diagnostics.
// Freed with the context.
Paddle__ProgramDesc *model_read(Context *c, const char *path);

// params.c

// Loads persistables into the context's parameter table. `path`: a combined file, a folder with one
// file each, or NULL (look beside the model: NAME.pdiparams, __params__, params; where a folder was
// given its only .pdiparams; single files). names (nnames, may be 0): which persistables the file
// holds when not all. Data stay in the mapping.
bool params_load(Context *c, const Paddle__ProgramDesc *p, const char *model_path, const char *path,
                 int nnames, const char *const *names);
// As params_load, for a module from text: the parameters that it reads, or the named ones, in the
// order of their sorted names.
bool params_load_module(Context *c, Op *module, const char *path, int nnames,
                        const char *const *names);
// The persistables of a program, or the parameters that a module reads or writes, sorted.
const char *const *params_names(Context *c, const Paddle__ProgramDesc *p, int *n);
const char *const *params_module_names(Context *c, Op *module, int *n);
// What --save-state wrote of these persistables (sorted): of all of them, or of those that have a
// value. Types and sizes must be those of the values that they have. False after a diagnostic.
bool params_load_state(Context *c, const char *path, int n, const char *const *names);
// Writes tensors in the combined format (--save-state), into memory.
bool params_encode(Context *c, int n, Tensor *const *tensors, uint8_t **data, size_t *size);

// npy.c

// NULL after a diagnostic. C and Fortran order, '<' only; unsigned 16-bit elements are bfloat16.
Tensor *npy_read(Context *c, const char *path);
// The number of axes, from the header; -1 after a diagnostic.
int npy_rank(Context *c, const char *path);
bool npy_write(Context *c, const char *path, const Tensor *t);

// pir_type.c

// How Paddle 3's programs call an element type: "0.t_f32" in types, "float32" in attributes.
const char *pir_type_name(DType t);
const char *pir_dtype_token(DType t);

// legacy_text.c

// A program as Paddle prints it.
void legacy_print(Text *t, const Paddle__ProgramDesc *p);

#endif
