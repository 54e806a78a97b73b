"""Have memory deliver what a kernel will read soon.

Reading ahead is the processor's own business as long as little is done with what is read. A kernel that computes for
long between two reads keeps its few outstanding reads waiting, and so does one that asks for much at once: it has to
ask early, and evenly. On a processor without such an instruction nothing happens.

Callers in other files get this function inlined, and their cache on disk does not see edits here.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LINE = 8  # float64 in the 64 bytes that memory delivers at once


@intrinsic
def ask_ahead(typingctx, array, at):
    """Ask for ``array[at]``, of a flat array, into the nearest cache; nothing happens if that lies beyond its end."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], kind)
        builder.call(prefetch, [place, number(0), number(3), number(1)])  # to read, into the nearest cache, data
        return context.get_dummy_value()

    return types.void(array, at), generate
