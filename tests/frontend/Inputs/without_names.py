#!/usr/bin/env python3
"""Prints C without comments, texts and what a program and its weights are told by, each name as the number of its first
appearance."""
import re, sys

KEYWORDS = set('''break case char const continue default do double else enum extern float for goto if inline int long return short
signed sizeof static struct switch typedef union unsigned void while include define ifdef ifndef endif'''.split())
text = re.sub(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|UINT64_C\(0x\w{16}\)', '', open(sys.argv[1]).read(), flags=re.S)
text = '\n'.join(line for line in text.split('\n') if not line.startswith('#'))
names = {}
print(re.sub(r'\b[A-Za-z_]\w*', lambda m: m[0] if m[0] in KEYWORDS else 'n%d' % names.setdefault(m[0], len(names)),
             re.sub(r'\s+', ' ', text).replace('; ', ';\n')))
