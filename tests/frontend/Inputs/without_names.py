#!/usr/bin/env python3
"""Prints C without comments, texts and what a program and its weights are told by, each name as the number of its first
appearance. Members and what is local to a function have numbers of their own, since one word may name several of these."""
import re, sys

KEYWORDS = set('''break case char const continue default do double else enum extern float for goto if inline int long return short
signed sizeof static struct switch typedef union unsigned void while include define ifdef ifndef endif'''.split())
text = re.sub(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|UINT64_C\(0x\w{16}\)', '', open(sys.argv[1]).read(), flags=re.S)
text = '\n'.join(line for line in text.split('\n') if not line.startswith('#'))
known, members, local = {}, {}, {}
outside = set()  # words of lines that begin no function's inside: types, functions, tables
for line in text.split('\n'):
    if re.match(r'\w', line):
        outside.update(re.findall(r'\b[A-Za-z_]\w*', line.split('(')[0]))


def name(m):
    word = m[2]
    if word in KEYWORDS:
        return m[0]
    kind, names = ('m', members) if m[1] else ('n', known) if word in outside else ('l', local)
    return '%s%s%d' % (m[1], kind, names.setdefault(word, len(names)))


for function in re.split(r'(?<=\n})\n', text):
    local.clear()
    print(re.sub(r'(->|(?<![\w.])\.|(?<=[\w\])])\.(?=[A-Za-z_])|)\b([A-Za-z_]\w*)', name,
                 re.sub(r'\s+', ' ', function).replace('; ', ';\n')))
