"""The practice cluster: a real Slurm of virtual nodes on one machine, without root.

lab = up(LabPlan(nodes=4, gpus_per_node=2))
subprocess.run(["srun", "-N4", "hostname"], env={**os.environ, **lab.environment()})
down(lab)
"""

from toolkit.lab.cluster import Condition, condition, down, up
from toolkit.lab.nodes import kill_node, restore_node
from toolkit.lab.observe import finished_jobs, nodes, queue
from toolkit.lab.plan import LabPlan
from toolkit.lab.registry import Lab, find, names

__all__ = [
    "Condition",
    "Lab",
    "LabPlan",
    "condition",
    "down",
    "find",
    "finished_jobs",
    "kill_node",
    "names",
    "nodes",
    "queue",
    "restore_node",
    "up",
]
