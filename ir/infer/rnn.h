// What inference and the definition of pd.rnn share. Private to ir/.
#ifndef PDCC_RNN_H
#define PDCC_RNN_H

#include "ir/core/core.h"

// A pd.rnn, as its attributes and operands say. Weights come in Paddle's order: for every layer and
// direction those of the input [gates * hidden, input] and of the state [gates * hidden, hidden],
// then in the same order the two biases.
typedef struct Rnn {
	CellKind mode;
	int gates; // LSTM: i, f, candidate, o; GRU: r, z, candidate
	int64_t hidden;
	int layers, directions, nstate;
	Value *x;       // [time, batch, input]
	Value *lengths; // [batch], or NULL
	Value *const *weights;
	Value *const *states; // [nstate], each [layers * directions, batch, hidden]
} Rnn;

// False after a diagnostic.
bool rnn_read(Op *op, Rnn *r);

#endif
