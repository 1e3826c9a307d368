"""Start JupyterLab in a job, after a notebook's cell has reported the device; `--check` ends after the cell.

JupyterLab listens on this node only: the printed `ssh` command, typed on your own machine, brings it to your browser.
"""

import getpass
import os
import platform
import secrets
import socket
import subprocess
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

CELL = """
try:
    import torch
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
except ImportError:
    gpu = None
print("device:", gpu or "CPU")
"""

notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
NotebookClient(notebook, kernel_name="python3").execute()
print("Python", platform.python_version(), "|", notebook.cells[0].outputs[0].text.strip(), flush=True)

if "--check" not in sys.argv[1:]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # The token is a password: it goes to a file of yours, and not to the log of the job, which others may read.
    token = secrets.token_urlsafe(24)
    address = Path.home() / f"jupyterlab-{os.environ.get('SLURM_JOB_ID', os.getpid())}.url"
    with os.fdopen(os.open(address, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"http://127.0.0.1:{port}/lab?token={token}\n")
    print(f"1. ssh -L {port}:127.0.0.1:{port} -J LOGIN-NODE {getpass.getuser()}@{platform.node()}")
    print(f"2. In your browser open the address in {address}", flush=True)
    command = ["jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    try:
        status = subprocess.call(command, env={**os.environ, "JUPYTER_TOKEN": token})
    finally:
        address.unlink()
    sys.exit(status)
