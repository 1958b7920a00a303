"""A loop of ten million rounds needs no more memory than one of ten, as C; the interpreter reaches a level and stays there. pdcc itself
needs memory for each operation of a program once, however many of them become one nest."""
import pathlib, struct, sys, tempfile

from pdcc_tests import SRC, run, used

SLOW = True
# A counter and a vector that goes around; n rounds.
LOOP = '''builtin.module {
  %n = pd.feed() {name = "n", col = 0} : () -> (tensor<1 x i64>)
  %x = pd.feed() {name = "x", col = 1} : () -> (tensor<64 x f32>)
  %zero = builtin.constant() {value = dense<1 x i64 [0]>} : () -> (tensor<1 x i64>)
  %i, %y = pd.while(%zero, %x) : (tensor<1 x i64>, tensor<64 x f32>) -> (tensor<1 x i64>, tensor<64 x f32>) cond {
    ^0(%a: tensor<1 x i64>, %b: tensor<64 x f32>):
      %go = pd.less_than(%a, %n) : (tensor<1 x i64>, tensor<1 x i64>) -> (tensor<1 x bool>)
      cf.cond_yield(%go, %a, %b) : (tensor<1 x bool>, tensor<1 x i64>, tensor<64 x f32>) -> ()
  } body {
    ^0(%c: tensor<1 x i64>, %d: tensor<64 x f32>):
      %next = pd.scale(%c) {bias = 1.0} : (tensor<1 x i64>) -> (tensor<1 x i64>)
      %e = pd.flip(%d) {axis = [0]} : (tensor<64 x f32>) -> (tensor<64 x f32>)
      cf.yield(%next, %e) : (tensor<1 x i64>, tensor<64 x f32>) -> ()
  }
  pd.fetch(%i) {col = 0, name = "i"} : (tensor<1 x i64>) -> ()
  pd.fetch(%y) {col = 1, name = "y"} : (tensor<64 x f32>) -> ()
}
'''


def chain(length):
    """One elementwise operation behind the other, with the input in every second one."""
    t = '(tensor<8 x f32>, tensor<8 x f32>) -> (tensor<8 x f32>)'
    lines = ['builtin.module {', '  %v0 = pd.feed() {name = "x", col = 0} : () -> (tensor<8 x f32>)']
    lines += [f'  %v{i + 1} = pd.add(%v{i}, %v0) : {t}' if i % 2 else f'  %v{i + 1} = pd.tanh(%v{i}) : (tensor<8 x f32>) -> (tensor<8 x f32>)'
              for i in range(length)]
    return '\n'.join(lines + [f'  pd.fetch(%v{length}) {{col = 0, name = "y"}} : (tensor<8 x f32>) -> ()', '}\n'])


def peak(cmd):
    """Exit status, and the most memory that a program held, in KiB."""
    _, kib, status, _ = used(cmd)
    return status, kib


def suite(t):
    sys.path.insert(0, str(SRC / 'tests/fuzz'))
    import control
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / 'p.pdir').write_text(LOOP)
        (tmp / 'x.npy').write_bytes(b"\x93NUMPY\x01\0" + struct.pack('<H', 118) + b"{'descr': '<f4', 'fortran_order': False, 'shape': (64,), }".ljust(117)
                                    + b'\n' + struct.pack('<64f', *range(64)))

        def inputs(rounds):
            (tmp / f'{rounds}.npy').write_bytes(control.npy(control.ONE, [rounds]))
            return ['--in', f'n={tmp}/{rounds}.npy', '--in', f'x={tmp}/x.npy', '--out-dir', tmp / 'out']

        built = run([t.pdcc, 'run', tmp / 'p.pdir', '--keep', tmp / 'c', *inputs(10)])
        yield 'the program builds', built.returncode == 0, built.stdout
        few, many = (peak([tmp / 'c/model.run', *inputs(n)]) for n in (10, 10_000_000))
        yield f'C: {few[1]} and {many[1]} KiB', few[0] == many[0] == 0 and many[1] <= few[1] + 512, 'more rounds, more memory'
        count = (tmp / 'out/0/0.npy').read_bytes()[128:]
        yield 'it took ten million rounds', count == struct.pack('<q', 10_000_000), repr(count)
        some, more = (peak([t.pdcc, 'run', tmp / 'p.pdir', '--target', 'interp', *inputs(n)]) for n in (100_000, 300_000))
        (tmp / 'chain.pdir').write_text(chain(8000))
        whole = peak([t.pdcc, tmp / 'chain.pdir', '-o', tmp / 'chain.c'])
        yield f'8000 operations: {whole[1]} KiB', whole[0] == 0 and whole[1] < 2 ** 17, 'bodies are copied from nest to nest'
        yield f'interpreter: {some[1]} and {more[1]} KiB', some[0] == more[0] == 0 and more[1] < 1.1 * some[1] < 2 ** 17, 'it grows'
