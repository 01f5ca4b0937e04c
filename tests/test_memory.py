"""Sizes of memory as people write them, and as systems tell them."""

import numpy as np
import pytest

from fado._memory import format_memory, free_memory, parse_memory


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("4GB", 4 * 10**9),
        ("500 MB", 5 * 10**8),
        ("2GiB", 2 * 2**30),
        (" 1.5gb ", 15 * 10**8),
        ("2000kB", 2 * 10**6),
        (".5 TB", 5 * 10**11),
        (3_000_000, 3_000_000),
        (np.int64(3_000_000), 3_000_000),
    ],
)
def test_sizes(size, expected):
    assert parse_memory(size) == expected


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        (
            ["4", "GB", "", "-1GB", "4 G B", "4GBs", "1e9", "nan GB", "4,5GB"],
            ValueError,
            "must be a size with its unit, such as '4GB' or '500MB', got",
        ),
        (["0GB", "10 B", "999KB", 4, -1], ValueError, "must be at least 1MB, got"),
        ([True, 4.5e9, None, b"4GB"], TypeError, "must be a size such as '4GB', or a whole number of bytes"),
    ],
)
def test_what_is_no_size(sizes, error, message):
    for size in sizes:
        with pytest.raises(error, match=f"^`--memory` {message}"):
            parse_memory(size, "--memory")


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (9.96e6, "10.0 MB"), (23.4e9, "23 GB"), (2e15, "2000 TB")],
)
def test_sizes_for_people(n_bytes, text):
    assert format_memory(n_bytes) == text


def system(root, **files):
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("DOT", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


MEMINFO = "MemTotal:       16000 kB\nMemFree:  1000 kB\nMemAvailable:    8000 kB\n"


def test_what_control_groups_leave(tmp_path):
    """Version 2: the job may take 3,000,000 bytes and uses 1,000,000, 200,000 of which are pages of files."""
    assert free_memory(tmp_path) is None
    assert free_memory(system(tmp_path, proc__meminfo=MEMINFO)) == 8000 * 1024
    system(tmp_path, proc__meminfo=MEMINFO, proc__self__cgroup="0::/user/job\n")
    top = "sys__fs__cgroup__user__"
    files = {"job__memoryDOTmax": "3000000", "job__memoryDOTcurrent": "1000000", "memoryDOTmax": "max"}
    files["job__memoryDOTstat"] = "anon 800000\ninactive_file 200000\n"
    system(tmp_path, **{top + name: content + "\n" for name, content in files.items()})
    assert free_memory(tmp_path) == 2_200_000
    system(tmp_path, **{top + "memoryDOTmax": "1500000\n", top + "memoryDOTcurrent": "1200000\n"})
    assert free_memory(tmp_path) == 300_000  # of the group above


def test_what_control_groups_of_version_1_leave(tmp_path):
    system(tmp_path, proc__meminfo=MEMINFO, proc__self__cgroup="4:cpu,memory:/job\n2:cpuset:/\n")
    top = "sys__fs__cgroup__memory__"  # of a container, whose group is mounted as the top
    files = {"memoryDOTlimit_in_bytes": "2000000", "memoryDOTusage_in_bytes": "2500000"}
    system(tmp_path, **{top + name: content for name, content in files.items()})
    assert free_memory(tmp_path) == 0
    system(tmp_path, **{top + "memoryDOTlimit_in_bytes": "9223372036854771712"})
    assert free_memory(tmp_path) == 8000 * 1024
