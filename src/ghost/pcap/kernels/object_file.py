"""Compiled kernels as one file of machine code, which a later process loads without numba.

It is made from what numba keeps in its cache: the code of every kernel that is called from outside, linked into one
object. A file is bound to the processor it was made for and begins with a digest of the rest. Where anything about it
is not as expected it is not used, and numba does the work.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Function = Callable[..., Any]

_DIGEST = 32
_NOT_KEPT = (AttributeError, LookupError, TypeError, ValueError, RuntimeError, ImportError, OSError)
"""What reaching into another version of numba, or into a damaged cache of it, may raise."""
_kept_alive: list[object] = []
"""Engines own the code they have loaded."""


def save(path: Path, kernels: Mapping[Function, Any]) -> None:
    """Write the compiled code of these kernels, given numba's dispatchers; nothing where numba does not give it out.

    Raises OSError where the file cannot be written.
    """
    try:
        machine_code, symbols = _linked({name_of(function): (function, k) for function, k in kernels.items()})
    except _NOT_KEPT:
        return
    head = {"processor": _processor(), "symbols": symbols}
    content = json.dumps(head).encode() + b"\n" + machine_code
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(hashlib.sha256(content).digest() + content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def sound(path: Path, functions: Sequence[Function]) -> bool:
    """Return whether the file holds these kernels for this processor."""
    return _read(path, functions) is not None


def load(path: Path, functions: Sequence[Function]) -> dict[Function, Function] | None:
    """Return the compiled kernels; None if the file does not hold them for this processor."""
    found = _read(path, functions)
    if found is None:
        return None
    symbols, machine_code = found
    llvm = _started()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine(llvm))
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
    engine.finalize_object()
    addresses = {function: engine.get_function_address(symbols[name_of(function)]) for function in functions}
    if not all(addresses.values()):
        return None
    _kept_alive.append(engine)
    return {function: _callable(function, address) for function, address in addresses.items()}


def name_of(function: Function) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _read(path: Path, functions: Sequence[Function]) -> tuple[dict[str, str], bytes] | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
        return None
    head, _, machine_code = content[_DIGEST:].partition(b"\n")
    facts = json.loads(head)
    symbols: dict[str, str] = facts["symbols"]
    if any(name_of(function) not in symbols for function in functions):
        return None
    return (symbols, machine_code) if facts["processor"] == _processor() else None


def _processor() -> str:
    try:
        llvm = _started()
    except ImportError:
        return ""
    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} {llvm.llvm_version_info}"


# ------------------------------------------------------------------------------------------------------ the code


def _kinds(function: Function) -> list[str]:
    """Return the kinds of the parameters: `bytes`, `ints` or `int`."""
    code = function.__code__
    parameters = ((name, function.__annotations__[name]) for name in code.co_varnames[: code.co_argcount])
    return ["int" if kind == "int" else "bytes" if name == "buf" else "ints" for name, kind in parameters]


def _linked(kernels: Mapping[str, tuple[Function, Any]]) -> tuple[bytes, dict[str, str]]:
    """Return one object file with all kernels, and their symbols."""
    from numba import types

    known = {"int": types.int64, "ints": types.int64[::1], "bytes": types.uint8[::1]}
    llvm = _started()
    module, symbols = llvm.parse_assembly(""), {}
    for name, (function, dispatcher) in kernels.items():
        signature = tuple(known[kind] for kind in _kinds(function))
        dispatcher.compile(signature)
        cache = dispatcher._cache
        library, description, *_ = cache._cache_file.load(cache._index_key(signature, dispatcher.targetctx.codegen()))
        if str(description.restype) not in ("int64", "none"):
            raise TypeError(f"{name} returns {description.restype}")
        symbols[name] = str(description.llvm_func_name)
        part = llvm.parse_bitcode(library[2][1])
        part.get_function(symbols[name]).linkage = "external"  # what is not asked for is not linked
        module.link_in(part)
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name in symbols.values() else "internal"
        elif not function.name.startswith("llvm.") and not llvm.address_of_symbol(function.name):
            raise LookupError(f"{function.name} is not known outside numba")
    return _target_machine(llvm).emit_object(module), symbols


def _started() -> Any:
    llvm = importlib.import_module("llvmlite.binding")  # comes with numba
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _target_machine(llvm: Any) -> Any:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True,
        codemodel="jitdefault",
    )  # fmt: skip


_ARRAY = (
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
)  # fmt: skip
"""Owner, its parent, items, bytes an item, data, shape, strides."""


def _callable(function: Function, address: int) -> Function:
    """Return a caller by numba's convention: result pointer, exception pointer, then the arguments; an array takes
    seven."""
    kinds = _kinds(function)
    dtypes = [np.dtype(np.uint8 if kind == "bytes" else np.int64) for kind in kinds]
    types: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
    for kind in kinds:
        types += [ctypes.c_int64] if kind == "int" else _ARRAY
    native = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(address)

    def call(*arguments: Any) -> int:
        if len(arguments) != len(kinds):
            raise TypeError(f"{function.__name__} takes {len(kinds)} arguments")
        values: list[Any] = []
        for argument, kind, dtype in zip(arguments, kinds, dtypes, strict=True):
            if kind == "int":
                values.append(argument)
                continue
            if argument.dtype != dtype or argument.ndim != 1 or not argument.flags.c_contiguous:
                raise TypeError(f"{function.__name__} takes flat arrays of {dtype}")
            size = argument.itemsize
            values += (None, None, len(argument), size, argument.ctypes.data, len(argument), size)
        result, raised = ctypes.c_int64(), ctypes.c_void_p()
        if native(ctypes.addressof(result), ctypes.addressof(raised), *values):
            raise IndexError(f"{function.__name__}: an index is out of bounds")
        return result.value

    return call
