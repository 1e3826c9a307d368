"""Start JupyterLab in a job, after a notebook's cell has reported the device; `--check` ends after the cell.

JupyterLab listens on this node only: the printed `ssh` command, typed on your own machine, brings it to your browser.
"""

import getpass
import os
import platform
import socket
import sys

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
    node = platform.node()
    print(f"ssh -L {port}:127.0.0.1:{port} -J LOGIN-NODE {getpass.getuser()}@{node}", flush=True)
    # The token of the address that JupyterLab prints is the password: the log is for you alone.
    os.execvp("jupyter", ["jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"])
