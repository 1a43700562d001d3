"""What only Windows' own calls do with a file that others have open; imported on Windows alone.

Python opens files so that nobody can rename over them or remove them meanwhile. A file that is
opened here lets others do both, and its reader goes on with what was there before.
"""

import ctypes
import msvcrt
import os
from ctypes import wintypes
from pathlib import Path

_READ, _READ_ATTRIBUTES, _DELETE = 0x8000_0000, 0x80, 0x0001_0000
_SHARE_READ, _SHARE_WRITE, _SHARE_DELETE = 1, 2, 4
_SHARE_ALL = _SHARE_READ | _SHARE_WRITE | _SHARE_DELETE
_OPEN_EXISTING = 3
_BACKUP_SEMANTICS, _OPEN_LINK_ITSELF = 0x0200_0000, 0x0020_0000
_BASIC_INFORMATION, _RENAME_INFORMATION = 0, 22
_REPLACE, _ALSO_IF_OPEN = 1, 2

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreateFileW.restype = wintypes.HANDLE
_kernel.CreateFileW.argtypes = (
    wintypes.LPCWSTR,
    wintypes.DWORD,
    wintypes.DWORD,
    wintypes.LPVOID,
    wintypes.DWORD,
    wintypes.DWORD,
    wintypes.HANDLE,
)
_kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
_information = (wintypes.HANDLE, ctypes.c_int, wintypes.LPVOID, wintypes.DWORD)
_kernel.GetFileInformationByHandleEx.argtypes = _information
_kernel.SetFileInformationByHandle.argtypes = _information
_NO_HANDLE = wintypes.HANDLE(-1).value


def open_to_read(path: str | Path, *, keep_content: bool = False) -> int:
    """Open a file for reading, so that others may rename over it or remove it; return its descriptor.

    With `keep_content` nobody can open it for writing meanwhile.
    """
    share = _SHARE_READ | _SHARE_DELETE if keep_content else _SHARE_ALL
    handle = _open(path, _READ, share)
    try:
        return msvcrt.open_osfhandle(handle, os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT)
    except BaseException:
        _kernel.CloseHandle(handle)
        raise


def replace_open(source: str | Path, target: str | Path) -> bool:
    """Rename a file over one that others have open by `open_to_read`.

    Return False where that cannot be done: before Windows 10, on other disks than NTFS, or if
    somebody has it open as Python opens it.
    """
    name = f"{Path(target).absolute()}"

    class Rename(ctypes.Structure):
        _fields_ = (
            ("flags", wintypes.DWORD),
            ("folder", wintypes.HANDLE),
            ("length", wintypes.DWORD),
            ("name", wintypes.WCHAR * (len(name.encode("utf-16-le")) // 2 + 1)),
        )

    rename = Rename(_REPLACE | _ALSO_IF_OPEN, None, len(name.encode("utf-16-le")), name)
    handle = _open(source, _DELETE, _SHARE_ALL, _OPEN_LINK_ITSELF)
    try:
        return bool(
            _kernel.SetFileInformationByHandle(
                handle, _RENAME_INFORMATION, ctypes.byref(rename), ctypes.sizeof(rename)
            )
        )
    finally:
        _kernel.CloseHandle(handle)


def change_time(path: str | Path) -> int:
    """Return when Windows last noted a change of a file, whatever its mtime says; 0 if it cannot."""
    try:
        handle = _open(path, _READ_ATTRIBUTES, _SHARE_ALL, _BACKUP_SEMANTICS)
    except OSError:
        return 0
    times = (ctypes.c_longlong * 5)()  # creation, access, write, change, attributes
    try:
        known = _kernel.GetFileInformationByHandleEx(
            handle, _BASIC_INFORMATION, ctypes.byref(times), ctypes.sizeof(times)
        )
    finally:
        _kernel.CloseHandle(handle)
    return times[3] if known else 0


def _open(path: str | Path, access: int, share: int, flags: int = 0) -> int:
    if "\0" in f"{path}":  # the call would end the name there
        raise ValueError("embedded null character")
    handle = _kernel.CreateFileW(f"{path}", access, share, None, _OPEN_EXISTING, flags, None)
    if handle == _NO_HANDLE:
        code = ctypes.get_last_error()
        raise OSError(None, ctypes.FormatError(code).strip(), f"{path}", code)
    return handle
