# SPDX-License-Identifier: MIT
"""What dlprim raises: DlprimError and its children, each also the exception that Python's users expect.

The text is a single sentence that says what failed, on what, and what would help. A value of a wrong
Python type is a TypeError, as everywhere in Python.
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
    """The parent of everything that the library raises."""


class InvalidArgumentError(DlprimError, ValueError):
    """A shape, option or call that makes no sense."""


class NotFoundError(DlprimError, KeyError):
    """A device, tensor, parameter or engine that is not there."""

    def __str__(self) -> str:
        """Return the sentence, where KeyError would show it in quotes."""
        return str(self.args[0]) if len(self.args) == 1 else super().__str__()


class OutOfMemoryError(DlprimError, MemoryError):
    """The memory of the host or of the device does not suffice."""


class DeviceError(DlprimError, RuntimeError):
    """The OpenCL implementation reported an error, or the device cannot be used in this process."""


class BuildError(DlprimError, RuntimeError):
    """A kernel does not compile; the sentence names the file that holds the compiler's log."""


class FileError(DlprimError, OSError):
    """Reading or writing a file failed."""


class MissingFileError(FileError, FileNotFoundError):
    """A file that is to be read is not there."""


class FormatError(DlprimError, ValueError):
    """A file does not hold what its format asks for."""


class UnsupportedError(DlprimError, NotImplementedError):
    """What is asked for makes sense, but not on this device or in this build."""


class NumericError(DlprimError, ArithmeticError):
    """NaN or infinity where a number is needed."""
