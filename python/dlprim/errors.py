# SPDX-License-Identifier: MIT
"""Exceptions of dlprim: DlprimError and its subclasses. Each is also the exception that Python's users expect.

The text is a single sentence. It says what failed, for which object, and what would help. A value of a wrong Python
type raises TypeError, as everywhere in Python.
"""

__all__ = [
    "BuildError",
    "DeviceError",
    "DlprimError",
    "FileError",
    "FormatError",
    "InvalidArgumentError",
    "MissingFileError",
    "NotFoundError",
    "NumericError",
    "OutOfMemoryError",
    "UnsupportedError",
]


class DlprimError(Exception):
    """The base class of all exceptions that the library raises."""


class InvalidArgumentError(DlprimError, ValueError):
    """A shape, option or call is invalid."""


class NotFoundError(DlprimError, KeyError):
    """A device, tensor, parameter or engine does not exist."""

    def __str__(self) -> str:
        """Return the sentence without the quotation marks that KeyError would add."""
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()


class OutOfMemoryError(DlprimError, MemoryError):
    """There is too little memory on the host or on the device."""


class DeviceError(DlprimError, RuntimeError):
    """The OpenCL implementation reported an error, or the device cannot be used in this process."""


class BuildError(DlprimError, RuntimeError):
    """A kernel does not compile. The sentence names the file that contains the compiler's log."""


class FileError(DlprimError, OSError):
    """Reading or writing a file failed."""


class MissingFileError(FileError, FileNotFoundError):
    """A file that should be read does not exist."""


class FormatError(DlprimError, ValueError):
    """The contents of a file do not conform to its format."""


class UnsupportedError(DlprimError, NotImplementedError):
    """The request is valid, but this device or this build does not support it."""


class NumericError(DlprimError, ArithmeticError):
    """A number is NaN or infinite where it must be finite."""
