"""An emulation of OpenPBS and of Torque for tests: `qsub`, `qstat`, `qdel` and `pbsnodes`, without root.

No archive has either. As OpenPBS, this does what a real server, 23.06, was seen to do: jobs start in the home
directory, what they print is spooled and copied at the end, a job whose output cannot be copied has the exit status 0.
As Torque, it does what the sources of 6.1 and its manual say: the name and the output of an array's task get `-INDEX`,
an array knows no step, an ended job is kept in state C, its exit status is negative where Torque ended it.

It runs as the user, with nothing but the standard library: `python -m tests.emulated_pbs qsub …`. EMULATED_PBS names
its directory. In it, `torque` makes it Torque, `history` keeps ended jobs (`job_history_enable`, `keep_completed`), and
`nodes` names its nodes; by default it has one, `pbs1`.
"""
