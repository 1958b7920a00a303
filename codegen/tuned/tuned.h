// The emitters of C's tuned kernels: each fills the templates of its kernel (codegen/c/kernels) for
// the target's registers, around the regions of an operation. Leaves the text of a KernelFunc. Uses
// codegen/nest and what is below; nobody calls it but through the operator table.
#ifndef PDCC_CODEGEN_TUNED_TUNED_H
#define PDCC_CODEGEN_TUNED_TUNED_H

#endif
