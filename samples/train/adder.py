#!/usr/bin/env python3
"""Writes adder.pdmodel and adder.pdiparams, a recurrent net that adds two numbers, untrained.

Not needed to build or run the sample: the results are checked in. Needs paddlepaddle 2.6.2.

A round of the loop takes the lowest bits of the two numbers and gives one bit of their sum; what is to be carried the net must
learn to keep in its state. The loop goes on while a bit of the largest sum is left, so how many rounds it takes hangs on the data.
"""
import paddle
from paddle.static import io

HIDDEN = 16

paddle.enable_static()
paddle.seed(1)
main, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(main, startup):
    def parameter(name, shape):
        return paddle.static.create_parameter(shape, 'float32', name=name, default_initializer=paddle.nn.initializer.Normal(0, 0.3))

    bits_in, hidden, hidden_bias = parameter('bits_in', [2, HIDDEN]), parameter('hidden', [HIDDEN, HIDDEN]), parameter('hidden_bias', [HIDDEN])
    bit_out, bit_bias = parameter('bit_out', [HIDDEN, 1]), parameter('bit_bias', [1])
    pair = paddle.static.data('pair', [-1, 2], 'int64')

    def going(pair, total, place, state, said, loss):
        return paddle.max(total) > 0

    def round_of(pair, total, place, state, said, loss):
        bits, bit = paddle.cast(pair % 2, 'float32'), paddle.cast(total % 2, 'float32')
        state = paddle.tanh(paddle.matmul(bits, bits_in) + paddle.matmul(state, hidden) + hidden_bias)
        logit = paddle.squeeze(paddle.matmul(state, bit_out) + bit_bias, 1)
        loss = loss + paddle.mean(paddle.nn.functional.softplus(logit) - logit * bit)
        said = said + place * paddle.cast(logit > 0, 'int64')
        return [pair // 2, total // 2, place * 2, state, said, loss]

    total = paddle.sum(pair, axis=1)
    nothing = paddle.cast(total - total, 'float32')
    state = paddle.unsqueeze(nothing, 1) * paddle.ones([1, HIDDEN], 'float32')
    loss = paddle.zeros([1], 'float32')
    state.stop_gradient = loss.stop_gradient = False  # what begins as a constant stops gradients in Paddle
    last = paddle.static.nn.while_loop(going, round_of, [pair, total, paddle.ones([1], 'int64'), state, total - total, loss])
    for name, value in (('said', last[4]), ('loss', last[5])):
        out = main.global_block().create_var(name=name, dtype=value.dtype, shape=value.shape)
        main.global_block().append_op(type='assign', inputs={'X': [value]}, outputs={'Out': [out]})

executor = paddle.static.Executor()
executor.run(startup)
io.save_to_file('adder.pdiparams', io.serialize_persistables([pair], [main.global_block().var('said')], executor, program=main))
io.prepend_feed_ops(main, ['pair'])
io.append_fetch_ops(main, ['said', 'loss'])
for block in main.blocks:
    for op in block.ops:
        op._remove_attr('op_callstack')
io.save_to_file('adder.pdmodel', main.desc.serialize_to_string())
