#!/usr/bin/env python3
"""Writes ir/ops/paddle3.yaml: what Paddle 3 declares of its operations, which `-o model.json` must keep to.

Needs an environment with paddlepaddle 3.2.2, its headers (part of the package) and g++:

    /path/to/paddle3/bin/python tests/record_pir_ops.py > ir/ops/paddle3.yaml

Names, kinds and order are asked of the library (OpYamlInfoInterface), defaults of attributes are read from `pd_op.h`. Run it again
for another version of Paddle; nothing else of the project needs it."""
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

import paddle

ROOT = pathlib.Path(paddle.__file__).parent / 'include'
HEADER = ROOT / 'paddle/fluid/pir/dialect/operator/ir/pd_op.h'

DUMP = r'''
#include "paddle/fluid/pir/dialect/operator/interface/op_yaml_info.h"
#include "paddle/pir/include/core/ir_context.h"
#include <cstdio>
#include <map>
using paddle::dialect::OpYamlInfoInterface;
extern "C" void dump(const char *path) {
  FILE *f = fopen(path, "w");
  auto &all = pir::IrContext::Instance()->registered_op_info_map();
  std::map<std::string, pir::OpInfo> ops(all.begin(), all.end());
  for (auto &p : ops) {
    auto *c = p.second.GetInterfaceImpl<OpYamlInfoInterface>();
    if (!c) continue;
    auto t = c->get_op_info_(p.first);
    fprintf(f, "op %s\n", p.first.c_str());
    for (auto &i : std::get<0>(t)) fprintf(f, "in %s %s %d\n", i.name.c_str(), i.type_name.c_str(), i.optional);
    for (auto &i : std::get<1>(t)) fprintf(f, "attr %s %s %s\n", i.name.c_str(), i.type_name.c_str(), i.data_type.c_str());
    for (auto &i : std::get<2>(t)) fprintf(f, "out %s %s %d\n", i.name.c_str(), i.type_name.c_str(), i.optional);
  }
  fclose(f);
}
'''

KINDS = {
    'pir::BoolAttribute': 'bool', 'pir::Int32Attribute': 'i32', 'pir::Int64Attribute': 'i64',
    'pir::FloatAttribute': 'f32', 'pir::DoubleAttribute': 'f64', 'pir::StrAttribute': 'str',
    'pir::ArrayAttribute<pir::Int32Attribute>': 'i32s', 'pir::ArrayAttribute<pir::Int64Attribute>': 'i64s',
    'pir::ArrayAttribute<pir::FloatAttribute>': 'f32s', 'pir::ArrayAttribute<pir::StrAttribute>': 'strs',
    'pir::ArrayAttribute<paddle::dialect::ScalarAttribute>': 'scalars', 'pir::ArrayAttribute': 'i64s',
    'paddle::dialect::IntArrayAttribute': 'intarray', 'paddle::dialect::ScalarAttribute': 'scalar',
    'paddle::dialect::DataTypeAttribute': 'dtype', 'paddle::dialect::PlaceAttribute': 'place',
}

# Other machines, operations of training in parallel, and what passes of Paddle's own make (layers make fused_softmax_mask).
SKIPPED = re.compile(r'_(sp|xpu|sr|dr)_?$|_(sp|xpu|sr|dr)_grad_?$|^(fused(?!_softmax_mask)|fp8|moe|ap|c|partial|distributed|flash|dgc)_|^(npu|comm|sync_c)')


def run_dump():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / 'dump.cc').write_text(DUMP)
        subprocess.run(['g++', '-std=c++17', '-O0', '-shared', '-fPIC', f'-I{ROOT}', f'-I{ROOT}/third_party', 'dump.cc', '-o', 'dump.so'],
                       cwd=tmp, check=True)
        ctypes.CDLL(paddle.base.libpaddle.__file__, mode=ctypes.RTLD_GLOBAL)
        ctypes.CDLL(str(tmp / 'dump.so')).dump(str(tmp / 'ops').encode())
        return (tmp / 'ops').read_text().splitlines()


def read_ops(lines):
    ops = {}
    for line in lines:
        what, *words = line.split(' ')
        if what == 'op':
            op = ops[words[0]] = {'in': [], 'attr': [], 'out': []}
        else:
            op[what].append(words)
    return {k[len('pd_op.'):]: v for k, v in ops.items() if k.startswith('pd_op.')}


def split_params(text):
    """The parameters of a function, at the commas that stand in no brackets."""
    out, depth, at = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in '({<') - (c in ')}>')
        if c == ',' and not depth:
            out.append(text[at:i].strip())
            at = i + 1
    return out + [text[at:].strip()]


def literal(text):
    """A default in C++ as the text form of attributes; None: there is none that can be said."""
    text = text.strip()
    if text.startswith('{'):
        parts = [literal(p) for p in split_params(text[1:-1]) if p]
        return None if None in parts else f'[{", ".join(parts)}]'
    if text.startswith('"') or text in ('true', 'false'):
        return text
    text = re.sub(r'(?<=[\d.])f$', '', text)
    return text if re.fullmatch(r'-?[\d.]+(e-?\d+)?', text) else None


def read_defaults():
    """For each operation, what its Build functions give attributes that a caller leaves out."""
    out, name = {}, None
    for line in HEADER.read_text().splitlines():
        is_name = re.search(r'name\(\) { return "pd_op\.(\w+)"; }', line)
        name = is_name.group(1) if is_name else name
        build = re.match(r'\s*static void Build\(pir::Builder &builder, pir::OperationArgument &argument(?:, )?(.*)\);', line)
        for p in split_params(build.group(1)) if build and name else []:
            m = re.match(r'(.+?[ &])(\w+)=(.+)$', p)
            value = literal(m.group(3)) if m else None
            if value is not None:
                out.setdefault(name, {}).setdefault(m.group(2), value)
    return out


def operand(name, kind, optional):
    suffix = ''
    if 'VectorType' in kind:
        suffix = '*'
    elif kind.endswith('IntArrayAttribute'):
        suffix = ': ints'
    elif kind.endswith('ScalarAttribute'):
        suffix = ': number'
    return f"'{name}{'?' if optional == '1' else ''}{suffix}'" if suffix or optional == '1' else name


def wrapped(line):
    return '\n'.join(textwrap.wrap(line, 128, initial_indent='  ', subsequent_indent='    ', break_long_words=False, break_on_hyphens=False))


def lines_of(name, op, defaults):
    yield f'- pir: {name}'
    if op['in']:
        yield wrapped(f"in: [{', '.join(operand(*i) for i in op['in'])}]")
    attrs = []
    for a, kind, *data in op['attr'] if not name.endswith('_grad') else []:  # those of its forward operation
        word = KINDS[kind]
        word += {'double': ' f64', 'int64_t': ' i64'}.get(data[0], ' f32') if word == 'scalar' else ''
        value = defaults.get(a)
        attrs.append(f'{a}: {word}' if value is None else f"{a}: '{word} = {value}'")
    if attrs:
        yield wrapped(f"attr: {{{', '.join(attrs)}}}")
    if op['out']:
        yield wrapped(f"out: [{', '.join(operand(*i) for i in op['out'])}]")


def main():
    ops, defaults = read_ops(run_dump()), read_defaults()
    print('# What Paddle', paddle.__version__, 'declares of its operations (dialect pd_op): operands by position (`?` may be absent, `*` a vector, `: ints`')
    print('# and `: number` are attributes of legacy programs), kinds and defaults of attributes, results. Written by')
    print('# tests/record_pir_ops.py; what they mean is said by the `pir:` rows of the entries.')
    for name, op in sorted(ops.items()):
        sparse = any('Sparse' in i[1] or 'SelectedRows' in i[1] for i in op['in'] + op['out'])
        if SKIPPED.search(name) or sparse or (name.endswith('_') and name[:-1] in ops and name not in ('batch_norm_',)):
            continue
        print()
        for line in lines_of(name, op, defaults.get(name, {})):
            print(line)


sys.exit(main())
