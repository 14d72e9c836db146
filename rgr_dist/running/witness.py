"""Says how to go on where this process is ended without a word, by Ray's compiled code or a kill.

A shell waits at the end of a pipe that closes with this process. It is dismissed before a process
ends by itself, having said what there is to say.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from rgr_dist.faults import WITNESSES

WAIT = """
read dismissed && exit
for folder in "$1" "$2"; do
    mkdir "$folder" 2>/dev/null
    if cat "$4" > "$folder/$3"; then log="; details in $folder/$3"; break; fi
done 2>/dev/null
printf 'rgr: this process was ended without a word, by Ray or from outside%s; %s\\n' "$log" "$5" >&2
"""


def call_witness(resume: str, output: int, folder: Path | None) -> None:
    """Start a witness, which writes to the present standard error.

    Args:
        resume: how to go on, in words.
        output: open file of what Ray prints, for the log.
        folder: of the log; the temporary folder where it cannot be made or written.
    """
    end, own = os.pipe()
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    name = f"rgr-ray-{now}-{os.getpid()}.log"
    temporary = tempfile.gettempdir()
    subprocess.Popen(
        [
            "sh",
            "-c",
            WAIT,
            "rgr",
            folder or temporary,
            temporary,
            name,
            f"/dev/fd/{output}",
            resume,
        ],
        stdin=end,
        stdout=subprocess.DEVNULL,
        pass_fds=[output],
        start_new_session=True,
    )
    os.close(end)
    WITNESSES.append(own)
