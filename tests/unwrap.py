#!/usr/bin/env python3
"""Joins lines of generated code that were broken at 100 columns, for patterns that want a statement in one line.

A line that goes on stands two tabs deeper than the one that it belongs to; blocks go one tab deeper each.
"""
import sys

lines, depth = [], 0
for line in sys.stdin.read().split('\n'):
    tabs = len(line) - len(line.lstrip('\t'))
    if lines and line.strip() and lines[-1].strip() and tabs == depth + 2:
        lines[-1] += ' ' + line.strip()
    else:
        lines.append(line)
        depth = tabs
print('\n'.join(lines), end='')
