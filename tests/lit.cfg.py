# Configuration of the text tests: `lit tests`, or `make check`. A test is a file whose `RUN:` lines are commands,
# with `%s` for the file itself. What it runs can be set by a parameter or in the environment:
#
#   lit -D PDCC=/path/to/pdcc -D FILECHECK=/usr/bin/FileCheck-14 tests
#
#   %pdcc       the compiler         PDCC, else ./pdcc in the folder above or in the working folder
#   %FileCheck  the pattern checker  FILECHECK, else FileCheck or FileCheck-NN on the path
#   %cc         the C compiler       CC, else cc
#   %python     the interpreter that runs lit
#   %mkmodel    writes a legacy program from a description (mkmodel.py)
#   %mknpy      writes an array: OUT.npy DTYPE SHAPE VALUE... (mknpy.py)
#   %unwrap     joins broken lines of generated code (unwrap.py)
import os
import shutil
import sys

import lit.formats

config.name = "pdcc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".pdir", ".test"]
config.excludes = ["unit", "bench", "lit.cfg.py", "lit-out", "Inputs"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))


def setting(name, candidates):
    """A lit parameter, else the environment, else the first candidate that is there."""
    given = lit_config.params.get(name) or os.environ.get(name)
    if given:
        return given
    for candidate in candidates:
        found = shutil.which(candidate)
        if found:
            return found
    lit_config.fatal("%s not found: set it with -D %s=..." % (name, name))


root = os.path.dirname(config.test_source_root)
config.test_exec_root = lit_config.params.get("OUT") or os.path.join(config.test_source_root, "lit-out")

filechecks = ["FileCheck"] + ["FileCheck-%d" % n for n in range(22, 10, -1)]
pdcc = setting("PDCC", [os.path.join(root, "pdcc"), os.path.join(os.getcwd(), "pdcc")])
config.substitutions += [
    ("%pdcc", os.path.abspath(pdcc)),
    ("%FileCheck", setting("FILECHECK", filechecks)),
    ("%python", sys.executable),
    ("%mkmodel", "%s %s" % (sys.executable, os.path.join(config.test_source_root, "mkmodel.py"))),
    ("%unwrap", "%s %s" % (sys.executable, os.path.join(config.test_source_root, "unwrap.py"))),
    ("%mknpy", "%s %s" % (sys.executable, os.path.join(config.test_source_root, "mknpy.py"))),
    ("%cc", setting("CC", ["cc", "gcc", "clang"])),
]
for name in ["ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "HOME"]:
    if name in os.environ:
        config.environment[name] = os.environ[name]
